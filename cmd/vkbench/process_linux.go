package main

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// pin keeps the calling goroutine, and every thread the driver starts from it, on one
// core, and says which. The threads of the Go runtime go where they like: one that watches for
// long calls wakes fifty thousand times a second when it finds them, and would take the
// core away from what is measured.
func pin() (string, error) {
	runtime.LockOSThread()
	var allowed, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		return "", fmt.Errorf("reading the CPU affinity: %w", err)
	}
	// The last core of those allowed: the first is where most interrupts go.
	core := -1
	for i := range len(allowed) * 64 {
		if allowed.IsSet(i) {
			core = i
		}
	}
	one.Set(core)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return "", fmt.Errorf("pinning to core %d: %w", core, err)
	}
	return fmt.Sprintf("its driver and measuring thread on core %d", core), nil
}
