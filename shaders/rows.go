package shaders

import "fmt"

// Opcodes of softmax.glsl.
const (
	opCrossEntropy = iota + 1
	opCrossEntropyGrad
)

// Kernels that work on rows, the last axis of x; permuted views serve for other
// axes. Rows may have a million elements and more; what is too long is an error. The axes before it may be broadcast.
var (
	// Softmax: out = exp(x - max) / Σ exp(x - max) along a row of n. With d = max-x
	// the error of an element p is at most (20 + 8d + Σ p'(8+8d'))·u·p, and 2⁻¹²⁵.
	// -infinity gives 0; a NaN, an infinity or nothing but -infinity makes the row
	// NaN. out may be x's memory.
	Softmax = builtin("softmax", load("softmax"), KernelSpec{
		Params: []Param{
			{Name: "x", DType: Float32, Access: Read, Binding: 1},
			{Name: "out", DType: Float32, Access: Write, Binding: 2},
		},
		Plan: planSoftmax, Grid: FoldedGrid, Spec: rowWorkgroup, InPlace: lastOver(1),
	})
	// CrossEntropy: out[…] = log Σ exp(x[…, j]) - x[…, labels[…]], x of […, C] and
	// labels int32. A label outside 0 … C-1 gives 0: use -1 to leave a row out. The
	// error is (40 + Σ p(8+8d))·u·(1 + |max| + |x[label]|). NaN as Softmax.
	CrossEntropy = operation("crossentropy", crossEntropyCode, opCrossEntropy, KernelSpec{
		Params: []Param{
			{Name: "x", DType: Float32, Access: Read, Binding: 1},
			{Name: "labels", DType: Int32, Access: Read, Binding: 2},
			{Name: "out", DType: Float32, Access: Write, Binding: 3},
		},
		Plan: planCrossEntropy, Grid: FoldedGrid, Spec: rowWorkgroup,
	})
	// CrossEntropyGrad: out = scale·(softmax(x) - 1 at the label), the gradient of
	// scale·Σ CrossEntropy; 0 in rows whose label is outside. The error is that of
	// Softmax and 2u, times scale. out may be x's memory.
	CrossEntropyGrad = operation("crossentropygrad", crossEntropyCode, opCrossEntropyGrad, KernelSpec{
		Params: []Param{
			{Name: "x", DType: Float32, Access: Read, Binding: 1},
			{Name: "labels", DType: Int32, Access: Read, Binding: 2},
			{Name: "scale", Kind: ScalarParam, DType: Float32},
			{Name: "out", DType: Float32, Access: Write, Binding: 3},
		},
		Plan: planCrossEntropyGrad, Grid: FoldedGrid, Spec: rowWorkgroup, InPlace: lastOver(3),
	})
	// LayerNorm: out = (x-m)/√(v+epsilon)·weight + bias with mean m and variance v of
	// the row. weight and bias broadcast to out. With z = (x-m)/√(v+epsilon) and
	// δ = 16u(mean|x| + |x|)/√(v+epsilon) the error is |weight|(δ + |z|(40u + mean δ·|z|))
	// + 4u|bias|. out may be x's memory.
	LayerNorm = builtin("layernorm", load("layernorm"), KernelSpec{
		Params: []Param{
			{Name: "x", DType: Float32, Access: Read, Binding: 1},
			{Name: "weight", DType: Float32, Access: Read, Binding: 2},
			{Name: "bias", DType: Float32, Access: Read, Binding: 3},
			{Name: "epsilon", Kind: ScalarParam, DType: Float32},
			{Name: "out", DType: Float32, Access: Write, Binding: 4},
		},
		Plan: planLayerNorm, Grid: FoldedGrid, Spec: rowWorkgroup, InPlace: lastOver(4),
	})
	// RMSNorm: out = x/√(mean x² + epsilon)·weight, 24u. NaN, an infinity and a mean
	// square that overflows make the row NaN. out may be x's memory.
	RMSNorm = builtin("rmsnorm", load("rmsnorm"), KernelSpec{
		Params: []Param{
			{Name: "x", DType: Float32, Access: Read, Binding: 1},
			{Name: "weight", DType: Float32, Access: Read, Binding: 2},
			{Name: "epsilon", Kind: ScalarParam, DType: Float32},
			{Name: "out", DType: Float32, Access: Write, Binding: 3},
		},
		Plan: planRMSNorm, Grid: FoldedGrid, Spec: rowWorkgroup, InPlace: lastOver(3),
	})
	// CumSum: out[i] = Σ x[0 … i] along the last axis. The error is (24·u + n·2u²)·Σ|x|.
	// NaN and infinities propagate. out may be x's memory.
	CumSum = builtin("cumsum", load("cumsum"), KernelSpec{
		Params: []Param{
			{Name: "x", DType: Float32, Access: Read, Binding: 1},
			{Name: "out", DType: Float32, Access: Write, Binding: 2},
		},
		Plan: planCumSum, Grid: FoldedGrid, Spec: lineWorkgroup, InPlace: lastOver(1),
	})
)

// lastOver: parameter out may be parameter 0's memory.
func lastOver(out int) func(o, i int) bool {
	return func(o, i int) bool { return o == out && i == 0 }
}

// rowWorkgroup is smaller than others: a decoder's rows are few and short, and an
// idle invocation still takes part in each barrier.
func rowWorkgroup(limits MaxWorkgroup) ([]SpecConst, [3]uint32) {
	limits.Invocations = min(limits.Invocations, 128)
	return lineWorkgroup(limits)
}

// rowNest walks out and the others, which broadcast to it, and takes the row away.
// index names the operands after out.
func rowNest(n *nest, out *Layout, ops []Operand, index ...int) error {
	n.lead(out)
	for _, i := range index {
		if !n.broadcast(&ops[i].Layout) {
			return shapeError(i, "one that broadcasts to "+shapeOf(out), &ops[i].Layout)
		}
	}
	return nil
}

// ownRow demands that x has the last axis of out and does not merely broadcast to
// it: a kernel that reduces along it counts elements.
func ownRow(ops []Operand, x int, out *Layout) error {
	l := &ops[x].Layout
	if l.Rank == 0 || out.Rank == 0 || l.Shape[l.Rank-1] != out.Shape[out.Rank-1] {
		return shapeError(x, "a row as long as that of "+shapeOf(out), l)
	}
	return nil
}

// tooLong refuses rows that would take too many rounds.
func tooLong(length, perRound int) error {
	if length/perRound <= maxRounds {
		return nil
	}
	return &OperandError{Index: 0, Problem: BadGrid, Want: fmt.Sprintf("rows of at most %d elements", maxRounds*perRound), Found: fmt.Sprint(length)}
}

func rowLanes(env Env, rows, length int) int {
	lanes, _ := sumLanes(env.Tuning.Reads, int(env.WorkgroupSize[0]), rows, length, maxIndex, 1)
	return lanes
}

func planSoftmax(env Env, ops []Operand, p *Plan) error {
	out := &ops[1].Layout
	if err := ownRow(ops, 0, out); err != nil {
		return err
	}
	var n nest
	if err := rowNest(&n, out, ops, 0); err != nil {
		return err
	}
	length, steps := n.pop()
	if length == 0 {
		return nil
	}
	return writeRows(env, &n, length, steps, p, 0)
}

func planCrossEntropy(env Env, ops []Operand, p *Plan) error {
	return crossEntropy(env, ops, &ops[2].Layout, noRow, p)
}

func planCrossEntropyGrad(env Env, ops []Operand, p *Plan) error {
	out := ops[3].Layout
	if err := ownRow(ops, 0, &out); err != nil {
		return err
	}
	if out.len() == 0 {
		return nil
	}
	step := out.Stride[out.Rank-1]
	out.Rank--
	if err := crossEntropy(env, ops, &out, step, p, uint32(ops[2].Bits)); err != nil {
		if oe, ok := err.(*OperandError); ok && oe.Index == 2 {
			oe.Index = 3
		}
		return err
	}
	return nil
}

// crossEntropy walks the rows: out and labels have no axis for the classes.
func crossEntropy(env Env, ops []Operand, out *Layout, step int, p *Plan, scale ...uint32) error {
	x, labels := &ops[0].Layout, &ops[1].Layout
	if x.Rank == 0 {
		return shapeError(0, "[… classes]", x)
	}
	rows := *x
	rows.Rank--
	if !sameShape(&rows, labels) {
		return shapeError(1, "the rows "+shapeOf(&rows), labels)
	}
	if !sameShape(&rows, out) {
		return shapeError(2, "the rows "+shapeOf(&rows), out)
	}
	var n nest
	n.lead(out)
	n.broadcast(&rows)
	n.broadcast(labels)
	var parameter uint32
	if len(scale) > 0 {
		parameter = scale[0]
	}
	return writeRows(env, &n, x.Shape[x.Rank-1], [maxTensors]int{step, x.Stride[x.Rank-1], noRow}, p, parameter)
}

func sameShape(a, b *Layout) bool {
	if a.Rank != b.Rank {
		return false
	}
	for d := range a.Rank {
		if a.Shape[d] != b.Shape[d] {
			return false
		}
	}
	return true
}

func planLayerNorm(env Env, ops []Operand, p *Plan) error {
	return planNorm(env, ops, 4, uint32(ops[3].Bits), p, 0, 1, 2)
}

func planRMSNorm(env Env, ops []Operand, p *Plan) error {
	return planNorm(env, ops, 3, uint32(ops[2].Bits), p, 0, 1, 1)
}

func planNorm(env Env, ops []Operand, last int, epsilon uint32, p *Plan, index ...int) error {
	out := &ops[last].Layout
	if err := ownRow(ops, 0, out); err != nil {
		return err
	}
	var n nest
	if err := rowNest(&n, out, ops, index...); err != nil {
		return err
	}
	length, steps := n.pop()
	if length == 0 {
		return nil
	}
	return writeRows(env, &n, length, steps, p, epsilon, uint32(steps[2]), uint32(steps[3]))
}

// noRow is the step of a tensor that is not walked along the row.
const noRow = maxIndex

// inFoursAlong reports whether each tensor that is walked along the row has it side by
// side, from a multiple of four elements on.
func inFoursAlong(n *nest, steps [maxTensors]int) bool {
	for t := range n.tensors {
		if steps[t] == noRow {
			continue
		}
		if steps[t] != 1 || n.offset[t]%4 != 0 {
			return false
		}
		for d := range n.rank {
			if n.stride[t][d]%4 != 0 {
				return false
			}
		}
	}
	return true
}

// writeRows writes the words of rows.glsl. steps are those of the tensors along the row.
func writeRows(env Env, n *nest, length int, steps [maxTensors]int, p *Plan, params ...uint32) error {
	rows := n.len()
	if rows == 0 {
		return nil
	}
	n.normalise()
	lanes, perRound := rowLanes(env, rows, length), 1
	fours := inFoursAlong(n, steps)
	if fours {
		perRound = 4
	}
	if err := tooLong(length, perRound*lanes); err != nil {
		return err
	}
	w := infoWriter{words: p.Info}
	w.put(uint32(rows))
	w.put(uint32(length))
	w.put(uint32(lanes))
	w.put(uint32(steps[1]))
	w.put(uint32(steps[0]))
	w.put(truth(fours))
	for _, v := range params {
		w.put(v)
	}
	for t := range n.tensors {
		w.view(n, t)
	}
	p.Info = w.words
	line(p, rows, int(env.WorkgroupSize[0])/lanes)
	return nil
}

func planCumSum(env Env, ops []Operand, p *Plan) error {
	out := &ops[1].Layout
	if err := ownRow(ops, 0, out); err != nil {
		return err
	}
	var n nest
	if err := rowNest(&n, out, ops, 0); err != nil {
		return err
	}
	length, steps := n.pop()
	rows, size := n.len(), int(env.WorkgroupSize[0])
	if rows == 0 || length == 0 {
		return nil
	}
	n.normalise()
	shared, perGroup := uint32(0), size
	// Where scans are cheap a group takes a row unless there are enough rows for all
	// invocations, on the CPU unless there are enough for a vector of them on each core.
	enough := size
	if env.Tuning.Reads == Scattered {
		enough = 32
	}
	if rows < enough && length > 32 || length > maxRounds/4 {
		shared, perGroup = 1, 1
		// Eight elements a round, each with the rounds of a scan.
		if err := tooLong(length, size/2); err != nil {
			return err
		}
	}
	w := infoWriter{words: p.Info}
	w.put(uint32(rows))
	w.put(uint32(length))
	w.put(uint32(steps[1]))
	w.put(uint32(steps[0]))
	w.put(shared)
	w.put(truth(inFoursAlong(&n, steps)))
	w.view(&n, 0)
	w.view(&n, 1)
	p.Info = w.words
	line(p, rows, perGroup)
	return nil
}
