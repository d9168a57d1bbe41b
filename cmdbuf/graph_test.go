package cmdbuf_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/cmdbuf"
	"vkcompute/internal/testenv"
	"vkcompute/metacache"
	"vkcompute/pool"
	"vkcompute/shaders"
	"vkcompute/vk"
)

// fills captures a graph that writes first+i into element i of x.
func fills(t *testing.T, s *cmdbuf.Stream, x *cmdbuf.Tensor[float32], first float32) *cmdbuf.Graph {
	t.Helper()
	g, err := s.Capture(ctx, func(c *cmdbuf.Capture) error {
		for i := range x.Len() {
			v, err := x.Range(0, i, i+1, 1)
			if err != nil {
				return err
			}
			if err := c.Launch(shaders.Fill, cmdbuf.Float32(first+float32(i)), v); err != nil {
				return err
			}
		}
		return nil
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.Close()) })
	return g
}

func ascending(first float32, n int) []float32 {
	list := make([]float32, n)
	for i := range list {
		list[i] = first + float32(i)
	}
	return list
}

// thrash launches more different infos than the cache holds.
func thrash(t *testing.T, s *cmdbuf.Stream, x *cmdbuf.Tensor[float32]) {
	t.Helper()
	for i := range 20 {
		require.NoError(t, s.Launch(shaders.Fill, cmdbuf.Float32(-float32(i)), x))
	}
}

// A graph pins every info it touched, hit or miss: whatever happens to the cache and the
// pools, a replay gives the same.
func TestGraphKeepsItsInfos(t *testing.T) {
	s := newStream(t, cmdbuf.Options{Cache: &metacache.Policy{MaxEntries: 2, MaxCachedSize: 2048}})
	x, scratch := zeros(t, s, 30), zeros(t, s, 7)
	// Element 3's info is in the cache already: a hit of the capture.
	v, err := x.Range(0, 3, 4, 1)
	require.NoError(t, err)
	require.NoError(t, s.Launch(shaders.Fill, cmdbuf.Float32(103), v))
	g := fills(t, s, x, 100)
	require.EqualValues(t, 30, s.Stats().Cache.PinnedEntries)
	for round := range 4 {
		thrash(t, s, scratch)
		require.NoError(t, s.Launch(shaders.Fill, cmdbuf.Float32(-1), x))
		switch round {
		case 1:
			require.ErrorIs(t, s.InstallPools(ctx, pool.ExclusivePages()), pool.ErrInUse)
		case 2:
			require.NoError(t, s.Sync(ctx))
		}
		require.NoError(t, g.Replay())
		require.Equal(t, ascending(100, 30), read(t, x), "round %d", round)
		require.NoError(t, s.Validate())
	}
	require.NoError(t, g.Close())
	require.Zero(t, s.Stats().Cache.PinnedEntries)
	require.NoError(t, g.Close(), "closing twice")
	require.ErrorIs(t, g.Replay(), cmdbuf.ErrClosed)
}

func TestInstallPools(t *testing.T) {
	s := newStream(t, cmdbuf.Options{})
	x, err := cmdbuf.Upload(s, []float32{1, 2}, 2)
	require.NoError(t, err)
	require.NoError(t, s.Launch(shaders.Add, x, x, x))
	g, err := s.Capture(ctx, func(c *cmdbuf.Capture) error { return c.Launch(shaders.Mul, x, x, x) })
	require.NoError(t, err)

	err = s.InstallPools(ctx, pool.ExclusivePages())
	var inUse *pool.InUseError
	require.ErrorAs(t, err, &inUse, "a tensor and a graph are alive")
	require.NoError(t, g.Replay())
	require.Equal(t, []float32{4, 16}, read(t, x), "a refusal changes nothing")

	require.NoError(t, x.Close())
	require.ErrorIs(t, s.InstallPools(ctx, pool.ExclusivePages()), pool.ErrInUse, "the graph is alive and keeps its slices")
	require.NoError(t, g.Replay())
	require.NoError(t, g.Close())
	// Nothing but a cached info is left, which would stand in the way for ever.
	z := upload(t, s, []float32{3}, 1)
	require.NoError(t, s.Launch(shaders.Add, z, z, z))
	require.NoError(t, z.Close())
	require.NotZero(t, s.Stats().Cache.UnpinnedEntries)
	require.NoError(t, s.InstallPools(ctx, pool.ExclusivePages()))
	require.Zero(t, s.Stats().Pools.Total.Slices)

	empty, err := cmdbuf.New[float32](s, 0)
	require.NoError(t, err)
	require.ErrorIs(t, s.InstallPools(ctx, pool.SubSlices()), pool.ErrInUse, "a slice of no bytes is alive too")
	require.NoError(t, empty.Close())
	require.NoError(t, s.InstallPools(ctx, pool.SubSlices()))
	z = upload(t, s, []float32{3}, 1)
	require.NoError(t, s.Launch(shaders.Add, z, z, z))
	require.Equal(t, []float32{6}, read(t, z))
}

// A graph goes on over a change of the layout that goes around it; a tensor does not let one
// happen.
func TestInstallPoolsAroundGraphs(t *testing.T) {
	s := newStream(t, cmdbuf.Options{PoolIdle: -1, PoolTouch: pool.TouchAhead})
	x, err := cmdbuf.Upload(s, []float32{1, 2}, 2)
	require.NoError(t, err)
	out := zeros(t, s, 2)
	read2 := func() []float32 { h, err := out.Read(ctx); require.NoError(t, err); return h }
	g, err := s.Capture(ctx, func(c *cmdbuf.Capture) error {
		return errors.Join(c.Launch(shaders.Add, x, x, x), c.Launch(shaders.Copy, x, out))
	})
	require.NoError(t, err)
	require.NoError(t, s.InstallPoolsAround(ctx, pool.ExclusivePages()), "the graph holds both tensors")
	require.NoError(t, g.Replay())
	require.Equal(t, []float32{2, 4}, read2())
	y, err := cmdbuf.Upload(s, []float32{7}, 1)
	require.NoError(t, err)
	require.ErrorIs(t, s.InstallPoolsAround(ctx, pool.SubSlices()), pool.ErrInUse)
	require.NoError(t, errors.Join(x.Close(), y.Close()))
	require.NoError(t, s.InstallPoolsAround(ctx, pool.SubSlices()))
	require.NoError(t, g.Replay())
	require.Equal(t, []float32{4, 8}, read2())
	require.NoError(t, s.Pools().Validate())
	require.NoError(t, g.Close())
}

// What two graphs share survives the first one's end.
func TestGraphsShareInfos(t *testing.T) {
	s := newStream(t, cmdbuf.Options{Cache: &metacache.Policy{MaxEntries: 1, MaxCachedSize: 2048}})
	x, scratch := zeros(t, s, 10), zeros(t, s, 7)
	a, b := fills(t, s, x, 5), fills(t, s, x, 5)
	require.EqualValues(t, 10, s.Stats().Cache.PinnedEntries)
	require.NoError(t, a.Close())
	require.EqualValues(t, 10, s.Stats().Cache.PinnedEntries)
	thrash(t, s, scratch)
	require.NoError(t, b.Replay())
	require.Equal(t, ascending(5, 10), read(t, x))
	require.NoError(t, b.Close())
	require.Zero(t, s.Stats().Cache.PinnedEntries)
}

// A capture that fails at any launch leaves no pin, no slice and a usable stream, and
// returns the first error.
func TestFailedCapturesLeaveNothing(t *testing.T) {
	const n = 6
	s := newStream(t, cmdbuf.Options{Cache: &metacache.Policy{MaxEntries: 4, MaxCachedSize: 2048}})
	x := zeros(t, s, n)
	var views [n]*cmdbuf.Tensor[float32]
	for i := range views {
		var err error
		views[i], err = x.Range(0, i, i+1, 1)
		require.NoError(t, err)
	}
	require.NoError(t, s.Launch(shaders.Fill, cmdbuf.Float32(1), x))
	require.NoError(t, s.Sync(ctx))
	alive := func() int {
		return s.Stats().Pools.Total.Slices - int(s.Stats().Cache.PinnedEntries+s.Stats().Cache.UnpinnedEntries)
	}
	before := alive()
	for bad := range n {
		g, err := s.Capture(ctx, func(c *cmdbuf.Capture) error {
			for i := range n {
				if i == bad {
					_ = c.Launch(shaders.Add, x) // the caller need not pass it on
					continue
				}
				_ = c.Launch(shaders.Fill, cmdbuf.Float32(float32(i)), views[i])
			}
			return errors.New("a later error")
		})
		require.Nil(t, g)
		require.ErrorIs(t, err, shaders.ErrOperand, "position %d", bad)
		require.Zero(t, s.Stats().Cache.PinnedEntries)
		require.Equal(t, before, alive())
		require.NoError(t, s.Validate())
	}
	mine := errors.New("mine")
	_, err := s.Capture(ctx, func(c *cmdbuf.Capture) error {
		require.NoError(t, c.Launch(shaders.Fill, cmdbuf.Float32(9), x))
		return mine
	})
	require.ErrorIs(t, err, mine)
	cancelled, cancel := context.WithCancel(ctx)
	_, err = s.Capture(cancelled, func(c *cmdbuf.Capture) error {
		cancel()
		return c.Launch(shaders.Fill, cmdbuf.Float32(9), x)
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Panics(t, func() { s.Capture(ctx, func(*cmdbuf.Capture) error { panic("mine") }) })
	require.Zero(t, s.Stats().Cache.PinnedEntries)
	require.Equal(t, before, alive())
	require.Equal(t, []float32{1, 1, 1, 1, 1, 1}, read(t, x), "a capture executes nothing")
}

// Inside a capture the stream's own methods say so, and the capture goes on.
func TestCallsInsideACapture(t *testing.T) {
	s := newStream(t, cmdbuf.Options{})
	x := upload(t, s, []float32{1}, 1)
	older, err := s.Capture(ctx, func(c *cmdbuf.Capture) error { return c.Launch(shaders.Add, x, x, x) })
	require.NoError(t, err)
	var leaked *cmdbuf.Capture
	g, err := s.Capture(ctx, func(c *cmdbuf.Capture) error {
		leaked = c
		for name, call := range map[string]func() error{
			"launch":  func() error { return s.Launch(shaders.Add, x, x, x) },
			"flush":   s.Flush,
			"sync":    func() error { return s.Sync(ctx) },
			"read":    func() error { _, err := x.Read(ctx); return err },
			"write":   func() error { return x.Write([]float32{2}) },
			"replay":  older.Replay,
			"install": func() error { return s.InstallPools(ctx, pool.Layout{}) },
			"close":   func() error { return s.Close(ctx) },
			"capture": func() error {
				_, err := s.Capture(ctx, func(*cmdbuf.Capture) error { return nil })
				return err
			},
		} {
			require.ErrorIs(t, call(), cmdbuf.ErrCapturing, name)
		}
		require.NoError(t, older.Close(), "closing a graph waits for nothing")
		return c.Launch(shaders.Add, x, x, x)
	})
	require.NoError(t, err)
	require.ErrorIs(t, leaked.Launch(shaders.Add, x, x, x), cmdbuf.ErrCaptureOver)
	require.NoError(t, g.Replay())
	require.Equal(t, []float32{2}, read(t, x))
	require.NoError(t, g.Close())
}

// A graph keeps alive what it recorded.
func TestGraphOutlivesItsTensors(t *testing.T) { bothWays(t, graphOutlivesItsTensors) }

func graphOutlivesItsTensors(t *testing.T, s *cmdbuf.Stream) {
	x, err := cmdbuf.Upload(s, ascending(1, 64), 64)
	require.NoError(t, err)
	sum := zeros(t, s, 1)
	g, err := s.Capture(ctx, func(c *cmdbuf.Capture) error { return c.Launch(shaders.Sum, x, sum) })
	require.NoError(t, err)
	require.NoError(t, x.Close())
	for range 50 { // whoever took over the memory would overwrite it
		y := upload(t, s, make([]float32, 64), 64)
		require.NoError(t, s.Launch(shaders.Fill, cmdbuf.Float32(-7), y))
	}
	require.NoError(t, g.Replay())
	require.Equal(t, []float32{64 * 65 / 2}, read(t, sum))
	require.NoError(t, g.Close())
}

// Eager launches, replays, writes and reads happen in the order of the calls.
func TestOrderIsThatOfTheCalls(t *testing.T) { bothWays(t, orderIsThatOfTheCalls) }

func orderIsThatOfTheCalls(t *testing.T, s *cmdbuf.Stream) {
	x, one := upload(t, s, []float32{0}, 1), upload(t, s, []float32{1}, 1)
	double, err := s.Capture(ctx, func(c *cmdbuf.Capture) error { return c.Launch(shaders.Add, x, x, x) })
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, double.Close()) })
	want := float32(0)
	for i := range 60 {
		switch i % 5 {
		case 0, 3:
			require.NoError(t, s.Launch(shaders.Add, x, one, x))
			want++
		case 1:
			require.NoError(t, double.Replay())
			want *= 2
		case 2:
			require.NoError(t, double.ReplayN(2))
			want *= 4
		case 4:
			if i%3 == 0 {
				require.Equal(t, []float32{want}, read(t, x))
			}
			want = float32(i)
			require.NoError(t, x.Write([]float32{want}))
		}
	}
	require.Equal(t, []float32{want}, read(t, x))
	require.NoError(t, double.ReplayN(0))
	require.Error(t, double.ReplayN(-1))
}

// Graphs may be replayed by several goroutines, and closed while replays are in flight.
func TestConcurrentReplays(t *testing.T) {
	s := newStream(t, cmdbuf.Options{})
	x, one := upload(t, s, []float32{0}, 1), upload(t, s, []float32{1}, 1)
	g, err := s.Capture(ctx, func(c *cmdbuf.Capture) error { return c.Launch(shaders.Add, x, one, x) })
	require.NoError(t, err)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				if err := g.Replay(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, g.Close())
	require.Equal(t, []float32{200}, read(t, x))
}

// A replay is one crossing into C however long the graph is, and allocates nothing; so is
// a batch. The barriers are those the accesses call for.
func TestCostsThatAreExact(t *testing.T) {
	for _, n := range []int{1, 16, 300} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			s := newStream(t, cmdbuf.Options{BatchLimit: n + 1})
			x, y := zeros(t, s, 64), zeros(t, s, n+1, 64) // rows of 256 bytes, the coarsest alignment of a binding
			rows := make([]*cmdbuf.Tensor[float32], n)
			for i := range rows {
				r, err := y.Range(0, i, i+1, 1)
				require.NoError(t, err)
				rows[i] = r
			}
			chain := func(launch func(*shaders.Kernel, ...cmdbuf.Arg) error) error {
				for range n {
					if err := launch(shaders.Add, x, x, x); err != nil {
						return err
					}
				}
				return nil
			}
			apart := func(launch func(*shaders.Kernel, ...cmdbuf.Arg) error) error {
				for _, r := range rows {
					if err := launch(shaders.Add, x, x, r); err != nil {
						return err
					}
				}
				return nil
			}
			g, err := s.Capture(ctx, func(c *cmdbuf.Capture) error { return chain(c.Launch) })
			require.NoError(t, err)
			stats := g.Stats()
			require.Positive(t, stats.Bytes)
			stats.Bytes = 0
			require.Equal(t, cmdbuf.GraphStats{Launches: n, Barriers: n - 1, Sets: 1, Slices: 2, Segments: 1}, stats)
			independent, err := s.Capture(ctx, func(c *cmdbuf.Capture) error { return apart(c.Launch) })
			require.NoError(t, err)
			require.Zero(t, independent.Stats().Barriers, "launches that share nothing they write need no barrier")

			require.NoError(t, chain(s.Launch))
			require.NoError(t, s.Flush())
			require.NoError(t, s.Sync(ctx))
			barriers, crossings := s.Stats().Barriers, s.Device().Crossings()
			require.NoError(t, chain(s.Launch))
			require.NoError(t, s.Flush())
			require.Equal(t, crossings+1, s.Device().Crossings(), "one for the batch")
			require.Equal(t, barriers+uint64(n), s.Stats().Barriers)
			for range 3 {
				require.NoError(t, g.Replay())
			}
			require.Equal(t, crossings+4, s.Device().Crossings(), "one a replay")
			require.Zero(t, testing.AllocsPerRun(20, func() {
				if err := g.Replay(); err != nil {
					t.Fatal(err)
				}
			}))
			require.NoError(t, g.Close())
			require.NoError(t, independent.Close())
		})
	}
}

func TestEmptyTensors(t *testing.T) { bothWays(t, emptyTensors) }

func emptyTensors(t *testing.T, s *cmdbuf.Stream) {
	none, x := zeros(t, s, 0, 4), upload(t, s, []float32{1, 2, 3, 4}, 1, 4)
	require.NoError(t, s.Launch(shaders.Add, none, none, none))
	require.NoError(t, s.Launch(shaders.Sum, none, x), "a sum over nothing is 0")
	require.Equal(t, []float32{0, 0, 0, 0}, read(t, x))
	require.Empty(t, read(t, none))
	require.EqualValues(t, 1, s.Stats().Launches)
	g, err := s.Capture(ctx, func(*cmdbuf.Capture) error { return nil })
	require.NoError(t, err)
	require.NoError(t, g.Replay())
	require.NoError(t, g.Close())
}

// A graph of a hundred thousand launches costs what its launches cost, and no more.
func TestLargeGraph(t *testing.T) {
	testenv.Require(t)
	n := 100_000
	if testing.Short() {
		n = 10_000
	}
	d, err := vk.Open(vk.Options{}) // the validation layer would take minutes
	require.NoError(t, err)
	s, err := cmdbuf.NewStream(d, cmdbuf.Options{})
	require.NoError(t, err)
	x, one := upload(t, s, []float32{0}, 1), upload(t, s, []float32{1}, 1)
	g, err := s.Capture(ctx, func(c *cmdbuf.Capture) error {
		for range n {
			if err := c.Launch(shaders.Add, x, one, x); err != nil {
				return err
			}
		}
		return nil
	})
	require.NoError(t, err)
	require.NoError(t, g.Replay())
	require.Equal(t, []float32{float32(n)}, read(t, x))
	stats := g.Stats()
	t.Logf("%d bytes a launch", stats.Bytes/n)
	require.Less(t, stats.Bytes/n, 640)
	require.Equal(t, 3, stats.Slices)
	var file bytes.Buffer
	require.NoError(t, g.Save(ctx, &file, cmdbuf.SaveOptions{Contents: true}))
	t.Logf("%d bytes a launch in a file", file.Len()/n)
	require.NoError(t, g.Close())
	again, err := cmdbuf.Load(ctx, s, &file, cmdbuf.LoadOptions{})
	require.NoError(t, err)
	require.Equal(t, n, again.Stats().Launches)
	require.NoError(t, again.Replay())
	require.NoError(t, s.Sync(ctx))
	require.NoError(t, again.Close())
	require.NoError(t, x.Close())
	require.NoError(t, one.Close())
	require.NoError(t, s.Close(ctx))
	require.NoError(t, d.Close())
}
