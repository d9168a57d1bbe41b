package cmdbuf_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The committed binaries of the tests' own shaders are what their sources compile to.
func TestShadersMatchTheirSources(t *testing.T) {
	if os.Getenv("VKCOMPUTE_SKIP_DRIFT") == "1" {
		t.Skip("VKCOMPUTE_SKIP_DRIFT is set: GLSL and SPIR-V may differ")
	}
	for _, folder := range []string{"testdata", filepath.Join("testdata", "user")} {
		sources, err := filepath.Glob(filepath.Join(folder, "*.comp"))
		require.NoError(t, err)
		require.NotEmpty(t, sources)
		for _, source := range sources {
			out := filepath.Join(t.TempDir(), "out.spv")
			message, err := exec.Command("glslc", "--target-env=vulkan1.2", "-O", "-Werror", source, "-o", out).CombinedOutput()
			require.NoError(t, err, "glslc: %s", message)
			fresh, err := os.ReadFile(out)
			require.NoError(t, err)
			committed, err := os.ReadFile(strings.TrimSuffix(source, ".comp") + ".spv")
			require.NoError(t, err)
			require.True(t, string(fresh) == string(committed), "%s is not what its binary was made of", source)
		}
	}
}
