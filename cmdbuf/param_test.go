package cmdbuf_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/cmdbuf"
	"vkcompute/internal/shim"
	"vkcompute/internal/vktest"
	"vkcompute/shaders"
)

// A parameter changed between replays that are all in flight: each keeps the value it was
// submitted with.
func TestParametersChangeBetweenReplays(t *testing.T) { bothWays(t, parametersChangeBetweenReplays) }

func parametersChangeBetweenReplays(t *testing.T, s *cmdbuf.Stream) {
	const rounds = 40
	x, history := zeros(t, s, 1), zeros(t, s, rounds)
	at := func(i int) *cmdbuf.Tensor[float32] {
		v, err := history.Range(0, i, i+1, 1)
		require.NoError(t, err)
		return v
	}
	g, err := s.Capture(ctx, func(c *cmdbuf.Capture) error {
		if err := c.Launch(shaders.Fill, cmdbuf.Param("value", cmdbuf.Float32(-1)), x); err != nil {
			return err
		}
		return c.Launch(shaders.Add, x, x, cmdbuf.Param("out", at(0)))
	})
	require.NoError(t, err)
	require.Equal(t, 2, g.Stats().Segments, "the launch with a named tensor stands alone")
	for i := range rounds {
		require.NoError(t, g.Set("value", cmdbuf.Float32(float32(i))))
		require.NoError(t, g.Set("out", at(i)))
		require.NoError(t, g.Replay())
	}
	want := make([]float32, rounds)
	for i := range want {
		want[i] = 2 * float32(i)
	}
	require.Equal(t, want, read(t, history))
	require.NoError(t, s.Validate())
	require.Zero(t, s.Stats().Cache.PinnedEntries, "an info with a parameter is not in the cache")
	require.NoError(t, g.Close())
}

// A value that is set and not changed costs nothing; one that changes an info costs no
// allocation and no crossing of its own.
func TestSetCosts(t *testing.T) {
	s := newStream(t, cmdbuf.Options{})
	x := zeros(t, s, 8)
	g, err := s.Capture(ctx, func(c *cmdbuf.Capture) error {
		return c.Launch(shaders.Fill, cmdbuf.Param("value", cmdbuf.Float32(0)), x)
	})
	require.NoError(t, err)
	v := float32(0)
	step := func() {
		v++
		if g.Set("value", cmdbuf.Float32(v)) != nil || g.Replay() != nil {
			t.Fatal("failed")
		}
	}
	for range 200 {
		step()
	}
	require.NoError(t, s.Sync(ctx))
	before := s.Device().Crossings()
	step()
	require.Equal(t, before+1, s.Device().Crossings())
	require.Zero(t, testing.AllocsPerRun(50, func() { // waited for, or more command buffers are made
		step()
		if s.Sync(ctx) != nil {
			t.Fatal("failed")
		}
	}))
	require.Equal(t, v, read(t, x)[0])
	require.NoError(t, g.Close())
}

// Tensors of other shapes change the grid and the info.
func TestParametersOfOtherShapes(t *testing.T) { bothWays(t, parametersOfOtherShapes) }

func parametersOfOtherShapes(t *testing.T, s *cmdbuf.Stream) {
	x := upload(t, s, ascending(1, 1000), 1000)
	total := zeros(t, s, 1)
	head := func(n int) *cmdbuf.Tensor[float32] {
		v, err := x.Range(0, 0, n, 1)
		require.NoError(t, err)
		return v
	}
	g, err := s.Capture(ctx, func(c *cmdbuf.Capture) error {
		return c.Launch(shaders.Sum, cmdbuf.Param("x", head(10)), total)
	})
	require.NoError(t, err)
	for _, n := range []int{10, 1000, 0, 3, 999, 3} {
		require.NoError(t, g.Set("x", head(n)))
		require.NoError(t, g.Replay())
		require.Equal(t, []float32{float32(n * (n + 1) / 2)}, read(t, total), "n = %d", n)
	}
	matrix, err := x.Reshape(2, 5, 10, 10)
	require.NoError(t, err)
	odd, err := matrix.Permute(3, 1, 0, 2) // an info much longer than that of a row
	require.NoError(t, err)
	require.NoError(t, g.Set("x", odd))
	require.NoError(t, g.Replay())
	require.Equal(t, []float32{1000 * 1001 / 2}, read(t, total))
	require.NoError(t, g.Close())
}

func TestWrongParameters(t *testing.T) {
	s := newStream(t, cmdbuf.Options{})
	x, y, z := upload(t, s, []float32{1, 2}, 2), upload(t, s, []float32{3, 4}, 2), zeros(t, s, 2)
	n := upload(t, s, []int32{1, 2}, 2)
	big := zeros(t, s, 3)
	closed, err := cmdbuf.New[float32](s, 2)
	require.NoError(t, err)
	require.NoError(t, closed.Close())

	for name, launch := range map[string]func(c *cmdbuf.Capture) error{
		"no name": func(c *cmdbuf.Capture) error { return c.Launch(shaders.Add, cmdbuf.Param("", x), y, z) },
		"a parameter of a parameter": func(c *cmdbuf.Capture) error {
			return c.Launch(shaders.Add, cmdbuf.Param("a", cmdbuf.Param("b", x)), y, z)
		},
		"no value": func(c *cmdbuf.Capture) error { return c.Launch(shaders.Add, cmdbuf.Param("a", nil), y, z) },
		"two values for one name": func(c *cmdbuf.Capture) error {
			return c.Launch(shaders.Add, cmdbuf.Param("a", x), cmdbuf.Param("a", y), z)
		},
	} {
		_, err := s.Capture(ctx, launch)
		require.Error(t, err, name)
	}
	require.Error(t, s.Launch(shaders.Add, cmdbuf.Param("a", x), y, z), "eager launches have no parameters")

	g, err := s.Capture(ctx, func(c *cmdbuf.Capture) error {
		if err := c.Launch(shaders.Fill, cmdbuf.Param("v", cmdbuf.Float32(1)), y); err != nil {
			return err
		}
		return c.Launch(shaders.Add, cmdbuf.Param("x", x), y, z)
	})
	require.NoError(t, err)
	for _, c := range []struct {
		name  string
		param string
		value cmdbuf.Arg
		is    error
	}{
		{"an unknown name", "w", x, nil},
		{"a tensor for a scalar", "v", x, nil},
		{"a scalar for a tensor", "x", cmdbuf.Float32(1), nil},
		{"another type of scalar", "v", cmdbuf.Int32(1), nil},
		{"another type of tensor", "x", n, nil},
		{"nothing", "x", nil, nil},
		{"a closed tensor", "x", closed, cmdbuf.ErrClosed},
		{"a shape that does not fit", "x", big, shaders.ErrOperand},
		{"what the graph writes elsewhere", "x", z, cmdbuf.ErrOverlap},
		{"what the graph writes elsewhere, in another launch", "x", y, cmdbuf.ErrOverlap},
	} {
		err := g.Set(c.param, c.value)
		require.Error(t, err, c.name)
		if c.is != nil {
			require.ErrorIs(t, err, c.is, c.name)
		}
	}
	require.NoError(t, g.Replay())
	require.Equal(t, []float32{2, 3}, read(t, z))
	require.NoError(t, g.Close())
	require.ErrorIs(t, g.Set("x", x), cmdbuf.ErrClosed)
	require.NoError(t, s.Validate())
}

// Launches that share a named tensor which is empty at first are ordered for the time
// when it is not; the validation layer sees whether they are.
func TestLaunchesThatShareAnEmptyParameter(t *testing.T) {
	for _, order := range []cmdbuf.Order{cmdbuf.ByLevel, cmdbuf.AsCalled} {
		s := newStream(t, cmdbuf.Options{Order: order})
		const n = 1 << 12
		none, x, gradient := zeros(t, s, 0), zeros(t, s, n), zeros(t, s, n)
		g, err := s.Capture(ctx, func(c *cmdbuf.Capture) error {
			p := cmdbuf.Param("x", none)
			return errors.Join(
				c.Launch(shaders.Fill, cmdbuf.Float32(1), p),
				c.Launch(shaders.Add, p, p, p),
				c.Launch(shaders.Add, p, p, p))
		})
		require.NoError(t, err)
		require.Equal(t, 2, g.Stats().Barriers)
		require.NoError(t, g.Replay())
		require.NoError(t, g.Set("x", x))
		require.NoError(t, g.Replay())
		for _, v := range read(t, x) {
			require.Equal(t, float32(4), v)
		}
		require.NoError(t, g.Set("x", none))
		require.NoError(t, g.Set("x", gradient))
		require.NoError(t, g.Replay())
		require.Equal(t, read(t, x), read(t, gradient))
		require.NoError(t, g.Close())
	}
}

// A replay that cannot even be submitted leaves its update in the batch, which writes the
// graph's info when the batch runs, perhaps after the graph was closed.
func TestUpdatesThatAreLeftBehind(t *testing.T) {
	d, driver := vktest.OpenProfile(t, shim.Plain)
	s, err := cmdbuf.NewStream(d, cmdbuf.Options{})
	require.NoError(t, err)
	x, y := zeros(t, s, 4), zeros(t, s, 4)
	fill := func(v float32, to *cmdbuf.Tensor[float32]) *cmdbuf.Graph {
		g, err := s.Capture(ctx, func(c *cmdbuf.Capture) error {
			return c.Launch(shaders.Fill, cmdbuf.Param("v", cmdbuf.Float32(v)), to)
		})
		require.NoError(t, err)
		return g
	}
	g := fill(5, x)
	require.NoError(t, g.Replay())
	require.NoError(t, s.Sync(ctx))
	driver.Hang()
	fail := func() { require.NoError(t, driver.Fail("vkAllocateCommandBuffers", 1, shim.ErrorOutOfHostMemory)) }
	for { // until every command buffer is taken
		require.NoError(t, s.Launch(shaders.Neg, y, y))
		fail()
		if s.Flush() != nil {
			break
		}
		driver.Unplan()
	}
	driver.Unplan()
	e, err := s.Record()
	require.NoError(t, err)
	require.NoError(t, g.Set("v", cmdbuf.Float32(9)))
	fail()
	require.Error(t, g.Replay())
	driver.Unplan()
	driver.Release()
	require.NoError(t, e.Wait(ctx))
	require.NoError(t, g.Close())
	h := fill(3, y)
	require.NoError(t, h.Replay())
	require.Equal(t, []float32{3, 3, 3, 3}, read(t, y))
	require.NoError(t, h.Close())
	require.NoError(t, errors.Join(x.Close(), y.Close(), s.Close(ctx)))
}

func TestTransfersInACapture(t *testing.T) {
	s := newStream(t, cmdbuf.Options{})
	x, y := zeros(t, s, 4), zeros(t, s, 4)
	half, err := y.Range(0, 1, 3, 1)
	require.NoError(t, err)
	first, err := x.Range(0, 0, 2, 1)
	require.NoError(t, err)
	host := []float32{1, 2, 3, 4}
	g, err := s.Capture(ctx, func(c *cmdbuf.Capture) error {
		if err := cmdbuf.WriteIn(c, x, host); err != nil {
			return err
		}
		if err := c.Launch(shaders.Add, x, x, x); err != nil {
			return err
		}
		return c.Copy(half, first)
	})
	require.NoError(t, err)
	host[0] = -1 // the graph has its own
	require.Equal(t, 2, g.Stats().Barriers)
	for range 3 {
		require.NoError(t, y.Write([]float32{9, 9, 9, 9}))
		require.NoError(t, g.Replay())
		require.Equal(t, []float32{2, 4, 6, 8}, read(t, x))
		require.Equal(t, []float32{9, 2, 4, 9}, read(t, y))
	}
	require.NoError(t, s.Copy(y, x))
	require.Equal(t, []float32{2, 4, 6, 8}, read(t, y))
	require.ErrorIs(t, s.Copy(half, x), cmdbuf.ErrShape)
	require.ErrorIs(t, s.Copy(half, half), cmdbuf.ErrOverlap)
	require.Error(t, s.Copy(x, cmdbuf.Float32(1)))
	require.NoError(t, g.Close())
}

// The grid of an indirect launch may be computed by the launch before it.
func TestIndirectLaunches(t *testing.T) { bothWays(t, indirectLaunches) }

func indirectLaunches(t *testing.T, s *cmdbuf.Stream) {
	grid := upload(t, s, []uint32{0, 0, 0}, 3)
	x := zeros(t, s, 4)
	g, err := s.Capture(ctx, func(c *cmdbuf.Capture) error {
		if err := c.Launch(shaders.Fill, cmdbuf.Param("groups", cmdbuf.Uint32(1)), grid); err != nil {
			return err
		}
		return c.LaunchIndirect(shaders.Fill, grid, cmdbuf.Float32(5), x)
	})
	require.NoError(t, err)
	require.Equal(t, 1, g.Stats().Barriers)
	require.NoError(t, g.Replay())
	require.Equal(t, []float32{5, 5, 5, 5}, read(t, x))
	require.NoError(t, s.Launch(shaders.Fill, cmdbuf.Float32(0), x))
	require.NoError(t, g.Set("groups", cmdbuf.Uint32(0)))
	require.NoError(t, g.Replay())
	require.Equal(t, []float32{0, 0, 0, 0}, read(t, x), "no groups, nothing done")
	require.NoError(t, s.Launch(shaders.Fill, cmdbuf.Uint32(1), grid))
	require.NoError(t, s.LaunchIndirect(shaders.Fill, grid, cmdbuf.Float32(7), x))
	require.Equal(t, []float32{7, 7, 7, 7}, read(t, x))
	// Without elements there is nothing to do, whatever the grid says.
	none := zeros(t, s, 0)
	before := s.Stats().Launches
	require.NoError(t, s.LaunchIndirect(shaders.Fill, grid, cmdbuf.Float32(9), none))
	require.Equal(t, before, s.Stats().Launches)
	shape, err := s.Capture(ctx, func(c *cmdbuf.Capture) error {
		return c.LaunchIndirect(shaders.Fill, grid, cmdbuf.Float32(9), cmdbuf.Param("out", none))
	})
	require.NoError(t, err)
	require.NoError(t, shape.Replay())
	require.NoError(t, shape.Set("out", x))
	require.NoError(t, shape.Replay())
	require.Equal(t, []float32{9, 9, 9, 9}, read(t, x))
	require.NoError(t, shape.Set("out", none))
	require.NoError(t, s.Launch(shaders.Fill, cmdbuf.Float32(1), x))
	require.NoError(t, shape.Replay())
	require.Equal(t, []float32{1, 1, 1, 1}, read(t, x))
	require.NoError(t, shape.Close())
	two, err := grid.Range(0, 0, 2, 1)
	require.NoError(t, err)
	require.ErrorIs(t, s.LaunchIndirect(shaders.Fill, two, cmdbuf.Float32(7), x), cmdbuf.ErrShape)
	require.NoError(t, g.Close())
}
