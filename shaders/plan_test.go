package shaders_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/shaders"
	"vkcompute/shaders/ref"
)

var builtins = shaders.Builtins()

// limits of devices a kernel must run on: the least Vulkan allows, CPU drivers,
// a discrete GPU.
var devices = []shaders.MaxWorkgroup{
	{Invocations: 128, Size: [3]uint32{128, 128, 64}, SharedBytes: 16 << 10},
	{Invocations: 256, Size: [3]uint32{256, 256, 64}, SharedBytes: 16 << 10},
	{Invocations: 1024, Size: [3]uint32{1024, 1024, 64}, SharedBytes: 48 << 10},
	{Invocations: 1024, Size: [3]uint32{1024, 1024, 64}, SharedBytes: 32 << 10, Tuning: shaders.CPUTuning(2)},
}

func envOf(k *shaders.Kernel, d shaders.MaxWorkgroup) shaders.Env {
	_, size := k.Spec(d)
	return shaders.Env{WorkgroupSize: size, Tuning: d.Tuning}
}

// Planned by the planner and executed by the machine, every case gives what the
// reference says, on any device and through any folding.
func TestPlansGiveTheReferenceResult(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	cases := append(ref.Edges(rng), ref.Cases(rng, 50)...)
	var p shaders.Plan
	for i, c := range cases {
		if bodies[c.Kernel] == nil || c.Operands != nil && c.Operands[0].Len() > 1<<20 {
			continue
		}
		d := devices[i%len(devices)]
		env := envOf(c.Kernel, d)
		if i%2 == 1 {
			env.Tuning = shaders.CPUTuning(i % 5)
		}
		require.NoError(t, c.Kernel.Plan(env, c.Operands, &p), c.Name)
		data := slices.Clone(c.Data)
		if c.Out >= 0 {
			data[c.Out] = slices.Clone(data[c.Out])
		}
		for _, limit := range []uint64{65535, 3 + uint64(i%5)} {
			if p.Groups[0] > limit*limit*64 {
				continue
			}
			require.NoError(t, run(c.Kernel, &p, env, data, limit), c.Name)
			if c.Out >= 0 {
				require.NoError(t, c.Check(data[c.Out]))
			}
		}
	}
}

// Ten million summands of one sign, which a plain float32 loop gets wrong by
// per cents, stay within the bound, and well within.
func TestSumOfTenMillion(t *testing.T) {
	const n = 10_000_000
	rng := rand.New(rand.NewPCG(3, 4))
	data := make([]uint32, n)
	exact := 0.0
	for i := range data {
		v := rng.Float32()
		exact += float64(v)
		data[i] = math.Float32bits(v)
	}
	env := envOf(shaders.Sum, devices[0])
	var p shaders.Plan
	require.NoError(t, shaders.Sum.Plan(env, []shaders.Operand{
		{Layout: shaders.Contiguous(n), DType: shaders.Float32},
		{Layout: shaders.Contiguous(1), DType: shaders.Float32},
	}, &p))
	out := []uint32{0}
	require.NoError(t, run(shaders.Sum, &p, env, [][]uint32{data, out}, 65535))
	got := float64(math.Float32frombits(out[0]))
	require.InDelta(t, exact, got, ref.SumBound(n, exact))
	require.InDelta(t, 1, got/exact, 1e-6)
}

// Launches that do the same work have the same words, which is what lets them
// share a cached info.
func TestEqualWorkHasEqualWords(t *testing.T) {
	env := envOf(shaders.Add, devices[1])
	plan := func(l shaders.Layout) []uint64 {
		var p shaders.Plan
		op := shaders.Operand{Layout: l, DType: shaders.Float32}
		require.NoError(t, shaders.Add.Plan(env, []shaders.Operand{op, op, op}, &p))
		return p.Info
	}
	want := plan(shaders.Contiguous(24))
	require.Equal(t, want, plan(shaders.Contiguous(2, 3, 4)))
	require.Equal(t, want, plan(shaders.Contiguous(1, 4, 1, 6, 1)))
	transposed := shaders.Layout{Rank: 2, Shape: [8]int{4, 6}, Stride: [8]int{1, 4}}
	require.Equal(t, want, plan(transposed))
	reversed := shaders.Layout{Rank: 1, Offset: 23, Shape: [8]int{24}, Stride: [8]int{-1}}
	require.Equal(t, want, plan(reversed))
	require.NotEqual(t, want, plan(shaders.Layout{Rank: 1, Offset: 1, Shape: [8]int{24}, Stride: [8]int{1}}))
}

func TestWarmPlansAllocateNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, c := range append(ref.Edges(rng), ref.Cases(rng, 2)...) {
		env := envOf(c.Kernel, devices[1])
		var p shaders.Plan
		require.NoError(t, c.Kernel.Plan(env, c.Operands, &p))
		allocs := testing.AllocsPerRun(20, func() {
			if err := c.Kernel.Plan(env, c.Operands, &p); err != nil {
				t.Fatal(err)
			}
		})
		require.Zero(t, allocs, c.Name)
	}
}

func f32(l shaders.Layout) shaders.Operand { return shaders.Operand{Layout: l, DType: shaders.Float32} }

func TestBadOperands(t *testing.T) {
	at := func(offset int, l shaders.Layout) shaders.Layout { l.Offset = offset; return l }
	c := shaders.Contiguous
	scalar := shaders.Operand{Kind: shaders.ScalarParam, DType: shaders.Float32}
	overlapping := shaders.Layout{Rank: 2, Shape: [8]int{3, 4}, Stride: [8]int{0, 1}}
	for _, tt := range []struct {
		name    string
		k       *shaders.Kernel
		ops     []shaders.Operand
		problem shaders.Problem
		index   int
		says    string
	}{
		{"too few", shaders.Add, []shaders.Operand{f32(c(3))}, shaders.BadCount, -1, "want 3 [a b out], found 1"},
		{"too many", shaders.Nop, []shaders.Operand{f32(c(3))}, shaders.BadCount, -1, "want 0"},
		{"scalar for tensor", shaders.Add, []shaders.Operand{f32(c(3)), scalar, f32(c(3))}, shaders.BadKind, 1, "parameter 1 (b)"},
		{"tensor for scalar", shaders.Fill, []shaders.Operand{f32(c(3)), f32(c(3))}, shaders.BadKind, 0, "want scalar, found tensor"},
		{"wide scalar", shaders.Fill, []shaders.Operand{{Kind: shaders.ScalarParam, DType: shaders.Float32, Bits: 1 << 40}, f32(c(3))}, shaders.BadKind, 0, "32-bit"},
		{"dtype", shaders.Add, []shaders.Operand{f32(c(3)), {Layout: c(3), DType: shaders.Int32}, f32(c(3))}, shaders.BadDType, 1, "want float32, found int32"},
		{"no dtype", shaders.Fill, []shaders.Operand{{Kind: shaders.ScalarParam}, f32(c(3))}, shaders.BadDType, 0, "found any"},
		{"dtypes differ", shaders.Fill, []shaders.Operand{scalar, {Layout: c(3), DType: shaders.Int32}}, shaders.BadDType, 1, "want float32, found int32"},
		{"rank", shaders.Add, []shaders.Operand{f32(c(3)), f32(shaders.Layout{Rank: 9}), f32(c(3))}, shaders.BadLayout, 1, "rank 9"},
		{"negative extent", shaders.Add, []shaders.Operand{f32(c(3)), f32(c(-3)), f32(c(3))}, shaders.BadLayout, 1, "extent -3"},
		{"below the binding", shaders.Add, []shaders.Operand{f32(c(3)), f32(at(-1, c(3))), f32(c(3))}, shaders.BadLayout, 1, "elements -1 to 1"},
		{"beyond uint32", shaders.Add, []shaders.Operand{f32(c(3)), f32(at(1<<32, c(3))), f32(c(3))}, shaders.BadLayout, 1, "4294967295"},
		{"too many elements", shaders.Add, []shaders.Operand{f32(c(1)), f32(c(1)), f32(c(1<<20, 1<<20))}, shaders.BadLayout, 2, "2147483647 elements"},
		{"overflowing shape", shaders.Add, []shaders.Operand{f32(c(1)), f32(c(1)), f32(c(1<<40, 1<<40))}, shaders.BadLayout, 2, "2147483647 elements"},
		{"output overlaps itself", shaders.Add, []shaders.Operand{f32(c(3, 4)), f32(c(3, 4)), f32(overlapping)}, shaders.BadOverlap, 2, "distinct"},
		{"shape", shaders.Add, []shaders.Operand{f32(c(3, 4)), f32(c(3)), f32(c(3, 4))}, shaders.BadShape, 1, "want one that broadcasts to [3 4], found [3]"},
		{"input of higher rank", shaders.Add, []shaders.Operand{f32(c(1, 3)), f32(c(3)), f32(c(3))}, shaders.BadShape, 0, "found [1 3]"},
		{"sum extent", shaders.Sum, []shaders.Operand{f32(c(3, 4)), f32(c(3, 2))}, shaders.BadShape, 1, "found [3 2]"},
		{"sum rank", shaders.Sum, []shaders.Operand{f32(c(3, 4)), f32(c(3))}, shaders.BadShape, 1, "rank of x's [3 4]"},
		{"matmul rank", shaders.MatMul, []shaders.Operand{f32(c(3)), f32(c(3, 4)), f32(c(3, 4))}, shaders.BadShape, 0, "2 axes"},
		{"matmul M", shaders.MatMul, []shaders.Operand{f32(c(2, 5)), f32(c(5, 4)), f32(c(3, 4))}, shaders.BadShape, 0, "found [2 5]"},
		{"matmul K", shaders.MatMul, []shaders.Operand{f32(c(3, 5)), f32(c(6, 4)), f32(c(3, 4))}, shaders.BadShape, 1, "K of a's [3 5], found [6 4]"},
		{"matmul N", shaders.MatMul, []shaders.Operand{f32(c(3, 5)), f32(c(5, 3)), f32(c(3, 4))}, shaders.BadShape, 1, "N of out's [3 4]"},
		{"matmul batch", shaders.MatMul, []shaders.Operand{f32(c(2, 3, 5)), f32(c(3, 5, 4)), f32(c(2, 3, 4))}, shaders.BadShape, 1, "batch"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := shaders.Plan{Info: []uint64{1, 2}}
			err := tt.k.Plan(envOf(tt.k, devices[0]), tt.ops, &p)
			require.ErrorIs(t, err, shaders.ErrOperand)
			var oe *shaders.OperandError
			require.True(t, errors.As(err, &oe))
			require.Equal(t, tt.problem, oe.Problem, err)
			require.Equal(t, tt.index, oe.Index, err)
			require.Equal(t, tt.k.Name, oe.Kernel)
			require.Contains(t, err.Error(), tt.says)
			require.Empty(t, p.Info)
			require.Zero(t, p.Groups)
		})
	}
	err := shaders.Add.Plan(shaders.Env{}, []shaders.Operand{f32(c(3)), f32(c(3)), f32(c(3))}, &shaders.Plan{})
	require.ErrorIs(t, err, shaders.ErrOperand)
	require.Contains(t, err.Error(), "workgroup")
}

// Whatever a caller hands over, Plan answers with an error or a plan, and an
// accepted plan stays inside the bindings its layouts claim.
func FuzzPlan(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, s1, s2 uint64) {
		rng := rand.New(rand.NewPCG(s1, s2))
		k := builtins[rng.IntN(len(builtins))]
		ops := make([]shaders.Operand, len(k.Params))
		data := make([][]uint32, len(ops))
		for i, prm := range k.Params {
			op := &ops[i]
			op.Kind, op.DType = prm.Kind, shaders.Float32
			op.Rank = rng.IntN(4)
			op.Offset = rng.IntN(40) - 4
			for d := range op.Rank {
				op.Shape[d] = rng.IntN(4)
				op.Stride[d] = rng.IntN(9) - 4
			}
			if rng.IntN(200) == 0 {
				op.Rank, op.Offset, op.Stride[0] = rng.Int(), rng.Int(), rng.Int()
			}
			if prm.Kind == shaders.TensorParam {
				if _, hi := op.Bounds(); hi >= 0 && hi < 1<<20 {
					data[i] = make([]uint32, hi+1)
				}
			}
		}
		env := envOf(k, devices[rng.IntN(len(devices))])
		var p shaders.Plan
		if err := k.Plan(env, ops, &p); err != nil {
			require.ErrorIs(t, err, shaders.ErrOperand)
			return
		}
		if bodies[k] != nil {
			require.NoError(t, run(k, &p, env, data, 65535))
		}
	})
}

// FuzzPlan's body over many seeds, so that plain test runs search too.
func TestPlansStayInBounds(t *testing.T) {
	accepted := 0
	rng := rand.New(rand.NewPCG(7, 8))
	var p shaders.Plan
	for range 10_000 {
		k := []*shaders.Kernel{shaders.Add, shaders.Mul, shaders.Sum, shaders.MatMul}[rng.IntN(4)]
		ops := make([]shaders.Operand, len(k.Params))
		data := make([][]uint32, len(ops))
		rank := rng.IntN(4)
		shape := [8]int{rng.IntN(4), rng.IntN(4), rng.IntN(4)}
		for i := range ops {
			op := &ops[i]
			op.DType, op.Rank, op.Shape = shaders.Float32, rank, shape
			if i < len(ops)-1 && k != shaders.Sum || i == 1 && k == shaders.Sum {
				for d := range rank {
					if rng.IntN(3) == 0 {
						op.Shape[d] = 1
					}
				}
			}
			op.Offset = rng.IntN(40)
			for d := range rank {
				op.Stride[d] = rng.IntN(9) - 4
			}
			if _, hi := op.Bounds(); hi >= 0 {
				data[i] = make([]uint32, hi+1)
			}
		}
		env := envOf(k, devices[rng.IntN(len(devices))])
		if err := k.Plan(env, ops, &p); err != nil {
			require.ErrorIs(t, err, shaders.ErrOperand)
			continue
		}
		if p.Groups[0] > 0 {
			accepted++
		}
		require.NoError(t, run(k, &p, env, data, 65535))
	}
	require.Greater(t, accepted, 250, "the search must reach plans that do something")
}

// No operands make a planner panic, and every kernel accepts some: shapes are drawn
// so that they fit now and then.
func TestPlannersTakeAnything(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	accepted := map[string]int{}
	var p shaders.Plan
	for i := range 60_000 {
		k := builtins[i%len(builtins)]
		ops := make([]shaders.Operand, len(k.Params))
		shape := [8]int{1 + rng.IntN(2), 1 + rng.IntN(2), 1 + rng.IntN(2), 2, 2, 2, 2, 2}
		for j, prm := range k.Params {
			op := &ops[j]
			op.Kind, op.DType = prm.Kind, prm.DType
			if op.DType == shaders.AnyDType {
				op.DType = shaders.Int32
			}
			if prm.Kind == shaders.ScalarParam {
				continue
			}
			op.Rank, op.Shape = rng.IntN(5), shape
			if prm.Name == "position" || prm.Name == "step" {
				op.Rank = 0
			}
			op.Layout = shaders.Contiguous(op.Shape[:op.Rank]...)
			if rng.IntN(8) == 0 && op.Rank > 0 {
				op.Shape[rng.IntN(op.Rank)] = rng.IntN(3) - 1
			}
			if rng.IntN(50) == 0 {
				op.Rank, op.Offset = rng.IntN(12)-2, rng.Int()
			}
		}
		err := k.Plan(envOf(k, devices[i%len(devices)]), ops, &p)
		if err != nil {
			require.ErrorIs(t, err, shaders.ErrOperand, k.Name)
			require.Zero(t, p.Groups)
			continue
		}
		accepted[k.Name]++
		if p.Groups[0] > 0 {
			require.Equal(t, k.Module.PushSize, len(p.Push), k.Name)
		}
	}
	for _, k := range builtins {
		require.Positive(t, accepted[k.Name], k.Name)
	}
}

func TestWorkgroupsFitTheDevice(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for range 500 {
		d := shaders.MaxWorkgroup{
			Invocations: 1 + rng.Uint32N(2048),
			Size:        [3]uint32{1 + rng.Uint32N(2048), 1 + rng.Uint32N(2048), 1 + rng.Uint32N(64)},
			SharedBytes: 1024 + rng.Uint32N(1<<16),
		}
		for _, k := range builtins {
			consts, size := k.Spec(d)
			require.LessOrEqual(t, size[0]*size[1]*size[2], d.Invocations, k.Name)
			ep := k.Module.Entries[0]
			for axis, s := range size {
				require.GreaterOrEqual(t, s, uint32(1))
				require.LessOrEqual(t, s, d.Size[axis])
				require.Zero(t, s&(s-1), "a power of two")
				if id := ep.LocalSizeSpec[axis]; id != 0 {
					require.Contains(t, consts, shaders.SpecConst{ID: id - 1, Value: s}, k.Name)
				} else {
					require.Equal(t, ep.LocalSize[axis], s, k.Name)
				}
			}
			for _, c := range consts {
				require.True(t, slices.ContainsFunc(k.Module.Constants, func(i shaders.SpecInfo) bool { return i.ID == c.ID }), k.Name)
			}
			if k == shaders.MatMul {
				tile := d.Tuning.MatMulTile()
				require.LessOrEqual(t, 4*16*(tile.Rows*size[1]+tile.Cols*size[0]), d.SharedBytes)
			}
		}
	}
	// A forgotten limit for shared memory is the one every device has.
	_, size := shaders.MatMul.Spec(shaders.MaxWorkgroup{Invocations: 256, Size: [3]uint32{256, 256, 64}})
	require.Equal(t, [3]uint32{16, 16, 1}, size)
}

func TestKernelsDeclareWhatTheyAllow(t *testing.T) {
	names := map[string]bool{}
	both := map[string]bool{"weights": true, "velocity": true, "first": true, "second": true}
	for _, k := range builtins {
		require.NoError(t, k.Err())
		require.True(t, k.Foldable(), k.Name)
		require.False(t, names[k.Name], "two kernels are called %s", k.Name)
		names[k.Name] = true
		last := len(k.Params) - 1
		for out := -1; out <= len(k.Params); out++ {
			for in := -1; in <= len(k.Params); in++ {
				if out != last || in < 0 || in >= last {
					require.False(t, k.InPlace(out, in), "%s %d %d", k.Name, out, in)
				}
			}
		}
		for _, p := range k.Params {
			if p.Kind == shaders.TensorParam {
				want := shaders.Read
				switch {
				case p.Name == "out":
					want = shaders.Write
				case both[p.Name]:
					want = shaders.ReadWrite
				}
				if (k == shaders.ScatterAdd || k == shaders.FloatToHalf) && p.Name == "out" {
					want = shaders.ReadWrite
				}
				require.Equal(t, want, p.Access, "%s %s", k.Name, p.Name)
			}
		}
	}
	for _, k := range []*shaders.Kernel{shaders.Add, shaders.Silu, shaders.Where} {
		for in := range len(k.Params) - 1 {
			require.True(t, k.InPlace(len(k.Params)-1, in))
		}
	}
	for _, k := range []*shaders.Kernel{shaders.Sum, shaders.MatMul, shaders.Gather, shaders.Attention} {
		for in := range len(k.Params) - 1 {
			require.False(t, k.InPlace(len(k.Params)-1, in), k.Name)
		}
	}
	require.True(t, shaders.Softmax.InPlace(1, 0))
	require.False(t, shaders.RMSNorm.InPlace(3, 1))
	require.True(t, shaders.MatVecAdd.InPlace(3, 2))
	var none *shaders.Kernel
	require.Error(t, none.Err())
}

func BenchmarkPlan(b *testing.B) {
	l := shaders.Contiguous(64, 64)
	transposed := shaders.Layout{Rank: 2, Shape: [8]int{64, 64}, Stride: [8]int{1, 64}}
	for _, c := range []struct {
		name string
		k    *shaders.Kernel
		ops  []shaders.Operand
	}{
		{"add/contiguous", shaders.Add, []shaders.Operand{f32(l), f32(l), f32(l)}},
		{"add/transposed", shaders.Add, []shaders.Operand{f32(l), f32(transposed), f32(l)}},
		{"matmul", shaders.MatMul, []shaders.Operand{f32(l), f32(l), f32(l)}},
		{"nop", shaders.Nop, nil},
	} {
		b.Run(c.name, func(b *testing.B) {
			env := envOf(c.k, devices[1])
			var p shaders.Plan
			b.ReportAllocs()
			for b.Loop() {
				if err := c.k.Plan(env, c.ops, &p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
