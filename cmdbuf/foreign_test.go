package cmdbuf_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/cmdbuf"
	"vkcompute/internal/vktest"
	"vkcompute/shaders"
)

// The replays of a graph count on its own stream's timeline: a tensor of another stream
// that it used must not wait for that many submissions of its own.
func TestGraphUsesTensorsOfAnotherStream(t *testing.T) {
	d := vktest.Open(t)
	a, err := cmdbuf.NewStream(d, cmdbuf.Options{})
	require.NoError(t, err)
	b, err := cmdbuf.NewStream(d, cmdbuf.Options{})
	require.NoError(t, err)
	x, err := cmdbuf.Upload(a, []float32{1, 2, 3}, 3)
	require.NoError(t, err)
	require.NoError(t, a.Sync(ctx))
	own, err := cmdbuf.Upload(b, []float32{4, 5, 6}, 3)
	require.NoError(t, err)
	out, err := cmdbuf.New[float32](b, 3)
	require.NoError(t, err)
	g, err := b.Capture(ctx, func(c *cmdbuf.Capture) error { return c.Launch(shaders.Add, cmdbuf.Param("x", x), x, out) })
	require.NoError(t, err)
	for range 20 {
		require.NoError(t, g.Replay())
	}
	require.NoError(t, g.Set("x", own), "which lets go of the other stream's")
	require.NoError(t, g.Replay())
	found, err := out.Read(ctx)
	require.NoError(t, err)
	require.Equal(t, []float32{5, 7, 9}, found)
	require.NoError(t, g.Close())
	require.NoError(t, out.Close())
	require.NoError(t, own.Close())
	require.NoError(t, b.Close(ctx))
	require.NoError(t, x.Close())
	require.NoError(t, a.Close(ctx), "nothing waits any more")
}
