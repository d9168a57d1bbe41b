package shaders

import "fmt"

// These mirror the constants of matmul.comp.
const (
	matMicro = 4
	matDepth = 16
	matRows  = 16 // of an invocation in a flat group
)

// line sets the grid for n pieces of work, per group as given, in x alone.
func line(p *Plan, n, perGroup int) {
	p.Groups = [3]uint64{uint64(ceilDiv(n, perGroup)), 1, 1}
}

func planNop(_ Env, _ []Operand, p *Plan) error {
	p.Info = append(p.Info, 0)
	p.Groups = [3]uint64{1, 1, 1}
	return nil
}

func planMatMul(env Env, ops []Operand, p *Plan) error {
	a, b, out := &ops[0].Layout, &ops[1].Layout, &ops[2].Layout
	for i := range ops {
		if ops[i].Rank < 2 {
			return shapeError(i, "2 axes or more", &ops[i].Layout)
		}
	}
	ra, rb, ro := a.Rank-2, b.Rank-2, out.Rank-2
	m, n, k := out.Shape[ro], out.Shape[ro+1], a.Shape[ra+1]
	switch {
	case a.Shape[ra] != m:
		return shapeError(0, "[… M K] with the M of out's "+shapeOf(out), a)
	case b.Shape[rb] != k:
		return shapeError(1, "[… K N] with the K of a's "+shapeOf(a), b)
	case b.Shape[rb+1] != n:
		return shapeError(1, "[… K N] with the N of out's "+shapeOf(out), b)
	}
	var batch nest
	ba, bb, bo := *a, *b, *out
	ba.Rank, bb.Rank, bo.Rank = ra, rb, ro
	batch.lead(&bo)
	if !batch.broadcast(&ba) {
		return shapeError(0, "batch axes that broadcast to those of out's "+shapeOf(out), a)
	}
	if !batch.broadcast(&bb) {
		return shapeError(1, "batch axes that broadcast to those of out's "+shapeOf(out), b)
	}
	batches := batch.len()
	if batches == 0 || m == 0 || n == 0 {
		return nil
	}
	batch.normalise()
	batch.axis(m, out.Stride[ro], a.Stride[ra], 0)
	batch.axis(n, out.Stride[ro+1], 0, b.Stride[rb+1])

	tm, rounds := ceilDiv(m, matMicro*int(env.WorkgroupSize[1])), 1
	if env.WorkgroupSize[1] == 1 {
		tm, rounds = ceilDiv(m, matRows), matDepth
	}
	if rounds *= k / matDepth; rounds > 2*maxRounds {
		return &OperandError{Index: 0, Problem: BadGrid, Want: "a shorter K, or MatVec", Found: fmt.Sprint(k)}
	}
	tn := ceilDiv(n, matMicro*int(env.WorkgroupSize[0]))
	groups := batches * tm * tn // at most the number of results
	w := infoWriter{words: p.Info}
	w.put(uint32(groups))
	w.put(uint32(m))
	w.put(uint32(n))
	w.put(uint32(k))
	w.put(uint32(tm))
	w.put(uint32(tn))
	rows, cols := batch.rank-2, batch.rank-1
	// The nest holds the axes of out; a and b have K in the place of one of them.
	view := batch
	view.shape[cols], view.stride[1][cols] = k, a.Stride[ra+1]
	w.view(&view, 1)
	view = batch
	view.shape[rows], view.stride[2][rows] = k, b.Stride[rb]
	w.view(&view, 2)
	w.view(&batch, 0)
	p.Info = w.words
	p.Groups = [3]uint64{uint64(groups), 1, 1}
	return nil
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }
