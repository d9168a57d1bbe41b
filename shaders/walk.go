package shaders

import "math/bits"

// quad is the number of elements that the kernels of walk.glsl read and write at
// once where they can.
const quad = 4

// maxRun is the longest run of blocks or elements that one invocation takes without
// looking up where it is. It is enough to make the looking up cheap.
const maxRun = 64

// walkWorkgroup is for kernels of walk.glsl. On a CPU a group is a loop over as many
// lanes as an instruction has, and a lane that has nothing to do costs as much as
// one that has, so a small one wastes less.
func walkWorkgroup(limits MaxWorkgroup) ([]SpecConst, [3]uint32) {
	if limits.Tuning.Workgroup == 0 && limits.Tuning.Reads == Scattered {
		limits.Tuning.Workgroup = 32
	}
	return lineWorkgroup(limits)
}

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

// part is how one kind of work, blocks or single elements, is cut up.
type part struct {
	items, run, length int
	offset             [walkTensors]int
}

// plan cuts up a normalised nest of elements that has some, writes the words that
// walk.glsl describes, and sets the grid. For each block or element a kernel goes
// round a loop of its own so often as rounds says.
func (n *nest) plan(env *Env, ways [walkTensors]along, rounds int, w *infoWriter, p *Plan) {
	var blocks, singles part
	run := 0 // of what the axes are for
	splat, ok := n.blocks(&ways)
	steps := [walkTensors]int{}
	if n.rank > 0 {
		for t := range n.tensors {
			steps[t] = n.stride[t][n.rank-1]
		}
	}
	if ok {
		last := n.rank - 1
		tail := n.shape[last] % quad
		whole := n.shape[last] - tail
		if tail > 0 {
			singles = part{items: 1, run: tail, length: tail}
			for t := range n.tensors {
				singles.offset[t] = n.offset[t] + whole*steps[t]
			}
		}
		n.shape[last] = whole / quad
		for t := range n.tensors {
			if splat>>t&1 != 0 {
				continue
			}
			n.offset[t] /= quad
			for d := range last {
				n.stride[t][d] /= quad
			}
		}
		blocks = n.cut(env, rounds)
		run = blocks.run
	} else {
		singles = n.cut(env, rounds)
		run = singles.run
	}
	items := max(blocks.items, singles.items)
	per := env.perInvocation(items)
	for per > 1 && per*(run*(rounds+1)+n.rank+1) > maxRounds {
		per /= 2
	}
	chunk := per * int(env.WorkgroupSize[0])
	line(p, items, chunk)
	w.four(int(p.Groups[0]), chunk, blocks.items, singles.items)
	w.four(blocks.run, blocks.length, singles.run, singles.length)
	w.four(int(splat), n.longAxes(), 0, 0)
	w.four(blocks.offset[0], blocks.offset[1], blocks.offset[2], blocks.offset[3])
	w.four(singles.offset[0], singles.offset[1], singles.offset[2], singles.offset[3])
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

// cut makes runs of the innermost axis. What is left of it is an axis over runs.
func (n *nest) cut(env *Env, rounds int) part {
	s := part{items: 1, run: 1, length: 1, offset: [walkTensors]int(n.offset[:walkTensors])}
	if n.rank == 0 {
		return s
	}
	last := n.rank - 1
	s.length = n.shape[last]
	total := n.len()
	if env.Tuning.Reads == Scattered {
		s.run = max(1, min(maxRun, maxRounds/(rounds+1), total/(int(env.WorkgroupSize[0])*env.Tuning.groups())))
	}
	pieces := ceilDiv(s.length, s.run)
	s.run = ceilDiv(s.length, pieces)
	pieces = ceilDiv(s.length, s.run)
	s.items = total / s.length * pieces
	n.shape[last] = pieces
	for t := range n.tensors {
		n.stride[t][last] *= s.run
	}
	return s
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
