package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"vkcompute/cmdbuf"
	"vkcompute/vk"
)

// cacheFolder is the one asked for, or that of this user.
func cacheFolder(asked string) (string, error) {
	if asked != "" {
		return asked, nil
	}
	root, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("%w; name a folder with --cache", err)
	}
	return filepath.Join(root, "vkcompute"), nil
}

// writable makes a folder if need be, and fails early where nothing could be kept, rather
// than after minutes of measuring.
func writable(folder string) error {
	err := os.MkdirAll(folder, 0o700)
	if err == nil {
		var f *os.File
		if f, err = os.CreateTemp(folder, "tuning-*.tmp"); err == nil {
			f.Close()
			err = os.Remove(f.Name())
		}
	}
	if err != nil {
		return fmt.Errorf("a tuning would be kept in %s: %w; name another folder with --cache, or measure with --dry-run", folder, err)
	}
	return nil
}

// tuningOf says what a folder has of a device's tuning, in a line.
func tuningOf(folder string, d *vk.DeviceInfo) string {
	t, err := cmdbuf.LoadTuning(folder, *d)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "the default; vkbench tune measures whether another is better"
	case err != nil:
		return "the default: " + err.Error() + "; vkbench tune measures anew"
	}
	return fmt.Sprintf("%s (%s)", cmdbuf.TuningFile(folder, *d), t.Comment)
}
