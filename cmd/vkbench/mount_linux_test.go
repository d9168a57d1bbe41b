package main

import (
	"testing"

	"golang.org/x/sys/unix"
)

// mountSmall mounts a file system of 16 KiB for the test, where that is allowed.
func mountSmall(t *testing.T, dir string) bool {
	if unix.Mount("small", dir, "tmpfs", 0, "size=16k") != nil {
		return false
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	return true
}
