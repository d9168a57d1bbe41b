package shaders

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A binary that is not there, or not right, is an error of the kernel, not a
// panic of the program that imports it.
func TestBrokenBuiltinsSayWhy(t *testing.T) {
	k := builtin("missing", load("missing"), KernelSpec{Plan: planNop})
	require.Error(t, k.Err())
	p := Plan{Info: []uint64{1}}
	require.ErrorContains(t, k.Plan(Env{WorkgroupSize: [3]uint32{1, 1, 1}}, nil, &p), "missing")
	require.Empty(t, p.Info)

	k = builtin("add", load("add"), KernelSpec{Plan: planNop})
	require.ErrorIs(t, k.Err(), ErrKernelSpec)
	_, size := k.Spec(MaxWorkgroup{})
	require.Equal(t, [3]uint32{1, 1, 1}, size)
}

// The planner and the shader share these by agreement only.
func TestTileConstantsAreTheShaders(t *testing.T) {
	// sa and sb: DEPTH·MICRO·(size.x + size.y) floats, at the default size 16×8.
	require.Equal(t, int(sharedOf(Tuning{}.MatMulTile(), 16, 8)), MatMul.Module.SharedBytes)
}

// However a sum is shared out, its lanes are a power of two within the group, and
// neighbouring invocations read along the axis that lies closer in memory.
func TestSumSharesItsGroup(t *testing.T) {
	for _, size := range []int{1, 8, 64, 256} {
		for _, outputs := range []int{1, 2, 31, 1000, 1 << 20} {
			for _, length := range []int{0, 1, 7, 100, 5000, 1 << 24} {
				for _, strides := range [][2]int{{1, 64}, {64, 1}, {maxIndex, 1}, {1, maxIndex}, {1, 1}} {
					lanes, order := sumLanes(Coalesced, size, outputs, length, strides[0], strides[1])
					require.Positive(t, lanes)
					require.LessOrEqual(t, lanes, size)
					require.Zero(t, lanes&(lanes-1))
					require.LessOrEqual(t, lanes, max(1, length))
					require.Equal(t, strides[0] < strides[1], order == 1)
				}
			}
		}
	}
	lanes, _ := sumLanes(Coalesced, 256, 1, 1<<20, maxIndex, 1)
	require.Equal(t, 256, lanes, "one long sum takes the whole group")
	lanes, _ = sumLanes(Coalesced, 256, 1<<20, 1<<10, 1, 1<<20)
	require.Equal(t, 1, lanes, "many sums along the outer axis take an invocation each")
	lanes, _ = sumLanes(Coalesced, 256, 8, 1<<20, 1, 8)
	require.Equal(t, 32, lanes, "few sums share the group and read side by side")
}
