package main

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
)

// hostWarnings tells what makes figures of this machine or this program worse than they
// could be. root is the file system to look at.
func hostWarnings(root string) []string {
	var list []string
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch {
			case s.Key == "-race" && s.Value == "true":
				list = append(list, "built with the race detector: several times slower than it should be")
			case s.Key == "-gcflags" && strings.Contains(s.Value, "-N"):
				list = append(list, "built without optimisation (-gcflags "+s.Value+")")
			}
		}
	}
	read := func(path string) string {
		text, _ := os.ReadFile(filepath.Join(root, path))
		return strings.TrimSpace(string(text))
	}
	const cpu = "sys/devices/system/cpu/cpu0/cpufreq/"
	if g := read(cpu + "scaling_governor"); g == "powersave" && read(cpu+"scaling_driver") != "intel_pstate" {
		list = append(list, `the processor's clock is held low (governor "powersave"): try governor "performance"`)
	}
	top, _ := strconv.ParseFloat(read(cpu+"cpuinfo_max_freq"), 64)
	if limit, err := strconv.ParseFloat(read(cpu+"scaling_max_freq"), 64); err == nil && limit < 0.9*top {
		list = append(list, "the processor's clock is limited to "+strconv.FormatFloat(limit/1e6, 'f', 1, 64)+" of "+strconv.FormatFloat(top/1e6, 'f', 1, 64)+" GHz")
	}
	files, _ := filepath.Glob(filepath.Join(root, "sys/devices/system/cpu/cpu*/thermal_throttle/core_throttle_count"))
	for _, f := range files {
		text, _ := os.ReadFile(f)
		if n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil && n > 0 {
			list = append(list, "the processor has been throttled for heat since it was started: let it cool, compare with care")
			break
		}
	}
	return list
}
