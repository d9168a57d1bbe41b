package ref

import (
	"fmt"
	"math"

	"vkcompute/shaders"
)

func (g *gen) reductions(name string, shape, to []int) []Case {
	return g.reductionsOf(name, g.floats32(shape), to)
}

func (g *gen) reductionsOf(name string, x Bits, to []int) []Case {
	t := tensorOf(x)
	with := func(k *shaders.Kernel, r Result) Case {
		return g.build(k.Name+"/"+name, k).tensor(x).out(shaders.Float32, to).want(r)
	}
	cases := []Case{
		with(shaders.Mean, Mean(t, to)),
		with(shaders.Max, Extreme(t, to, 1)),
		with(shaders.Min, Extreme(t, to, -1)),
		g.build("argmax/"+name, shaders.ArgMax).tensor(x).out(shaders.Int32, to).exact(ArgMax(t, to)),
	}
	return cases
}

// parts cuts a whole reduction. The order in which a kernel takes the elements is
// its own business, so the data is the same everywhere but for the sign.
func (g *gen) parts(name string, shape []int, parts int) []Case {
	x := g.floats32(shape)
	n := shaders.Contiguous(shape...).Len()
	for i := range x.Data {
		x.Data[i] = 0x40400000 // 3
	}
	sum := newResult([]int{parts})
	length := 0
	if parts > 0 {
		length = (n + parts - 1) / parts
	}
	most, least := newResult([]int{parts}), newResult([]int{parts})
	for p := range parts {
		count := max(0, min(length, n-p*length))
		sum.Value[p], sum.Bound[p] = float64(3*count), SumBound(count, float64(3*count))
		most.Value[p], least.Value[p] = 3, 3
		if count == 0 {
			most.Value[p], least.Value[p] = math.Inf(-1), math.Inf(1)
		}
	}
	to := []int{parts}
	return []Case{
		g.build("sumparts/"+name, shaders.SumParts).tensor(x).out(shaders.Float32, to).want(sum),
		g.build("maxparts/"+name, shaders.MaxParts).tensor(x).out(shaders.Float32, to).want(most),
		g.build("minparts/"+name, shaders.MinParts).tensor(x).out(shaders.Float32, to).want(least),
	}
}

func (g *gen) rows(name string, shape []int) []Case {
	return g.rowsOf(name, shape, g.floats32(g.narrowOuter(shape)), g.floats32(shape))
}

// rowsOf takes x, which broadcasts to shape but for the row, and full, which has it.
func (g *gen) rowsOf(name string, shape []int, x, full Bits) []Case {
	n := shape[len(shape)-1]
	outer := shape[:len(shape)-1]
	t := tensorOf(x)
	out := func(k *shaders.Kernel) *builder { return g.build(k.Name+"/"+name, k).tensor(x) }
	cases := []Case{
		out(shaders.Softmax).out(shaders.Float32, shape).want(Softmax(t, shape)),
		out(shaders.CumSum).out(shaders.Float32, shape).want(CumSum(t, shape)),
	}
	w, b := g.floats32(g.narrow(shape)), g.floats32(g.narrow(shape))
	const eps = 0x1p-10
	cases = append(cases,
		out(shaders.LayerNorm).tensor(w).tensor(b).float(eps).out(shaders.Float32, shape).want(LayerNorm(t, tensorOf(w), tensorOf(b), eps, shape)),
		out(shaders.RMSNorm).tensor(w).float(eps).out(shaders.Float32, shape).want(RMSNorm(t, tensorOf(w), eps, shape)))

	labels := g.below(-1, n+1, outer)
	scale := float32(g.rng.NormFloat64())
	return append(cases,
		g.build("crossentropy/"+name, shaders.CrossEntropy).tensor(full).tensor(labels).out(shaders.Float32, outer).
			want(CrossEntropy(tensorOf(full), labels, outer)),
		g.build("crossentropygrad/"+name, shaders.CrossEntropyGrad).tensor(full).tensor(labels).float(scale).out(shaders.Float32, shape).
			want(CrossEntropyGrad(tensorOf(full), labels, float64(scale), shape)))
}

// reversed makes a float32 input that runs backwards along some axes.
func (g *gen) reversed(shape []int, axes ...int) Bits {
	x := g.floats32(shape)
	for _, d := range axes {
		x.Offset += (x.Shape[d] - 1) * x.Stride[d]
		x.Stride[d] = -x.Stride[d]
	}
	return x
}

// reversals are rows and columns that run backwards, of lengths around those where
// kernels begin to load four elements at a time or to share a row.
func (g *gen) reversals() []Case {
	var cases []Case
	for _, s := range [][2]int{{1, 5}, {1, 64}, {3, 100}, {5, 257}, {2, 4096}} {
		shape := s[:]
		for _, axes := range [][]int{{1}, {0}, {0, 1}} {
			name := fmt.Sprintf("reversed %v/%v", axes, shape)
			for _, to := range [][]int{{s[0], 1}, {1, s[1]}, nil} {
				x := g.reversed(shape, axes...)
				t := tensorOf(x)
				cases = append(cases, g.reductionsOf(fmt.Sprintf("%s to %v", name, to), x, to)...)
				cases = append(cases, g.build(fmt.Sprintf("sum/%s to %v", name, to), shaders.Sum).tensor(x).out(shaders.Float32, to).want(Sum(t, to)))
			}
			x := g.reversed(shape, axes...)
			cases = append(cases, g.rowsOf(name, shape, x, x)...)
		}
	}
	return cases
}

// narrowOuter is narrow that leaves the last axis alone.
func (g *gen) narrowOuter(shape []int) []int {
	last := len(shape) - 1
	return append(append([]int(nil), g.narrow(shape[:last])...), shape[last])
}

// rowShape has a last axis.
func (g *gen) rowShape(most int) []int {
	n := g.extent(most)
	return append(g.shape(shaders.MaxRank-1, max(1, most/max(n, 1))), n)
}

func (g *gen) rowEdges() []Case {
	var cases []Case
	for _, s := range [][]int{{0}, {1}, {3, 0}, {0, 3}, {1, 1}, {127}, {129, 2}, {257}, {1021}, {100, 10}, {7, 131}, {3, 4099}, {300, 36}, {40, 132}, {2, 4096}} {
		cases = append(cases, g.rows(fmt.Sprint(s), s)...)
	}
	for _, s := range [][2][]int{{{0}, {1}}, {{}, {}}, {{1}, nil}, {{1021}, {1}}, {{5, 7}, {5, 7}}, {{5, 0, 3}, {5, 1, 3}}, {{100, 300}, {100, 1}}, {{300, 100}, {1, 100}}, {{11, 131, 13}, {1, 131, 1}}, {{50_021}, {1}}, {{5, 300, 12}, {5, 1, 12}}, {{40, 9, 256}, {40, 9, 1}}, {{3000, 2, 3}, {1, 2, 1}}, {{7, 4, 700}, {7, 1, 700}}} {
		cases = append(cases, g.reductions(fmt.Sprint(s), s[0], s[1])...)
	}
	for _, p := range [][2]int{{0, 3}, {1, 3}, {1021, 0}, {1021, 1}, {1021, 7}, {5, 9}, {40_009, 300}} {
		cases = append(cases, g.parts(fmt.Sprint(p), []int{p[0]}, p[1])...)
	}
	cases = append(cases, g.reversals()...)
	ties := g.floats32([]int{3, 4001})
	for i := range ties.Data {
		ties.Data[i] = math.Float32bits(float32(g.rng.IntN(5)))
	}
	cases = append(cases, g.build("argmax/ties", shaders.ArgMax).tensor(ties).out(shaders.Int32, []int{3, 1}).exact(ArgMax(tensorOf(ties), []int{3, 1})))
	g.special = true
	cases = append(cases, g.rows("special", []int{97, 5})...)
	cases = append(cases, g.reductions("special", []int{97, 5}, []int{97, 1})...)
	g.denormal = true
	cases = append(cases, g.reductions("denormal", []int{97, 5}, []int{97, 1})...)
	cases = append(cases, g.reductions("denormal", []int{5, 96}, []int{1, 96})...)
	g.special, g.denormal = false, false
	for _, s := range [][2]int{{len(nans), 3}, {len(nans), 100}, {3, len(nans)}} {
		lone := g.floats32(s[:])
		to := []int{s[0], 1}
		for i, nan := range nans { // at different places of rows, or of columns
			at := i*s[1] + i%3
			if s[0] < len(nans) {
				at, to = i%3*s[1]+i, []int{1, s[1]}
			}
			lone.Data[lone.Offset+at] = nan
		}
		cases = append(cases, g.reductionsOf(fmt.Sprintf("one NaN/%v", s), lone, to)...)
	}
	return cases
}

func (g *gen) rowRandom(i int) []Case {
	cases := g.rows(fmt.Sprint(i), g.rowShape(2048))
	shape := g.shape(shaders.MaxRank, 2048)
	to := append([]int(nil), shape...)
	for d := range to {
		if g.rng.IntN(2) == 0 {
			to[d] = 1
		}
	}
	cases = append(cases, g.reductions(fmt.Sprint(i), shape, to)...)
	return append(cases, g.parts(fmt.Sprint(i), g.shape(shaders.MaxRank, 2048), g.rng.IntN(40))...)
}
