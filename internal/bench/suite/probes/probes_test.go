package probes_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/internal/bench/suite/probes"
	"vkcompute/internal/bench/suite/probes/variant"
)

// skipDrift is the variable of package shaders.
const skipDrift = "VKCOMPUTE_SKIP_DRIFT"

// The committed binaries are what the sources compile to.
func TestBinariesMatchTheirSources(t *testing.T) {
	if os.Getenv(skipDrift) == "1" {
		t.Skip(skipDrift + " is set: GLSL and SPIR-V may differ")
	}
	for _, tool := range []string{"glslc", "spirv-val"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatalf("want %s to compile the sources, found none: install glslc and spirv-tools, or set %s=1", tool, skipDrift)
		}
	}
	dir := t.TempDir()
	out, err := exec.Command("go", "run", "./compile", dir).CombinedOutput()
	require.NoError(t, err, string(out))
	want, err := filepath.Glob(filepath.Join(dir, "*.spv"))
	require.NoError(t, err)
	have, err := filepath.Glob("spv/*.spv")
	require.NoError(t, err)
	require.Len(t, have, len(want), "spv/ must hold a binary for each variant")
	for _, f := range want {
		fresh, err := os.ReadFile(f)
		require.NoError(t, err)
		committed, err := os.ReadFile(filepath.Join("spv", filepath.Base(f)))
		require.NoError(t, err)
		require.True(t, string(fresh) == string(committed), "%s is not what its source compiles to: run go generate ./internal/bench/suite/probes", filepath.Base(f))
	}
}

func TestEveryProbeLoads(t *testing.T) {
	for _, v := range variant.FMAs() {
		k, err := probes.FMA(v, 64)
		require.NoError(t, err, v)
		require.Equal(t, 4, k.Module.PushSize)
	}
	for _, w := range []probes.Way{probes.Turns, probes.Runs} {
		_, err := probes.Read(w, 64)
		require.NoError(t, err)
		_, err = probes.Copy(w, 64)
		require.NoError(t, err)
	}
	_, err := probes.Read("sideways", 64)
	require.Error(t, err)
}
