package shaders_test

import (
	"fmt"
	"math"

	"vkcompute/shaders"
)

// machine does with info words and bindings what the shaders do, in float32 and
// wrapping uint32, so that planners can be tested without a device. It follows
// the GLSL, not the planners: an index out of a binding is an error.
type machine struct {
	info []uint32
	bind map[uint32][]uint32
	wg   [3]uint32
	// block is what an invocation makes of a matrix product.
	block  [2]uint32
	direct bool // without staging
	err    error
}

// view is what a shader reads at one place of the info words.
type view struct {
	rank, offset  uint32
	shape, stride []uint32
}

func (m *machine) view(at uint32) (v view, next uint32) {
	r := m.info[at]
	v = view{rank: r, offset: m.info[at+1], shape: m.info[at+2 : at+2+r], stride: m.info[at+2+r : at+2+2*r]}
	return v, at + 2 + 2*r
}

// at adds the position number i to an index, through the first axes given.
func (v view) at(i uint32, axes uint32) uint32 {
	var at uint32
	for d := axes; d > 0; d-- {
		c := i
		if d > 1 {
			i = c / v.shape[d-1]
			c %= v.shape[d-1]
		}
		at += c * v.stride[d-1]
	}
	return at
}

func (m *machine) load(binding, i uint32) float32 {
	b := m.bind[binding]
	if uint64(i) >= uint64(len(b)) {
		m.err = fmt.Errorf("reads element %d of binding %d, which has %d", i, binding, len(b))
		return 0
	}
	return math.Float32frombits(b[i])
}

func (m *machine) store(binding, i, bits uint32) {
	b := m.bind[binding]
	if uint64(i) >= uint64(len(b)) {
		m.err = fmt.Errorf("writes element %d of binding %d, which has %d", i, binding, len(b))
		return
	}
	b[i] = bits
}

// fold spreads groups over y and z as a stream does for a device that takes at
// most limit in one dimension.
func fold(n, limit uint64) [3]uint64 {
	g := [3]uint64{min(n, limit), 1, 1}
	if rows := (n + g[0] - 1) / g[0]; rows > 1 {
		g[1] = min(rows, limit)
		g[2] = (rows + g[1] - 1) / g[1]
	}
	return g
}

// bodies are the kernels that the machine knows: one of each shader at least whose
// indices are not plain.
var bodies = map[*shaders.Kernel]func(*machine, uint32){
	shaders.Add:     float2(func(x, y float32) float32 { return x + y }),
	shaders.Sub:     float2(func(x, y float32) float32 { return x - y }),
	shaders.Mul:     float2(func(x, y float32) float32 { return x * y }),
	shaders.AddInt:  mapped(2, func(x [3]uint32) uint32 { return x[0] + x[1] }),
	shaders.Copy:    mapped(1, func(x [3]uint32) uint32 { return x[0] }),
	shaders.Neg:     mapped(1, func(x [3]uint32) uint32 { return x[0] ^ 1<<31 }),
	shaders.IotaInt: (*machine).iota,
	shaders.Where: mapped(3, func(x [3]uint32) uint32 {
		if x[0] != 0 {
			return x[1]
		}
		return x[2]
	}),
	shaders.Sum:      (*machine).sum,
	shaders.SumParts: (*machine).sum,
	shaders.MatMul:   (*machine).matmul,
	shaders.Fill:     (*machine).fill,
	shaders.Nop:      func(*machine, uint32) {},
}

// run executes a plan. The data of operands is changed in place.
func run(k *shaders.Kernel, plan *shaders.Plan, env shaders.Env, data [][]uint32, limit uint64) error {
	tile := env.Tuning.MatMulTile()
	m := machine{bind: map[uint32][]uint32{}, wg: env.WorkgroupSize, block: [2]uint32{tile.Rows, tile.Cols}, direct: tile.Operands == shaders.DirectOperands}
	for _, w := range plan.Info {
		m.info = append(m.info, uint32(w), uint32(w>>32))
	}
	for i, p := range k.Params {
		if p.Kind == shaders.TensorParam {
			m.bind[p.Binding] = data[i]
		}
	}
	if plan.Groups[0] == 0 {
		return nil
	}
	if plan.Groups[1] != 1 || plan.Groups[2] != 1 {
		return fmt.Errorf("grid %v: want groups in x alone", plan.Groups)
	}
	grid := fold(plan.Groups[0], limit)
	total := grid[0] * grid[1] * grid[2]
	if total >= 2*plan.Groups[0] {
		return fmt.Errorf("grid %v for %d groups", grid, plan.Groups[0])
	}
	body := bodies[k]
	for g := range total {
		body(&m, uint32(g))
		if m.err != nil {
			return fmt.Errorf("group %d of %v, info %v: %w", g, grid, m.info, m.err)
		}
	}
	return nil
}

// walked is a group of a kernel of walk.glsl whose words begin at the given four: it calls
// each for every element, with its index in each tensor.
func walked(m *machine, g, begin, tensors uint32, each func(m *machine, at [4]uint32)) {
	four := func(i uint32) []uint32 { return m.info[4*(begin+i) : 4*(begin+i)+4] }
	how, longest, items, length := four(0)[0], four(0)[1], four(0)[2], four(0)[3]
	blocks := how>>8&1 == 1
	splat := func(t uint32) bool { return how>>(4+t)&1 == 1 }
	for e := g * m.wg[0]; e < min((g+1)*m.wg[0], items); e++ {
		at := [4]uint32(four(1))
		run, i := uint32(0), e
		for d := range how & 15 {
			axis, strides := four(3+2*d), four(4+2*d)
			rest := uint32(uint64(i)*uint64(axis[1])>>32) >> axis[2]
			c := i - rest*axis[0]
			i = rest
			run += c * axis[3]
			for t := range at {
				at[t] += c * strides[t]
			}
		}
		run = min(longest, length-run)
		single := run
		if blocks {
			for k := range 4 * run {
				index := at
				for t := range tensors {
					if !splat(t) {
						index[t] = 4*index[t] + k
					}
				}
				each(m, index)
			}
			single = 0
			if e == 0 {
				single = how >> 9
			}
			for t := range tensors {
				if !splat(t) {
					at[t] = 4 * (at[t] + length)
				}
			}
		}
		for k := range single {
			index := at
			for t := range tensors {
				index[t] += k * four(2)[t]
			}
			each(m, index)
		}
	}
}

// mapped is map.glsl with so many inputs.
func mapped(inputs uint32, op func(x [3]uint32) uint32) func(*machine, uint32) {
	return func(m *machine, g uint32) {
		walked(m, g, 0, inputs+1, func(m *machine, at [4]uint32) {
			var x [3]uint32
			for t := range inputs {
				x[t] = math.Float32bits(m.load(t+1, at[t+1]))
			}
			m.store(inputs+1, at[0], op(x))
		})
	}
}

func float2(op func(x, y float32) float32) func(*machine, uint32) {
	return mapped(2, func(x [3]uint32) uint32 {
		return math.Float32bits(op(math.Float32frombits(x[0]), math.Float32frombits(x[1])))
	})
}

func (m *machine) fill(g uint32) {
	walked(m, g, 1, 1, func(m *machine, at [4]uint32) { m.store(1, at[0], m.info[0]) })
}

func (m *machine) iota(g uint32) {
	walked(m, g, 1, 2, func(m *machine, at [4]uint32) { m.store(1, at[0], m.info[0]+at[1]*m.info[1]) })
}

// sum follows reduce.comp in which elements it takes, not in their order.
func (m *machine) sum(g uint32) {
	outputs, length := m.info[0], m.info[1]
	perGroup := m.wg[0] >> m.info[2]
	o, next := m.view(13)
	x, _ := m.view(m.info[11])
	red, _ := m.view(m.info[12])
	row, hop := m.info[9], m.info[10]
	if m.info[11] != next {
		m.err = fmt.Errorf("the second view is at %d, not at %d", next, m.info[11])
	}
	values := uint32(1)
	if m.info[6] == 2 {
		values = 4
	}
	for slot := range perGroup {
		out := g*perGroup + slot
		if out >= outputs {
			continue
		}
		ix, io := x.offset+x.at(out, x.rank), o.offset+o.at(out, o.rank)
		base := min(out*m.info[4], m.info[5])
		end := min(base+length, m.info[5])
		for c := range values {
			var total, rest float32
			for i := base; i < end; i++ {
				at := ix + c + red.at(i/row, red.rank) + i%row*hop
				if aligned := at - c; values == 4 && aligned%4 != 0 {
					m.err = fmt.Errorf("reads four elements at %d", aligned)
				}
				if m.info[6] == 1 && hop != 1 {
					m.err = fmt.Errorf("reads a row of step %d in fours", hop)
				}
				v := m.load(1, at)
				s := total + v
				b := s - total
				total, rest = s, rest+((total-(s-b))+(v-b))
			}
			if rest == rest {
				total += rest
			}
			m.store(2, io+c*m.info[7], math.Float32bits(total))
		}
	}
}

func (m *machine) matmul(g uint32) {
	if m.direct { // the group's invocations have a tile each
		wg := m.wg
		defer func() { m.wg, m.direct = wg, true }()
		m.wg, m.direct = [3]uint32{1, 1, 1}, false
		for i := range wg[0] * wg[1] {
			m.matmul(g*wg[0]*wg[1] + i)
		}
		return
	}
	if g >= m.info[0] {
		return
	}
	rows, cols, depth, tilesM, tilesN := m.info[1], m.info[2], m.info[3], m.info[4], m.info[5]
	a, next := m.view(7)
	b, next := m.view(next)
	o, _ := m.view(next)
	tile, batch := g%(tilesM*tilesN), g/(tilesM*tilesN)
	r := o.rank
	ia := a.offset + a.at(batch, r-2)
	ib := b.offset + b.at(batch, r-2)
	io := o.offset + o.at(batch, r-2)
	height, width := m.block[0]*m.wg[1], m.block[1]*m.wg[0]
	row0, col0 := tile/tilesN*height, tile%tilesN*width
	for i := row0; i < min(row0+height, rows); i++ {
		for j := col0; j < min(col0+width, cols); j++ {
			var acc float32
			for k := range depth {
				acc += m.load(1, ia+i*a.stride[r-2]+k*a.stride[r-1]) * m.load(2, ib+k*b.stride[r-2]+j*b.stride[r-1])
			}
			m.store(3, io+i*o.stride[r-2]+j*o.stride[r-1], math.Float32bits(acc))
		}
	}
}
