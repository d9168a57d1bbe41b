package shaders_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/shaders"
)

// What a group shares is told for the values that Spec chooses.
func TestSharedMemoryIsThatOfTheSpecialisation(t *testing.T) {
	d := devices[2]
	of := func(k *shaders.Kernel, tuning shaders.Tuning) int {
		d.Tuning = tuning
		n, err := k.Shared(d)
		require.NoError(t, err)
		return n
	}
	tile := func(o shaders.OperandPath, across, down, rows, cols uint32) shaders.Tuning {
		return shaders.Tuning{MatMul: shaders.Tile{Operands: o, Across: across, Down: down, Rows: rows, Cols: cols}}
	}
	require.Equal(t, 4*16*(4*8+8*16)+8, of(shaders.MatMul, tile(shaders.StagedOperands, 16, 8, 4, 8)))
	require.Equal(t, 4*16*(2*1+1*8)+8, of(shaders.MatMul, tile(shaders.StagedOperands, 8, 1, 2, 1)))
	require.Equal(t, 8, of(shaders.MatMul, tile(shaders.DirectOperands, 16, 8, 4, 8)))
	require.Equal(t, 32*256, of(shaders.Sum, shaders.Tuning{}))
	require.Equal(t, 32*512, of(shaders.Sum, shaders.Tuning{Workgroup: 512}))
	require.Zero(t, of(shaders.Add, shaders.Tuning{}))
	for _, d := range devices {
		for _, k := range shaders.Builtins() {
			for _, tuning := range []shaders.Tuning{{}, {Workgroup: 1}, {Workgroup: 1024}, tile(shaders.StagedOperands, 256, 256, 16, 16)} {
				d.Tuning = tuning
				n, err := k.Shared(d)
				require.NoError(t, err)
				require.LessOrEqual(t, n, int(d.SharedBytes), "%s %+v", k.Name, d)
			}
		}
	}
}
