package cmdbuf

import (
	"slices"
	"sort"

	"vkcompute/shaders"
)

// Order says in which order a graph runs what a capture recorded.
type Order uint8

const (
	// ByLevel runs operations that do not depend on each other together: one is in the
	// level after the latest it depends on, and a barrier goes between levels. The order
	// of the calls is kept where this would not save barriers.
	ByLevel Order = iota
	// AsCalled keeps the order of the calls.
	AsCalled
)

// reorder sorts the operations by level if that saves barriers. Operations keep their
// order within a level and across every dependency, so results are the same.
func (o *ops) reorder() {
	levels := make([]int32, len(o.list))
	deepest := int32(0)
	byBuffer := map[uint64]*levelMap{}
	for i := range o.list {
		level := int32(0)
		accesses := o.accessesOf(&o.list[i])
		for n := range accesses {
			if m := byBuffer[accesses[n].bufferID]; m != nil {
				level = max(level, m.after(&accesses[n]))
			}
		}
		for n := range accesses {
			a := &accesses[n]
			m := byBuffer[a.bufferID]
			if m == nil {
				m = &levelMap{}
				byBuffer[a.bufferID] = m
			}
			m.note(a, level)
		}
		levels[i], deepest = level, max(deepest, level)
	}
	if int(deepest) >= o.order() {
		return
	}
	// The new place of each operation: a stable sort by counting.
	start := make([]int32, deepest+2)
	for _, l := range levels {
		start[l+1]++
	}
	for l := range deepest + 1 {
		start[l+1] += start[l]
	}
	sorted := make([]op, len(o.list))
	place := make([]int32, len(o.list))
	for i, l := range levels {
		place[i] = start[l]
		sorted[start[l]] = o.list[i]
		start[l]++
	}
	o.list = sorted
	for _, p := range o.params {
		for i, u := range p.uses {
			p.uses[i] = place[u]
		}
		slices.Sort(p.uses)
	}
}

// levelMap remembers for each byte of a buffer the deepest level that wrote it and the
// deepest that read it, as a sorted list of disjoint spans.
type levelMap struct{ spans []levelSpan }

type levelSpan struct {
	lo, hi        uint64
	wrote, readAt int32 // -1: nobody
}

// at is the first span that ends after x.
func (m *levelMap) at(x uint64) int {
	return sort.Search(len(m.spans), func(i int) bool { return m.spans[i].hi > x })
}

// after is the first level at which an access may run.
func (m *levelMap) after(a *binding) int32 {
	level := int32(0)
	lo, hi, access := a.touches()
	for i := m.at(lo); i < len(m.spans) && m.spans[i].lo < hi; i++ {
		s := &m.spans[i]
		level = max(level, s.wrote+1)
		if access&shaders.Write != 0 {
			level = max(level, s.readAt+1)
		}
	}
	return level
}

// note records an access at a level.
func (m *levelMap) note(a *binding, level int32) {
	lo, hi, access := a.touches()
	if lo >= hi {
		return
	}
	m.split(lo)
	m.split(hi)
	i := m.at(lo)
	for at := lo; at < hi; i++ {
		if i == len(m.spans) || m.spans[i].lo > at { // a gap
			end := hi
			if i < len(m.spans) {
				end = min(end, m.spans[i].lo)
			}
			m.spans = slices.Insert(m.spans, i, levelSpan{at, end, -1, -1})
		}
		s := &m.spans[i]
		if access&shaders.Write != 0 {
			// Whoever comes later depends on this write, and through it on all before.
			s.wrote, s.readAt = level, -1
		}
		if access&shaders.Read != 0 {
			s.readAt = max(s.readAt, level)
		}
		at = s.hi
	}
	m.merge(lo, hi)
}

// split makes x the border of two spans if it lies inside one.
func (m *levelMap) split(x uint64) {
	i := m.at(x)
	if i < len(m.spans) && m.spans[i].lo < x {
		right := m.spans[i]
		right.lo = x
		m.spans[i].hi = x
		m.spans = slices.Insert(m.spans, i+1, right)
	}
}

// merge joins neighbours that say the same, so that the list does not grow with the
// number of accesses.
func (m *levelMap) merge(lo, hi uint64) {
	i := max(m.at(lo)-1, 0)
	j := i + 1
	for j < len(m.spans) && m.spans[j].lo <= hi {
		a, b := &m.spans[i], m.spans[j]
		if a.hi == b.lo && a.wrote == b.wrote && a.readAt == b.readAt {
			a.hi = b.hi
		} else {
			i++
			m.spans[i] = b
		}
		j++
	}
	m.spans = slices.Delete(m.spans, i+1, j)
}
