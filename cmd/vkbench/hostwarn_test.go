package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHostWarnings(t *testing.T) {
	root := t.TempDir()
	put := func(path, text string) {
		path = filepath.Join(root, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text+"\n"), 0o644))
	}
	before := len(hostWarnings(root))
	const cpu = "sys/devices/system/cpu/cpu0/"
	put(cpu+"cpufreq/scaling_governor", "performance")
	put(cpu+"cpufreq/cpuinfo_max_freq", "4000000")
	put(cpu+"cpufreq/scaling_max_freq", "4000000")
	put(cpu+"thermal_throttle/core_throttle_count", "0")
	require.Len(t, hostWarnings(root), before)
	put(cpu+"cpufreq/scaling_governor", "powersave")
	put(cpu+"cpufreq/scaling_max_freq", "2000000")
	put(cpu+"thermal_throttle/core_throttle_count", "12")
	list := hostWarnings(root)
	require.Len(t, list, before+3)
	require.Contains(t, list[before], "powersave")
	require.Contains(t, list[before+1], "2.0 of 4.0 GHz")
	require.Contains(t, list[before+2], "throttled")
	put(cpu+"cpufreq/scaling_driver", "intel_pstate")
	require.Len(t, hostWarnings(root), before+2, "its powersave is no low clock")
}

func TestBar(t *testing.T) {
	for part, want := range map[float64]string{0: "▕    ▏", 0.5: "▕██  ▏", 1: "▕████▏", 0.28: "▕█▏  ▏"} {
		require.Equal(t, want, bar(part, 4))
	}
}
