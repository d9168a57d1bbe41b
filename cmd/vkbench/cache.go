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
