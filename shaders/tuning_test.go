package shaders_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

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
