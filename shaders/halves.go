package shaders

import "math/bits"

// Kernels that read and write float16. They take the elements out of 32-bit words by
// integer arithmetic, so they run on every device and give the same bits on each; 16-bit
// storage, which not all have, would save little, for memory is what they wait for.
var (
	// HalfToFloat: out = x, broadcast to out, exactly: denormals too. A NaN becomes quiet
	// and keeps its payload.
	HalfToFloat = builtin("halftofloat", load("halftofloat"), KernelSpec{
		Params: []Param{
			{Name: "x", DType: Float16, Access: Read, Binding: 1},
			{Name: "out", DType: Float32, Access: Write, Binding: 2},
		},
		Plan: planMap, Grid: FoldedGrid, Spec: walkWorkgroup,
	})
	// FloatToHalf: out = x, broadcast to out, rounded as HalfOf does, bit for bit: to
	// nearest even, to infinity from 65520 on, through the denormals to 0. Whole blocks of
	// four adjacent elements are fast; others share words and need two atomic operations.
	FloatToHalf = builtin("floattohalf", load("floattohalf"), KernelSpec{
		Params: []Param{
			{Name: "x", DType: Float32, Access: Read, Binding: 1},
			{Name: "out", DType: Float16, Access: ReadWrite, Binding: 2},
		},
		Plan: planMap, Grid: FoldedGrid, Spec: walkWorkgroup,
	})
	// GatherHalf: as Gather, of a table of float16, to float32, exactly.
	GatherHalf = builtin("gatherhalf", load("gatherhalf"), KernelSpec{
		Params: []Param{
			{Name: "table", DType: Float16, Access: Read, Binding: 1},
			{Name: "ids", DType: Int32, Access: Read, Binding: 2},
			{Name: "out", DType: Float32, Access: Write, Binding: 3},
		},
		Plan: planGather, Grid: FoldedGrid, Spec: walkWorkgroup,
	})
	// MatVecHalf: as MatVec, with a matrix of float16, to the same bound.
	MatVecHalf = builtin("matvechalf", load("matvechalf"), KernelSpec{
		Params: []Param{
			{Name: "a", DType: Float16, Access: Read, Binding: 1},
			{Name: "x", DType: Float32, Access: Read, Binding: 2},
			{Name: "out", DType: Float32, Access: Write, Binding: 3},
		},
		Plan: planMatVecHalf, Grid: FoldedGrid, Spec: steadyWorkgroup,
	})
)

func planMatVecHalf(env Env, ops []Operand, p *Plan) error {
	a, x, out := &ops[0].Layout, &ops[1].Layout, &ops[2].Layout
	var n nest
	if err := vectorNest(&n, a, x, out, 2); err != nil {
		return err
	}
	length, aStep, xStep := a.Shape[a.Rank-1], a.Stride[a.Rank-1], x.Stride[x.Rank-1]
	outputs := n.len()
	if outputs == 0 {
		return nil
	}
	n.normalise()
	size := int(env.WorkgroupSize[0])
	fours := inFours(&n, length, aStep, xStep)
	lanes, order := sumLanes(env.Tuning.Reads, size, outputs, length, innerStride(&n, 1), abs(aStep))
	perRound := 4 * lanes // elements of an invocation's loop
	if fours {
		perRound *= quad
	}
	if err := tooLong(length, perRound); err != nil {
		return err
	}
	perGroup := size / lanes
	w := infoWriter{words: p.Info}
	w.put(uint32(outputs))
	w.put(uint32(length))
	w.put(uint32(bits.TrailingZeros(uint(lanes))))
	w.put(uint32(order))
	w.put(truth(fours))
	w.put(uint32(aStep))
	w.put(uint32(xStep))
	w.put(uint32(perGroup))
	for t := range n.tensors {
		w.view(&n, t)
	}
	p.Info = w.words
	line(p, outputs, perGroup)
	return nil
}
