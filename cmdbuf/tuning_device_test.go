package cmdbuf_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/cmdbuf"
	"vkcompute/shaders"
	"vkcompute/shaders/ref"
)

// oddTunings are the smallest that are legal, the largest, and what lies far from any
// default.
func oddTunings() []shaders.Tuning {
	const r, d, s = shaders.Scattered, shaders.DirectOperands, shaders.StagedOperands
	tile := func(o shaders.OperandPath, across, down, rows, cols uint32) shaders.Tile {
		return shaders.Tile{Operands: o, Across: across, Down: down, Rows: rows, Cols: cols}
	}
	return []shaders.Tuning{
		{Workgroup: 1, MatMul: tile(s, 8, 1, 1, 1)},
		{Workgroup: 1, Reads: r, Groups: 1, VectorRows: 1, MatMul: tile(d, 8, 1, 4, 4)},
		{Workgroup: 2, Reads: r, Groups: 3, VectorRows: 2, MatMul: tile(s, 8, 256, 1, 16)},
		{Workgroup: 4, MatMul: tile(d, 8, 256, 1, 16)},
		{Workgroup: 8, Reads: r, VectorRows: 16, MatMul: tile(s, 8, 8, 2, 8)},
		{Workgroup: 32, Reads: r, Groups: 1, VectorRows: 4, MatMul: tile(d, 16, 2, 8, 4)},
		{Workgroup: 1024, Reads: r, Groups: shaders.MaxTunedGroups, MatMul: tile(d, 256, 1, 4, 4)},
		{Workgroup: 1024, Groups: 1, MatMul: tile(s, 256, 256, 16, 16)},
	}
}

// tunedCase runs a case under a tuning.
func tunedCase(t *testing.T, s *cmdbuf.Stream, c *ref.Case, k *shaders.Kernel, tuning shaders.Tuning) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("%s with %+v", c.Name, tuning)
		}
	}()
	runCase(t, s, c, func(_ *shaders.Kernel, args ...cmdbuf.Arg) { require.NoError(t, s.Launch(k, args...)) })
}

// Whatever legal tuning a device has, its kernels run and give what their references give.
func TestKernelsAgreeUnderOddTunings(t *testing.T) {
	s := newStream(t, cmdbuf.Options{})
	tunings := oddTunings()
	for _, tuning := range tunings {
		require.NoError(t, cmdbuf.CheckTuning(s.Device().Info(), tuning), "%+v", tuning)
	}
	rng := rand.New(rand.NewPCG(5, 6))
	limit := min(s.Device().Limits().MaxStorageBufferRange, 1<<17)
	tuned := map[*shaders.Kernel]*shaders.Kernel{}
	which := map[*shaders.Kernel]shaders.Tuning{}
	ran := map[*shaders.Kernel]int{}
	for _, c := range append(ref.Edges(rng), ref.Cases(rng, 1)...) {
		if ran[c.Kernel] == 6 || slices.ContainsFunc(c.Data, func(d []uint32) bool { return uint64(len(d))*4 > limit }) {
			continue
		}
		// One for each kernel, as each is compiled: those of one shader get several.
		if tuned[c.Kernel] == nil {
			which[c.Kernel] = tunings[len(tuned)%len(tunings)]
			tuned[c.Kernel] = c.Kernel.Tuned(which[c.Kernel])
		}
		ran[c.Kernel]++
		tunedCase(t, s, &c, tuned[c.Kernel], which[c.Kernel])
	}
	require.Greater(t, len(tuned), len(shaders.Builtins())*3/4)
	require.NoError(t, s.Validate())
}

// Each tile, and each number of rows of a matrix with a vector, gives the same product.
func TestProductsUnderOddTunings(t *testing.T) {
	s := newStream(t, cmdbuf.Options{})
	const m, n, k = 61, 100, 52 // n in fours, as patches demand
	a, b, x := make([]float32, m*k), make([]float32, k*n), make([]float32, k)
	rng := rand.New(rand.NewPCG(7, 8))
	for _, p := range [][]float32{a, b, x} {
		for i := range p {
			p[i] = float32(rng.IntN(15) - 7) // every sum is exact
		}
	}
	product, vector := make([]float32, m*n), make([]float32, m)
	for i := range m {
		for l := range k {
			vector[i] += a[i*k+l] * x[l]
			for j := range n {
				product[i*n+j] += a[i*k+l] * b[l*n+j]
			}
		}
	}
	upload := func(host []float32, shape ...int) *cmdbuf.Tensor[float32] {
		v, err := cmdbuf.Upload(s, host, shape...)
		require.NoError(t, err)
		return v
	}
	da, db, dx := upload(a, m, k), upload(b, k, n), upload(x, k)
	spoilt := make([]float32, m*n)
	for i := range spoilt {
		spoilt[i] = -1e9
	}
	out := upload(spoilt, m, n)
	short := upload(spoilt[:m], m)
	for _, tuning := range oddTunings() {
		require.NoError(t, out.Write(spoilt))
		require.NoError(t, s.Launch(shaders.MatMul.Tuned(tuning), da, db, out))
		require.Equal(t, product, read(t, out), "%+v", tuning)
		require.NoError(t, short.Write(spoilt[:m]))
		require.NoError(t, s.Launch(shaders.MatVec.Tuned(tuning), da, dx, short))
		require.Equal(t, vector, read(t, short), "%+v", tuning)
	}
	for _, c := range []interface{ Close() error }{da, db, dx, out, short} {
		require.NoError(t, c.Close())
	}
}
