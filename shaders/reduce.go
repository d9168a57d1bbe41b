package shaders

import (
	"fmt"
	"math/bits"
)

// Opcodes of reduce.comp.
const (
	opReduceSum = iota
	opReduceMean
	opReduceMax
	opReduceMin
	opReduceArgMax
)

// Reductions go over every axis where out has extent 1 and x has not. The ranks
// are equal, or out has one element and takes everything. One launch gives each
// result to one work group at most, so one long reduction leaves most of a device
// idle: launch SumParts (MaxParts, MinParts) into a scratch tensor of PartsFor
// elements first, and the plain kernel on that. Two launches with a barrier
// between them need no atomics, and equal launches give equal bits.
var (
	// Sum: out = Σ x. The error is at most 32u·Σ|x| however many there are, as long
	// as no partial sum overflows; NaN and infinities propagate. The order
	// of additions depends only on shapes, strides, the workgroup size and the
	// tuning. A sum over nothing is 0.
	Sum = operation("sum", reduceCode, opReduceSum, reduction(planReduce, Float32))
	// Mean: Sum divided by n, 3u more. Over nothing it is NaN.
	Mean = operation("mean", reduceCode, opReduceMean, reduction(planReduce, Float32))
	// Max: the greatest element, exact, by the order of the bits: NaN if there is
	// one, -infinity over nothing, 0 for -0.
	Max = operation("max", reduceCode, opReduceMax, reduction(planReduce, Float32))
	// Min: as Max, infinity over nothing.
	Min = operation("min", reduceCode, opReduceMin, reduction(planReduce, Float32))
	// ArgMax: the number, in row-major order of the reduced axes, of the greatest
	// element as int32; the first of equals, the first NaN if there is one, -1 over
	// nothing.
	ArgMax = operation("argmax", reduceCode, opReduceArgMax, reduction(planReduceInOrder, Int32))

	// SumParts: out of rank 1 and P elements takes the sums of P consecutive parts
	// of all of x, in any order of x's elements. Each has the error of Sum.
	SumParts = operation("sumparts", reduceCode, opReduceSum, reduction(planParts, Float32))
	// MaxParts and MinParts: as SumParts.
	MaxParts = operation("maxparts", reduceCode, opReduceMax, reduction(planParts, Float32))
	MinParts = operation("minparts", reduceCode, opReduceMin, reduction(planParts, Float32))
)

// maxRounds is how often an invocation may go round its loops: llvmpipe leaves all
// loops after 65535 rounds in total, and the result is wrong without an error. The
// shaders write out what they can; planners see to the rest.
const maxRounds = 16 << 10

// PartsFor is how many parts a reduction of n elements is worth: 1 means that the
// plain kernel does as well alone.
func PartsFor(env Env, n int) int {
	per := 32 * max(1, int(env.WorkgroupSize[0]))
	return max(1, min(ceilDiv(max(n, 1), per), 2*env.Tuning.groups()))
}

func reduction(plan Planner, out DType) KernelSpec {
	return KernelSpec{
		Params: []Param{
			{Name: "x", DType: Float32, Access: Read, Binding: 1},
			{Name: "out", DType: out, Access: Write, Binding: 2},
		},
		Plan: plan, Grid: FoldedGrid, Spec: reductionWorkgroup,
	}
}

// reductionWorkgroup leaves every invocation 32 bytes of the least shared memory.
func reductionWorkgroup(limits MaxWorkgroup) ([]SpecConst, [3]uint32) {
	limits.Invocations = min(limits.Invocations, 512)
	return lineWorkgroup(limits)
}

// walk says in which order reduced elements are counted.
type walk uint8

const (
	anyOrder walk = iota
	rowMajor
)

func planReduce(env Env, ops []Operand, p *Plan) error {
	return reduce(env, ops, p, anyOrder)
}

func planReduceInOrder(env Env, ops []Operand, p *Plan) error {
	return reduce(env, ops, p, rowMajor)
}

func reduce(env Env, ops []Operand, p *Plan, order walk) error {
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
				return shapeError(1, "each axis of x's "+shapeOf(x)+", or 1 where it is reduced", out)
			}
		}
	case out.len() == 1:
		for d := range x.Rank {
			reduced.axis(x.Shape[d], x.Stride[d])
		}
	default:
		return shapeError(1, "the rank of x's "+shapeOf(x)+", or a single element", out)
	}
	length := reduced.len()
	kept.normalise()
	return writeReduction(env, &kept, &reduced, order, length, 0, length, p)
}

func planParts(env Env, ops []Operand, p *Plan) error {
	x, out := &ops[0].Layout, &ops[1].Layout
	if out.Rank != 1 {
		return shapeError(1, "one axis, the parts", out)
	}
	var kept, reduced nest
	kept.tensors, reduced.tensors = 2, 1
	kept.offset[0], kept.offset[1] = out.Offset, x.Offset
	kept.axis(out.Shape[0], out.Stride[0], 0)
	for d := range x.Rank {
		reduced.axis(x.Shape[d], x.Stride[d])
	}
	total := reduced.len()
	length := ceilDiv(total, max(out.Shape[0], 1))
	kept.collapse() // part 0 comes first, whatever out's stride
	return writeReduction(env, &kept, &reduced, anyOrder, length, length, total, p)
}

func writeReduction(env Env, kept, reduced *nest, walked walk, length, step, total int, p *Plan) error {
	outputs := kept.len()
	if outputs == 0 {
		return nil
	}
	if walked == rowMajor {
		reduced.collapse()
	} else {
		reduced.normalise()
	}
	// What reversing a reduced axis adds to the offset belongs to the whole view.
	kept.offset[1] += reduced.offset[0]
	reduced.offset[0] = 0

	size := int(env.WorkgroupSize[0])
	if walked == anyOrder {
		reduced.longestLast()
	}
	keptStride, reducedStride := innerStride(kept, 1), innerStride(reduced, 0)
	if step > 0 {
		keptStride = maxIndex // parts lie far apart
	}
	wide, apart := singles, 0
	switch {
	case reduced.rank > 0 && reduced.stride[0][reduced.rank-1] == 1: // backwards it is no row of fours
		wide = foursOfRow
	case keptStride < reducedStride && foursSideBySide(kept, reduced):
		wide = foursOfOutputs
		last := kept.rank - 1
		apart = kept.stride[0][last]
		kept.shape[last] /= 4
		kept.stride[0][last] *= 4
		kept.stride[1][last] *= 4
		outputs /= 4
	}
	lanes, order := sumLanes(env.Tuning.Reads, size, outputs, length, keptStride, reducedStride)
	row, hop, split := 1, 0, 0
	if reduced.rank > 0 {
		var steps [maxTensors]int
		row, steps = reduced.pop()
		row, hop = max(row, 1), steps[0]
	}
	rows, perRow := ceilDiv(length, row), lanes
	if rows > 1 && row < 16*lanes { // too short to share
		split, rows, perRow = 1, ceilDiv(rows, lanes), 1
	}
	perLoad, ends := 4, 4 // as many rounds at most for what is left of four loads
	if wide == foursOfRow {
		perLoad, ends = 16, 9
	}
	rounds := row/(perLoad*perRow) + ends
	if rows > 1 {
		rounds = rows * (rounds + reduced.rank + 1)
	}
	if most := maxRounds * 5 / 2; rounds > most { // nothing else goes round often
		return &OperandError{Index: 0, Problem: BadGrid, Want: fmt.Sprintf("at most %d rounds for each invocation: reduce it in parts", most), Found: fmt.Sprint(rounds)}
	}
	w := infoWriter{words: p.Info}
	w.put(uint32(outputs))
	w.put(uint32(length))
	w.put(uint32(bits.TrailingZeros(uint(lanes))))
	w.put(uint32(order))
	w.put(uint32(step))
	w.put(uint32(total))
	w.put(uint32(wide))
	w.put(uint32(apart))
	w.put(uint32(split))
	w.put(uint32(row))
	w.put(uint32(hop))
	w.put(reduceViews + viewWords(kept))
	w.put(reduceViews + 2*viewWords(kept))
	w.view(kept, 0)
	w.view(kept, 1)
	w.view(reduced, 0)
	p.Info = w.words
	line(p, outputs, size/lanes)
	return nil
}

// reduceViews is the word where the views of reduce.comp begin.
const reduceViews = 13

// How reduce.comp loads: the word wide.
const (
	singles        = iota
	foursOfRow     // along the last reduced axis
	foursOfOutputs // along the last kept axis
)

// foursSideBySide reports whether the outputs can be made in fours that lie side by side
// in x, each aligned.
func foursSideBySide(kept, reduced *nest) bool {
	last := kept.rank - 1
	if kept.rank == 0 || kept.stride[1][last] != 1 || kept.shape[last]%4 != 0 || kept.offset[1]%4 != 0 {
		return false
	}
	for d := range last {
		if kept.stride[1][d]%4 != 0 {
			return false
		}
	}
	for d := range reduced.rank {
		if reduced.stride[0][d]%4 != 0 || reduced.stride[0][d] < 0 {
			return false
		}
	}
	return true
}

// longestLast makes the longest axis the last, which is the one that rounds are cheap
// along, unless that has unit stride and some length.
func (n *nest) longestLast() {
	last := n.rank - 1
	if last < 1 || n.stride[0][last] == 1 && n.shape[last] >= 64 {
		return
	}
	for d := range last {
		if n.shape[d] > 4*n.shape[last] {
			n.swap(d, last)
		}
	}
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
func sumLanes(reads ReadPattern, size, outputs, length, keptStride, reducedStride int) (lanes, order int) {
	const (
		perLane = 4       // fewer elements than this are not worth a lane
		enough  = 1 << 16 // invocations that fill a device
		wide    = 32      // outputs side by side that read whole cache lines
		busy    = 64      // invocations that keep a CPU driver busy

		fewPerLane = 4096
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
		fewRounds := length <= fewPerLane*lanes
		if order == 1 && outputs*lanes >= enough && fewRounds {
			break
		}
		if reads == Scattered && outputs*lanes >= busy && fewRounds {
			break
		}
		lanes *= 2
	}
	return lanes, order
}
