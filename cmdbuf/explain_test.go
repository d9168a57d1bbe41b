package cmdbuf_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vkcompute/cmdbuf"
	"vkcompute/pool"
	"vkcompute/shaders"
	"vkcompute/vk"
)

func TestExplainNamesTheHazards(t *testing.T) {
	s := newStream(t, cmdbuf.Options{Order: cmdbuf.AsCalled})
	x, y, z := zeros(t, s, 64), zeros(t, s, 64), zeros(t, s, 64)
	g, err := s.Capture(ctx, func(c *cmdbuf.Capture) error {
		return errors.Join(
			c.Launch(shaders.Add, x, x, y),               // 0
			c.Launch(shaders.Mul, y, y, z),               // 1: reads what 0 wrote
			c.Launch(shaders.Fill, cmdbuf.Float32(1), x), // 2: after the barrier before 1, so x is free
			c.Launch(shaders.Fill, cmdbuf.Float32(2), z), // 3: writes what 1 wrote
			c.Launch(shaders.Add, x, x, y),               // 4: y was read by 1, before the barrier of 3; x written by 2
		)
	})
	require.NoError(t, err)
	e := g.Explain()
	require.Equal(t, []string{"add", "mul", "fill", "fill", "add"}, e.Operations)
	require.Equal(t, g.Stats().Barriers, len(e.Barriers))
	type hazard struct {
		kind               cmdbuf.HazardKind
		producer, consumer int
	}
	got := map[hazard]bool{}
	for _, b := range e.Barriers {
		require.NotEmpty(t, b.Hazards, "a barrier for nothing")
		for _, h := range b.Hazards {
			require.Equal(t, b.Before, h.Consumer)
			require.EqualValues(t, 256, h.Size)
			got[hazard{h.Kind, h.Producer, h.Consumer}] = true
		}
	}
	require.Equal(t, map[hazard]bool{
		{cmdbuf.ReadAfterWrite, 0, 1}:  true,
		{cmdbuf.WriteAfterWrite, 1, 3}: true,
	}, got)
	require.Contains(t, e.String(), "barrier: read after write of operation 0")
	require.NoError(t, g.Close())
}

// Independent chains that were called in turns are brought together; results stay.
func TestReorderingSavesBarriers(t *testing.T) {
	const chains, depth = 8, 5
	run := func(order cmdbuf.Order) (cmdbuf.GraphStats, []float32) {
		s := newStream(t, cmdbuf.Options{Order: order})
		x := zeros(t, s, chains, 64)
		one := upload(t, s, []float32{1}, 1)
		g, err := s.Capture(ctx, func(c *cmdbuf.Capture) error {
			for i := range chains {
				row, err := x.Range(0, i, i+1, 1)
				if err != nil {
					return err
				}
				for range depth {
					if err := c.Launch(shaders.Add, row, one, row); err != nil {
						return err
					}
				}
			}
			return nil
		})
		require.NoError(t, err)
		require.NoError(t, g.ReplayN(3))
		result := read(t, x)
		stats := g.Stats()
		require.NoError(t, g.Close())
		return stats, result
	}
	sorted, a := run(cmdbuf.ByLevel)
	called, b := run(cmdbuf.AsCalled)
	require.Equal(t, depth-1, sorted.Barriers)
	require.Equal(t, chains*(depth-1), called.Barriers)
	require.Equal(t, b, a)
	require.Equal(t, float32(15), a[0])
}

func TestStreamsShareTensorsThroughEvents(t *testing.T) {
	a := newStream(t, cmdbuf.Options{})
	b, err := cmdbuf.NewStream(a.Device(), cmdbuf.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close(ctx)) })
	x, one := upload(t, a, []float32{0}, 1), upload(t, b, []float32{1}, 1)
	require.Error(t, b.WaitFor(cmdbuf.Event{}), "an event that was never recorded")
	for i := range 20 {
		require.NoError(t, a.Launch(shaders.Add, x, x, x))
		e, err := a.Record()
		require.NoError(t, err)
		require.NoError(t, b.WaitFor(e))
		require.NoError(t, b.Launch(shaders.Add, x, one, x))
		if e, err = b.Record(); i%2 == 0 {
			require.NoError(t, err)
			require.NoError(t, a.WaitFor(e))
		} else {
			require.NoError(t, e.Wait(ctx))
		}
	}
	require.Equal(t, []float32{1<<20 - 1}, read(t, x))

	// Memory that another stream uses is not handed out again before it is done there.
	for range 50 {
		y, err := cmdbuf.Upload(a, []float32{7}, 1)
		require.NoError(t, err)
		e, err := a.Record()
		require.NoError(t, err)
		require.NoError(t, b.WaitFor(e))
		require.NoError(t, b.Launch(shaders.Add, one, y, one))
		require.NoError(t, y.Close())
		z, err := cmdbuf.Upload(a, []float32{-100}, 1)
		require.NoError(t, err)
		require.NoError(t, z.Close())
	}
	require.Equal(t, []float32{351}, read(t, one))
}

// What a launch takes from another stream of the device, uploads, parameters, copies and
// the grids of a capture take too.
func TestCapturesTakeTensorsOfOtherStreams(t *testing.T) {
	a := newStream(t, cmdbuf.Options{})
	b, err := cmdbuf.NewStream(a.Device(), cmdbuf.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close(ctx)) })
	x, y, z := zeros(t, a, 4), zeros(t, a, 4), zeros(t, a, 4)
	grid := upload(t, a, []uint32{1, 1, 1}, 3)
	g, err := b.Capture(ctx, func(c *cmdbuf.Capture) error {
		return errors.Join(
			cmdbuf.WriteIn(c, x, []float32{1, 2, 3, 4}),
			c.Copy(y, x),
			c.LaunchIndirect(shaders.Add, grid, x, y, cmdbuf.Param("out", z)))
	})
	require.NoError(t, err)
	e, err := a.Record()
	require.NoError(t, err)
	require.NoError(t, b.WaitFor(e))
	require.NoError(t, g.Replay())
	other, err := cmdbuf.Upload(a, make([]float32, 4), 4)
	require.NoError(t, err)
	require.NoError(t, a.Flush())
	e, err = a.Record()
	require.NoError(t, err)
	require.NoError(t, b.WaitFor(e))
	require.NoError(t, g.Set("out", other))
	require.NoError(t, g.Replay())
	e, err = b.Record()
	require.NoError(t, err)
	require.NoError(t, a.WaitFor(e))
	require.Equal(t, []float32{2, 4, 6, 8}, read(t, z))
	require.Equal(t, []float32{2, 4, 6, 8}, read(t, other))
	require.NoError(t, other.Close())
	require.ErrorIs(t, a.InstallPools(ctx, pool.SubSlices()), pool.ErrInUse, "the graph keeps it")
	require.NoError(t, g.Close())
	require.NoError(t, errors.Join(a.Validate(), b.Validate()))
}

func TestTemporariesShareMemory(t *testing.T) {
	s := newStream(t, cmdbuf.Options{})
	const n, steps = 1024, 30
	x := upload(t, s, ascending(0, n), n)
	y := zeros(t, s, n)
	var ended *cmdbuf.Tensor[float32]
	before := s.Stats().Pools.Total.Slices
	g, err := s.Capture(ctx, func(c *cmdbuf.Capture) error {
		in := x
		for range steps { // each step: two temporaries, one of which lives on
			doubled, err := cmdbuf.Temp[float32](c, n)
			if err != nil {
				return err
			}
			out, err := cmdbuf.Temp[float32](c, n)
			if err != nil {
				return err
			}
			if err := errors.Join(c.Launch(shaders.Add, in, x, doubled), c.Launch(shaders.Add, doubled, x, out), doubled.Close()); err != nil {
				return err
			}
			if in != x {
				in.Close()
			}
			in, ended = out, out
		}
		return c.Launch(shaders.Add, in, x, y)
	})
	require.NoError(t, err)
	require.LessOrEqual(t, g.Stats().Arena, uint64(3*n*4), "three are alive at a time")
	for range 3 {
		require.NoError(t, g.Replay())
	}
	want := ascending(0, n)
	for i := range want {
		want[i] *= 2*steps + 2
	}
	require.Equal(t, want, read(t, y))
	require.ErrorIs(t, s.Launch(shaders.Add, ended, x, y), cmdbuf.ErrClosed, "a temporary ends with its capture")
	_, err = ended.Read(ctx)
	require.ErrorIs(t, err, cmdbuf.ErrClosed)
	require.NoError(t, ended.Close())
	require.NoError(t, g.Close())
	require.NoError(t, s.Sync(ctx))
	s.Validate()
	require.Equal(t, before, s.Stats().Pools.Total.Slices-s.Stats().Cache.UnpinnedEntries)

	_, err = s.Capture(ctx, func(c *cmdbuf.Capture) error {
		tmp, err := cmdbuf.Temp[float32](c, n)
		if err != nil {
			return err
		}
		if err := tmp.Close(); err != nil {
			return err
		}
		return c.Launch(shaders.Add, tmp, x, y)
	})
	require.ErrorIs(t, err, cmdbuf.ErrClosed)
}

func TestProfileOfReplays(t *testing.T) {
	s, err := cmdbuf.NewStream(newStream(t, cmdbuf.Options{}).Device(), cmdbuf.Options{Profile: true})
	if errors.Is(err, vk.ErrUnsupported) {
		t.Skip("the device has no timestamps")
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(ctx)) })
	x, sum := zeros(t, s, 4096), zeros(t, s, 1)
	g, err := s.Capture(ctx, func(c *cmdbuf.Capture) error {
		return errors.Join(c.Launch(shaders.Fill, cmdbuf.Float32(1), x), c.Launch(shaders.Sum, x, sum))
	})
	require.NoError(t, err)
	none, err := g.Profile(ctx)
	require.NoError(t, err)
	require.Empty(t, none)
	require.NoError(t, g.ReplayN(3))
	for range 10 {
		require.NoError(t, g.Replay())
	}
	spans, err := g.Profile(ctx)
	require.NoError(t, err)
	require.Len(t, spans, 8*2, "the last eight replays")
	for i, p := range spans {
		require.Equal(t, i%2, p.Operation)
		require.Equal(t, []string{"fill", "sum"}[i%2], p.Name)
		require.GreaterOrEqual(t, p.Duration, time.Duration(0))
		if i > 0 {
			require.GreaterOrEqual(t, p.Start, spans[i-1].Start)
		}
	}
	require.Equal(t, []float32{4096}, read(t, sum))
	var b bytes.Buffer
	require.NoError(t, cmdbuf.WriteTrace(&b, spans))
	var trace struct {
		TraceEvents []struct {
			Name, Ph string
			Ts, Dur  float64
		}
	}
	require.NoError(t, json.Unmarshal(b.Bytes(), &trace))
	require.Len(t, trace.TraceEvents, len(spans))
	require.NoError(t, g.Close())
	_, err = g.Profile(ctx)
	require.ErrorIs(t, err, cmdbuf.ErrClosed)

	// Batches take times too, for as long as they keep them.
	for range 70 {
		require.NoError(t, s.Launch(shaders.Fill, cmdbuf.Float32(1), x))
		require.NoError(t, s.Launch(shaders.Sum, x, sum))
		require.NoError(t, s.Flush())
	}
	spans, err = s.Profile(ctx)
	require.NoError(t, err)
	require.Len(t, spans, 64*2)
	for i, p := range spans {
		require.Equal(t, []string{"fill", "sum"}[i%2], p.Name)
		require.Equal(t, i%2, p.Operation)
	}
	_, err = newStream(t, cmdbuf.Options{}).Profile(ctx)
	require.ErrorContains(t, err, "Options.Profile")
}

// A replay that is split into many submissions gives what one gives.
func TestSplitSubmissions(t *testing.T) {
	s := newStream(t, cmdbuf.Options{MaxSubmitTime: time.Nanosecond})
	x := zeros(t, s, 8)
	n := 300 + rand.IntN(50)
	one := upload(t, s, []float32{1}, 1)
	g, err := s.Capture(ctx, func(c *cmdbuf.Capture) error {
		for range n {
			if err := c.Launch(shaders.Add, x, one, x); err != nil {
				return err
			}
		}
		return nil
	})
	require.NoError(t, err)
	segments := g.Stats().Segments
	require.Equal(t, (n+63)/64, segments)
	require.NoError(t, s.Flush()) // the uploads
	before := s.Stats().Submissions
	require.NoError(t, g.ReplayN(2))
	require.NoError(t, g.Replay())
	require.EqualValues(t, 3*segments, s.Stats().Submissions-before, "a nanosecond is less than any segment takes")
	require.Equal(t, float32(3*n), read(t, x)[0])
	require.NoError(t, g.Close())
}
