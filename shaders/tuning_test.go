package shaders_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"vkcompute/shaders"
	"vkcompute/shaders/ref"
)

func TestTuningsAreValidated(t *testing.T) {
	require.NoError(t, shaders.Tuning{}.Validate())
	require.NoError(t, shaders.CPUTuning(64).Validate())
	tile := func(f func(*shaders.Tile)) shaders.Tuning {
		var x shaders.Tuning
		f(&x.MatMul)
		return x
	}
	for _, tt := range []struct {
		tuning shaders.Tuning
		says   string
	}{
		{shaders.Tuning{Groups: shaders.MaxTunedGroups + 1}, "Groups: want at most 1048576, found 1048577"},
		{shaders.Tuning{Reads: 7}, "Reads: want coalesced or scattered, found 7"},
		{shaders.Tuning{Workgroup: 96}, "Workgroup: want 0 or a power of two up to 1024, found 96"},
		{shaders.Tuning{Workgroup: 2048}, "found 2048"},
		{tile(func(x *shaders.Tile) { x.Operands = 9 }), "MatMul.Operands: want by reads, staged or direct, found path(9)"},
		{tile(func(x *shaders.Tile) { x.Across = 512 }), "MatMul.Across"},
		{tile(func(x *shaders.Tile) { x.Across = 4 }), "MatMul.Across: want 0 or a power of two from 8 to 256, found 4"},
		{tile(func(x *shaders.Tile) { x.Down = 3 }), "MatMul.Down"},
		{tile(func(x *shaders.Tile) { x.Rows = 32 }), "MatMul.Rows: want 0 or a power of two up to 16, found 32"},
		{tile(func(x *shaders.Tile) { x.Cols = 5 }), "MatMul.Cols"},
	} {
		err := tt.tuning.Validate()
		require.ErrorIs(t, err, shaders.ErrTuning)
		require.ErrorContains(t, err, tt.says)
	}
}

// Whatever a tuning says, sizes fit the device and plans do the work.
func TestAnyTuningGivesTheResult(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 22))
	cases := slices.DeleteFunc(append(ref.Edges(rng), ref.Cases(rng, 6)...), func(c ref.Case) bool {
		return bodies[c.Kernel] == nil || c.Operands == nil || c.Operands[0].Len() > 1<<16
	})
	number := func() uint32 {
		if rng.IntN(2) == 0 {
			return rng.Uint32N(3000)
		}
		return 1 << rng.IntN(9)
	}
	var p shaders.Plan
	for i, c := range cases {
		tuning := shaders.Tuning{
			Groups: number(), Reads: shaders.ReadPattern(rng.IntN(3)), Workgroup: number(),
			MatMul: shaders.Tile{Operands: shaders.OperandPath(rng.IntN(4)), Across: number(), Down: number(), Rows: number(), Cols: number()},
		}
		k := c.Kernel.Tuned(tuning)
		d := devices[i%len(devices)]
		_, size := k.Spec(d)
		require.LessOrEqual(t, size[0]*size[1]*size[2], d.Invocations, "%s %+v", k.Name, tuning)
		for axis, s := range size {
			require.Positive(t, s)
			require.LessOrEqual(t, s, d.Size[axis])
			require.Zero(t, s&(s-1))
		}
		if c.Kernel == shaders.MatMul {
			require.GreaterOrEqual(t, size[0], uint32(shaders.MinTileAcross), "%+v", tuning)
		}
		env := shaders.Env{WorkgroupSize: size, Tuning: tuning}
		require.NoError(t, k.Plan(shaders.Env{WorkgroupSize: size, Tuning: d.Tuning}, c.Operands, &p), "%s %+v", c.Name, tuning)
		data := slices.Clone(c.Data)
		if c.Out >= 0 {
			data[c.Out] = slices.Clone(data[c.Out])
		}
		require.NoError(t, run(c.Kernel, &p, env, data, 65535), "%s %+v", c.Name, tuning)
		if c.Out >= 0 {
			require.NoError(t, c.Check(data[c.Out]), "%+v", tuning)
		}
	}
}

// However a legal tile is brought within a device, a row of a group stays as wide as a CPU
// driver's vectors.
func TestTilesAreNeverNarrow(t *testing.T) {
	for _, d := range devices {
		for _, path := range []shaders.OperandPath{shaders.StagedOperands, shaders.DirectOperands} {
			for across := uint32(shaders.MinTileAcross); across <= shaders.MaxTileSide; across *= 2 {
				for down := uint32(1); down <= shaders.MaxTileSide; down *= 2 {
					for rows := uint32(1); rows <= shaders.MaxTileBlock; rows *= 2 {
						for cols := uint32(1); cols <= shaders.MaxTileBlock; cols *= 2 {
							d.Tuning.MatMul = shaders.Tile{Operands: path, Across: across, Down: down, Rows: rows, Cols: cols}
							require.NoError(t, d.Tuning.Validate())
							_, size := shaders.MatMul.Spec(d)
							if size[0] < shaders.MinTileAcross || size[0]*size[1] > d.Invocations {
								t.Fatalf("%+v on %+v: a group of %v", d.Tuning.MatMul, d, size)
							}
						}
					}
				}
			}
		}
	}
}

// No tuning refuses what the least device takes without one.
func TestTuningsRefuseNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		power := func(name string, most int) uint32 { return 1 << rapid.IntRange(0, most).Draw(t, name) }
		tuning := shaders.Tuning{
			Groups: power("groups", 20), Reads: shaders.ReadPattern(rapid.IntRange(0, 1).Draw(t, "reads")),
			Workgroup: power("workgroup", 10), VectorRows: power("rows", 4),
		}
		require.NoError(t, tuning.Validate())
		// Long ones, on the way to where one launch no longer does.
		n := rapid.SampledFrom([]int{1 << 10, 1 << 15, 1 << 18, 1 << 20, 10_000_000}).Draw(t, "n") + rapid.IntRange(-5, 5).Draw(t, "more")
		short := rapid.SampledFrom([]int{1, 2, 7, 32, 40, 64}).Draw(t, "short")
		step := rapid.SampledFrom([]int{0, 1, 3}).Draw(t, "step")
		along := func(l shaders.Layout) shaders.Operand { // its last axis of another stride
			l.Stride[l.Rank-1] *= step
			return shaders.Operand{Layout: l, DType: shaders.Float32}
		}
		whole := func(shape ...int) shaders.Operand {
			return shaders.Operand{Layout: shaders.Contiguous(shape...), DType: shaders.Float32}
		}
		var k *shaders.Kernel
		var ops []shaders.Operand
		switch kind := rapid.SampledFrom([]string{"add", "sum", "columns", "matvec", "softmax", "cumsum", "attention", "halves"}).Draw(t, "kernel"); kind {
		case "add":
			k, ops = shaders.Add, []shaders.Operand{along(shaders.Contiguous(n)), whole(n), whole(n)}
		case "sum":
			k, ops = shaders.Sum, []shaders.Operand{along(shaders.Contiguous(short, n)), whole(short, 1)}
		case "columns":
			k, ops = shaders.Sum, []shaders.Operand{along(shaders.Contiguous(n, short)), whole(1, short)}
		case "matvec":
			a := along(shaders.Contiguous(short, n))
			a.Stride[0] = 0 // or it would be larger than a tensor may be
			k, ops = shaders.MatVec, []shaders.Operand{a, whole(n), whole(short)}
		case "softmax":
			k, ops = shaders.Softmax, []shaders.Operand{along(shaders.Contiguous(short, n)), whole(short, n)}
		case "cumsum":
			k, ops = shaders.CumSum, []shaders.Operand{along(shaders.Contiguous(short, n)), whole(short, n)}
		case "halves":
			a, x := whole(short, n), whole(n)
			a.DType, a.Stride[0] = shaders.MatVecHalf.Params[0].DType, 0
			x.DType = shaders.MatVecHalf.Params[1].DType
			k, ops = shaders.MatVecHalf, []shaders.Operand{a, x, whole(short)}
		case "attention":
			position := shaders.Operand{Layout: shaders.Contiguous(1), DType: shaders.Int32}
			scale := shaders.Operand{DType: shaders.Float32, Kind: shaders.ScalarParam}
			k, ops = shaders.Attention, []shaders.Operand{whole(1, 1, 16), whole(n, 1, 16), whole(n, 1, 16), position, scale, whole(1, 1, 16)}
		}
		var p shaders.Plan
		if n < 1<<15 {
			require.NoError(t, k.Plan(envOf(k, devices[0]), ops, &p), "%s", k.Name)
		}
		for _, d := range devices {
			least := devices[0]
			least.Tuning = d.Tuning
			if k.Plan(envOf(k, least), ops, &p) != nil {
				continue
			}
			tuned := d
			tuned.Tuning = tuning
			tuned.Tuning.Reads = d.Tuning.Reads
			require.NoError(t, k.Plan(envOf(k, tuned), ops, &p), "%s %+v", k.Name, tuned)
			_, size := k.Spec(tuned)
			require.LessOrEqual(t, size[0], d.Invocations)
		}
	})
}
