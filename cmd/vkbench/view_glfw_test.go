//go:build glfw

package main

import (
	"encoding/binary"
	"image/png"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vkcompute/cmd/vkbench/internal/xvfb"
	"vkcompute/internal/testenv"
)

// What is on the screen is the scene, in tolerance: a screenshot of the X server's
// memory beside the picture that the scene's own test keeps.
func TestViewOnAScreen(t *testing.T) {
	env := testenv.Require(t)
	display, screen := xvfb.Start(t, "640x480")
	exe, err := os.Executable()
	require.NoError(t, err)
	for _, scene := range []string{"heat", "particles", "mandelbrot"} {
		c := exec.Command(exe, "view", scene, "--size", "128", "--window", "384", "--pause-at", "40", "--plain")
		c.Args[0] = "vkbench"
		c.Env = append(append(os.Environ(), env.Variables()...), "DISPLAY="+display)
		var said strings.Builder
		c.Stdout, c.Stderr = &said, &said
		require.NoError(t, c.Start())
		best := math.Inf(1)
		for range 1200 {
			if best = min(best, apart(t, screen, scene)); best < 6 {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		// An interrupt closes the window.
		require.NoError(t, c.Process.Signal(os.Interrupt))
		c.Wait()
		require.Less(t, best, 6.0, "%s: mean difference of blocks between screen and picture: %s", scene, said.String())
		require.Equal(t, good, c.ProcessState.ExitCode(), said.String())
	}
}

// apart is the mean difference between blocks of eight by eight pixels of the picture and
// of three times as many on the screen.
func apart(t *testing.T, screen, scene string) float64 {
	all, err := os.ReadFile(screen)
	require.NoError(t, err)
	if len(all) < 100 {
		return math.Inf(1)
	}
	word := func(i int) int { return int(binary.BigEndian.Uint32(all[4*i:])) }
	line, at, order := word(12), word(0)+12*word(19), [3]int{2, 1, 0}
	if word(7) == 1 { // the highest byte of a pixel first
		order = [3]int{1, 2, 3}
	}
	f, err := os.Open(filepath.Join("internal", "scene", "testdata", scene+".png"))
	require.NoError(t, err)
	defer f.Close()
	want, err := png.Decode(f)
	require.NoError(t, err)
	sum, n := 0.0, 0.0
	for by := 0; by < 128; by += 8 {
		for bx := 0; bx < 128; bx += 8 {
			var d [3]float64
			for y := range 8 {
				for x := range 8 {
					r, g, b, _ := want.At(bx+x, by+y).RGBA()
					for k, v := range []uint32{r, g, b} {
						d[k] += float64(v>>8) / 64
					}
				}
			}
			for y := range 24 {
				for x := range 24 {
					p := all[at+(3*by+y)*line+4*(3*bx+x):]
					for k := range 3 {
						d[k] -= float64(p[order[k]]) / (24 * 24)
					}
				}
			}
			for _, v := range d {
				sum += math.Abs(v)
				n++
			}
		}
	}
	return sum / n
}
