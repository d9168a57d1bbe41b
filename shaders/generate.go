package shaders

import "encoding/binary"

// Opcodes of generate.glsl.
const (
	opIotaFloat = 0
	opIotaInt   = 1
	opUniform   = 0
	opNormal    = 1
)

// Kernels that make a tensor out of nothing. Element i, in row-major order of
// out's shape, depends on i and the scalars alone, whatever the strides.
var (
	// Fill: out = value, bit for bit, for any 32-bit element type.
	Fill = builtin("fill", load("fill"), KernelSpec{
		Params: []Param{
			{Name: "value", Kind: ScalarParam},
			{Name: "out", Access: Write, Binding: 1},
		},
		Plan: planFill, Grid: FoldedGrid, Spec: walkWorkgroup,
	})
	// Iota: out[i] = start + i·step in float32, 3u of |start| + |i·step|.
	Iota = operation("iota", iotaCode, opIotaFloat, generator(planIota, Float32, "start", "step"))
	// IotaInt: out[i] = start + i·step in int32, which wraps.
	IotaInt = operation("iotaint", iotaCode, opIotaInt, generator(planIota, Int32, "start", "step"))
	// RandomUniform: out[i] = low + (high-low)·k/2²⁴, k from Philox4x32-10 with
	// the key (seed, stream) and the counter i/4: the same numbers on every device,
	// but for 4u of |low| + |high|. Seed and stream are push constants, so another
	// seed for each launch needs no other info.
	RandomUniform = operation("randomuniform", randomCode, opUniform, generator(planRandom, Float32, "seed", "stream", "low", "high"))
	// RandomNormal: mean + deviation·z, z normal by Box and Muller's method from
	// the same bits, within ±5.8. z has an error of 2⁻¹⁹·(1+|z|) before the roundings.
	RandomNormal = operation("randomnormal", randomCode, opNormal, generator(planRandom, Float32, "seed", "stream", "mean", "deviation"))
)

func generator(plan Planner, t DType, scalars ...string) KernelSpec {
	spec := KernelSpec{Plan: plan, Grid: FoldedGrid, Spec: walkWorkgroup}
	for _, s := range scalars {
		p := Param{Name: s, Kind: ScalarParam, DType: t}
		if s == "seed" || s == "stream" {
			p.DType = Uint32
		}
		spec.Params = append(spec.Params, p)
	}
	spec.Params = append(spec.Params, Param{Name: "out", DType: t, Access: Write, Binding: 1})
	return spec
}

func planFill(env Env, ops []Operand, p *Plan) error {
	var n nest
	n.lead(&ops[1].Layout)
	if n.len() == 0 {
		return nil
	}
	n.normalise()
	w := infoWriter{words: p.Info}
	w.four(int(uint32(ops[0].Bits)), 0, 0, 0)
	n.plan(&env, [walkTensors]along{adjacent}, 0, &w, p)
	p.Info = w.words
	return nil
}

func planIota(env Env, ops []Operand, p *Plan) error {
	planGenerator(env, &ops[2].Layout, ops[0].Bits, ops[1].Bits, p)
	return nil
}

func planRandom(env Env, ops []Operand, p *Plan) error {
	planGenerator(env, &ops[4].Layout, ops[2].Bits, ops[3].Bits, p)
	p.Push = binary.LittleEndian.AppendUint32(p.Push, uint32(ops[0].Bits))
	p.Push = binary.LittleEndian.AppendUint32(p.Push, uint32(ops[1].Bits))
	return nil
}

func planGenerator(env Env, out *Layout, a, b uint64, p *Plan) {
	numbers := Contiguous(out.Shape[:out.Rank]...)
	var n nest
	n.lead(out)
	n.broadcast(&numbers)
	if n.len() == 0 {
		return
	}
	n.normalise()
	w := infoWriter{words: p.Info}
	w.four(int(uint32(a)), int(uint32(b)), 0, 0)
	n.plan(&env, [walkTensors]along{adjacent, adjacent}, 0, &w, p)
	p.Info = w.words
}
