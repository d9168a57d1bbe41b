package shaders_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// skipDrift, set to 1, is for machines without the compiler. It is a variable and
// not a flag, so that it may stand before a test of all packages.
const skipDrift = "VKCOMPUTE_SKIP_DRIFT"

// The committed binaries are what the sources compile to. Without the compiler
// this fails rather than passes unseen; VKCOMPUTE_SKIP_DRIFT=1 skips on purpose.
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
	cmd := exec.Command("go", "run", "./internal/compile", dir)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))

	want, err := filepath.Glob(filepath.Join(dir, "*.spv"))
	require.NoError(t, err)
	have, err := filepath.Glob("spv/*.spv")
	require.NoError(t, err)
	require.Equal(t, bases(want), bases(have), "spv/ must hold one binary per source")
	version, _ := exec.Command("glslc", "--version").Output()
	for _, f := range want {
		fresh, err := os.ReadFile(f)
		require.NoError(t, err)
		committed, err := os.ReadFile(filepath.Join("spv", filepath.Base(f)))
		require.NoError(t, err)
		if string(fresh) != string(committed) {
			t.Errorf("%s is not what its source compiles to: run go generate ./shaders (another version of glslc may differ too, here %s)",
				filepath.Base(f), strings.Split(string(version), "\n")[0])
		}
	}
}

func bases(paths []string) []string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = filepath.Base(p)
	}
	return out
}
