package cmdbuf

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/internal/vktest"
	"vkcompute/shaders"
)

// The kernels of a stream are compiled and planned with its tuning.
func TestKernelsAreTuned(t *testing.T) {
	d := vktest.Open(t)
	for _, tuning := range []shaders.Tuning{
		{Workgroup: 32, Groups: 3},
		{Workgroup: 64, Reads: shaders.Scattered, MatMul: shaders.Tile{Across: 8, Rows: 4, Cols: 4}},
		{Workgroup: shaders.MaxTunedWorkgroup, MatMul: shaders.Tile{Operands: shaders.StagedOperands, Across: shaders.MaxTileSide, Down: shaders.MaxTileSide, Rows: shaders.MaxTileBlock, Cols: shaders.MaxTileBlock}},
	} {
		s, err := NewStream(d, Options{Tuning: &tuning})
		require.NoError(t, err)
		for _, k := range []*shaders.Kernel{shaders.Add, shaders.MatMul, shaders.Sum} {
			p, err := s.program(k)
			require.NoError(t, err)
			require.Equal(t, tuning, p.env.Tuning)
			_, size := k.Spec(maxWorkgroup(d.Limits(), tuning))
			require.Equal(t, size, p.env.WorkgroupSize)
			if k == shaders.Add {
				require.Equal(t, min(tuning.Workgroup, uint32(d.Limits().MaxWorkgroupInvocations), d.Limits().MaxWorkgroupSize[0]), size[0], "of any size the device allows")
			}
		}
		require.NoError(t, s.Close(context.Background()))
	}
}
