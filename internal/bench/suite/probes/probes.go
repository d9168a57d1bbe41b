// Package probes holds the kernels with which the suite finds out what a device can do:
// fused multiply-adds without memory, and memory without arithmetic. They are compiled
// ahead like those of package shaders, and a test compares binaries and sources.
package probes

import (
	"embed"
	"encoding/binary"
	"fmt"

	"vkcompute/internal/bench/suite/probes/variant"
	"vkcompute/shaders"
)

//go:generate go run ./compile

//go:embed spv/*.spv
var binaries embed.FS

// FMA makes the arithmetic probe: parameters rounds, x (factor and addend) and out, of
// which an invocation writes one element. The workgroup is of the given size where the
// device allows it.
func FMA(v variant.FMA, workgroup uint32) (*shaders.Kernel, error) {
	return load(v.File(), workgroup, 2)
}

// Way is how a memory probe shares out its blocks.
type Way string

const (
	Turns Way = "turns" // neighbouring invocations take neighbouring blocks
	Runs  Way = "runs"  // each takes a run of its own
)

// Read makes the probe that reads: parameters blocks, x and out, a sum for each invocation.
// Each reads so many blocks of four floats, a multiple of four.
func Read(w Way, workgroup uint32) (*shaders.Kernel, error) {
	return load("read-"+string(w), workgroup, 2)
}

// Copy makes the probe that copies: parameters blocks, x and out of the same length.
func Copy(w Way, workgroup uint32) (*shaders.Kernel, error) {
	return load("copy-"+string(w), workgroup, 0)
}

// load makes a kernel whose grid has an invocation for each element of operand `by`, or
// for each run of blocks where that is 0.
func load(name string, workgroup uint32, by int) (*shaders.Kernel, error) {
	code, err := binaries.ReadFile("spv/" + name + ".spv")
	if err != nil {
		return nil, fmt.Errorf("probes: %w", err)
	}
	m, err := shaders.Load(code)
	if err != nil {
		return nil, fmt.Errorf("probes: %s: %w", name, err)
	}
	return shaders.NewKernel(shaders.KernelSpec{
		Name: name, Module: m,
		Params: []shaders.Param{
			{Name: "count", Kind: shaders.ScalarParam, DType: shaders.Uint32},
			{Name: "x", DType: shaders.Float32, Access: shaders.Read, Binding: 1},
			{Name: "out", DType: shaders.Float32, Access: shaders.Write, Binding: 2},
		},
		Spec: func(limits shaders.MaxWorkgroup) ([]shaders.SpecConst, [3]uint32) {
			n := min(workgroup, limits.Invocations, limits.Size[0])
			return []shaders.SpecConst{{ID: 0, Value: n}}, [3]uint32{n, 1, 1}
		},
		Plan: func(env shaders.Env, ops []shaders.Operand, p *shaders.Plan) error {
			count := int(uint32(ops[0].Bits))
			invocations := ops[2].Len()
			if by == 0 {
				invocations = ops[1].Len() / 4 / max(count, 1)
			}
			size := int(env.WorkgroupSize[0])
			// What does not come out even would touch memory beyond the tensors.
			if count == 0 || invocations%size != 0 || by == 0 && invocations*4*count != ops[1].Len() {
				return &shaders.OperandError{Index: 2, Problem: shaders.BadShape,
					Want: fmt.Sprintf("a whole number of workgroups of %d", size), Found: fmt.Sprintf("%d invocations of %d", invocations, count)}
			}
			p.Push = binary.LittleEndian.AppendUint32(p.Push, uint32(count))
			p.Groups = [3]uint64{uint64(invocations / size), 1, 1}
			return nil
		},
	})
}
