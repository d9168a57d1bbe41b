package ref

import (
	"fmt"
	"math"
	"math/rand/v2"

	"vkcompute/shaders"
)

// Cases gives n times some random launches of the built-in kernels, of a random part
// of the element-wise ones; Edges has them all. Shapes are of rank 0 to 8
// with extents 0, 1, primes and a few hundred, layouts that are permuted,
// reversed, padded, offset and broadcast, and now and then NaN, infinities and
// signed zeros. No binding is larger than 1 MiB.
func Cases(rng *rand.Rand, n int) []Case {
	var cases []Case
	for i := range n {
		g := gen{rng: rng}
		cases = append(cases,
			g.binary(fmt.Sprintf("add/%d", i), shaders.Add, Add, g.shape(shaders.MaxRank, 4096)),
			g.binary(fmt.Sprintf("mul/%d", i), shaders.Mul, Mul, g.shape(shaders.MaxRank, 4096)),
			g.sum(fmt.Sprintf("sum/%d", i), g.shape(shaders.MaxRank, 4096)),
			g.matmul(fmt.Sprintf("matmul/%d", i), g.shape(3, 12), g.extent(70), g.extent(70), g.extent(70)),
			g.fill(fmt.Sprintf("fill/%d", i), g.shape(shaders.MaxRank, 4096)))
		cases = append(cases, g.elementwiseRandom(i)...)
		cases = append(cases, g.rowRandom(i)...)
		cases = append(cases, g.positionRandom(i)...)
	}
	return cases
}

// Edges gives the launches that are most likely to be wrong, whatever the seed:
// empty operands, single elements, sizes around a workgroup and a tile, primes.
func Edges(rng *rand.Rand) []Case {
	g := gen{rng: rng, plain: true}
	cases := []Case{{Name: "nop", Kernel: shaders.Nop, Out: -1}}
	shapes := [][]int{{}, {0}, {1}, {3, 0, 2}, {1, 1, 1}, {127}, {128}, {129}, {255}, {257}, {1021}, {2, 2, 2, 2, 2, 2, 2, 2}, {1, 31, 1, 37}}
	for _, s := range shapes {
		cases = append(cases,
			g.binary(fmt.Sprintf("add/%v", s), shaders.Add, Add, s),
			g.binary(fmt.Sprintf("mul/%v", s), shaders.Mul, Mul, s),
			g.sum(fmt.Sprintf("sum/%v", s), s),
			g.sumTo(fmt.Sprintf("sum-all/%v", s), s, nil),
			g.fill(fmt.Sprintf("fill/%v", s), s))
	}
	cases = append(cases,
		g.sumTo("sum/no axis", []int{5, 7}, []int{5, 7}),
		g.sumTo("sum/empty axis", []int{5, 0, 3}, []int{5, 1, 3}),
		g.sumTo("sum/rows", []int{100, 1000}, []int{100, 1}),
		g.sumTo("sum/columns", []int{1000, 100}, []int{1, 100}),
		g.sumTo("sum/middle", []int{11, 513, 13}, []int{11, 1, 13}),
		g.sumTo("sum/outer", []int{11, 513, 13}, []int{1, 513, 1}),
		g.sumTo("sum/long", []int{200_003}, []int{1}))
	for _, m := range [][3]int{{1, 1, 1}, {1, 1, 0}, {0, 3, 2}, {3, 0, 2}, {2, 3, 5}, {16, 16, 16}, {17, 64, 15}, {64, 64, 64}, {65, 63, 67}, {1, 200, 33}, {131, 1, 17}, {1, 1, 1009}} {
		cases = append(cases, g.matmul(fmt.Sprintf("matmul/%v", m), nil, m[0], m[1], m[2]))
	}
	for _, m := range [][4]int{{1, 16, 16, 16}, {2, 36, 20, 300}, {1, 4, 4, 7}, {3, 68, 132, 33}, {1, 20, 8, 515}} {
		for turned := range 4 {
			cases = append(cases, g.matmulPatches(fmt.Sprintf("matmul/patches/%d/%v", turned, m), turned, m[0], m[1], m[2], m[3]))
		}
	}
	cases = append(cases, g.elementwiseEdges()...)
	cases = append(cases, g.rowEdges()...)
	cases = append(cases, g.positionEdges()...)
	g.special = true
	cases = append(cases,
		g.binary("add/special", shaders.Add, Add, []int{16, 33}),
		g.binary("mul/special", shaders.Mul, Mul, []int{16, 33}),
		g.sum("sum/special", []int{64, 16}),
		g.matmul("matmul/special", []int{2}, 9, 11, 13))
	return cases
}

// LargeCases gives launches of more than 65535 groups, the least a device may
// take in one dimension. Bindings take up to 68 MB. The cheap cases come first:
// fill and add take well under a second on a CPU driver, the sum up to 10 and the
// matrix product up to 20 seconds on the slowest.
func LargeCases(rng *rand.Rand) []Case {
	g := gen{rng: rng, plain: true}
	const groups = 65535 + 77
	wide := []int{groups, 256}
	// Pairs of neighbours of one short row, over and over: many sums, little memory.
	x := Tensor{Layout: shaders.Layout{Rank: 3, Shape: [8]int{groups, 256, 2}, Stride: [8]int{0, 1, 1}}, Data: g.floats(257)}
	sum := g.finish(Case{Name: "sum/large", Kernel: shaders.Sum, Out: 1}, Sum(x, []int{groups, 256, 1}), []Tensor{x}, g.output([]int{groups, 256, 1}))
	return []Case{
		g.fill("fill/large", wide),
		g.binaryOf("add/large", shaders.Add, Add, g.input([]int{256}), g.input([]int{groups, 1}), wide),
		g.attention("large", nil, groups, 1, 1, 1, 3, 0),
		sum,
		g.matmul("matmul/large", []int{groups}, 1, 1, 1),
	}
}

type gen struct {
	rng     *rand.Rand
	plain   bool // contiguous layouts
	special bool // NaN, infinities, signed zeros
	// Denormals, for kernels that may not flush them.
	denormal bool
}

// nans are quiet and signalling, of both signs, with the least payload and the greatest.
var nans = [...]uint32{0x7fc00000, 0xffc00000, 0x7f800001, 0xff800001, 0x7fffffff, 0xffffffff}

var extents = []int{1, 1, 2, 3, 4, 5, 7, 8, 11, 16, 31, 64, 127, 256, 257}

func (g *gen) extent(most int) int {
	if g.rng.IntN(20) == 0 {
		return 0
	}
	if g.rng.IntN(3) == 0 {
		return 1 + g.rng.IntN(most)
	}
	for {
		if e := extents[g.rng.IntN(len(extents))]; e <= most {
			return e
		}
	}
}

// shape has up to rank axes and up to most elements.
func (g *gen) shape(rank, most int) []int {
	shape := make([]int, g.rng.IntN(rank+1))
	// Axes are drawn in random order, so that the large ones do not all come first.
	for _, d := range g.rng.Perm(len(shape)) {
		shape[d] = g.extent(most)
		if shape[d] > 0 {
			most /= shape[d]
		}
	}
	return shape
}

// layout places a shape: axes in any order, padded, reversed, offset.
func (g *gen) layout(shape []int) shaders.Layout {
	l := shaders.Contiguous(shape...)
	if g.plain || g.rng.IntN(4) == 0 {
		l.Offset = g.rng.IntN(2) * g.rng.IntN(20)
		return l
	}
	order := g.rng.Perm(len(shape))
	if g.rng.IntN(2) == 0 { // at most one transposition, which leaves axes to join
		for i := range order {
			order[i] = i
		}
		if len(order) > 1 {
			i := g.rng.IntN(len(order) - 1)
			order[i], order[i+1] = order[i+1], order[i]
		}
	}
	step := 1
	for i := len(order) - 1; i >= 0; i-- {
		d := order[i]
		if g.rng.IntN(8) == 0 {
			step += 1 + g.rng.IntN(3)
		}
		l.Stride[d] = step
		step *= max(shape[d], 1)
		if g.rng.IntN(6) == 0 {
			l.Stride[d] = -l.Stride[d]
		}
	}
	lo, _ := l.Bounds()
	l.Offset = max(-lo, 0) + g.rng.IntN(30)
	return l
}

// narrow turns a shape into one that broadcasts to it.
func (g *gen) narrow(shape []int) []int {
	if g.plain && !g.special {
		return shape
	}
	s := append([]int(nil), shape...)
	if g.rng.IntN(3) == 0 {
		s = s[g.rng.IntN(len(s)+1):]
	}
	for i := range s {
		if g.rng.IntN(5) == 0 {
			s[i] = 1
		}
	}
	return s
}

// input makes a tensor with data; some of its axes may have stride 0.
func (g *gen) input(shape []int) Tensor {
	l := g.layout(shape)
	if !g.plain {
		for d := range l.Rank {
			if g.rng.IntN(10) == 0 && l.Len() > 0 {
				// The element it stays at keeps the whole view in bounds.
				l.Offset += min(0, (l.Shape[d]-1)*l.Stride[d])
				l.Stride[d] = 0
				lo, _ := l.Bounds()
				l.Offset += max(-lo, 0)
			}
		}
	}
	_, hi := l.Bounds()
	return Tensor{Layout: l, Data: g.floats(max(hi+1, 0) + g.rng.IntN(3))}
}

func (g *gen) output(shape []int) Tensor {
	l := g.layout(shape)
	_, hi := l.Bounds()
	return Tensor{Layout: l, Data: make([]float32, max(hi+1, 0)+g.rng.IntN(40))}
}

func (g *gen) floats(n int) []float32 {
	data := make([]float32, n)
	for i := range data {
		data[i] = float32(g.rng.NormFloat64()) * float32(math.Ldexp(1, g.rng.IntN(9)-4))
		if g.special && g.rng.IntN(12) == 0 {
			nan := nans[g.rng.IntN(len(nans))]
			data[i] = math.Float32frombits([]uint32{0x7f800000, 0xff800000, nan, 0, 1 << 31}[g.rng.IntN(5)])
		}
		if g.denormal && g.rng.IntN(2) == 0 {
			data[i] = math.Float32frombits([]uint32{0, 1, 2, 0x7fffff, 0x800000}[g.rng.IntN(5)] | g.rng.Uint32()&(1<<31))
		}
	}
	return data
}

type binaryRef func(a, b Tensor, shape []int) Result

func (g *gen) binary(name string, k *shaders.Kernel, ref binaryRef, shape []int) Case {
	return g.binaryOf(name, k, ref, g.input(g.narrow(shape)), g.input(g.narrow(shape)), shape)
}

func (g *gen) binaryOf(name string, k *shaders.Kernel, ref binaryRef, a, b Tensor, shape []int) Case {
	return g.finish(Case{Name: name, Kernel: k, Out: 2}, ref(a, b, shape), []Tensor{a, b}, g.output(shape))
}

func (g *gen) sum(name string, shape []int) Case {
	to := append([]int(nil), shape...)
	for d := range to {
		if g.rng.IntN(2) == 0 {
			to[d] = 1
		}
	}
	if g.rng.IntN(6) == 0 {
		to = nil
	}
	return g.sumTo(name, shape, to)
}

func (g *gen) sumTo(name string, shape, to []int) Case {
	x := g.input(shape)
	return g.finish(Case{Name: name, Kernel: shaders.Sum, Out: 1}, Sum(x, to), []Tensor{x}, g.output(to))
}

func (g *gen) matmul(name string, batch []int, m, n, k int) Case {
	with := func(batch []int, r, c int) []int { return append(append([]int(nil), batch...), r, c) }
	ba, bb := batch, batch
	if !g.plain {
		ba, bb = g.narrow(batch), g.narrow(batch)
	}
	a, b := g.input(with(ba, m, k)), g.input(with(bb, k, n))
	shape := with(batch, m, n)
	return g.finish(Case{Name: name, Kernel: shaders.MatMul, Out: 2}, MatMul(a, b, shape), []Tensor{a, b}, g.output(shape))
}

// matmulPatches has factors that can be read four elements at a time: rows, or columns
// where it is turned (bit 0 a, bit 1 b), begin at multiples of four.
func (g *gen) matmulPatches(name string, turned, batch, m, n, k int) Case {
	factor := func(turn bool, r, c int) Tensor {
		l := shaders.Contiguous(batch, r, c)
		long := func(e int) int { return (e+3)/4*4 + 4*g.rng.IntN(2) }
		if turn {
			l.Stride[1], l.Stride[2] = 1, long(r)
			l.Stride[0] = c * l.Stride[2]
		} else {
			l.Stride[1], l.Stride[2] = long(c), 1
			l.Stride[0] = r * l.Stride[1]
		}
		l.Offset = 4 * g.rng.IntN(3)
		_, hi := l.Bounds()
		return Tensor{Layout: l, Data: g.floats(hi + 1)}
	}
	a, b := factor(turned&1 != 0, m, k), factor(turned&2 != 0, k, n)
	shape := []int{batch, m, n}
	return g.finish(Case{Name: name, Kernel: shaders.MatMul, Out: 2}, MatMul(a, b, shape), []Tensor{a, b}, g.output(shape))
}

func (g *gen) fill(name string, shape []int) Case {
	types := []shaders.DType{shaders.Float32, shaders.Int32, shaders.Uint32}
	dt, bits := types[g.rng.IntN(len(types))], g.rng.Uint32()
	out := g.output(shape)
	c := Case{Name: name, Kernel: shaders.Fill, Out: 1,
		Operands: []shaders.Operand{
			{Kind: shaders.ScalarParam, DType: dt, Bits: uint64(bits)},
			{Layout: out.Layout, DType: dt},
		},
		Data:  [][]uint32{nil, blank(len(out.Data))},
		Exact: make([]uint32, out.Len()),
	}
	for i := range c.Exact {
		c.Exact[i] = bits
	}
	return c
}

// finish adds operands, data and result to a case whose last operand is the
// output.
func (g *gen) finish(c Case, r Result, inputs []Tensor, out Tensor) Case {
	for _, t := range inputs {
		c.Operands = append(c.Operands, shaders.Operand{Layout: t.Layout, DType: shaders.Float32})
		bits := make([]uint32, len(t.Data))
		for i, v := range t.Data {
			bits[i] = math.Float32bits(v)
		}
		c.Data = append(c.Data, bits)
	}
	c.Operands = append(c.Operands, shaders.Operand{Layout: out.Layout, DType: shaders.Float32})
	c.Data = append(c.Data, blank(len(out.Data)))
	c.Want, c.Tol = r.Value, r.Bound
	return c
}

func blank(n int) []uint32 {
	d := make([]uint32, n)
	for i := range d {
		d[i] = untouched
	}
	return d
}
