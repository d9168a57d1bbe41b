package cmdbuf_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/cmdbuf"
	"vkcompute/pool"
	"vkcompute/shaders"
	"vkcompute/vk"
)

// Whatever is wrong with a launch, the error says what was wanted and what was found, and
// neither the stream nor any tensor has changed.
func TestWrongLaunchesChangeNothing(t *testing.T) {
	s := newStream(t, cmdbuf.Options{})
	other := newStream(t, cmdbuf.Options{}) // on a device of its own
	x := upload(t, s, []float32{1, 2, 3, 4}, 4)
	y := upload(t, s, []float32{5, 6, 7, 8}, 4)
	n := upload(t, s, []int32{1, 2, 3, 4}, 4)
	z := upload(t, s, []float32{-1, -1, -1, -1}, 4)
	foreign := upload(t, other, []float32{1, 2, 3, 4}, 4)
	closed := upload(t, s, []float32{1}, 1)
	require.NoError(t, closed.Close())
	back, err := z.Range(0, 1, 4, 1)
	require.NoError(t, err)
	front, err := z.Range(0, 0, 3, 1)
	require.NoError(t, err)
	odd, err := z.Range(0, 1, 4, 2)
	require.NoError(t, err)
	even, err := z.Range(0, 0, 4, 2)
	require.NoError(t, err)

	var nothing *cmdbuf.Tensor[float32]
	for _, c := range []struct {
		name   string
		kernel *shaders.Kernel
		args   []cmdbuf.Arg
		is     error
		says   []string
	}{
		{"too few arguments", shaders.Add, []cmdbuf.Arg{x, z}, shaders.ErrOperand, []string{"add", "3", "2"}},
		{"too many arguments", shaders.Add, []cmdbuf.Arg{x, y, z, z}, shaders.ErrOperand, []string{"add", "3", "4"}},
		{"a scalar for a tensor", shaders.Add, []cmdbuf.Arg{x, cmdbuf.Float32(1), z}, shaders.ErrOperand, []string{"b", "tensor", "scalar"}},
		{"a tensor for a scalar", shaders.Fill, []cmdbuf.Arg{x, z}, shaders.ErrOperand, []string{"value", "scalar", "tensor"}},
		{"the wrong element type", shaders.Add, []cmdbuf.Arg{x, n, z}, shaders.ErrOperand, []string{"float32", "int32"}},
		{"shapes that do not broadcast", shaders.Add, []cmdbuf.Arg{x, front, z}, shaders.ErrOperand, []string{"3", "4"}},
		{"a closed tensor", shaders.Add, []cmdbuf.Arg{x, closed, z}, cmdbuf.ErrClosed, []string{"argument 1", "b"}},
		{"a tensor of another device", shaders.Add, []cmdbuf.Arg{x, foreign, z}, cmdbuf.ErrForeign, []string{"argument 1"}},
		{"a nil tensor", shaders.Add, []cmdbuf.Arg{x, nothing, z}, nil, []string{"argument 1", "nil"}},
		{"a nil argument", shaders.Add, []cmdbuf.Arg{x, nil, z}, nil, []string{"argument 1", "nil"}},
		{"an output that overlaps an input", shaders.Add, []cmdbuf.Arg{back, back, front}, cmdbuf.ErrOverlap, []string{"out"}},
		{"no kernel", nil, []cmdbuf.Arg{x}, nil, []string{"nil"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := s.Stats()
			err := s.Launch(c.kernel, c.args...)
			require.Error(t, err)
			if c.is != nil {
				require.ErrorIs(t, err, c.is)
			}
			for _, text := range c.says {
				require.ErrorContains(t, err, text)
			}
			require.Equal(t, before, s.Stats())
			require.NoError(t, s.Validate())
		})
	}
	require.NoError(t, s.Launch(shaders.Add, even, even, odd), "interleaved views share no element")
	require.Equal(t, []float32{-1, -2, -1, -2}, read(t, z))
	require.NoError(t, s.Launch(shaders.Add, z, y, z), "in place, which the kernel declares")
	require.Equal(t, []float32{4, 4, 6, 6}, read(t, z))
}

func TestWrongViews(t *testing.T) {
	s := newStream(t, cmdbuf.Options{})
	x := zeros(t, s, 2, 3)
	shape := func(list ...int) (l shaders.Layout) { return shaders.Contiguous(list...) }
	for name, make := range map[string]func() (*cmdbuf.Tensor[float32], error){
		"a slice too small for its shape": func() (*cmdbuf.Tensor[float32], error) { return x.Strided(shape(7)) },
		"an offset beyond the end":        func() (*cmdbuf.Tensor[float32], error) { l := shape(2); l.Offset = 5; return x.Strided(l) },
		"a negative index":                func() (*cmdbuf.Tensor[float32], error) { l := shape(2); l.Stride[0] = -1; return x.Strided(l) },
		"a range beyond the end":          func() (*cmdbuf.Tensor[float32], error) { return x.Range(1, 0, 4, 1) },
		"an axis beyond the rank":         func() (*cmdbuf.Tensor[float32], error) { return x.Range(2, 0, 1, 1) },
		"a step of 0":                     func() (*cmdbuf.Tensor[float32], error) { return x.Range(1, 0, 1, 0) },
		"a permutation with a repetition": func() (*cmdbuf.Tensor[float32], error) { return x.Permute(0, 0) },
		"an axis to transpose":            func() (*cmdbuf.Tensor[float32], error) { return x.Transpose(0, -1) },
		"a broadcast that is none":        func() (*cmdbuf.Tensor[float32], error) { return x.Broadcast(4, 3) },
		"a shape of another size":         func() (*cmdbuf.Tensor[float32], error) { return x.Reshape(4, 2) },
		"a negative extent":               func() (*cmdbuf.Tensor[float32], error) { return cmdbuf.New[float32](s, 2, -1) },
		"a rank beyond the maximum":       func() (*cmdbuf.Tensor[float32], error) { return cmdbuf.New[float32](s, 1, 1, 1, 1, 1, 1, 1, 1, 1) },
		"host data of another size":       func() (*cmdbuf.Tensor[float32], error) { return cmdbuf.Upload(s, []float32{1}, 2) },
	} {
		t.Run(name, func(t *testing.T) {
			v, err := make()
			require.ErrorIs(t, err, cmdbuf.ErrShape)
			require.Nil(t, v)
		})
	}
	require.ErrorIs(t, x.Write(nil), cmdbuf.ErrShape)
	require.ErrorIs(t, x.ReadInto(ctx, make([]float32, 5)), cmdbuf.ErrShape)
	twice, err := x.Broadcast(2, 2, 3)
	require.NoError(t, err)
	require.ErrorIs(t, twice.Write(make([]float32, 12)), cmdbuf.ErrShape, "a write to elements that share memory")
}

func TestLimitsAreCheckedFirst(t *testing.T) {
	s := newStream(t, cmdbuf.Options{})
	limit := s.Device().Limits().MaxStorageBufferRange
	if limit > 1<<28 {
		t.Skipf("the device binds %d bytes, more than a test should allocate", limit)
	}
	x, err := cmdbuf.New[float32](s, int(limit/4)+64)
	if errors.Is(err, vk.ErrOutOfDeviceMemory) || errors.Is(err, pool.ErrTooLarge) || errors.Is(err, pool.ErrOutOfMemory) {
		return // refused even earlier
	}
	require.NoError(t, err)
	defer x.Close()
	err = s.Launch(shaders.Fill, cmdbuf.Float32(0), x)
	var e *vk.LimitError
	require.ErrorAs(t, err, &e)
	require.Equal(t, "maxStorageBufferRange", e.Name)
	require.Equal(t, limit, e.Max)
}

func TestClosedStream(t *testing.T) {
	s := newStream(t, cmdbuf.Options{})
	x := zeros(t, s, 4)
	g, err := s.Capture(ctx, func(c *cmdbuf.Capture) error { return c.Launch(shaders.Add, x, x, x) })
	require.NoError(t, err)
	err = s.Close(ctx)
	require.ErrorIs(t, err, pool.ErrLeak, "a tensor is still open")
	require.NoError(t, s.Close(ctx), "closing twice")
	for name, call := range map[string]func() error{
		"launch":  func() error { return s.Launch(shaders.Add, x, x, x) },
		"flush":   s.Flush,
		"sync":    func() error { return s.Sync(ctx) },
		"write":   func() error { return x.Write(make([]float32, 4)) },
		"read":    func() error { _, err := x.Read(ctx); return err },
		"new":     func() error { _, err := cmdbuf.New[float32](s, 1); return err },
		"replay":  g.Replay,
		"install": func() error { return s.InstallPools(ctx, pool.Layout{}) },
		"capture": func() error {
			_, err := s.Capture(ctx, func(*cmdbuf.Capture) error { return nil })
			return err
		},
	} {
		require.ErrorIs(t, call(), cmdbuf.ErrClosed, name)
	}
	require.NoError(t, g.Close())
	require.NoError(t, s.Validate())
}

func TestCancelledWaitsLeaveTheWorkPending(t *testing.T) {
	s := newStream(t, cmdbuf.Options{})
	x := upload(t, s, []float32{1}, 1)
	require.NoError(t, s.Launch(shaders.Add, x, x, x))
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	// The device may be done before anyone asks; then nothing had to be waited for.
	if err := s.Sync(cancelled); err != nil {
		require.ErrorIs(t, err, context.Canceled)
	}
	if _, err := x.Read(cancelled); err != nil {
		require.ErrorIs(t, err, context.Canceled)
	}
	require.NoError(t, s.Launch(shaders.Add, x, x, x))
	require.Equal(t, []float32{4}, read(t, x))
}

func TestWrongOptions(t *testing.T) {
	s := newStream(t, cmdbuf.Options{})
	_, err := cmdbuf.NewStream(s.Device(), cmdbuf.Options{BatchLimit: -1})
	require.ErrorContains(t, err, "-1")
	_, err = cmdbuf.NewStream(s.Device(), cmdbuf.Options{Pools: pool.Layout{Pools: []pool.PoolSpec{{MinSlice: 2, MaxSlice: 1}}}})
	require.ErrorIs(t, err, pool.ErrLayout)
}

// A tensor that nobody made, nil or the zero value, is an error wherever one is taken.
func TestTensorsThatNobodyMade(t *testing.T) {
	s := newStream(t, cmdbuf.Options{})
	real := zeros(t, s, 1)
	for name, x := range map[string]*cmdbuf.Tensor[float32]{"nil": nil, "zero": {}} {
		one := make([]float32, 1)
		capture := func(f func(c *cmdbuf.Capture) error) func() error {
			return func() error {
				_, err := s.Capture(ctx, f)
				return err
			}
		}
		for call, f := range map[string]func() error{
			"launch":          func() error { return s.Launch(shaders.Add, x, real, real) },
			"copy":            func() error { return s.Copy(real, x) },
			"write":           func() error { return x.Write(one) },
			"read":            func() error { _, err := x.Read(ctx); return err },
			"read into":       func() error { return x.ReadInto(ctx, one) },
			"read async":      func() error { return <-x.ReadAsync(ctx, one) },
			"map":             func() error { return x.Map(ctx, func([]float32) {}) },
			"strided":         func() error { _, err := x.Strided(shaders.Contiguous(1)); return err },
			"captured launch": capture(func(c *cmdbuf.Capture) error { return c.Launch(shaders.Fill, cmdbuf.Float32(1), x) }),
			"parameter":       capture(func(c *cmdbuf.Capture) error { return c.Launch(shaders.Fill, cmdbuf.Float32(1), cmdbuf.Param("x", x)) }),
			"captured write":  capture(func(c *cmdbuf.Capture) error { return cmdbuf.WriteIn(c, x, one) }),
			"indirect launch": func() error { return s.LaunchIndirect(shaders.Nop, &cmdbuf.Tensor[uint32]{}) },
		} {
			require.Error(t, f(), "%s of %s", call, name)
		}
	}
	_, err := cmdbuf.New[float32](nil, 1)
	require.Error(t, err)
	require.NoError(t, s.Validate())
}
