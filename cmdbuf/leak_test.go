package cmdbuf_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/cmdbuf"
	"vkcompute/internal/memstat"
	"vkcompute/internal/testenv"
	"vkcompute/internal/vktest"
	"vkcompute/shaders"
	"vkcompute/vk"
)

// What the library allocates in C, or has the driver allocate, for launches, replays and
// graphs is given back. The validation layer keeps books of its own that grow, so it is
// not there.
func TestNoCMemoryGrows(t *testing.T) {
	vktest.Options(t)
	if _, ok := memstat.InUse(); !ok {
		t.Skip("this C library keeps no such books")
	}
	for _, addresses := range []bool{false, true} {
		name := "descriptors"
		if addresses {
			name = "addresses"
		}
		t.Run(name, func(t *testing.T) { noCMemoryGrows(t, addresses) })
	}
}

func noCMemoryGrows(t *testing.T, addresses bool) {
	d, err := vk.Open(vk.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	if addresses && !d.Info().Features.DeviceAddress {
		t.Skip("the device has none")
	}
	s, err := cmdbuf.NewStream(d, cmdbuf.Options{Addresses: addresses})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(ctx)) })
	x, y := zeros(t, s, 64), zeros(t, s, 64)
	by := []*cmdbuf.Tensor[float32]{zeros(t, s, 64), zeros(t, s, 64)}
	record := func(c *cmdbuf.Capture) error {
		for range 3 {
			if err := c.Launch(shaders.Add, x, y, x); err != nil {
				return err
			}
		}
		return c.Launch(shaders.Mul, x, cmdbuf.Param("by", by[0]), x)
	}
	g, err := s.Capture(ctx, record)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.Close()) })
	n := 0
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name  string
		share int // of the cycles
		cycle func()
	}{
		{"launch", 1, func() { check(s.Launch(shaders.Add, x, y, x)) }},
		{"launch with a new info", 1, func() {
			n++
			check(s.Launch(shaders.Fill, cmdbuf.Float32(float32(n)), x))
		}},
		{"replay", 1, func() { check(g.Replay()) }},
		{"changed replay", 4, func() {
			n++
			check(g.Set("by", by[n%2]))
			check(g.Replay())
		}},
		{"graph", 1, func() {
			g, err := s.Capture(ctx, record)
			check(err)
			check(g.Replay())
			check(g.Close())
		}},
		{"tensor", 2, func() {
			t, err := cmdbuf.Upload(s, []float32{1, 2, 3}, 3)
			check(err)
			check(s.Launch(shaders.Copy, t, t))
			check(t.Close())
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cycles := 2_000
			if testenv.Long() {
				cycles = 100_000
			} else if testing.Short() {
				cycles = 500
			}
			cycles /= c.share
			measure := func() float64 {
				check(s.Sync(ctx))
				before, _ := memstat.InUse()
				for i := range cycles {
					c.cycle()
					if i%64 == 63 {
						check(s.Sync(ctx))
					}
				}
				check(s.Sync(ctx))
				after, _ := memstat.InUse()
				return float64(after-before) / float64(cycles)
			}
			measure() // what is made once
			// Threads of the driver come and go; a leak comes every time.
			best := measure()
			for range 8 {
				if best < 1 {
					break
				}
				best = min(best, measure())
			}
			t.Logf("%.3f bytes a cycle", best)
			// The smallest piece that can leak takes 24 bytes.
			require.Less(t, best, 12.0)
		})
	}
}
