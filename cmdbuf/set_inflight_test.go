package cmdbuf_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/cmdbuf"
	"vkcompute/internal/shim"
	"vkcompute/internal/vktest"
	"vkcompute/shaders"
)

// A tensor that Set took out of a graph is still read by the replays in flight. Whoever
// closes it gives its memory up, and nobody may be given it, to write at once through the
// mapping, before those are done: neither on the graph's stream nor on the one the tensor
// is of.
func TestSetWhileAReplayIsInFlight(t *testing.T) {
	for _, name := range []string{"a tensor of the stream", "a tensor of another stream"} {
		t.Run(name, func(t *testing.T) {
			d, driver := vktest.OpenProfile(t, shim.Plain)
			s, err := cmdbuf.NewStream(d, cmdbuf.Options{})
			require.NoError(t, err)
			defer func() { require.NoError(t, s.Close(ctx)) }()
			owner := s
			if name == "a tensor of another stream" {
				owner, err = cmdbuf.NewStream(d, cmdbuf.Options{})
				require.NoError(t, err)
				defer func() { require.NoError(t, owner.Close(ctx)) }()
			}
			const n = 256
			fill := func(v float32) []float32 {
				list := make([]float32, n)
				for i := range list {
					list[i] = v
				}
				return list
			}
			first, second := upload(t, owner, fill(1), n), upload(t, s, fill(10), n)
			out := zeros(t, s, n)
			g, err := s.Capture(ctx, func(c *cmdbuf.Capture) error {
				return c.Launch(shaders.Add, cmdbuf.Param("x", first), out, out)
			})
			require.NoError(t, err)
			require.NoError(t, owner.Sync(ctx))
			require.NoError(t, s.Sync(ctx))

			driver.Hang()
			require.NoError(t, g.ReplayN(2))
			require.NoError(t, g.Set("x", second))
			require.NoError(t, first.Close())
			require.NoError(t, g.Replay())
			var later []*cmdbuf.Tensor[float32]
			for range 4 {
				later = append(later, upload(t, owner, fill(1000), n))
			}
			driver.Release()
			require.Equal(t, fill(12), read(t, out), "twice the first, once the second")
			for _, x := range later {
				require.Equal(t, fill(1000), read(t, x))
			}
			require.NoError(t, g.Close())
			require.NoError(t, s.Validate())
			require.NoError(t, owner.Validate())
			require.NoError(t, out.Close())
			require.NoError(t, second.Close())
			for _, x := range later {
				require.NoError(t, x.Close())
			}
		})
	}
}
