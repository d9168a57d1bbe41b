package scene

import (
	"embed"
	"encoding/binary"
	"fmt"

	"vkcompute/shaders"
)

//go:generate go run ./compile

//go:embed spv/*.spv
var binaries embed.FS

const group = 64 // invocations of a workgroup, as the sources have it

// kernel loads one. Its scalars are its push constants, in order, and the grid has an
// invocation for each item that the operands make.
func kernel(name string, items func(ops []shaders.Operand) int, params ...shaders.Param) (*shaders.Kernel, error) {
	code, err := binaries.ReadFile("spv/" + name + ".spv")
	if err != nil {
		return nil, fmt.Errorf("scene: %w", err)
	}
	m, err := shaders.Load(code)
	if err != nil {
		return nil, fmt.Errorf("scene: %s: %w", name, err)
	}
	return shaders.NewKernel(shaders.KernelSpec{Name: "scene-" + name, Module: m, Params: params,
		Plan: func(_ shaders.Env, ops []shaders.Operand, p *shaders.Plan) error {
			for _, o := range ops {
				if o.Kind == shaders.ScalarParam {
					p.Push = binary.LittleEndian.AppendUint32(p.Push, uint32(o.Bits))
				}
			}
			p.Groups = [3]uint64{uint64((items(ops) + group - 1) / group), 1, 1}
			return nil
		}})
}

func number(name string, t shaders.DType) shaders.Param {
	return shaders.Param{Name: name, Kind: shaders.ScalarParam, DType: t}
}

func tensor(name string, t shaders.DType, a shaders.Access, binding uint32) shaders.Param {
	return shaders.Param{Name: name, DType: t, Access: a, Binding: binding}
}

// kernels are those of all scenes.
type kernels struct{ heat, particles, mandelbrot, colour *shaders.Kernel }

func load() (k kernels, err error) {
	last := func(ops []shaders.Operand) int { return ops[len(ops)-1].Len() }
	if k.heat, err = kernel("heat", last, number("size", shaders.Uint32),
		tensor("x", shaders.Float32, shaders.Read, 1), tensor("out", shaders.Float32, shaders.Write, 2)); err != nil {
		return k, err
	}
	if k.particles, err = kernel("particles", func(ops []shaders.Operand) int { return ops[2].Len() / 4 }, number("size", shaders.Uint32), number("particles", shaders.Uint32),
		tensor("state", shaders.Float32, shaders.ReadWrite, 1), tensor("count", shaders.Uint32, shaders.ReadWrite, 2)); err != nil {
		return k, err
	}
	if k.mandelbrot, err = kernel("mandelbrot", last, number("size", shaders.Uint32), number("width", shaders.Float32),
		tensor("out", shaders.Float32, shaders.Write, 1)); err != nil {
		return k, err
	}
	k.colour, err = kernel("colour", last, number("n", shaders.Uint32), number("gain", shaders.Float32),
		tensor("x", shaders.Float32, shaders.Read, 1), tensor("out", shaders.Uint32, shaders.Write, 2))
	return k, err
}
