package shaders

// These mirror the constants of matmul.comp.
const (
	matMicro = 4
	matDepth = 16
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

func planSum(env Env, ops []Operand, p *Plan) error {
	x, out := &ops[0].Layout, &ops[1].Layout
	var kept, reduced nest
	kept.tensors, reduced.tensors = 2, 1
	kept.offset[0], kept.offset[1] = out.Offset, x.Offset
	switch {
	case out.Rank == x.Rank:
		for d := range x.Rank {
			switch {
			case out.Shape[d] == x.Shape[d]:
				kept.axis(x.Shape[d], out.Stride[d], x.Stride[d])
			case out.Shape[d] == 1:
				reduced.axis(x.Shape[d], x.Stride[d])
			default:
				return shapeError(1, "each axis of x's "+shapeOf(x)+", or 1 where it is summed", out)
			}
		}
	case out.len() == 1:
		for d := range x.Rank {
			reduced.axis(x.Shape[d], x.Stride[d])
		}
	default:
		return shapeError(1, "the rank of x's "+shapeOf(x)+", or a single element", out)
	}
	outputs, length := kept.len(), reduced.len()
	if outputs == 0 {
		return nil
	}
	kept.normalise()
	// The reduced axes' direction and order are free too; what reversing one adds
	// to the offset belongs to the whole view.
	reduced.normalise()
	kept.offset[1] += reduced.offset[0]
	reduced.offset[0] = 0

	size := int(env.WorkgroupSize[0])
	lanes, order := sumLanes(size, outputs, length, innerStride(&kept, 1), innerStride(&reduced, 0))
	w := infoWriter{words: p.Info}
	w.put(uint32(outputs))
	w.put(uint32(length))
	w.put(uint32(lanes))
	w.put(uint32(order))
	w.view(&kept, 0)
	w.view(&kept, 1)
	w.view(&reduced, 0)
	p.Info = w.words
	line(p, outputs, size/lanes)
	return nil
}

// innerStride is how far neighbours along the innermost axis lie apart.
func innerStride(n *nest, t int) int {
	if n.rank == 0 {
		return maxIndex
	}
	return abs(n.stride[t][n.rank-1])
}

// sumLanes shares a group of a power of two of invocations among outputs. order
// is 0 where the reduced axis is the one whose neighbours lie closer in memory.
func sumLanes(size, outputs, length, keptStride, reducedStride int) (lanes, order int) {
	const (
		perLane = 4       // fewer elements than this are not worth a lane
		enough  = 1 << 16 // invocations that fill a device
		wide    = 32      // outputs side by side that read whole cache lines
	)
	limit := size
	if keptStride < reducedStride {
		order = 1
		side := 1
		for side < wide && side < outputs && side < size {
			side *= 2
		}
		limit = size / side
	}
	lanes = 1
	for lanes*2 <= limit && lanes*2*perLane <= length {
		if order == 1 && outputs*lanes >= enough {
			break
		}
		lanes *= 2
	}
	return lanes, order
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

	tm := ceilDiv(m, matMicro*int(env.WorkgroupSize[1]))
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
