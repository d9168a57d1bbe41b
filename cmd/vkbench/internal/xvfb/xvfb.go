// Package xvfb starts X servers without a screen, for tests that open windows.
package xvfb

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Start starts a server, to be stopped with the test, whose screen has a size such as
// "640x480", and returns its display and the file in which it keeps what it shows.
// VKCOMPUTE_SKIP_WINDOW=1 is for machines without Xvfb.
func Start(t *testing.T, size string) (display, screen string) {
	t.Helper()
	if os.Getenv("VKCOMPUTE_SKIP_WINDOW") == "1" {
		t.Skip("VKCOMPUTE_SKIP_WINDOW is set: no window is opened")
	}
	path, err := exec.LookPath("Xvfb")
	if err != nil {
		t.Fatal("want Xvfb to open windows on, found none: install xvfb, or set VKCOMPUTE_SKIP_WINDOW=1")
	}
	dir := t.TempDir()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	c := exec.Command(path, "-displayfd", "3", "-screen", "0", size+"x24", "-fbdir", dir, "-nolisten", "tcp", "-noreset")
	c.ExtraFiles = []*os.File{w}
	require.NoError(t, c.Start())
	require.NoError(t, w.Close())
	t.Cleanup(func() {
		c.Process.Signal(os.Interrupt)
		c.Wait()
	})
	line, err := bufio.NewReader(r).ReadString('\n')
	require.NoError(t, err, "Xvfb did not start")
	return ":" + strings.TrimSpace(line), filepath.Join(dir, "Xvfb_screen0")
}
