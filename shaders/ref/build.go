package ref

import (
	"math"

	"vkcompute/shaders"
)

// builder puts a case together, operand by operand in the order of the kernel's
// parameters.
type builder struct {
	g *gen
	Case
}

func (g *gen) build(name string, k *shaders.Kernel) *builder {
	return &builder{g: g, Case: Case{Name: name, Kernel: k, Out: -1}}
}

func (b *builder) scalar(t shaders.DType, bits uint32) *builder {
	b.Operands = append(b.Operands, shaders.Operand{Kind: shaders.ScalarParam, DType: t, Bits: uint64(bits)})
	b.Data = append(b.Data, nil)
	return b
}

func (b *builder) float(v float32) *builder { return b.scalar(shaders.Float32, math.Float32bits(v)) }

// tensor appends an operand with its data, which is not copied.
func (b *builder) tensor(x Bits) *builder {
	b.Operands = append(b.Operands, shaders.Operand{Layout: x.Layout, DType: x.DType})
	b.Data = append(b.Data, x.Data)
	return b
}

// out appends the output, which holds no value yet.
func (b *builder) out(t shaders.DType, shape []int) *builder {
	o := b.g.output(shape)
	return b.into(Bits{Layout: o.Layout, DType: t, Data: blank(len(o.Data))})
}

// into appends the output with what it holds before.
func (b *builder) into(x Bits) *builder {
	b.Out = len(b.Operands)
	return b.tensor(x)
}

func (b *builder) want(r Result) Case {
	b.Want, b.Tol = r.Value, r.Bound
	return b.Case
}

func (b *builder) exact(bits []uint32) Case {
	b.Exact = bits
	return b.Case
}

// bits makes an input of any type. Integers are small, with the extremes among
// them now and then.
func (g *gen) bits(t shaders.DType, shape []int) Bits {
	x := g.input(shape)
	b := Bits{Layout: x.Layout, DType: t, Data: make([]uint32, len(x.Data))}
	for i, v := range x.Data {
		switch {
		case t != shaders.Int32 && t != shaders.Uint32:
			b.Data[i] = math.Float32bits(v)
		case g.rng.IntN(8) == 0:
			b.Data[i] = []uint32{0, math.MaxInt32, 1 << 31, math.MaxUint32}[g.rng.IntN(4)]
		default:
			b.Data[i] = uint32(g.rng.IntN(7)) - 3
		}
	}
	return b
}

// below makes an int32 input of numbers from least up to limit.
func (g *gen) below(least, limit int, shape []int) Bits {
	b := g.bits(shaders.Int32, shape)
	for i := range b.Data {
		b.Data[i] = uint32(least + g.rng.IntN(max(limit-least, 1)))
	}
	return b
}

// tensorOf reads float32 bits as a Tensor, for the references that want one.
func tensorOf(b Bits) Tensor {
	t := Tensor{Layout: b.Layout, Data: make([]float32, len(b.Data))}
	for i, w := range b.Data {
		t.Data[i] = math.Float32frombits(w)
	}
	return t
}

// floats32 makes a float32 input.
func (g *gen) floats32(shape []int) Bits { return g.bits(shaders.Float32, shape) }
