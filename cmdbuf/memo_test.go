package cmdbuf_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/cmdbuf"
	"vkcompute/pool"
	"vkcompute/shaders"
)

// A launch that was seen before is still refused when what it names is gone, and still
// right when the memory behind it is another.
func TestRememberedLaunches(t *testing.T) {
	s := newStream(t, cmdbuf.Options{})
	for range 3 {
		x, err := cmdbuf.Upload(s, []float32{1, 2}, 2)
		require.NoError(t, err)
		for range 4 {
			require.NoError(t, s.Launch(shaders.Add, x, x, x))
		}
		require.Equal(t, []float32{16, 32}, read(t, x))
		require.NoError(t, x.Close())
		require.ErrorIs(t, s.Launch(shaders.Add, x, x, x), cmdbuf.ErrClosed)
		require.NoError(t, s.InstallPools(ctx, pool.SubSlices()))
	}
	// More different launches than are remembered.
	y := zeros(t, s, 64)
	bits := upload(t, s, []uint32{0}, 1)
	for i := range 9000 {
		require.NoError(t, s.Launch(shaders.Fill, cmdbuf.Uint32(uint32(i/2)), bits))
	}
	require.Equal(t, []uint32{4499}, read(t, bits))
	require.NoError(t, s.Launch(shaders.Fill, cmdbuf.Float32(3), y))
	require.Equal(t, float32(3), read(t, y)[63])
	require.NoError(t, s.Validate())
}

// The README shows the example that runs.
func TestReadmeShowsTheExample(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	source, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	_, body, ok := strings.Cut(string(source), "func Example() {\n")
	require.True(t, ok)
	body, _, ok = strings.Cut(body, "\t// Output:")
	require.True(t, ok)
	body = strings.ReplaceAll("\n"+body, "\n\t", "\n")
	require.Contains(t, string(readme), strings.TrimSpace(body))
}
