package shaders

import "math/bits"

// quad is the number of elements that the kernels of walk.glsl read and write at
// once where they can.
const quad = 4

// maxRun is the longest run of blocks or elements that one invocation takes without
// looking up where it is. It is enough to make the looking up cheap.
const maxRun = 128

// leastRun is how long a run is at least, where that leaves something to do for all
// invocations of one group. To begin costs an invocation as much as some elements do.
const leastRun = 8

// walkWorkgroup is for kernels of walk.glsl. On a CPU a group is a loop over as many
// lanes as an instruction has, and a lane that has nothing to do costs as much as
// one that has, so a small one wastes less.
func walkWorkgroup(limits MaxWorkgroup) ([]SpecConst, [3]uint32) {
	if limits.Tuning.Workgroup == 0 && limits.Tuning.Reads == Scattered {
		limits.Tuning.Workgroup = 8
	}
	return lineOfAtLeast(1, limits) // nobody shares anything
}

// maxItems is how many items there may be of one block or element, so that their
// numbers do not wrap. Beyond it are no more than two thirds of MaxElements, as every
// axis has two elements or more.
const maxItems = 1 << 30

// walkTensors is the most tensors of a kernel of walk.glsl.
const walkTensors = 4

// along says what a tensor must be like on the innermost axis for blocks.
type along uint8

const (
	apart    along = iota // no blocks at all
	adjacent              // its elements are neighbours
	same                  // it has one element
	either                // of the two
)

// plan cuts up a normalised nest of elements that has some, writes the words that
// walk.glsl describes, and sets the grid. For each block or element a kernel goes
// round a loop of its own so often as rounds says.
func (n *nest) plan(env *Env, ways [walkTensors]along, rounds int, w *infoWriter, p *Plan) {
	var steps [walkTensors]int
	if n.rank > 0 {
		for t := range n.tensors {
			steps[t] = n.stride[t][n.rank-1]
		}
	}
	how := uint32(0)
	if splat, ok := n.blocks(&ways); ok {
		last := n.rank - 1
		how = splat<<4 | 1<<8 | uint32(n.shape[last]%quad)<<9
		n.shape[last] /= quad
		for t := range n.tensors {
			if splat>>t&1 != 0 {
				continue
			}
			n.offset[t] /= quad
			for d := range last {
				n.stride[t][d] /= quad
			}
		}
	}
	run, length := n.cut(env, rounds)
	items := n.len()
	how |= uint32(n.longAxes())
	line(p, items, int(env.WorkgroupSize[0]))
	w.four(int(how), run, items, length)
	w.four(n.offset[0], n.offset[1], n.offset[2], n.offset[3])
	w.four(steps[0], steps[1], steps[2], steps[3])
	n.axes(w, run)
}

// blocks reports whether the nest can be walked in blocks: the innermost axis is whole
// blocks long and each tensor as it must be. A nest of one axis may have a part of a
// block left over. splat has the bits of the tensors with one element for all of the
// axis.
func (n *nest) blocks(ways *[walkTensors]along) (splat uint32, ok bool) {
	last := n.rank - 1
	if n.rank == 0 || n.shape[last] < quad || n.rank > 1 && n.shape[last]%quad != 0 {
		return 0, false
	}
	for t := range n.tensors {
		if n.stride[t][last] == 0 && ways[t] >= same {
			splat |= 1 << t
			continue
		}
		if ways[t] == same || ways[t] == apart || n.stride[t][last] != 1 || n.offset[t]%quad != 0 {
			return 0, false
		}
		for d := range last {
			if n.stride[t][d]%quad != 0 {
				return 0, false
			}
		}
	}
	return splat, true
}

// cut makes runs of the innermost axis, and of what is left of it an axis over runs.
func (n *nest) cut(env *Env, rounds int) (run, length int) {
	if n.rank == 0 {
		return 1, 1
	}
	last := n.rank - 1
	length = n.shape[last]
	total := n.len()
	run = 1
	if env.Tuning.Reads == Scattered {
		size := int(env.WorkgroupSize[0])
		even := max(total/(size*env.Tuning.groups()), min(leastRun, ceilDiv(total, size)))
		run = max(1, min(maxRun, maxRounds/(rounds+1), even))
	}
	if total > maxItems {
		run = max(run, 2)
	}
	run = ceilDiv(length, ceilDiv(length, run))
	n.shape[last] = ceilDiv(length, run)
	for t := range n.tensors {
		n.stride[t][last] *= run
	}
	return run, length
}

// longAxes counts the axes of more than one item.
func (n *nest) longAxes() (count int) {
	for _, s := range n.shape[:n.rank] {
		if s > 1 {
			count++
		}
	}
	return count
}

// axes writes the axes as walk.glsl reads them. Those of extent 1 need no walk.
func (n *nest) axes(w *infoWriter, run int) {
	left := n.longAxes()
	for d := n.rank - 1; d >= 0; d-- {
		if n.shape[d] == 1 {
			continue
		}
		magic, shift := uint32(0), uint32(0)
		if left--; left > 0 { // the outermost axis has no quotient
			magic, shift = reciprocal(uint32(n.shape[d]))
		}
		begin := 0
		if d == n.rank-1 {
			begin = run
		}
		w.four(n.shape[d], int(magic), int(shift), begin)
		w.four(n.stride[0][d], n.stride[1][d], n.stride[2][d], n.stride[3][d])
	}
}

// reciprocal is the magic number and the shift with which walk.glsl divides numbers
// below 2³¹ by d, 2 or more.
//
// With 2^(s-1) < d <= 2^s and m = ⌈2^(31+s)/d⌉ < 2³², m·d exceeds 2^(31+s) by less than
// 2^s, so i·m/2^(31+s) exceeds i/d by less than 1/d for i < 2³¹: too little to reach
// the next whole number.
func reciprocal(d uint32) (magic, shift uint32) {
	s := uint(bits.Len32(d - 1))
	m := (uint64(1)<<(31+s) + uint64(d) - 1) / uint64(d)
	return uint32(m), uint32(s - 1)
}
