package testenv

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// ErrNoDriver says that no Vulkan driver, or not the one asked for, is
// installed.
var ErrNoDriver = errors.New("no Vulkan driver")

// Driver names what the tests run on.
type Driver string

const (
	// Lavapipe is Mesa's CPU driver.
	Lavapipe Driver = "lavapipe"
	// SwiftShader is the CPU driver of Chromium.
	SwiftShader Driver = "swiftshader"
	// System is whatever the loader finds by itself, several devices perhaps.
	System Driver = "system"
)

// driverPatterns are globs of the manifests of a driver, relative to the root
// of the file system.
func driverPatterns(d Driver) []string {
	switch d {
	case Lavapipe:
		return prefixed(icdFolders(), "lvp_icd*.json")
	case SwiftShader:
		return append(prefixed(chromiumFolders(), "vk_swiftshader_icd.json"),
			prefixed(icdFolders(), "vk_swiftshader_icd*.json")...)
	default:
		return prefixed(icdFolders(), "*.json")
	}
}

func icdFolders() []string {
	return []string{
		"usr/share/vulkan/icd.d", "usr/local/share/vulkan/icd.d", "etc/vulkan/icd.d",
		"opt/homebrew/share/vulkan/icd.d", "opt/homebrew/etc/vulkan/icd.d", "usr/local/etc/vulkan/icd.d",
	}
}

func chromiumFolders() []string {
	return []string{"usr/lib/chromium", "usr/lib64/chromium-browser", "usr/lib/chromium-browser"}
}

func prefixed(folders []string, name string) []string {
	out := make([]string, len(folders))
	for i, f := range folders {
		out[i] = filepath.Join(f, name)
	}
	return out
}

// findDriver returns the manifests to hand the loader, joined as it wants
// them, and which driver they belong to. Empty files mean: leave the loader to
// its own search.
func findDriver(root string, getenv func(string) string) (d Driver, files string, err error) {
	want := getenv(varDriver)
	switch Driver(want) {
	case "", System:
		for _, v := range []string{varDriverFiles, varICDFiles} {
			if f := getenv(v); f != "" {
				return driverOf(f), f, nil
			}
		}
		if runtime.GOOS != "windows" && len(globAll(root, driverPatterns(System))) == 0 {
			return System, "", noDriver("any driver", driverPatterns(System))
		}
		return System, "", nil
	case Lavapipe, SwiftShader:
		found := globAll(root, driverPatterns(Driver(want)))
		if len(found) == 0 {
			return Driver(want), "", noDriver("driver "+want, driverPatterns(Driver(want)))
		}
		return Driver(want), found[0], nil
	}
	if _, err := os.Stat(want); err != nil {
		return System, "", fmt.Errorf("%w: %s=%s is none of %s, %s, %s and no readable driver manifest: %w",
			ErrNoDriver, varDriver, want, Lavapipe, SwiftShader, System, err)
	}
	return driverOf(want), want, nil
}

func noDriver(what string, patterns []string) error {
	return fmt.Errorf("%w: wanted %s, found none of /%s; run scripts/setup, or set %s=1 to skip the tests that need one",
		ErrNoDriver, what, strings.Join(patterns, " /"), varNoDriver)
}

// driverOf tells a driver by the file name of its manifest: tests that differ
// by driver must know it also when the user chose the manifest.
func driverOf(files string) Driver {
	list := filepath.SplitList(files)
	if len(list) != 1 {
		return System
	}
	name := filepath.Base(list[0])
	switch {
	case strings.HasPrefix(name, "lvp_icd"):
		return Lavapipe
	case strings.HasPrefix(name, "vk_swiftshader_icd"):
		return SwiftShader
	}
	return System
}

func globAll(root string, patterns []string) []string {
	var out []string
	for _, p := range patterns {
		// The patterns are constants of this package; Glob fails on a bad
		// pattern only.
		m, _ := filepath.Glob(filepath.Join(root, p))
		out = append(out, m...)
	}
	return out
}

// beside resolves a library path of a manifest as the loader does: relative
// with a slash means relative to the manifest, a bare name is left to the
// dynamic linker.
func beside(manifest, library string) string {
	if filepath.IsAbs(library) || !strings.ContainsRune(filepath.ToSlash(library), '/') {
		return library
	}
	return filepath.Join(filepath.Dir(manifest), library)
}
