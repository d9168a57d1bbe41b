package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A file appears whole or not at all.
func TestOutputThatFailsLeavesTheOldFile(t *testing.T) {
	dir := t.TempDir()
	o := output{path: filepath.Join(dir, "report.json")}
	require.NoError(t, os.WriteFile(o.path, []byte("old"), 0o644))
	boom := errors.New("boom")
	err := o.write(func(w io.Writer) error {
		fmt.Fprint(w, "half of the new")
		return boom
	})
	require.ErrorIs(t, err, boom)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1)
	text, err := os.ReadFile(o.path)
	require.NoError(t, err)
	require.Equal(t, "old", string(text))
	require.NoError(t, o.write(func(w io.Writer) error { _, err := fmt.Fprint(w, "new"); return err }))
	text, err = os.ReadFile(o.path)
	require.NoError(t, err)
	require.Equal(t, "new", string(text))
}

func TestOutputOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	if !mountSmall(t, dir) {
		t.Skip("no small file system can be mounted here; /dev/full is tested by the scripts")
	}
	o := output{path: filepath.Join(dir, "report.json")}
	require.NoError(t, o.check())
	err := o.write(func(w io.Writer) error {
		_, err := w.Write(bytes.Repeat([]byte("figures "), 1<<14))
		return err
	})
	require.ErrorContains(t, err, "no space left")
	require.ErrorContains(t, err, "output "+o.path)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left, "no half-written file")
}
