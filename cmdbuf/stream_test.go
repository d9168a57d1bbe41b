package cmdbuf_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/cmdbuf"
	"vkcompute/metacache"
	"vkcompute/shaders"
)

func TestLaunchAndReplay(t *testing.T) {
	s := newStream(t, cmdbuf.Options{})
	x := upload(t, s, []float32{1, 2, 3, 4}, 2, 2)
	y := upload(t, s, []float32{10, 20}, 2)
	z := zeros(t, s, 2, 2)
	require.NoError(t, s.Launch(shaders.Add, x, y, z))
	require.Equal(t, []float32{11, 22, 13, 24}, read(t, z))

	g, err := s.Capture(ctx, func(c *cmdbuf.Capture) error { return c.Launch(shaders.Add, z, y, z) })
	require.NoError(t, err)
	for range 3 {
		require.NoError(t, g.Replay())
	}
	require.Equal(t, []float32{41, 82, 43, 84}, read(t, z))
	require.NoError(t, g.Close())
}

func TestInfosOutliveATinyCache(t *testing.T) {
	// A cache of one entry evicts every info while the commands that read it have not
	// even been submitted.
	s := newStream(t, cmdbuf.Options{Cache: &metacache.Policy{MaxEntries: 1, MaxCachedSize: 2048}, BatchLimit: 1000})
	const n = 500
	x := zeros(t, s, n)
	for i := range n {
		v, err := x.Range(0, i, i+1, 1)
		require.NoError(t, err)
		require.NoError(t, s.Launch(shaders.Fill, cmdbuf.Float32(float32(i)), v))
	}
	require.Equal(t, uint64(0), s.Stats().Submissions)
	for i, v := range read(t, x) {
		require.Equal(t, float32(i), v)
	}
}

func TestWarmLaunchesAllocateNothing(t *testing.T) {
	s := newStream(t, cmdbuf.Options{BatchLimit: 64})
	x := upload(t, s, make([]float32, 64), 64)
	z := zeros(t, s, 64)
	i := float32(0)
	launch := func() {
		i++
		if s.Launch(shaders.Add, x, z, z) != nil || s.Launch(shaders.Fill, cmdbuf.Float32(float32(int(i)%16)), z) != nil {
			t.Fatal("launch failed")
		}
	}
	for range 10000 {
		launch()
	}
	require.Zero(t, testing.AllocsPerRun(5000, launch))
}
