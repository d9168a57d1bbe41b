package shaders_test

import (
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"vkcompute/shaders"
	"vkcompute/shaders/wgsl"
)

const axpy = `@group(0) @binding(0) var<storage, read> info: array<u32>;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
	if (id.x < info[1]) {
		y[info[3] + id.x] = bitcast<f32>(info[0]) * x[info[2] + id.x] + y[info[3] + id.x];
	}
}`

const plain = `@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(32)
fn twice(@builtin(global_invocation_id) id: vec3<u32>) {
	if (id.x < arrayLength(&y)) { y[id.x] = 2.0 * x[id.x]; }
}`

func compiled(t *testing.T, source string) *shaders.Module {
	t.Helper()
	m, err := wgsl.Compile(source)
	require.NoError(t, err)
	return m
}

// Scalars, the count and the beginnings reach the shader in a fixed order.
func TestElementwiseTellsWhatAShaderNeeds(t *testing.T) {
	k, err := shaders.Elementwise("axpy", compiled(t, axpy),
		shaders.Param{Name: "a", Kind: shaders.ScalarParam, DType: shaders.Float32},
		shaders.Param{Name: "x", DType: shaders.Float32, Binding: 1},
		shaders.Param{Name: "y", DType: shaders.Float32, Binding: 2})
	require.NoError(t, err)
	l := shaders.Contiguous(10, 13)
	l.Offset = 3
	scalar := shaders.Operand{Kind: shaders.ScalarParam, DType: shaders.Float32, Bits: 0x40000000}
	x, y := f32(shaders.Contiguous(10, 13)), f32(l)
	var p shaders.Plan
	require.NoError(t, k.Plan(envOf(k, devices[0]), []shaders.Operand{scalar, x, y}, &p))
	require.Equal(t, shaders.Plan{Info: []uint64{0x40000000 | 130<<32, 0 | 3<<32}, Groups: [3]uint64{3, 1, 1}}, p)
	require.True(t, k.InPlace(2, 1))

	short := f32(shaders.Contiguous(10, 12))
	require.ErrorContains(t, k.Plan(envOf(k, devices[0]), []shaders.Operand{scalar, x, short}, &p), "want [10 13], found [10 12]")
	gap := f32(shaders.Layout{Rank: 2, Shape: [8]int{10, 13}, Stride: [8]int{14, 1}})
	require.ErrorContains(t, k.Plan(envOf(k, devices[0]), []shaders.Operand{scalar, gap, y}, &p), "contiguous")
	empty := f32(shaders.Contiguous(0, 3))
	require.NoError(t, k.Plan(envOf(k, devices[0]), []shaders.Operand{scalar, empty, empty}, &p))
	require.Zero(t, p.Groups)
}

func TestElementwiseWithoutInfo(t *testing.T) {
	k, err := shaders.Elementwise("twice", compiled(t, plain))
	require.NoError(t, err)
	require.Equal(t, "twice", k.Entry)
	require.Equal(t, []shaders.Param{
		{Name: "x", DType: shaders.Float32, Access: shaders.Read, Binding: 1},
		{Name: "y", DType: shaders.Float32, Access: shaders.ReadWrite, Binding: 4},
	}, k.Params)
	var p shaders.Plan
	l := shaders.Contiguous(100)
	require.NoError(t, k.Plan(envOf(k, devices[0]), []shaders.Operand{f32(l), f32(l)}, &p))
	require.Equal(t, uint64(4), p.Groups[0])
	l.Offset = 1
	require.ErrorContains(t, k.Plan(envOf(k, devices[0]), []shaders.Operand{f32(l), f32(l)}, &p), "aligned beginning")
}

func TestElementwiseRefuses(t *testing.T) {
	scalar := shaders.Param{Name: "a", Kind: shaders.ScalarParam}
	tensor := shaders.Param{Name: "x", Binding: 1}
	for name, tt := range map[string]struct {
		m      *shaders.Module
		params []shaders.Param
		says   string
	}{
		"no module":       {nil, nil, "want a module"},
		"scalar, no info": {compiled(t, plain), []shaders.Param{scalar, tensor, {Name: "y", Binding: 4}}, "no way into the shader"},
		"only scalars":    {compiled(t, axpy), []shaders.Param{scalar}, "a tensor with an element for each invocation"},
		"a binding over":  {compiled(t, axpy), []shaders.Param{tensor}, "belongs to no parameter"},
		"square groups":   {shaders.MatMul.Module, nil, "in x alone"},
	} {
		t.Run(name, func(t *testing.T) {
			k, err := shaders.Elementwise("mine", tt.m, tt.params...)
			require.ErrorIs(t, err, shaders.ErrKernelSpec)
			require.ErrorContains(t, err, tt.says)
			require.Nil(t, k)
		})
	}
}

func TestLoadFS(t *testing.T) {
	fsys := fstest.MapFS{"bad.spv": {Data: []byte("hello")}}
	_, err := shaders.LoadFS(fsys, "bad.spv")
	require.ErrorIs(t, err, shaders.ErrNotSPIRV)
	require.ErrorContains(t, err, "bad.spv")
	_, err = shaders.LoadFS(fsys, "none.spv")
	require.ErrorContains(t, err, "none.spv")
}

func TestInfoWriter(t *testing.T) {
	p := shaders.Plan{Info: []uint64{9, 9, 9}}
	w := shaders.NewInfo(&p)
	w.Put(7)
	w.Int(-1)
	w.Float(1)
	w.View(shaders.Layout{Rank: 1, Offset: 5, Shape: [8]int{4}, Stride: [8]int{-2}})
	w.Done()
	require.Equal(t, []uint64{7 | 0xffffffff<<32, 0x3f800000 | 1<<32, 5 | 4<<32, 0xfffffffe}, p.Info)
}

// A planner of one's own writes the words that its shader reads.
func ExampleNewInfo() {
	plan := func(env shaders.Env, ops []shaders.Operand, p *shaders.Plan) error {
		w := shaders.NewInfo(p)
		w.Int(ops[0].Len())
		w.View(ops[0].Layout)
		w.Done()
		p.Groups = [3]uint64{1, 1, 1}
		return nil
	}
	var p shaders.Plan
	err := plan(shaders.Env{}, []shaders.Operand{{Layout: shaders.Contiguous(3, 2)}}, &p)
	fmt.Println(err, len(p.Info))
	// Output: <nil> 4
}
