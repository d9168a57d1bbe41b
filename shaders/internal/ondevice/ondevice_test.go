package ondevice

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/cmdbuf"
	"vkcompute/internal/testenv"
	"vkcompute/internal/vktest"
	"vkcompute/shaders"
	"vkcompute/shaders/wgsl"
)

func TestMain(m *testing.M) { testenv.Main(m) }

var ctx = context.Background()

func newStream(t *testing.T) *cmdbuf.Stream {
	s, err := cmdbuf.NewStream(vktest.Open(t), cmdbuf.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(ctx)) })
	return s
}

func upload[T cmdbuf.Element](t *testing.T, s *cmdbuf.Stream, host []T, shape ...int) *cmdbuf.Tensor[T] {
	x, err := cmdbuf.Upload(s, host, shape...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, x.Close()) })
	return x
}

func zeros(t *testing.T, s *cmdbuf.Stream, shape ...int) *cmdbuf.Tensor[float32] {
	return upload(t, s, make([]float32, shaders.Contiguous(shape...).Len()), shape...)
}

func read[T cmdbuf.Element](t *testing.T, x *cmdbuf.Tensor[T]) []T {
	host, err := x.Read(ctx)
	require.NoError(t, err)
	return host
}

func normal(rng *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(rng.NormFloat64())
	}
	return v
}

// A kernel that allows it gives in place, bit for bit, what it gives apart.
func TestInPlaceIsTheSame(t *testing.T) {
	s := newStream(t)
	rng := rand.New(rand.NewPCG(1, 2))
	const rows, n = 7, 130
	x, w := normal(rng, rows*n), upload(t, s, normal(rng, n), n)
	eps := cmdbuf.Float32(1e-5)
	position := upload(t, s, []int32{5}, 1)
	frequencies := upload(t, s, shaders.RotaryFrequencies(n, 10000), n/2)
	labels := upload(t, s, []int32{1, 2, 3, -1, 5, 6, 7}, rows)
	for _, tt := range []struct {
		kernel *shaders.Kernel
		args   func(in, out cmdbuf.Arg) []cmdbuf.Arg
	}{
		{shaders.Softmax, func(in, out cmdbuf.Arg) []cmdbuf.Arg { return []cmdbuf.Arg{in, out} }},
		{shaders.CumSum, func(in, out cmdbuf.Arg) []cmdbuf.Arg { return []cmdbuf.Arg{in, out} }},
		{shaders.Silu, func(in, out cmdbuf.Arg) []cmdbuf.Arg { return []cmdbuf.Arg{in, out} }},
		{shaders.Sub, func(in, out cmdbuf.Arg) []cmdbuf.Arg { return []cmdbuf.Arg{in, w, out} }},
		{shaders.RMSNorm, func(in, out cmdbuf.Arg) []cmdbuf.Arg { return []cmdbuf.Arg{in, w, eps, out} }},
		{shaders.LayerNorm, func(in, out cmdbuf.Arg) []cmdbuf.Arg { return []cmdbuf.Arg{in, w, w, eps, out} }},
		{shaders.Rotary, func(in, out cmdbuf.Arg) []cmdbuf.Arg { return []cmdbuf.Arg{in, frequencies, position, out} }},
		{shaders.RotaryHalf, func(in, out cmdbuf.Arg) []cmdbuf.Arg { return []cmdbuf.Arg{in, frequencies, position, out} }},
		{shaders.CrossEntropyGrad, func(in, out cmdbuf.Arg) []cmdbuf.Arg { return []cmdbuf.Arg{in, labels, eps, out} }},
	} {
		t.Run(tt.kernel.Name, func(t *testing.T) {
			in, out := upload(t, s, x, rows, n), zeros(t, s, rows, n)
			require.NoError(t, s.Launch(tt.kernel, tt.args(in, out)...))
			require.NoError(t, s.Launch(tt.kernel, tt.args(in, in)...))
			require.Equal(t, read(t, out), read(t, in))
		})
	}
}

// One recorded graph writes each token's row to a cache, attends to all rows so
// far, picks the greatest and counts the position on.
func TestOneGraphServesEveryPosition(t *testing.T) {
	s := newStream(t)
	rng := rand.New(rand.NewPCG(3, 4))
	const heads, size, capacity, vocabulary = 2, 4, 8, 11
	const dim = heads * size
	host := normal(rng, vocabulary*dim)
	table := upload(t, s, host, vocabulary, dim)
	token, position := upload(t, s, []int32{3}, 1), upload(t, s, []int32{0}, 1)
	one := upload(t, s, []int32{1}, 1)
	row, out, logits := zeros(t, s, 1, dim), zeros(t, s, 1, heads, size), zeros(t, s, vocabulary)
	cache := zeros(t, s, capacity, heads, size)
	view, err := row.Reshape(1, heads, size)
	require.NoError(t, err)
	flat, err := out.Reshape(dim)
	require.NoError(t, err)
	g, err := s.Capture(ctx, func(c *cmdbuf.Capture) error {
		for _, l := range []struct {
			k    *shaders.Kernel
			args []cmdbuf.Arg
		}{
			{shaders.Gather, []cmdbuf.Arg{table, token, row}},
			{shaders.Put, []cmdbuf.Arg{view, position, cache}},
			{shaders.Attention, []cmdbuf.Arg{view, cache, cache, position, cmdbuf.Float32(0.5), out}},
			{shaders.MatVec, []cmdbuf.Arg{table, flat, logits}},
			{shaders.ArgMax, []cmdbuf.Arg{logits, token}},
			{shaders.AddInt, []cmdbuf.Arg{position, one, position}},
		} {
			if err := c.Launch(l.k, l.args...); err != nil {
				return err
			}
		}
		return nil
	})
	require.NoError(t, err)

	seen, at := [][]float32{}, 3
	for p := range capacity {
		require.NoError(t, g.Replay())
		seen = append(seen, host[at*dim:(at+1)*dim])
		at = next(host, seen, heads, size)
		require.Equal(t, []int32{int32(at)}, read(t, token), "position %d", p)
	}
	require.Equal(t, []int32{capacity}, read(t, position))
	require.NoError(t, g.Close())
}

// next is the same step in plain Go.
func next(table []float32, seen [][]float32, heads, size int) int {
	dim := heads * size
	out := make([]float64, dim)
	q := seen[len(seen)-1]
	for h := range heads {
		p, total := make([]float64, len(seen)), 0.0
		for j, k := range seen {
			dot := 0.0
			for d := h * size; d < (h+1)*size; d++ {
				dot += float64(q[d]) * float64(k[d])
			}
			p[j] = math.Exp(0.5 * dot)
			total += p[j]
		}
		for j, v := range seen {
			for d := h * size; d < (h+1)*size; d++ {
				out[d] += p[j] / total * float64(v[d])
			}
		}
	}
	best, most := 0, math.Inf(-1)
	for v := range len(table) / dim {
		dot := 0.0
		for d, o := range out {
			dot += o * float64(table[v*dim+d])
		}
		if dot > most {
			best, most = v, dot
		}
	}
	return best
}

// Two layers learn two interleaved classes: forward, loss, gradients and Adam from
// one recorded graph, whose steps are counted on the device.
func TestOneGraphTrains(t *testing.T) {
	s := newStream(t)
	rng := rand.New(rand.NewPCG(5, 6))
	const batch, in, hidden, classes = 64, 2, 32, 2
	points, answers := normal(rng, batch*in), make([]int32, batch)
	for i := range answers { // exclusive or: no single layer separates it
		if points[2*i]*points[2*i+1] > 0 {
			answers[i] = 1
		}
	}
	x, labels := upload(t, s, points, batch, in), upload(t, s, answers, batch)
	step, one := upload(t, s, []int32{0}, 1), upload(t, s, []int32{1}, 1)
	type layer struct{ w, grad, m, v *cmdbuf.Tensor[float32] }
	weights := func(shape ...int) layer {
		n := shaders.Contiguous(shape...).Len()
		return layer{upload(t, s, normal(rng, n), shape...), zeros(t, s, shape...), zeros(t, s, shape...), zeros(t, s, shape...)}
	}
	w1, b1, w2, b2 := weights(in, hidden), weights(1, hidden), weights(hidden, classes), weights(1, classes)
	h, a, back := zeros(t, s, batch, hidden), zeros(t, s, batch, hidden), zeros(t, s, batch, hidden)
	logits, slope := zeros(t, s, batch, classes), zeros(t, s, batch, classes)
	losses, loss := zeros(t, s, batch), zeros(t, s, 1)
	transposed := func(x *cmdbuf.Tensor[float32]) *cmdbuf.Tensor[float32] {
		v, err := x.Transpose(0, 1)
		require.NoError(t, err)
		return v
	}
	f := cmdbuf.Float32
	g, err := s.Capture(ctx, func(c *cmdbuf.Capture) error {
		launches := []struct {
			k    *shaders.Kernel
			args []cmdbuf.Arg
		}{
			{shaders.AddInt, []cmdbuf.Arg{step, one, step}},
			{shaders.MatMul, []cmdbuf.Arg{x, w1.w, h}},
			{shaders.Add, []cmdbuf.Arg{h, b1.w, h}},
			{shaders.Relu, []cmdbuf.Arg{h, a}},
			{shaders.MatMul, []cmdbuf.Arg{a, w2.w, logits}},
			{shaders.Add, []cmdbuf.Arg{logits, b2.w, logits}},
			{shaders.CrossEntropy, []cmdbuf.Arg{logits, labels, losses}},
			{shaders.Mean, []cmdbuf.Arg{losses, loss}},
			{shaders.CrossEntropyGrad, []cmdbuf.Arg{logits, labels, f(1.0 / batch), slope}},
			{shaders.MatMul, []cmdbuf.Arg{transposed(a), slope, w2.grad}},
			{shaders.Sum, []cmdbuf.Arg{slope, b2.grad}},
			{shaders.MatMul, []cmdbuf.Arg{slope, transposed(w2.w), back}},
			{shaders.ReluGrad, []cmdbuf.Arg{h, back, back}},
			{shaders.MatMul, []cmdbuf.Arg{transposed(x), back, w1.grad}},
			{shaders.Sum, []cmdbuf.Arg{back, b1.grad}},
		}
		for _, l := range launches {
			if err := c.Launch(l.k, l.args...); err != nil {
				return err
			}
		}
		for _, l := range []layer{w1, b1, w2, b2} {
			if err := c.Launch(shaders.Adam, l.grad, step, f(0.02), f(0.9), f(0.999), f(1e-8), l.w, l.m, l.v); err != nil {
				return err
			}
		}
		return nil
	})
	require.NoError(t, err)
	require.NoError(t, g.Replay())
	first := read(t, loss)[0]
	for range 300 {
		require.NoError(t, g.Replay())
	}
	last := read(t, loss)[0]
	require.Equal(t, []int32{301}, read(t, step))
	require.Less(t, last, first/8, "the loss falls from %v", first)
	require.NoError(t, g.Close())
}

// A shader of a user's runs from its text in two lines.
func TestKernelOfAUser(t *testing.T) {
	s := newStream(t)
	m, err := wgsl.Compile(`@group(0) @binding(0) var<storage, read> info: array<u32>;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
	if (id.x < info[0]) { y[info[2] + id.x] = x[info[1] + id.x] * 2.0 + 1.0; }
}`)
	require.NoError(t, err)
	kernel, err := shaders.Elementwise("twice and one", m)
	require.NoError(t, err)
	x, y := upload(t, s, normal(rand.New(rand.NewPCG(7, 8)), 1000), 1000), zeros(t, s, 1000)
	part, err := x.Range(0, 3, 900, 1) // begins where no binding can
	require.NoError(t, err)
	to, err := y.Range(0, 5, 902, 1)
	require.NoError(t, err)
	require.NoError(t, s.Launch(kernel, part, to))
	in, out := read(t, x), read(t, y)
	for i, v := range out {
		want := float32(0)
		if i >= 5 && i < 902 {
			want = in[i-2]*2 + 1
		}
		require.InDelta(t, want, v, 1e-5)
	}
}
