package shaders

import (
	"fmt"
	"math"
)

// Kernels that look up or place rows by numbers that lie on the device, so that
// one recorded graph serves every token and every batch: a position is an int32
// tensor of one element, ids are an int32 tensor. Numbers outside the rows are
// never used as an index.
var (
	// Gather: out[i…, :] = table[ids[i…], :] bit for bit, of any 32-bit type. table
	// is [rows …], ids of any shape, out has the axes of ids and then table's
	// others. A row outside the table gives zero bits.
	Gather = builtin("gather", load("gather"), KernelSpec{
		Params: []Param{
			{Name: "table", Access: Read, Binding: 1},
			{Name: "ids", DType: Int32, Access: Read, Binding: 2},
			{Name: "out", Access: Write, Binding: 3},
		},
		Plan: planGather, Grid: FoldedGrid, Spec: walkWorkgroup,
	})
	// Put: out[position+i, …] = x[i, …] bit for bit, of any 32-bit type, as one
	// writes keys and values to their cache. The other rows of out keep what they
	// hold; rows outside it are dropped.
	Put = builtin("put", load("put"), KernelSpec{
		Params: []Param{
			{Name: "x", Access: Read, Binding: 1},
			{Name: "position", DType: Int32, Access: Read, Binding: 2},
			{Name: "out", Access: Write, Binding: 3},
		},
		Plan: planPut, Grid: FoldedGrid, Spec: walkWorkgroup,
	})
	// ScatterAdd: out[ids[i…], :] += x[i…, :], the gradient of Gather. It needs no
	// float atomics and is deterministic: every element has one owner, who adds in
	// the row-major order of ids, m·u·(|out| + Σ|x|) for m additions. Rows outside
	// out are dropped. Every owner reads all ids, so it suits batches of thousands,
	// not millions.
	ScatterAdd = builtin("scatteradd", load("scatteradd"), KernelSpec{
		Params: []Param{
			{Name: "x", DType: Float32, Access: Read, Binding: 1},
			{Name: "ids", DType: Int32, Access: Read, Binding: 2},
			{Name: "out", DType: Float32, Access: ReadWrite, Binding: 3},
		},
		Plan: planScatterAdd, Grid: FoldedGrid, Spec: walkWorkgroup,
	})
	// Rotary turns the pairs of neighbours (x[2i], x[2i+1]) of each head by the angle
	// (position + t)·frequencies[i] (Su et al., "RoFormer", 2021). x and out are
	// [heads, size] or [… t, heads, size], frequencies [size/2]. The error is
	// (2⁻²¹ + 2u·|angle|)·(|a| + |b|) for a pair a, b and angles below 2¹³. out may be x's memory.
	Rotary = builtin("rotary", rotaryCode, rotary(planRotary))
	// RotaryHalf pairs x[i] with x[i + size/2] instead.
	RotaryHalf = builtin("rotaryhalf", rotaryCode, rotary(planRotaryHalf))
	// Attention: out[t, h] = softmax(scale · q[t, h]·keys[j, h']) @ values[j, h'] over
	// j from 0 to position+t, as many of them as the cache has. q and out are
	// [… t, heads, size], keys and values [… cache, groups, size], where the heads
	// share the groups evenly: h' = h·groups/heads. Position is the row of the first
	// query: a single element, or one for each of the batch, of the shape of q's batch
	// axes or broadcast to it. The batch axes of keys and values broadcast. If nothing is seen the
	// result is 0. Size is at most 1024.
	//
	// The error is Σ p|v|·(2E + (2n+20)·u), where E = (size+4)·u·max scale·Σ|q·k| +
	// 8u·(1+max(s)-min(s)) over the scores s. NaN is not promised to propagate.
	Attention = builtin("attention", load("attention"), KernelSpec{
		Params: []Param{
			{Name: "q", DType: Float32, Access: Read, Binding: 1},
			{Name: "keys", DType: Float32, Access: Read, Binding: 2},
			{Name: "values", DType: Float32, Access: Read, Binding: 3},
			{Name: "position", DType: Int32, Access: Read, Binding: 4},
			{Name: "scale", Kind: ScalarParam, DType: Float32},
			{Name: "out", DType: Float32, Access: Write, Binding: 5},
		},
		Plan: planAttention, Grid: FoldedGrid, Spec: steadyWorkgroup,
	})
)

func rotary(plan Planner) KernelSpec {
	return KernelSpec{
		Params: []Param{
			{Name: "x", DType: Float32, Access: Read, Binding: 1},
			{Name: "frequencies", DType: Float32, Access: Read, Binding: 2},
			{Name: "position", DType: Int32, Access: Read, Binding: 3},
			{Name: "out", DType: Float32, Access: Write, Binding: 4},
		},
		Plan: plan, Grid: FoldedGrid, Spec: walkWorkgroup, InPlace: lastOver(3),
	}
}

// maxHead mirrors MAX_HEAD of attention.comp.
const maxHead = 1024

// maxKeys is the longest cache that attention walks in tiles of so many keys: see
// maxRounds. A tile takes size/4 rounds for the scores and a quarter of the keys twice.
func maxKeys(tile, size int) int { return tile * (3 * maxRounds / (size/4 + tile/2 + 16)) }

// steadyWorkgroup is narrow and the same for any tuning, or what fits one would be too long
// for another. It has invocations in fours, which is how attention reads scores.
func steadyWorkgroup(limits MaxWorkgroup) ([]SpecConst, [3]uint32) {
	limits.Invocations = min(limits.Invocations, 64)
	return lineOfAtLeast(64, limits)
}

// RotaryFrequencies are base^(-2i/size), i below size/2, for Rotary: base is 10000
// in most models.
func RotaryFrequencies(size int, base float64) []float32 {
	f := make([]float32, max(size/2, 0))
	for i := range f {
		f[i] = float32(math.Pow(base, -2*float64(i)/float64(size)))
	}
	return f
}

// leastNarrow is leastLine where groups are small: still twenty million products in a sum.
const leastNarrow = 32

// narrowWorkgroup is for kernels whose invocations all repeat some work.
func narrowWorkgroup(limits MaxWorkgroup) ([]SpecConst, [3]uint32) {
	limits.Invocations = min(limits.Invocations, 64)
	return lineOfAtLeast(leastNarrow, limits)
}

// onePosition demands a single element.
func onePosition(ops []Operand, i int) error {
	if ops[i].len() != 1 {
		return shapeError(i, "a single element", &ops[i].Layout)
	}
	return nil
}

// rowNumbers is a tensor that counts along one axis of a shape: as part of a nest
// it tells a shader where it is on that axis.
func rowNumbers(of *Layout, axis int) Layout {
	l := *of
	l.Offset, l.Stride = 0, [MaxRank]int{}
	l.Stride[axis] = 1
	return l
}

func planGather(env Env, ops []Operand, p *Plan) error {
	table, ids, out := &ops[0].Layout, &ops[1].Layout, &ops[2].Layout
	if table.Rank == 0 {
		return shapeError(0, "[rows …]", table)
	}
	if out.Rank != ids.Rank+table.Rank-1 {
		return shapeError(2, fmt.Sprintf("%d axes, those of ids and of a row of the table", ids.Rank+table.Rank-1), out)
	}
	// Both seen with out's axes.
	row, which := *out, *out
	row.Offset, which.Offset = table.Offset, ids.Offset
	for d := range out.Rank {
		row.Stride[d], which.Stride[d] = 0, 0
		if d < ids.Rank {
			which.Shape[d], which.Stride[d] = ids.Shape[d], ids.Stride[d]
		} else {
			row.Shape[d], row.Stride[d] = table.Shape[d-ids.Rank+1], table.Stride[d-ids.Rank+1]
		}
	}
	if !sameShape(&which, out) {
		return shapeError(1, "the first axes of out's "+shapeOf(out), ids)
	}
	if !sameShape(&row, out) {
		return shapeError(0, "rows like the last axes of out's "+shapeOf(out), table)
	}
	var n nest
	n.lead(out)
	n.broadcast(&row)
	n.broadcast(&which)
	if n.len() == 0 {
		return nil
	}
	n.normalise()
	ways := [walkTensors]along{adjacent, adjacent, same}
	step := table.Stride[0]
	if step%quad != 0 {
		ways[1] = apart
	}
	w := infoWriter{words: p.Info}
	w.four(table.Shape[0], step, step/quad, 0)
	n.plan(&env, ways, 0, &w, p)
	p.Info = w.words
	return nil
}

func planPut(env Env, ops []Operand, p *Plan) error {
	x, out := &ops[0].Layout, &ops[2].Layout
	if err := onePosition(ops, 1); err != nil {
		return err
	}
	part := *out
	if x.Rank > 0 && part.Rank > 0 {
		part.Shape[0] = x.Shape[0]
	}
	if x.Rank == 0 || !sameShape(&part, x) {
		return shapeError(0, "[any number …] and rows like those of out's "+shapeOf(out), x)
	}
	numbers := rowNumbers(x, 0)
	var n nest
	n.lead(&part)
	n.broadcast(x)
	n.broadcast(&numbers)
	if n.len() == 0 || out.Shape[0] == 0 {
		return nil
	}
	n.normalise()
	ways := [walkTensors]along{adjacent, adjacent, same}
	step := out.Stride[0]
	if step%quad != 0 {
		ways[0] = apart
	}
	w := infoWriter{words: p.Info}
	w.four(out.Shape[0], step, step/quad, ops[1].Offset)
	n.plan(&env, ways, 0, &w, p)
	p.Info = w.words
	return nil
}

func planScatterAdd(env Env, ops []Operand, p *Plan) error {
	x, ids, out := &ops[0].Layout, &ops[1].Layout, &ops[2].Layout
	if out.Rank == 0 {
		return shapeError(2, "[rows …]", out)
	}
	if x.Rank != ids.Rank+out.Rank-1 {
		return shapeError(0, fmt.Sprintf("%d axes, those of ids and of a row of out", ids.Rank+out.Rank-1), x)
	}
	var columns, which nest
	columns.tensors, which.tensors = 2, 2
	columns.offset = [maxTensors]int{out.Offset, x.Offset}
	which.offset[0] = ids.Offset
	for d := range x.Rank {
		if d < ids.Rank {
			if x.Shape[d] != ids.Shape[d] {
				return shapeError(1, "the first axes of x's "+shapeOf(x), ids)
			}
			which.axis(x.Shape[d], ids.Stride[d], x.Stride[d])
			continue
		}
		o := d - ids.Rank + 1
		if x.Shape[d] != out.Shape[o] {
			return shapeError(0, "rows like those of out's "+shapeOf(out), x)
		}
		columns.axis(x.Shape[d], out.Stride[o], x.Stride[d])
	}
	width, count, rows := columns.len(), which.len(), out.Shape[0]
	if width == 0 || count == 0 || rows == 0 {
		return nil
	}
	columns.normalise()
	which.collapse() // the order of the additions is that of the ids
	rounds := count
	if which.rank == 1 {
		rounds = ceilDiv(count, 8) + 7
	}
	if count > maxRounds*(8-7*min(1, max(0, which.rank-1))) {
		return shapeError(1, fmt.Sprintf("at most %d ids: add them in several launches", maxRounds*(8-7*min(1, max(0, which.rank-1)))), ids)
	}
	ways := [walkTensors]along{adjacent, adjacent, same}
	step := out.Stride[0]
	if step%quad != 0 {
		ways[0] = apart
	}
	for _, s := range which.stride[1][:which.rank] {
		if s%quad != 0 {
			ways[1] = apart
		}
	}
	// More parts read the ids more often, and keep more of the device busy.
	want := 1 << 12
	if env.Tuning.Reads == Scattered {
		want = int(env.WorkgroupSize[0]) * env.Tuning.groups()
	}
	parts := max(1, min(rows, want/width))
	per := ceilDiv(rows, parts)
	columns.tensors++
	columns.outer(ceilDiv(rows, per), 0, 0, per)
	w := infoWriter{words: p.Info}
	w.four(count, rows, per, 0)
	w.four(step, step/quad, 0, 0)
	columns.plan(&env, ways, rounds, &w, p)
	if w.half {
		w.put(0)
	}
	w.words[1] |= uint64(2*len(w.words)) << 32
	w.view(&which, 0)
	w.view(&which, 1)
	p.Info = w.words
	return nil
}

func planRotary(env Env, ops []Operand, p *Plan) error { return rotate(env, ops, neighbours, p) }

func planRotaryHalf(env Env, ops []Operand, p *Plan) error { return rotate(env, ops, halves, p) }

type pairing uint8

const (
	neighbours pairing = iota
	halves
)

func rotate(env Env, ops []Operand, pairs pairing, p *Plan) error {
	x, frequencies, out := ops[0].Layout, &ops[1].Layout, ops[3].Layout
	if err := onePosition(ops, 2); err != nil {
		return err
	}
	if x.Rank < 2 {
		return shapeError(0, "[heads size] or [… t heads size]", &ops[0].Layout)
	}
	if !sameShape(&x, &out) {
		return shapeError(3, "x's "+shapeOf(&x), &ops[3].Layout)
	}
	last := x.Rank - 1
	if frequencies.Rank != 1 || 2*frequencies.Shape[0] != x.Shape[last] {
		return shapeError(1, "half of the last axis of x's "+shapeOf(&x), frequencies)
	}
	pairX, pairOut := x.Stride[last], out.Stride[last]
	x.Shape[last] /= 2
	out.Shape[last] /= 2
	if pairs == neighbours {
		x.Stride[last] *= 2
		out.Stride[last] *= 2
	} else {
		pairX *= x.Shape[last]
		pairOut *= out.Shape[last]
	}
	numbers := rowNumbers(&x, 0)
	numbers.Stride[0] = 0
	if x.Rank > 2 {
		numbers.Stride[x.Rank-3] = 1
	}
	var n nest
	n.lead(&out)
	n.broadcast(&x)
	n.broadcast(&numbers)
	n.broadcast(frequencies)
	if n.len() == 0 {
		return nil
	}
	// The heads of a row share their angles. As many as divide them evenly are one item's.
	heads, each := x.Shape[last-1], 1
	if env.Tuning.Reads == Scattered {
		spare := n.len() / quad / (int(env.WorkgroupSize[0]) * env.Tuning.groups())
		for each*2 <= min(maxRun, spare) && heads%(each*2) == 0 {
			each *= 2
		}
	}
	nextOut, nextX := out.Stride[last-1], x.Stride[last-1]
	n.shape[last-1] /= each
	n.stride[0][last-1] *= each
	n.stride[1][last-1] *= each
	n.normalise()
	ways := [walkTensors]along{adjacent, adjacent, same, adjacent}
	wide, apartBy := n, 1
	ok := nextOut%quad == 0 && nextX%quad == 0
	if pairs == neighbours {
		// Counted in pairs, which lie side by side.
		apartBy = 2
		ok = ok && pairOut == 1 && pairX == 1 && wide.halve(0) && wide.halve(1)
	} else {
		ok = ok && pairOut%quad == 0 && pairX%quad == 0
	}
	if ok {
		_, ok = wide.blocks(&ways)
		ok = ok && wide.shape[wide.rank-1]%quad == 0 // what is left over is not counted so
	}
	w := infoWriter{words: p.Info}
	if ok {
		n = wide
		w.four(each, nextOut/quad, nextX/quad, ops[2].Offset)
		if pairs == neighbours {
			w.four(1, 1, apartBy, 0)
		} else {
			w.four(pairOut/quad, pairX/quad, apartBy, 0)
		}
	} else {
		ways[0] = apart
		w.four(each, nextOut, nextX, ops[2].Offset)
		w.four(pairOut, pairX, 1, 0)
	}
	n.plan(&env, ways, each, &w, p)
	p.Info = w.words
	return nil
}

func planAttention(env Env, ops []Operand, p *Plan) error {
	q, keys, values, out := &ops[0].Layout, &ops[1].Layout, &ops[2].Layout, &ops[5].Layout
	for _, i := range [...]int{0, 1, 2} {
		if ops[i].Rank < 3 {
			return shapeError(i, "[… rows heads size]", &ops[i].Layout)
		}
	}
	if !sameShape(q, out) {
		return shapeError(5, "q's "+shapeOf(q), out)
	}
	r, k, v := q.Rank-3, keys.Rank-3, values.Rank-3
	heads, size, cache, groups := q.Shape[r+1], q.Shape[r+2], keys.Shape[k], keys.Shape[k+1]
	tile := int(env.WorkgroupSize[0])
	switch {
	case keys.Shape[k+2] != size || size > maxHead:
		return shapeError(1, fmt.Sprintf("heads like q's %s, %d at most", shapeOf(q), maxHead), keys)
	case groups == 0 && heads > 0 || groups > 0 && heads%groups != 0:
		return shapeError(1, "a number of groups that divides the heads of q's "+shapeOf(q), keys)
	case values.Shape[v] != cache || values.Shape[v+1] != groups || values.Shape[v+2] != size:
		return shapeError(2, "the last axes of keys' "+shapeOf(keys), values)
	case cache > maxKeys(tile, size):
		return shapeError(1, fmt.Sprintf("%d keys at most", maxKeys(tile, size)), keys)
	case q.Rank == MaxRank:
		return shapeError(0, "7 axes at most", q)
	}
	if out.len() == 0 {
		return nil
	}
	// The axes are batch, row, group, head within the group.
	head := func(l *Layout, perGroup, step, group int, row int) Layout {
		h := *l
		r := l.Rank - 3
		h.Rank = r + 3
		h.Shape[r], h.Stride[r] = q.Shape[q.Rank-3], row
		h.Shape[r+1], h.Stride[r+1] = groups, group
		h.Shape[r+2], h.Stride[r+2] = perGroup, step
		return h
	}
	perGroup := heads / groups
	lo := head(out, perGroup, out.Stride[r+1], out.Stride[r+1]*perGroup, out.Stride[r])
	lq := head(q, perGroup, q.Stride[r+1], q.Stride[r+1]*perGroup, q.Stride[r])
	lk := head(keys, perGroup, 0, keys.Stride[k+1], 0)
	lv := head(values, perGroup, 0, values.Stride[v+1], 0)
	numbers := rowNumbers(&lo, r)
	// One position for all, or one for each of the batch.
	lp := ops[3].Layout
	if lp.len() == 1 {
		lp.Rank = 0
	} else if lp.Rank > r {
		return shapeError(3, "a single element, or one for each of the batch of q's "+shapeOf(q), &ops[3].Layout)
	}
	for range 3 { // row, group and head
		lp.Shape[lp.Rank], lp.Stride[lp.Rank] = 1, 0
		lp.Rank++
	}
	var n nest
	n.lead(&lo)
	n.broadcast(&lq)
	if !n.broadcast(&lk) {
		return shapeError(1, "batch axes that broadcast to those of q's "+shapeOf(q), keys)
	}
	if !n.broadcast(&lv) {
		return shapeError(2, "batch axes that broadcast to those of q's "+shapeOf(q), values)
	}
	n.broadcast(&numbers)
	if !n.broadcast(&lp) {
		return shapeError(3, "a single element, or one for each of the batch of q's "+shapeOf(q), &ops[3].Layout)
	}
	total := n.len()
	n.normalise()
	steps := [maxTensors]int{out.Stride[r+2], q.Stride[r+2], keys.Stride[k+2], values.Stride[v+2], noRow, noRow}
	fours := size%4 == 0 && keys.Stride[k]%4 == 0 && values.Stride[v]%4 == 0 && inFoursAlong(&n, steps)
	units, columns := size, 1
	if fours {
		units = size / 4
	}
	for columns < min(units, tile) {
		columns *= 2
	}
	pieces := ceilDiv(units, columns)
	w := infoWriter{words: p.Info}
	w.put(uint32(total * pieces))
	w.put(uint32(pieces))
	w.put(uint32(size))
	w.put(uint32(cache))
	w.put(uint32(ops[4].Bits))
	w.put(uint32(out.Stride[r+2]))
	w.put(uint32(q.Stride[r+2]))
	w.put(uint32(keys.Stride[k+2]))
	w.put(uint32(values.Stride[v+2]))
	w.put(uint32(keys.Stride[k]))
	w.put(uint32(values.Stride[v]))
	w.put(uint32(columns))
	w.put(truth(fours))
	for t := range n.tensors {
		w.view(&n, t)
	}
	p.Info = w.words
	line(p, total*pieces, 1)
	return nil
}
