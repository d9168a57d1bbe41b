package cmdbuf_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"vkcompute/cmdbuf"
	"vkcompute/internal/testenv"
	"vkcompute/internal/vktest"
	"vkcompute/shaders"
	"vkcompute/shaders/ref"
	"vkcompute/vk"
)

// operand is a tensor of a case on the device: the whole binding, and the view of it.
type operand struct {
	arg   cmdbuf.Arg
	read  func() []uint32
	close func()
}

func place[T cmdbuf.Element](t *testing.T, s *cmdbuf.Stream, data []uint32, l shaders.Layout) operand {
	t.Helper()
	whole, err := cmdbuf.Upload(s, reinterpret[T](data), len(data))
	require.NoError(t, err)
	v, err := whole.Strided(l)
	require.NoError(t, err)
	return operand{
		arg:   v,
		read:  func() []uint32 { return reinterpret[uint32](read(t, whole)) },
		close: func() { require.NoError(t, whole.Close()) },
	}
}

func reinterpret[T, F cmdbuf.Element](p []F) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(p))), len(p))
}

// runCase uploads a case, lets launch run it, and compares the output.
func runCase(t *testing.T, s *cmdbuf.Stream, c *ref.Case, launch func(k *shaders.Kernel, args ...cmdbuf.Arg)) {
	t.Helper()
	args := make([]cmdbuf.Arg, len(c.Operands))
	operands := make([]operand, len(c.Operands))
	for i, op := range c.Operands {
		if c.Kernel.Params[i].Kind == shaders.ScalarParam {
			switch op.DType {
			case shaders.Int32:
				args[i] = cmdbuf.Int32(int32(op.Bits))
			case shaders.Uint32:
				args[i] = cmdbuf.Uint32(uint32(op.Bits))
			default:
				args[i] = cmdbuf.Float32(reinterpret[float32]([]uint32{uint32(op.Bits)})[0])
			}
			continue
		}
		switch op.DType {
		case shaders.Int32:
			operands[i] = place[int32](t, s, c.Data[i], op.Layout)
		case shaders.Uint32:
			operands[i] = place[uint32](t, s, c.Data[i], op.Layout)
		default:
			operands[i] = place[float32](t, s, c.Data[i], op.Layout)
		}
		args[i] = operands[i].arg
		defer operands[i].close()
	}
	launch(c.Kernel, args...)
	if c.Out >= 0 {
		require.NoError(t, c.Check(operands[c.Out].read()))
	}
}

// Every kernel gives what its reference gives, launched and captured, on random shapes,
// strides, broadcasts and on the sizes most likely to be wrong.
func TestKernelsAgreeWithTheirReferences(t *testing.T) {
	bothWays(t, func(t *testing.T, s *cmdbuf.Stream) { kernelsAgree(t, s) })
}

// bothWays runs a test with buffers bound by descriptor and, where the device can, passed
// by address.
func bothWays(t *testing.T, f func(t *testing.T, s *cmdbuf.Stream)) {
	t.Run("descriptors", func(t *testing.T) { f(t, newStream(t, cmdbuf.Options{})) })
	t.Run("addresses", func(t *testing.T) {
		d := vktest.Open(t)
		s, err := cmdbuf.NewStream(d, cmdbuf.Options{Addresses: true})
		if errors.Is(err, vk.ErrUnsupported) {
			require.False(t, d.Info().Features.DeviceAddress)
			return
		}
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close(ctx)) })
		f(t, s)
		require.Zero(t, s.Stats().SetsMade, "no descriptor set was made")
	})
}

func kernelsAgree(t *testing.T, s *cmdbuf.Stream) {
	rng := rand.New(rand.NewPCG(1, 2))
	n := 4
	if testing.Short() {
		n = 1
	}
	cases := append(ref.Edges(rng), ref.Cases(rng, n)...)
	if testenv.Long() {
		cases = append(cases, ref.LargeCases(rng)...)
	} else if !testing.Short() {
		cases = append(cases, ref.LargeCases(rng)[:2]...)
	}
	eager := func(k *shaders.Kernel, args ...cmdbuf.Arg) { require.NoError(t, s.Launch(k, args...)) }
	replayed := func(k *shaders.Kernel, args ...cmdbuf.Arg) {
		g, err := s.Capture(ctx, func(c *cmdbuf.Capture) error { return c.Launch(k, args...) })
		require.NoError(t, err)
		require.NoError(t, g.Replay())
		require.NoError(t, g.Close())
	}
	bindable := s.Device().Limits().MaxStorageBufferRange
	ran := 0
	for i := range cases {
		c := &cases[i]
		if slices.ContainsFunc(c.Data, func(d []uint32) bool { return uint64(len(d))*4 > bindable }) {
			continue
		}
		ran++
		runCase(t, s, c, eager)
		if i%3 == 0 {
			runCase(t, s, c, replayed)
		}
		require.NoError(t, s.Validate())
	}
	require.Greater(t, ran, len(cases)/2)
}
