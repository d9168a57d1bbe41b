package cmdbuf

import (
	"slices"

	"vkcompute/shaders"
)

// overlap tells whether two layouts over the same memory share an element.
//
// Element i of a and j of b coincide when a.Offset + Σ i·sa = b.Offset + Σ j·sb, a linear
// equation in bounded integers. The terms are tried from the largest stride down, and a
// partial sum is given up as soon as the smaller terms together cannot make up the
// difference; for layouts that nest, as tensors do, a few steps settle it. A search that
// grows beyond its budget answers yes, which is the safe side.
func overlap(a, b shaders.Layout) bool {
	aLo, aHi := a.Bounds()
	bLo, bHi := b.Bounds()
	if aLo > aHi || bLo > bHi || aHi < bLo || bHi < aLo {
		return false
	}
	s := search{budget: 4096}
	difference := b.Offset - a.Offset
	for i := range a.Rank {
		s.add(a.Stride[i], 0, a.Shape[i]-1)
	}
	for i := range b.Rank {
		s.add(b.Stride[i], 1-b.Shape[i], 0)
	}
	terms := s.terms[:s.n]
	slices.SortFunc(terms, func(x, y term) int { return y.stride - x.stride })
	for i := len(terms) - 1; i >= 0; i-- {
		s.lo[i] = s.lo[i+1] + terms[i].lo*terms[i].stride
		s.hi[i] = s.hi[i+1] + terms[i].hi*terms[i].stride
	}
	return s.reach(0, difference)
}

// term is k·stride with lo <= k <= hi.
type term struct{ stride, lo, hi int }

type search struct {
	terms  [2 * shaders.MaxRank]term
	n      int
	lo, hi [2*shaders.MaxRank + 1]int // least and greatest sum of the terms from an index on
	budget int
}

func (s *search) add(stride, lo, hi int) {
	if stride == 0 || lo == hi {
		return
	}
	if stride < 0 {
		stride, lo, hi = -stride, -hi, -lo
	}
	s.terms[s.n] = term{stride, lo, hi}
	s.n++
}

// reach tells whether the terms from index i on can sum up to want.
func (s *search) reach(i, want int) bool {
	if want < s.lo[i] || want > s.hi[i] {
		return false
	}
	if i == s.n {
		return true // want is 0
	}
	if s.budget--; s.budget < 0 {
		return true
	}
	t := s.terms[i]
	first := max(t.lo, ceilDiv(want-s.hi[i+1], t.stride))
	last := min(t.hi, floorDiv(want-s.lo[i+1], t.stride))
	for k := first; k <= last; k++ {
		if s.reach(i+1, want-k*t.stride) {
			return true
		}
	}
	return false
}

func floorDiv(a, b int) int {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

func ceilDiv(a, b int) int { return -floorDiv(-a, b) }
