//go:build !linux

package main

import "os"

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && f.Name() != os.DevNull
}

// pin would keep the calling goroutine on one core; how is not known here.
func pin() (string, error) { return "", nil }
