package cmdbuf_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/cmdbuf"
	"vkcompute/shaders"
)

// A launch that had nothing to do when it was captured, and so no push constants, has
// them when a parameter gives it something.
func TestParametersThatBeginEmpty(t *testing.T) {
	s := newStream(t, cmdbuf.Options{})
	none, x, gradient := zeros(t, s, 0), zeros(t, s, 4), upload(t, s, []float32{2}, 1)
	g, err := s.Capture(ctx, func(c *cmdbuf.Capture) error {
		return c.Launch(shaders.SGD, gradient, cmdbuf.Param("rate", cmdbuf.Float32(0.5)), cmdbuf.Param("weights", none))
	})
	require.NoError(t, err)
	require.NoError(t, g.Replay())
	require.NoError(t, g.Set("weights", x))
	require.NoError(t, g.Replay())
	require.Equal(t, []float32{-1, -1, -1, -1}, read(t, x))
	require.NoError(t, g.Set("weights", none))
	require.NoError(t, g.Set("rate", cmdbuf.Float32(1)))
	require.NoError(t, g.Replay())
	require.NoError(t, g.Set("weights", x))
	require.NoError(t, g.Replay())
	require.Equal(t, []float32{-3, -3, -3, -3}, read(t, x))
	require.NoError(t, g.Close())
}
