// Package packing places allocations whose lives are known beforehand in as little memory as it can:
// what an allocator could do at best if it knew the future.
//
// The problem, dynamic storage allocation, is NP-hard (M. Garey and D. Johnson, "Computers and
// Intractability", 1979, problem SR2). [Bound], the largest sum of sizes alive at one time, is what no placement
// can beat; one within three times of it can always be found (J. Gergov, "Algorithms for compile-time memory
// optimization", SODA 1999). [Best] is the best of several greedy placements: items in some order of
// size and life go one by one to a place that is free for their whole life, the lowest or the
// tightest. On the traces of real programs that ends at the bound or within a few per cent of it.
//
// Everything here is pure and may be called from any goroutine.
package packing

import (
	"cmp"
	"fmt"
	"slices"
)

// Item is an allocation that needs Size bytes in [Begin, End).
type Item struct {
	Size       uint64
	Begin, End int
}

// Placement is where each item goes.
type Placement struct {
	Span    uint64   // the end of the item that ends last
	Offsets []uint64 // by item
	Method  string
}

// Bound returns the largest sum of sizes alive at one time.
func Bound(items []Item) uint64 {
	type step struct {
		at   int
		size uint64
		end  bool
	}
	var steps []step
	for _, it := range items {
		if it.Begin < it.End {
			steps = append(steps, step{it.Begin, it.Size, false}, step{it.End, it.Size, true})
		}
	}
	slices.SortFunc(steps, func(a, b step) int {
		if a.at != b.at {
			return cmp.Compare(a.at, b.at)
		}
		if a.end == b.end {
			return 0
		}
		if a.end {
			return -1 // what ends makes room first
		}
		return 1
	})
	now, most := uint64(0), uint64(0)
	for _, s := range steps {
		if s.end {
			now -= s.size
		} else {
			now += s.size
			most = max(most, now)
		}
	}
	return most
}

type fit int

const (
	lowest fit = iota
	tightest
)

// Best returns the placement of the smallest span that it finds.
func Best(items []Item) Placement {
	bound := Bound(items)
	length := func(i int) int { return items[i].End - items[i].Begin }
	orders := []struct {
		name string
		less func(a, b int) int
	}{
		{"size", func(a, b int) int { return cmp.Compare(items[b].Size, items[a].Size) }},
		{"life", func(a, b int) int { return cmp.Compare(length(b), length(a)) }},
		{"area", func(a, b int) int {
			return cmp.Compare(float64(length(b))*float64(items[b].Size), float64(length(a))*float64(items[a].Size))
		}},
		{"begin", func(a, b int) int { return cmp.Compare(items[a].Begin, items[b].Begin) }},
		{"end", func(a, b int) int { return cmp.Compare(items[b].End, items[a].End) }},
	}
	var best Placement
	for _, o := range orders {
		for _, f := range []fit{lowest, tightest} {
			order := make([]int, len(items))
			for i := range order {
				order[i] = i
			}
			slices.SortStableFunc(order, func(a, b int) int {
				return cmp.Or(o.less(a, b), cmp.Compare(items[b].Size, items[a].Size), cmp.Compare(items[a].Begin, items[b].Begin))
			})
			p := place(items, order, f)
			p.Method = o.name + [...]string{", lowest", ", tightest"}[f]
			if best.Offsets == nil || p.Span < best.Span {
				best = p
			}
			if best.Span == bound {
				return best
			}
		}
	}
	return best
}

// place puts the items down in an order.
func place(items []Item, order []int, f fit) Placement {
	p := Placement{Offsets: make([]uint64, len(items))}
	type placed struct {
		begin, end int
		lo, hi     uint64
	}
	var down []placed  // sorted by lo
	var beside []int32 // those of down that are alive with the item, sorted by lo
	for _, i := range order {
		it := items[i]
		if it.Begin >= it.End || it.Size == 0 {
			continue
		}
		beside = beside[:0]
		for k := range down {
			if down[k].begin < it.End && it.Begin < down[k].end {
				beside = append(beside, int32(k))
			}
		}
		at, gap, floor := uint64(0), uint64(0), uint64(0)
		found := false
		for _, k := range beside {
			if lo := down[k].lo; lo > floor && lo-floor >= it.Size {
				if g := lo - floor; !found || f == tightest && g < gap {
					at, gap, found = floor, g, true
				}
				if f == lowest {
					break
				}
			}
			floor = max(floor, down[k].hi)
		}
		if !found {
			at = floor
		}
		p.Offsets[i] = at
		p.Span = max(p.Span, at+it.Size)
		d := placed{it.Begin, it.End, at, at + it.Size}
		k, _ := slices.BinarySearchFunc(down, d, func(a, b placed) int { return cmp.Compare(a.lo, b.lo) })
		down = slices.Insert(down, k, d)
	}
	return p
}

// Validate says whether no two items alive at the same time overlap, and the span holds all.
func (p Placement) Validate(items []Item) error {
	if len(p.Offsets) != len(items) {
		return fmt.Errorf("packing: %d offsets for %d items", len(p.Offsets), len(items))
	}
	for i, a := range items {
		if a.Begin >= a.End {
			continue
		}
		if p.Offsets[i]+a.Size > p.Span {
			return fmt.Errorf("packing: item %d ends at %d, the span at %d", i, p.Offsets[i]+a.Size, p.Span)
		}
		for j := range i {
			b := items[j]
			if b.Begin < b.End && a.Begin < b.End && b.Begin < a.End && p.Offsets[i] < p.Offsets[j]+b.Size && p.Offsets[j] < p.Offsets[i]+a.Size {
				return fmt.Errorf("packing: items %d and %d overlap", i, j)
			}
		}
	}
	return nil
}
