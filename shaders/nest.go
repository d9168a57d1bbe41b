package shaders

import "fmt"

// maxTensors is the most tensors that one built-in kernel walks together.
const maxTensors = 6

// nest is a loop nest: several tensors walked over one shape. Tensor 0 decides
// the order of the axes.
type nest struct {
	rank, tensors int
	shape         [MaxRank]int
	stride        [maxTensors][MaxRank]int
	offset        [maxTensors]int
}

// lead starts the nest with the tensor whose shape is walked.
func (n *nest) lead(l *Layout) {
	n.rank, n.tensors = l.Rank, 1
	n.shape, n.stride[0], n.offset[0] = l.Shape, l.Stride, l.Offset
}

// broadcast adds a tensor. Its axes align with the last ones of the nest; an
// axis it lacks, or where its extent is 1, has stride 0. It reports whether the
// shapes go together.
func (n *nest) broadcast(l *Layout) bool {
	lack := n.rank - l.Rank
	if lack < 0 {
		return false
	}
	t := n.tensors
	for d := range l.Rank {
		switch l.Shape[d] {
		case n.shape[lack+d]:
			n.stride[t][lack+d] = l.Stride[d]
		case 1:
		default:
			return false
		}
	}
	n.offset[t] = l.Offset
	n.tensors++
	return true
}

// axis appends an axis to the first tensors of the nest.
func (n *nest) axis(extent int, strides ...int) {
	n.shape[n.rank] = extent
	for t, s := range strides {
		n.stride[t][n.rank] = s
	}
	n.rank++
}

// outer puts an axis before the others of the first tensors of the nest.
func (n *nest) outer(extent int, strides ...int) {
	n.rank++
	for d := n.rank - 1; d > 0; d-- {
		n.move(d, d-1)
	}
	n.shape[0] = extent
	for t, s := range strides {
		n.stride[t][0] = s
	}
}

// halve counts a tensor in pairs of elements, where that comes out even.
func (n *nest) halve(t int) bool {
	odd := n.offset[t]
	for d := range n.rank {
		odd |= n.stride[t][d]
	}
	if odd&1 != 0 {
		return false
	}
	n.offset[t] /= 2
	for d := range n.rank {
		n.stride[t][d] /= 2
	}
	return true
}

// pop takes the last axis away.
func (n *nest) pop() (extent int, strides [maxTensors]int) {
	n.rank--
	for t := range n.tensors {
		strides[t] = n.stride[t][n.rank]
	}
	return n.shape[n.rank], strides
}

// normalise drops axes of extent 1, makes tensor 0's strides positive, orders
// the axes by them, largest first, and joins neighbours that step as one. The
// set of (element of tensor 0, element of tensor 1, …) it walks stays the same.
func (n *nest) normalise() {
	kept := 0
	for d := range n.rank {
		if n.shape[d] == 1 {
			continue
		}
		n.move(kept, d)
		if n.stride[0][kept] < 0 {
			for t := range n.tensors {
				n.offset[t] += (n.shape[kept] - 1) * n.stride[t][kept]
				n.stride[t][kept] = -n.stride[t][kept]
			}
		}
		for e := kept; e > 0 && n.stride[0][e-1] < n.stride[0][e]; e-- {
			n.swap(e-1, e)
		}
		kept++
	}
	n.rank = kept
	n.join()
}

// collapse is normalise without changing the order in which elements are walked:
// it drops axes of extent 1 and joins neighbours.
func (n *nest) collapse() {
	kept := 0
	for d := range n.rank {
		if n.shape[d] != 1 {
			n.move(kept, d)
			kept++
		}
	}
	n.rank = kept
	n.join()
}

// join makes one axis of neighbours that step as one in every tensor.
func (n *nest) join() {
	if n.rank == 0 {
		return
	}
	last := 0
	for d := 1; d < n.rank; d++ {
		if n.joins(last, d) {
			s := n.shape[last] * n.shape[d]
			n.move(last, d)
			n.shape[last] = s
			continue
		}
		last++
		n.move(last, d)
	}
	n.rank = last + 1
}

// joins reports whether each tensor steps over axis e entirely for one step of
// axis d.
func (n *nest) joins(d, e int) bool {
	for t := range n.tensors {
		if n.stride[t][d] != n.stride[t][e]*n.shape[e] {
			return false
		}
	}
	return true
}

func (n *nest) move(to, from int) {
	if to == from {
		return
	}
	n.shape[to] = n.shape[from]
	for t := range n.tensors {
		n.stride[t][to] = n.stride[t][from]
	}
}

func (n *nest) swap(d, e int) {
	n.shape[d], n.shape[e] = n.shape[e], n.shape[d]
	for t := range n.tensors {
		n.stride[t][d], n.stride[t][e] = n.stride[t][e], n.stride[t][d]
	}
}

func (n *nest) len() int {
	l := 1
	for _, s := range n.shape[:n.rank] {
		l *= s
	}
	return l
}

func shapeError(i int, want string, found *Layout) error {
	return &OperandError{Index: i, Problem: BadShape, Want: want, Found: shapeOf(found)}
}

// shapeOf copies, so that no caller's layout escapes to the heap.
func shapeOf(l *Layout) string {
	s := l.Shape
	return fmt.Sprint(s[:l.Rank])
}
