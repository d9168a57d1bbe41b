package shaders

import "math/bits"

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
		Plan: planMatVec, Grid: FoldedGrid, Spec: vectorWorkgroup,
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
		Plan: planMatVecAdd, Grid: FoldedGrid, Spec: vectorWorkgroup,
		InPlace: func(out, in int) bool { return out == 3 && in == 2 },
	})
)

func planMatVec(env Env, ops []Operand, p *Plan) error { return matVec(env, ops, 2, p) }

func planMatVecAdd(env Env, ops []Operand, p *Plan) error { return matVec(env, ops, 3, p) }

func matVec(env Env, ops []Operand, last int, p *Plan) error {
	a, x, out := &ops[0].Layout, &ops[1].Layout, &ops[last].Layout
	var n nest
	if err := vectorNest(&n, a, x, out, last); err != nil {
		return err
	}
	length, aStep, xStep := a.Shape[a.Rank-1], a.Stride[a.Rank-1], x.Stride[x.Rank-1]
	if last == 3 && !n.broadcast(&ops[2].Layout) {
		return shapeError(2, "one that broadcasts to out's "+shapeOf(out), &ops[2].Layout)
	}
	outputs := n.len()
	if outputs == 0 {
		return nil
	}
	n.normalise()
	shared := true
	for d := range n.rank {
		if n.stride[2][d] != 0 {
			shared = false
		}
	}
	size := int(env.WorkgroupSize[0])
	units, block, perGroup, lanes, order := outputs, 0, 0, 1, 0
	fours := inFours(&n, length, aStep, xStep)
	// Rows that are too long for one invocation are shared, whatever the tuning.
	if rows := int(env.Tuning.vectorRows()); shared && fours && inBlocks(&n, rows, outputs, env.Tuning) && length/16 <= maxRounds {
		block, units = 1, ceilDiv(outputs, rows)
		perGroup = unitsOfGroup(env, units)
	} else {
		lanes, order = sumLanes(env.Tuning.Reads, size, outputs, length, innerStride(&n, 1), abs(aStep))
		if length > 40*lanes*maxRounds {
			lanes, order = size, 0 // rather slow than refused
		}
		perGroup = size / lanes
		// Nearly all rounds are those of one loop.
		if err := tooLong(length, 16*lanes*5/2); err != nil {
			return err
		}
	}
	// Rows of a block follow the last axis.
	steps := [maxTensors]int{}
	if n.rank > 0 {
		for t := range n.tensors {
			steps[t] = n.stride[t][n.rank-1]
		}
	}
	w := infoWriter{words: p.Info}
	w.put(uint32(units))
	w.put(uint32(outputs))
	w.put(uint32(length))
	w.put(uint32(bits.TrailingZeros(uint(lanes))))
	w.put(uint32(order))
	w.put(truth(fours))
	w.put(uint32(aStep))
	w.put(uint32(xStep))
	w.put(uint32(block))
	w.put(uint32(perGroup))
	w.put(uint32(steps[0]))
	w.put(uint32(steps[1]))
	w.put(uint32(steps[3]))
	for t := range n.tensors {
		w.view(&n, t)
	}
	p.Info = w.words
	line(p, units, perGroup)
	return nil
}

// vectorNest checks the shapes of a matrix-vector product, whose out is operand last, and
// walks out, the rows of a, and x.
func vectorNest(n *nest, a, x, out *Layout, last int) error {
	switch {
	case a.Rank < 2:
		return shapeError(0, "[… M K]", a)
	case x.Rank < 1 || x.Shape[x.Rank-1] != a.Shape[a.Rank-1]:
		return shapeError(1, "[… K] with the K of a's "+shapeOf(a), x)
	case out.Rank < 1 || out.Shape[out.Rank-1] != a.Shape[a.Rank-2]:
		return shapeError(last, "[… M] with the M of a's "+shapeOf(a), out)
	}
	rows, vector := *a, *x
	rows.Rank--
	// x is the same for every row: an axis of extent 1 in the place of M.
	vector.Shape[vector.Rank-1], vector.Stride[vector.Rank-1] = 1, 0
	n.lead(out)
	if !n.broadcast(&rows) {
		return shapeError(0, "batch axes that broadcast to those of out's "+shapeOf(out), a)
	}
	if !n.broadcast(&vector) {
		return shapeError(1, "batch axes that broadcast to those of out's "+shapeOf(out), x)
	}
	return nil
}

func truth(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// leastBlock is the fewest outputs that are worth blocks.
const leastBlock = 32

// inFours reports whether rows and vectors can be read four elements at a time.
func inFours(n *nest, length, aStep, xStep int) bool {
	if length%4 != 0 || aStep != 1 || xStep != 1 || n.offset[1]%4 != 0 || n.offset[2]%4 != 0 {
		return false
	}
	for d := range n.rank {
		if n.stride[1][d]%4 != 0 || n.stride[2][d]%4 != 0 {
			return false
		}
	}
	return true
}

// inBlocks reports whether outputs are for the blocks of matvec.glsl: a driver on the
// CPU, enough of them, and none whose rows go around a corner.
func inBlocks(n *nest, rows, outputs int, t Tuning) bool {
	return t.Reads == Scattered && outputs >= leastBlock && (n.rank <= 1 || n.shape[n.rank-1]%rows == 0)
}

// unitsOfGroup shares units among groups: few, because each costs microseconds to start,
// but enough for all cores, and eights, which a CPU driver runs as one.
func unitsOfGroup(env Env, units int) int {
	per, size := 8, int(env.WorkgroupSize[0])
	for per < size && units > per*env.Tuning.groups() {
		per *= 2
	}
	return min(per, size)
}

// vectorWorkgroup is small where a driver runs invocations one after the other: those
// that have nothing to do cost nearly as much as the others.
func vectorWorkgroup(limits MaxWorkgroup) ([]SpecConst, [3]uint32) {
	rows := limits.Tuning.vectorRows()
	if limits.Tuning.Reads == Scattered {
		limits.Invocations = min(limits.Invocations, 16)
	}
	constants, size := narrowWorkgroup(limits)
	return append(constants, SpecConst{ID: vectorRowsID, Value: rows}), size
}

// vectorRowsID is the specialisation constant ROWS of matvec.glsl.
const vectorRowsID = 3
