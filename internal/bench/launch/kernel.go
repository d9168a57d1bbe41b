package launch

import (
	"fmt"

	"vkcompute/shaders"
)

// elements is one workgroup of work.
const elements = 64

// oneGroup is a built-in kernel specialised to workgroups of 64 invocations at most. At
// the usual 256, three quarters of the group would find nothing to do, at the driver's
// expense, and hide part of what is measured. Where the kernel itself takes fewer, as it
// does on a CPU, it may.
func oneGroup(k *shaders.Kernel) (*shaders.Kernel, error) {
	if err := k.Err(); err != nil {
		return nil, err
	}
	return shaders.NewKernel(shaders.KernelSpec{
		Name: k.Name + "-64", Module: k.Module, Entry: k.Entry, Params: k.Params, Grid: shaders.FoldedGrid,
		Plan: k.Plan,
		Spec: func(limits shaders.MaxWorkgroup) ([]shaders.SpecConst, [3]uint32) {
			limits.Invocations = min(elements, limits.Invocations)
			return k.Spec(limits)
		},
	})
}

// strided is every second of twice as many elements.
func strided() shaders.Layout {
	l := shaders.Contiguous(elements)
	l.Stride[0] = stride
	return l
}

const (
	stride = 2
	length = stride * elements // of a buffer, in elements
	// touched is up to the last element, in bytes.
	touched = (stride*(elements-1) + 1) * 4
)

// plan is what the library works out for every launch of the chain.
func plan(k *shaders.Kernel, env shaders.Env) (*shaders.Plan, error) {
	var p shaders.Plan
	operands := make([]shaders.Operand, len(k.Params))
	for i := range operands {
		operands[i] = shaders.Operand{Layout: strided(), DType: shaders.Float32}
	}
	if err := k.Plan(env, operands, &p); err != nil {
		return nil, fmt.Errorf("planning %s: %w", k.Name, err)
	}
	return &p, nil
}

// Kernels are those of the graph of Record that are not built in.
func Kernels() ([]*shaders.Kernel, error) {
	k, err := oneGroup(shaders.Add)
	return []*shaders.Kernel{k}, err
}
