package cmdbuf_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/cmdbuf"
	"vkcompute/shaders"
)

// The memory of a grid belongs to the graph that reads it, as that of the arguments does.
func TestGraphKeepsItsGrids(t *testing.T) {
	s := newStream(t, cmdbuf.Options{})
	x := zeros(t, s, 4)
	grid, err := cmdbuf.Upload(s, []uint32{1, 1, 1}, 3)
	require.NoError(t, err)
	g, err := s.Capture(ctx, func(c *cmdbuf.Capture) error { return c.LaunchIndirect(shaders.Fill, grid, cmdbuf.Float32(3), x) })
	require.NoError(t, err)
	require.NoError(t, grid.Close())
	for range 20 { // whoever gets the memory writes zeros, no groups, into it
		other := upload(t, s, []uint32{0, 0, 0}, 3)
		require.NoError(t, s.Launch(shaders.Fill, cmdbuf.Uint32(0), other))
	}
	require.NoError(t, g.Replay())
	require.Equal(t, []float32{3, 3, 3, 3}, read(t, x))
	require.NoError(t, g.Close())
}
