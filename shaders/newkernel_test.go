package shaders_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/shaders"
)

func plans(shaders.Env, []shaders.Operand, *shaders.Plan) error { return nil }

func addSpec(t *testing.T) shaders.KernelSpec {
	t.Helper()
	code, err := os.ReadFile("spv/add.spv")
	require.NoError(t, err)
	m, err := shaders.Load(code)
	require.NoError(t, err)
	return shaders.KernelSpec{Name: "mine", Module: m, Plan: plans, Params: []shaders.Param{
		{Name: "a", DType: shaders.Float32, Binding: 1},
		{Name: "n", Kind: shaders.ScalarParam, DType: shaders.Uint32, Access: shaders.Read, Binding: 9},
		{Name: "b", DType: shaders.Float32, Binding: 2},
		{Name: "out", DType: shaders.Float32, Binding: 3},
	}}
}

func TestNewKernelTakesAccessFromTheModule(t *testing.T) {
	spec := addSpec(t)
	k, err := shaders.NewKernel(spec)
	require.NoError(t, err)
	require.NoError(t, k.Err())
	require.Equal(t, shaders.Read, k.Params[0].Access)
	require.Equal(t, shaders.Param{Name: "n", Kind: shaders.ScalarParam, DType: shaders.Uint32}, k.Params[1])
	require.Equal(t, shaders.Write, k.Params[3].Access)
	require.Zero(t, spec.Params[0].Access, "the caller's slice is not written")
	require.Equal(t, "main", k.Entry)
	require.False(t, k.Foldable())
	require.False(t, k.InPlace(3, 0))
	consts, size := k.Spec(devices[0])
	require.Empty(t, consts)
	require.Equal(t, [3]uint32{64, 1, 1}, size)
}

func TestNewKernelRefuses(t *testing.T) {
	for _, tt := range []struct {
		name string
		bend func(*shaders.KernelSpec)
		says string
	}{
		{"no module", func(s *shaders.KernelSpec) { s.Module = nil }, "want a module"},
		{"no planner", func(s *shaders.KernelSpec) { s.Plan = nil }, "want a planner"},
		{"no such entry", func(s *shaders.KernelSpec) { s.Entry = "maine" }, `want entry point "maine", the module has ["main"]`},
		{"binding missing in the module", func(s *shaders.KernelSpec) { s.Params[0].Binding = 8 }, "parameter 0 (a) wants binding 8"},
		{"binding without a parameter", func(s *shaders.KernelSpec) { s.Params = s.Params[:3] }, "binding 3"},
		{"two on one binding", func(s *shaders.KernelSpec) { s.Params[2].Binding = 1 }, "belongs to a"},
		{"the info's binding", func(s *shaders.KernelSpec) { s.Params[2].Binding = 0 }, "belongs to info"},
		{"less access than the shader has", func(s *shaders.KernelSpec) { s.Params[3].Access = shaders.Read }, "declared read, its binding 3 is write"},
		{"another set", func(s *shaders.KernelSpec) {
			m := *s.Module
			m.Bindings = append(append([]shaders.BindingInfo(nil), m.Bindings...), shaders.BindingInfo{Set: 1, Kind: shaders.StorageBuffer, Count: 1})
			s.Module = &m
		}, "set 1"},
		{"a uniform buffer", func(s *shaders.KernelSpec) {
			m := *s.Module
			m.Bindings = append([]shaders.BindingInfo(nil), m.Bindings...)
			m.Bindings[0].Kind = shaders.UniformBuffer
			s.Module = &m
		}, "1 × uniform buffer"},
		{"a writable info", func(s *shaders.KernelSpec) {
			m := *s.Module
			m.Bindings = append([]shaders.BindingInfo(nil), m.Bindings...)
			m.Bindings[0].Access = shaders.ReadWrite
			s.Module = &m
		}, "declare it readonly"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spec := addSpec(t)
			tt.bend(&spec)
			k, err := shaders.NewKernel(spec)
			require.ErrorIs(t, err, shaders.ErrKernelSpec)
			require.Contains(t, err.Error(), tt.says)
			require.Contains(t, err.Error(), `"mine"`)
			require.Nil(t, k)
		})
	}
}

// A planner of somebody else's sees operands that have been checked, and its
// errors are given the names it does not know.
func TestPlannersOfUsers(t *testing.T) {
	spec := addSpec(t)
	calls := 0
	spec.Plan = func(env shaders.Env, ops []shaders.Operand, p *shaders.Plan) error {
		calls++
		p.Info = append(p.Info, ops[1].Bits)
		p.Groups = [3]uint64{1, 2, 3}
		if ops[1].Bits == 7 {
			return &shaders.OperandError{Index: 1, Problem: shaders.BadShape, Want: "not 7", Found: "7"}
		}
		return nil
	}
	k, err := shaders.NewKernel(spec)
	require.NoError(t, err)
	x := f32(shaders.Contiguous(4))
	n := shaders.Operand{Kind: shaders.ScalarParam, DType: shaders.Uint32, Bits: 5}
	env := envOf(k, devices[0])
	var p shaders.Plan
	require.NoError(t, k.Plan(env, []shaders.Operand{x, n, x, x}, &p))
	require.Equal(t, shaders.Plan{Info: []uint64{5}, Groups: [3]uint64{1, 2, 3}}, p)
	require.ErrorIs(t, k.Plan(env, []shaders.Operand{x, n, x}, &p), shaders.ErrOperand)
	require.Equal(t, 1, calls)
	n.Bits = 7
	err = k.Plan(env, []shaders.Operand{x, n, x, x}, &p)
	require.EqualError(t, err, "shaders: mine: parameter 1 (n): shape: want not 7, found 7")
	require.Empty(t, p.Info)
}
