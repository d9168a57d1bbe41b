package shaders

var (
	// MatVec: out = a @ x, a [… M K], x [… K], out [… M]; the axes before are a batch
	// and broadcast to out's. The error is at most 32u·Σ|a·x| whatever K, as long as
	// no partial sum overflows; NaN and infinities propagate. Much faster than MatMul
	// with N = 1.
	MatVec = builtin("matvec", load("matvec"), KernelSpec{
		Params: []Param{
			{Name: "a", DType: Float32, Access: Read, Binding: 1},
			{Name: "x", DType: Float32, Access: Read, Binding: 2},
			{Name: "out", DType: Float32, Access: Write, Binding: 3},
		},
		Plan: planMatVec, Grid: FoldedGrid, Spec: narrowWorkgroup,
	})
	// MatVecAdd: out = a @ x + b, b broadcast to out, one rounding more. out may be
	// b's memory: a residual connection in one launch.
	MatVecAdd = builtin("matvecadd", load("matvecadd"), KernelSpec{
		Params: []Param{
			{Name: "a", DType: Float32, Access: Read, Binding: 1},
			{Name: "x", DType: Float32, Access: Read, Binding: 2},
			{Name: "b", DType: Float32, Access: Read, Binding: 3},
			{Name: "out", DType: Float32, Access: Write, Binding: 4},
		},
		Plan: planMatVecAdd, Grid: FoldedGrid, Spec: narrowWorkgroup,
		InPlace: func(out, in int) bool { return out == 3 && in == 2 },
	})
)

func planMatVec(env Env, ops []Operand, p *Plan) error { return matVec(env, ops, 2, p) }

func planMatVecAdd(env Env, ops []Operand, p *Plan) error { return matVec(env, ops, 3, p) }

func matVec(env Env, ops []Operand, last int, p *Plan) error {
	a, x, out := &ops[0].Layout, &ops[1].Layout, &ops[last].Layout
	switch {
	case a.Rank < 2:
		return shapeError(0, "[… M K]", a)
	case x.Rank < 1 || x.Shape[x.Rank-1] != a.Shape[a.Rank-1]:
		return shapeError(1, "[… K] with the K of a's "+shapeOf(a), x)
	case out.Rank < 1 || out.Shape[out.Rank-1] != a.Shape[a.Rank-2]:
		return shapeError(last, "[… M] with the M of a's "+shapeOf(a), out)
	}
	length, aStep, xStep := a.Shape[a.Rank-1], a.Stride[a.Rank-1], x.Stride[x.Rank-1]
	rows, vector := *a, *x
	rows.Rank--
	// x is the same for every row: an axis of extent 1 in the place of M.
	vector.Shape[vector.Rank-1], vector.Stride[vector.Rank-1] = 1, 0
	var n nest
	n.lead(out)
	if !n.broadcast(&rows) {
		return shapeError(0, "batch axes that broadcast to those of out's "+shapeOf(out), a)
	}
	if !n.broadcast(&vector) {
		return shapeError(1, "batch axes that broadcast to those of out's "+shapeOf(out), x)
	}
	if last == 3 && !n.broadcast(&ops[2].Layout) {
		return shapeError(2, "one that broadcasts to out's "+shapeOf(out), &ops[2].Layout)
	}
	outputs := n.len()
	if outputs == 0 {
		return nil
	}
	n.normalise()
	shared := uint32(1)
	for d := range n.rank {
		if n.stride[2][d] != 0 {
			shared = 0
		}
	}
	size := int(env.WorkgroupSize[0])
	lanes, order := sumLanes(env.Tuning.Reads, size, outputs, length, innerStride(&n, 1), abs(aStep))
	if err := tooLong(length, 16*lanes); err != nil {
		return err
	}
	outputsPerGroup, perGroup := size/lanes, 0
	if shared == 1 && inBlocks(&n, length, aStep, xStep, outputs, env.Tuning) {
		perGroup = blockOutputs(env, outputs, length)
		outputsPerGroup = perGroup
	}
	w := infoWriter{words: p.Info}
	w.put(uint32(outputs))
	w.put(uint32(length))
	w.put(uint32(lanes))
	w.put(uint32(order))
	w.put(shared)
	w.put(uint32(aStep))
	w.put(uint32(xStep))
	w.put(uint32(perGroup))
	for t := range n.tensors {
		w.view(&n, t)
	}
	p.Info = w.words
	line(p, outputs, outputsPerGroup)
	return nil
}

const (
	blockSize  = 4       // mirrors BLOCK of matvec.glsl
	leastBlock = 32      // outputs of a group: blocks of eight invocations, which a CPU driver runs as one
	fewProduct = 1 << 14 // fewer products than this are not worth a group of their own
)

// inBlocks reports whether a product is one for the blocks of matvec.glsl: a driver on
// the CPU, enough outputs, and rows and vector that can be read four elements at a time.
func inBlocks(n *nest, length, aStep, xStep, outputs int, t Tuning) bool {
	if t.Reads != Scattered || outputs < leastBlock || length%4 != 0 || length == 0 || length/16 > maxRounds ||
		aStep != 1 || xStep != 1 || n.offset[1]%4 != 0 || n.offset[2]%4 != 0 {
		return false
	}
	for d := range n.rank {
		if n.stride[1][d]%4 != 0 {
			return false
		}
	}
	return true
}

// blockOutputs shares outputs among groups: few, because each costs microseconds to
// start, but enough for all cores.
func blockOutputs(env Env, outputs, length int) int {
	most := blockSize * int(env.WorkgroupSize[0])
	groups := max(ceilDiv(outputs, most), min(outputs*length/fewProduct, env.Tuning.groups()))
	per := ceilDiv(outputs, max(groups, 1))
	return min(most, ceilDiv(per, leastBlock)*leastBlock)
}
