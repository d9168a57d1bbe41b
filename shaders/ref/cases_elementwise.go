package ref

import (
	"fmt"
	"math"

	"vkcompute/shaders"
)

// elementwiseKernels are tested alike: random inputs that broadcast to a shape.
var elementwiseKernels = []*shaders.Kernel{
	shaders.Sub, shaders.Div, shaders.Minimum, shaders.Maximum, shaders.Pow, shaders.SiluMul, shaders.ReluGrad,
	shaders.Equal, shaders.NotEqual, shaders.Less, shaders.LessEqual, shaders.EqualInt, shaders.LessInt,
	shaders.AddInt, shaders.SubInt, shaders.MulInt, shaders.MinInt, shaders.MaxInt, shaders.Where,
	shaders.Copy, shaders.Neg, shaders.Abs, shaders.Exp, shaders.Log, shaders.Sqrt, shaders.Rsqrt,
	shaders.Tanh, shaders.Sigmoid, shaders.Silu, shaders.Gelu, shaders.Relu, shaders.Square, shaders.Reciprocal,
	shaders.FloatToInt, shaders.FloatToUint, shaders.IntToFloat, shaders.UintToFloat,
}

func (g *gen) elementwise(name string, k *shaders.Kernel, shape []int) Case {
	b := g.build(name, k)
	var in []Bits
	last := len(k.Params) - 1
	types := []shaders.DType{shaders.Float32, shaders.Int32, shaders.Uint32}
	any := types[g.rng.IntN(len(types))]
	typeOf := func(p shaders.Param) shaders.DType {
		if p.DType == shaders.AnyDType {
			return any
		}
		return p.DType
	}
	for _, p := range k.Params[:last] {
		x := g.bits(typeOf(p), g.narrow(shape))
		in = append(in, x)
		b.tensor(x)
	}
	b.out(typeOf(k.Params[last]), shape)
	if bits, ok := Exact(k, in, shape); ok {
		return b.exact(bits)
	}
	r, _ := Elementwise(k, in, shape) // without a reference, Check says so
	return b.want(r)
}

func (g *gen) generators(name string, shape []int) []Case {
	small := func() float32 { return float32(g.rng.IntN(200)-100) / 8 }
	start, step := small(), small()
	seed, stream := g.rng.Uint32(), g.rng.Uint32()
	iota := g.build("iota/"+name, shaders.Iota).float(start).float(step).out(shaders.Float32, shape).want(Iota(start, step, shape))
	first, by := g.rng.Uint32(), g.rng.Uint32()
	ints := make([]uint32, len(iota.Want))
	for i := range ints {
		ints[i] = first + uint32(i)*by
	}
	u := shaders.Uint32
	return []Case{
		iota,
		g.build("iotaint/"+name, shaders.IotaInt).scalar(shaders.Int32, first).scalar(shaders.Int32, by).out(shaders.Int32, shape).exact(ints),
		g.build("uniform/"+name, shaders.RandomUniform).scalar(u, seed).scalar(u, stream).float(start).float(step).out(shaders.Float32, shape).
			want(RandomUniform(seed, stream, start, step, shape)),
		g.build("normal/"+name, shaders.RandomNormal).scalar(u, seed).scalar(u, stream).float(start).float(step).out(shaders.Float32, shape).
			want(RandomNormal(seed, stream, start, step, shape)),
	}
}

func (g *gen) elementwiseEdges() []Case {
	var cases []Case
	for _, k := range elementwiseKernels {
		for _, s := range [][]int{{0}, {}, {1021}} {
			cases = append(cases, g.elementwise(fmt.Sprintf("%s/%v", k.Name, s), k, s))
		}
		g.special = true
		cases = append(cases, g.elementwise(k.Name+"/special", k, []int{16, 33}))
		if _, ok := exactOps[k]; ok {
			g.denormal = true
			cases = append(cases, g.elementwise(k.Name+"/denormal", k, []int{16, 33}))
			g.denormal = false
		}
		g.special = false
	}
	cases = append(cases, g.siluTails()...)
	for _, s := range [][]int{{}, {0}, {1}, {2}, {3}, {257}, {5, 1031}} {
		cases = append(cases, g.generators(fmt.Sprint(s), s)...)
	}
	return cases
}

// siluTails are far below 0, where exp(-x) overflows and exp(x) is denormal while what b
// makes of it is not.
func (g *gen) siluTails() []Case {
	x := g.floats32([]int{1040})
	b := g.floats32([]int{1040})
	factors := []float32{1, 1e-30, -1e20, 1e30, -1e34, math.MaxFloat32, float32(math.Inf(1))}
	for i := range 1040 {
		x.Data[x.Offset+i] = math.Float32bits(-60 - float32(i)/8)
		b.Data[b.Offset+i] = math.Float32bits(factors[i%len(factors)])
	}
	var cases []Case
	for _, c := range []struct {
		kernel *shaders.Kernel
		in     []Bits
	}{{shaders.Silu, []Bits{x}}, {shaders.SiluMul, []Bits{x, b}}, {shaders.Sigmoid, []Bits{x}}} {
		build := g.build(c.kernel.Name+"/tail", c.kernel)
		for _, in := range c.in {
			build.tensor(in)
		}
		r, _ := Elementwise(c.kernel, c.in, []int{1040})
		cases = append(cases, build.out(shaders.Float32, []int{1040}).want(r))
	}
	return cases
}

func (g *gen) elementwiseRandom(i int) []Case {
	var cases []Case
	for _, at := range g.rng.Perm(len(elementwiseKernels))[:12] {
		k := elementwiseKernels[at]
		cases = append(cases, g.elementwise(fmt.Sprintf("%s/%d", k.Name, i), k, g.shape(shaders.MaxRank, 2048)))
	}
	return append(cases, g.generators(fmt.Sprint(i), g.shape(shaders.MaxRank, 4096))...)
}
