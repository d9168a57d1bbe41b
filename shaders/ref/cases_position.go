package ref

import (
	"fmt"
	"math"
	"slices"

	"vkcompute/shaders"
)

// one makes an int32 tensor of one element.
func (g *gen) one(v int) Bits {
	shape := make([]int, g.rng.IntN(3))
	for i := range shape {
		shape[i] = 1
	}
	b := g.bits(shaders.Int32, shape)
	for i := range b.Data {
		b.Data[i] = math.MaxUint32 // what is read by mistake leads nowhere
	}
	b.Data[b.Offset] = uint32(v)
	return b
}

// held makes an output that holds values before the launch.
func (g *gen) held(t shaders.DType, shape []int) Bits {
	o := g.output(shape)
	b := Bits{Layout: o.Layout, DType: t, Data: make([]uint32, len(o.Data))}
	for i, v := range g.floats(len(o.Data)) {
		b.Data[i] = math.Float32bits(v)
	}
	return b
}

// rowsBy handles gather, put and scatter-add on rows of a shape.
func (g *gen) rowsBy(name string, rows int, ids, inner []int) []Case {
	types := []shaders.DType{shaders.Float32, shaders.Int32, shaders.Uint32}
	t := types[g.rng.IntN(len(types))]
	which := g.below(-1, rows+1, ids)
	long := slices.Concat(ids, inner)
	table := g.bits(t, slices.Concat([]int{rows}, inner))
	x, out := g.floats32(long), g.held(shaders.Float32, slices.Concat([]int{rows}, inner))
	count := g.rng.IntN(rows + 2)
	part, position := g.bits(t, slices.Concat([]int{count}, inner)), g.rng.IntN(rows+4)-2
	cache := g.held(t, slices.Concat([]int{rows}, inner))
	return []Case{
		g.build("gather/"+name, shaders.Gather).tensor(table).tensor(which).out(t, long).exact(Gather(table, which, long)),
		g.build("scatteradd/"+name, shaders.ScatterAdd).tensor(x).tensor(which).into(out).want(ScatterAdd(x, which, out)),
		g.build("put/"+name, shaders.Put).tensor(part).tensor(g.one(position)).into(cache).exact(Put(part, position, cache)),
	}
}

func (g *gen) rotary(name string, shape []int, position int) []Case {
	x := g.floats32(shape)
	size := shape[len(shape)-1]
	f := g.floats32([]int{size / 2})
	for i, v := range f.Data {
		f.Data[i] = v & 0x3f7fffff // below 2 and positive
	}
	at := g.one(position)
	make := func(k *shaders.Kernel, half bool) Case {
		return g.build(k.Name+"/"+name, k).tensor(x).tensor(f).tensor(at).out(shaders.Float32, shape).
			want(Rotary(tensorOf(x), tensorOf(f), position, half, shape))
	}
	return []Case{make(shaders.Rotary, false), make(shaders.RotaryHalf, true)}
}

func (g *gen) attention(name string, batch []int, rows, heads, groups, size, cache, position int) Case {
	shape := slices.Concat(batch, []int{rows, heads, size})
	kv := slices.Concat(batch, []int{cache, groups, size})
	if !g.plain {
		kv = slices.Concat(g.narrow(batch), []int{cache, groups, size})
	}
	q, k, v := g.floats32(shape), g.floats32(kv), g.floats32(kv)
	scale := float32(1 / math.Sqrt(float64(max(size, 1))) / 8)
	at := func([]int) int { return position }
	where := g.one(position)
	if !g.plain && g.rng.IntN(2) == 0 { // one for each of the batch
		where = g.below(-2, cache+2, g.narrow(batch))
		at = func(batch []int) int { return int(int32(where.Data[Index(where.Layout, batch)])) }
	}
	return g.build("attention/"+name, shaders.Attention).tensor(q).tensor(k).tensor(v).tensor(where).float(scale).
		out(shaders.Float32, shape).
		want(Attention(tensorOf(q), tensorOf(k), tensorOf(v), at, float64(scale), shape))
}

func (g *gen) matvec(name string, batch []int, m, k int) []Case {
	ba, bx := batch, batch
	if !g.plain {
		ba, bx = g.narrow(batch), g.narrow(batch)
	}
	a, x := g.floats32(slices.Concat(ba, []int{m, k})), g.floats32(slices.Concat(bx, []int{k}))
	shape := slices.Concat(batch, []int{m})
	b := g.floats32(g.narrow(shape))
	ta, tx, tb := tensorOf(a), tensorOf(x), tensorOf(b)
	return []Case{
		g.build("matvec/"+name, shaders.MatVec).tensor(a).tensor(x).out(shaders.Float32, shape).want(MatVec(ta, tx, nil, shape)),
		g.build("matvecadd/"+name, shaders.MatVecAdd).tensor(a).tensor(x).tensor(b).out(shaders.Float32, shape).want(MatVec(ta, tx, &tb, shape)),
	}
}

// matvecBlocks is matvec with operands that can be read four elements at a time, and a
// batch that shares its vector.
func (g *gen) matvecBlocks(name string, batch []int, m, k int) []Case {
	a, x := g.aligned(slices.Concat(batch, []int{m, k})), g.aligned([]int{k})
	shape := slices.Concat(batch, []int{m})
	b := g.floats32(g.narrow(shape))
	ta, tx, tb := tensorOf(a), tensorOf(x), tensorOf(b)
	return []Case{
		g.build("matvec/blocks/"+name, shaders.MatVec).tensor(a).tensor(x).out(shaders.Float32, shape).want(MatVec(ta, tx, nil, shape)),
		g.build("matvecadd/blocks/"+name, shaders.MatVecAdd).tensor(a).tensor(x).tensor(b).out(shaders.Float32, shape).want(MatVec(ta, tx, &tb, shape)),
	}
}

// aligned is contiguous and begins at a multiple of four elements.
func (g *gen) aligned(shape []int) Bits {
	plain := g.plain
	g.plain = true
	defer func() { g.plain = plain }()
	for {
		if x := g.floats32(shape); x.Layout.Offset%4 == 0 {
			return x
		}
	}
}

func (g *gen) optimisers(name string, shape []int) []Case {
	grad := g.floats32(g.narrow(shape))
	w, m, v := g.held(shaders.Float32, shape), g.held(shaders.Float32, shape), g.held(shaders.Float32, shape)
	for i := range v.Data {
		v.Data[i] &^= 1 << 31
	}
	const rate, beta1, beta2, epsilon = 0.125, float32(0.9), float32(0.999), float32(1e-8)
	step := 1 + g.rng.IntN(1<<g.rng.IntN(12)) // small ones, where it matters
	n := shaders.Contiguous(shape...).Len()
	var sgd, momentum, adam [3]Result
	for _, s := range []*[3]Result{&sgd, &momentum, &adam} {
		for i := range s {
			s[i] = Result{Shape: shape, Value: make([]float64, n), Bound: make([]float64, n)}
		}
	}
	set := func(r *[3]Result, i int, s Step) {
		r[0].Value[i], r[0].Bound[i] = s.Weights, s.WeightsBound
		r[1].Value[i], r[1].Bound[i] = s.First, s.FirstBound
		r[2].Value[i], r[2].Bound[i] = s.Second, s.SecondBound
	}
	Each(shape, func(i int, pos []int) {
		gi, wi, mi, vi := grad.number(pos), w.number(pos), m.number(pos), v.number(pos)
		set(&sgd, i, SGD(wi, gi, rate))
		set(&momentum, i, Momentum(wi, mi, gi, rate, float64(beta1)))
		set(&adam, i, Adam(wi, mi, vi, gi, rate, float64(beta1), float64(beta2), float64(epsilon), step))
	})
	cases := []Case{g.build("sgd/"+name, shaders.SGD).tensor(grad).float(rate).into(w).want(sgd[0])}
	// One case for each tensor that a step writes.
	outputs := func(b *builder, states []Bits, r [3]Result) {
		first := len(b.Operands)
		for i := range states {
			c := *b
			c.Operands, c.Data = slices.Clone(b.Operands), slices.Clone(b.Data)
			for _, s := range states {
				c.tensor(Bits{Layout: s.Layout, DType: s.DType, Data: slices.Clone(s.Data)})
			}
			c.Out = first + i
			cases = append(cases, c.want(r[i]))
		}
	}
	outputs(g.build("momentum/"+name, shaders.Momentum).tensor(grad).float(rate).float(beta1), []Bits{w, m}, momentum)
	outputs(g.build("adam/"+name, shaders.Adam).tensor(grad).tensor(g.one(step)).float(rate).float(beta1).float(beta2).float(epsilon), []Bits{w, m, v}, adam)
	return cases
}

func (g *gen) positionEdges() []Case {
	var cases []Case
	for _, s := range []struct {
		rows       int
		ids, inner []int
	}{{0, []int{3}, []int{2}}, {1, nil, nil}, {5, []int{0}, []int{3}}, {7, []int{11}, nil}, {101, []int{3, 5}, []int{64}}, {4, []int{257}, []int{3}}, {3, []int{2}, []int{0}}} {
		cases = append(cases, g.rowsBy(fmt.Sprint(s), s.rows, s.ids, s.inner)...)
	}
	for _, s := range [][]int{{0, 4}, {1, 2}, {8, 8}, {3, 0}, {5, 3, 16}, {1, 7, 64}, {2, 3, 2, 6}} {
		for _, p := range []int{0, 1, 1023} {
			cases = append(cases, g.rotary(fmt.Sprintf("%v at %d", s, p), s, p)...)
		}
	}
	for _, s := range [][6]int{{1, 8, 4, 8, 64, 0}, {1, 8, 4, 8, 64, 63}, {1, 6, 6, 48, 300, 257}, {5, 2, 1, 3, 9, 6}, {1, 1, 1, 130, 70, 69}, {3, 4, 2, 1, 5, -2}, {2, 2, 2, 4, 0, 0}, {0, 2, 1, 4, 8, 3}, {2, 2, 2, 0, 5, 1}, {1, 2, 1, 16, 40, 1000}} {
		cases = append(cases, g.attention(fmt.Sprint(s), nil, s[0], s[1], s[2], s[3], s[4], s[5]))
	}
	for _, s := range [][2]int{{0, 3}, {3, 0}, {1, 1}, {64, 64}, {65, 1021}, {1000, 7}, {3, 9001}, {172, 64}} {
		cases = append(cases, g.matvec(fmt.Sprint(s), nil, s[0], s[1])...)
	}
	for _, s := range [][2]int{{32, 4}, {33, 16}, {288, 768}, {1537, 52}, {40, 0}, {31, 64}} {
		cases = append(cases, g.matvecBlocks(fmt.Sprint(s), nil, s[0], s[1])...)
	}
	// Few outputs, whose lanes have whole rounds of unequal number.
	for _, s := range [][2]int{{1, 452}, {7, 60}, {16, 124}, {16, 252}, {31, 508}} {
		cases = append(cases, g.matvecBlocks(fmt.Sprintf("uneven/%v", s), nil, s[0], s[1])...)
	}
	cases = append(cases, g.matvecBlocks("batch", []int{3, 2}, 50, 36)...)
	plain := g.plain
	g.plain = false
	for i := range 6 { // about half of them with positions of their own
		cases = append(cases, g.attention(fmt.Sprintf("batch/%d", i), []int{3, 2}, 2, 4, 2, 16, 90, 40))
	}
	g.plain = plain
	cases = append(cases, g.longProducts()...)
	cases = append(cases, g.hiddenProducts()...)
	for _, s := range [][]int{{0}, {}, {1}, {1021}, {5, 7}} {
		cases = append(cases, g.optimisers(fmt.Sprint(s), s)...)
	}
	g.special = true
	cases = append(cases, g.matvec("special", []int{2}, 9, 11)...)
	cases = append(cases, g.matvecBlocks("special", nil, 70, 40)...)
	cases = append(cases, g.rowsBy("special", 5, []int{7}, []int{3})...)
	g.special = false
	return cases
}

func (g *gen) positionRandom(i int) []Case {
	name := fmt.Sprint(i)
	inner := g.shape(3, 64)
	cases := g.rowsBy(name, g.extent(40), g.shape(2, 30), inner)
	groups := 1 + g.rng.IntN(4)
	heads := groups * (1 + g.rng.IntN(3))
	cases = append(cases, g.rotary(name, append(g.shape(4, 20), 1+g.rng.IntN(5), 2*g.extent(17)), g.rng.IntN(3000))...)
	cases = append(cases, g.attention(name, g.shape(2, 4), g.extent(4), heads, groups, g.extent(70), g.extent(150), g.rng.IntN(160)-2))
	cases = append(cases, g.matvec(name, g.shape(3, 6), g.extent(70), g.extent(300))...)
	cases = append(cases, g.matvecBlocks(name, g.shape(2, 3), g.extent(300), 4*g.extent(60))...)
	return append(cases, g.optimisers(name, g.shape(shaders.MaxRank, 1024))...)
}

// longProducts sums ten million times the same product, which takes no memory and
// rounds the same way every time.
func (g *gen) longProducts() []Case {
	const n = 10_000_000
	a, b := g.bits(shaders.Float32, []int{1}), g.bits(shaders.Float32, []int{1})
	a.Data[a.Offset], b.Data[b.Offset] = math.Float32bits(0.1), math.Float32bits(1.1)
	v := float64(n) * float64(float32(0.1)) * float64(float32(1.1))
	spread := func(x Bits, shape ...int) Bits {
		l := shaders.Contiguous(shape...)
		l.Stride, l.Offset = [shaders.MaxRank]int{}, x.Offset
		return Bits{Layout: l, DType: x.DType, Data: x.Data}
	}
	one := Result{Shape: []int{1}, Value: []float64{v}, Bound: []float64{32 * Ulp * v}}
	sum := Result{Shape: []int{1}, Value: []float64{n * float64(float32(0.1))}}
	sum.Bound = []float64{SumBound(n, sum.Value[0])}
	return []Case{
		g.build("matvec/ten million", shaders.MatVec).tensor(spread(a, 1, n)).tensor(spread(b, n)).out(shaders.Float32, []int{1}).want(one),
		g.build("sum/ten million", shaders.Sum).tensor(spread(a, n)).out(shaders.Float32, []int{1}).want(sum),
	}
}

// hiddenProducts are products whose sum a plain float32 loop gets wrong by ten times the
// bound: after the first, every block of the others is less than half a unit in its last
// place. One is for the lanes of a group, one for single elements, one for blocks of rows.
func (g *gen) hiddenProducts() []Case {
	const n, large = 1 << 17, 1 << 30
	data := make([]uint32, n+4)
	for i := range data {
		data[i] = math.Float32bits(3)
	}
	var cases []Case
	for _, c := range []struct {
		name        string
		rows, start int
	}{{"lanes", 1, 0}, {"singles", 1, 1}, {"blocks", 40, 4}} {
		bits := slices.Clone(data)
		bits[c.start] = math.Float32bits(large)
		a := Bits{Layout: shaders.Contiguous(c.rows, n), DType: shaders.Float32, Data: bits}
		a.Offset, a.Stride[0] = c.start, 0
		x := Bits{Layout: shaders.Contiguous(n), DType: shaders.Float32, Data: make([]uint32, n)}
		for i := range x.Data {
			x.Data[i] = math.Float32bits(1)
		}
		shape := []int{c.rows}
		cases = append(cases, g.build("matvec/hidden/"+c.name, shaders.MatVec).tensor(a).tensor(x).out(shaders.Float32, shape).want(MatVec(tensorOf(a), tensorOf(x), nil, shape)))
	}
	return cases
}
