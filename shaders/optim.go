package shaders

import (
	"encoding/binary"
	"math"
)

// Steps of optimisers change their weights in place. The learning rate is a push
// constant, so a schedule needs no new info, and Adam counts its steps on the
// device, so that one recorded graph serves every step. The gradient broadcasts to
// the weights.
var (
	// SGD: weights -= rate·gradient. 3u of |weights| + |rate·gradient|.
	SGD = builtin("sgd", load("sgd"), KernelSpec{
		Params: []Param{
			{Name: "gradient", DType: Float32, Access: Read, Binding: 1},
			{Name: "rate", Kind: ScalarParam, DType: Float32},
			{Name: "weights", DType: Float32, Access: ReadWrite, Binding: 2},
		},
		Plan: planSGD, Grid: FoldedGrid, Spec: walkWorkgroup,
	})
	// Momentum: velocity = momentum·velocity + gradient, weights -= rate·velocity. 3u of
	// the terms of each.
	Momentum = builtin("momentum", load("momentum"), KernelSpec{
		Params: []Param{
			{Name: "gradient", DType: Float32, Access: Read, Binding: 1},
			{Name: "rate", Kind: ScalarParam, DType: Float32},
			{Name: "momentum", Kind: ScalarParam, DType: Float32},
			{Name: "weights", DType: Float32, Access: ReadWrite, Binding: 2},
			{Name: "velocity", DType: Float32, Access: ReadWrite, Binding: 3},
		},
		Plan: planMomentum, Grid: FoldedGrid, Spec: walkWorkgroup,
	})
	// Adam (Kingma and Ba, 2015), with the step, from 1, in an int32 tensor of one
	// element, which AddInt can raise:
	//
	//	first  = beta1·first + (1-beta1)·gradient
	//	second = beta2·second + (1-beta2)·gradient²
	//	weights -= rate · first/(1-beta1^step) / (√(second/(1-beta2^step)) + epsilon)
	//
	// first and second are good to 6u of their terms. With d for the last line's
	// subtrahend, weights are good to 2u·|weights| + 80u·|d| + what 6u of first's
	// terms makes of d. beta1 and beta2 lie between 0 and 1, both excluded.
	Adam = builtin("adam", load("adam"), KernelSpec{
		Params: []Param{
			{Name: "gradient", DType: Float32, Access: Read, Binding: 1},
			{Name: "step", DType: Int32, Access: Read, Binding: 2},
			{Name: "rate", Kind: ScalarParam, DType: Float32},
			{Name: "beta1", Kind: ScalarParam, DType: Float32},
			{Name: "beta2", Kind: ScalarParam, DType: Float32},
			{Name: "epsilon", Kind: ScalarParam, DType: Float32},
			{Name: "weights", DType: Float32, Access: ReadWrite, Binding: 3},
			{Name: "first", DType: Float32, Access: ReadWrite, Binding: 4},
			{Name: "second", DType: Float32, Access: ReadWrite, Binding: 5},
		},
		Plan: planAdam, Grid: FoldedGrid, Spec: walkWorkgroup,
	})
)

func planSGD(env Env, ops []Operand, p *Plan) error {
	var params [optimParams]uint32
	return planOptim(env, ops, ops[1].Bits, params, p, 2, 0)
}

func planMomentum(env Env, ops []Operand, p *Plan) error {
	params := [optimParams]uint32{uint32(ops[2].Bits)}
	return planOptim(env, ops, ops[1].Bits, params, p, 3, 0, 4)
}

func planAdam(env Env, ops []Operand, p *Plan) error {
	if err := onePosition(ops, 1); err != nil {
		return err
	}
	var params [optimParams]uint32
	for i := range 2 {
		beta := float64(math.Float32frombits(uint32(ops[3+i].Bits)))
		// What cancels is worked out here, in double precision.
		params[3*i] = uint32(ops[3+i].Bits)
		params[3*i+1] = math.Float32bits(float32(1 - beta))
		params[3*i+2] = math.Float32bits(float32(math.Log(beta)))
	}
	params[6] = uint32(ops[5].Bits)
	params[7] = uint32(ops[1].Offset)
	return planOptim(env, ops, ops[2].Bits, params, p, 6, 0, 7, 8)
}

// optimParams is the number of parameter words of optim.glsl.
const optimParams = 8

// planOptim walks weights, gradient and states, named by their indices.
func planOptim(env Env, ops []Operand, rate uint64, params [optimParams]uint32, p *Plan, weights, gradient int, states ...int) error {
	w := &ops[weights].Layout
	var n nest
	n.lead(w)
	if !n.broadcast(&ops[gradient].Layout) {
		return shapeError(gradient, "one that broadcasts to the weights' "+shapeOf(w), &ops[gradient].Layout)
	}
	for _, s := range states {
		if !sameShape(&ops[s].Layout, w) {
			return shapeError(s, "the weights' "+shapeOf(w), &ops[s].Layout)
		}
		n.broadcast(&ops[s].Layout)
	}
	if n.len() == 0 {
		return nil
	}
	n.normalise()
	out := infoWriter{words: p.Info}
	for _, v := range params {
		out.put(v)
	}
	n.plan(&env, [walkTensors]along{adjacent, either, adjacent, adjacent}, 0, &out, p)
	p.Info = out.words
	p.Push = binary.LittleEndian.AppendUint32(p.Push, uint32(rate))
	return nil
}
