package shaders

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
)

// MaxRank is the greatest number of axes of a tensor.
const MaxRank = 8

// MaxElements is the greatest number of elements of one operand. It leaves a
// factor of two below the range of uint32, which is what a folded grid may
// overshoot before a shader's element index would wrap.
const MaxElements = 1<<31 - 1

// maxIndex is the greatest element index a shader can form in uint32.
const maxIndex = math.MaxUint32

// Layout places a tensor in a binding. Everything counts in elements: element
// (i0, i1, …) lies at Offset + Σ i·Stride from the start of the binding.
// Strides may be 0 (the axis is broadcast) or negative. Only the first Rank
// entries of Shape and Stride mean anything.
type Layout struct {
	Rank          int
	Offset        int
	Shape, Stride [MaxRank]int
}

// Contiguous is the row-major layout of a shape at offset 0. A shape of more
// than MaxRank axes gives a Layout that Validate refuses.
func Contiguous(shape ...int) Layout {
	l := Layout{Rank: len(shape)}
	if len(shape) > MaxRank {
		return l
	}
	step := 1
	for i := len(shape) - 1; i >= 0; i-- {
		l.Shape[i], l.Stride[i] = shape[i], step
		step = satMul(step, max(shape[i], 1))
	}
	return l
}

func (l *Layout) len() int {
	if l.Rank < 0 || l.Rank > MaxRank {
		return 0
	}
	n := 1
	for _, s := range l.Shape[:l.Rank] {
		if s <= 0 {
			return 0
		}
		n = satMul(n, s)
	}
	return n
}

// Len is the number of elements, 1 for rank 0. It saturates at math.MaxInt and
// is 0 for a layout that Validate refuses for its rank or a negative extent.
func (l Layout) Len() int { return l.len() }

// Bounds gives the least and the greatest element index that the layout
// touches. lo > hi when it touches none. Values saturate instead of wrapping.
func (l Layout) Bounds() (lo, hi int) { return l.bounds() }

func (l *Layout) bounds() (lo, hi int) {
	if l.len() == 0 {
		return l.Offset, satAdd(l.Offset, -1)
	}
	lo, hi = l.Offset, l.Offset
	for i, s := range l.Shape[:l.Rank] {
		reach := satMul(s-1, l.Stride[i])
		if reach < 0 {
			lo = satAdd(lo, reach)
		} else {
			hi = satAdd(hi, reach)
		}
	}
	return lo, hi
}

// Validate reports a layout that no shader can index: a rank or an extent out
// of range, too many elements, or an index below 0 or beyond uint32.
func (l Layout) Validate() error { return l.validate() }

func (l *Layout) validate() error {
	if l.Rank < 0 || l.Rank > MaxRank {
		return fmt.Errorf("rank %d: want 0 to %d", l.Rank, MaxRank)
	}
	for i, s := range l.Shape[:l.Rank] {
		if s < 0 {
			return fmt.Errorf("axis %d has extent %d: want 0 or more", i, s)
		}
	}
	n := l.len()
	if n == 0 {
		return nil
	}
	if n > MaxElements {
		return fmt.Errorf("shape %v: more than %d elements", extents(l.Shape, l.Rank), MaxElements)
	}
	if lo, hi := l.bounds(); lo < 0 || hi > maxIndex {
		return fmt.Errorf("shape %v with strides %v and offset %d touches elements %d to %d: want 0 to %d",
			extents(l.Shape, l.Rank), extents(l.Stride, l.Rank), l.Offset, lo, hi, maxIndex)
	}
	return nil
}

// extents copies for a message: a slice of the layout itself would move every layout
// that is ever checked to the heap.
func extents(v [MaxRank]int, n int) []int { return append([]int(nil), v[:n]...) }

// String writes shape, strides and offset.
func (l Layout) String() string {
	if l.Rank < 0 || l.Rank > MaxRank {
		return "layout of rank " + strconv.Itoa(l.Rank)
	}
	return fmt.Sprintf("shape %v strides %v offset %d", l.Shape[:l.Rank], l.Stride[:l.Rank], l.Offset)
}

// selfOverlaps reports whether two different positions of the layout may name
// the same element. It accepts exactly the layouts whose axes, sorted by the
// size of their strides, each step over all smaller ones together: every view
// made by slicing, reversing and permuting is of that kind. Some interleaved
// layouts that happen not to overlap are refused too; as outputs they are not
// worth an exponential search.
func (l *Layout) selfOverlaps() bool {
	var axes [MaxRank]struct{ n, step int }
	count := 0
	for i, s := range l.Shape[:l.Rank] {
		switch {
		case s == 0:
			return false
		case s == 1:
			continue
		}
		step := abs(l.Stride[i])
		j := count
		for j > 0 && axes[j-1].step > step {
			axes[j] = axes[j-1]
			j--
		}
		axes[j].n, axes[j].step = s, step
		count++
	}
	reach := 0
	for _, a := range axes[:count] {
		if a.step <= reach {
			return true
		}
		reach = satAdd(reach, satMul(a.n-1, a.step))
	}
	return false
}

func abs(x int) int {
	if x == math.MinInt {
		return math.MaxInt
	}
	if x < 0 {
		return -x
	}
	return x
}

// satMul multiplies and saturates at ±math.MaxInt.
func satMul(a, b int) int {
	hi, lo := bits.Mul64(uint64(abs(a)), uint64(abs(b)))
	p := math.MaxInt
	if hi == 0 && lo < math.MaxInt {
		p = int(lo)
	}
	if (a < 0) != (b < 0) {
		return -p
	}
	return p
}

func satAdd(a, b int) int {
	s := a + b
	switch {
	case a > 0 && b > 0 && s < 0:
		return math.MaxInt
	case a < 0 && b < 0 && s >= 0:
		return -math.MaxInt
	}
	return s
}
