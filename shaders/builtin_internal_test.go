package shaders

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A binary that is not there, or not right, is an error of the kernel, not a
// panic of the program that imports it.
func TestBrokenBuiltinsSayWhy(t *testing.T) {
	k := builtin("missing", KernelSpec{Plan: planNop})
	require.Error(t, k.Err())
	p := Plan{Info: []uint64{1}}
	require.ErrorContains(t, k.Plan(Env{WorkgroupSize: [3]uint32{1, 1, 1}}, nil, &p), "missing")
	require.Empty(t, p.Info)

	k = builtin("add", KernelSpec{Plan: planNop})
	require.ErrorIs(t, k.Err(), ErrKernelSpec)
	_, size := k.Spec(MaxWorkgroup{})
	require.Equal(t, [3]uint32{1, 1, 1}, size)
}

// The planner and the shader share these by agreement only.
func TestTileConstantsAreTheShaders(t *testing.T) {
	// sa and sb: DEPTH·MICRO·(size.x + size.y) floats, at the default size 16×8.
	require.Equal(t, 4*matDepth*matMicro*(16+8), MatMul.Module.SharedBytes)
}
