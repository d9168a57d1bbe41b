package metacache

import (
	"cmp"
	"slices"
)

// lateUses remembers the entries that were hit since the recency lists were
// last in order. Moving an entry to the front of its list costs a hit three
// more cache lines; a launch loop hits the same few entries again and again,
// and nobody looks at the order until a store has to evict or a capture ends.
// So a hit only stamps its entry and, the first time, notes it here, and the
// lists are put in order, exactly, when that is needed or the room is used up.
//
// The idea of recording hits and replaying them in batches is BP-Wrapper's
// (Ding, Jiang, Zhang: "BP-Wrapper: A System Framework Making Any Replacement
// Algorithms (Almost) Lock Contention Free", ICDE 2009); the stamps are ours
// and make a repeated hit free.
type lateUses[V any] struct {
	len int
	// uses holds the entries that are late, each once.
	uses [lateRoom]lateUse[V]
	// again is room for settle to sort in.
	again [lateRoom]lateUse[V]
}

// lateRoom bounds the time that putting the lists in order can take. A program
// that goes round more infos than this pays about five nanoseconds more a hit.
const lateRoom = 512

type lateUse[V any] struct {
	entry *entry[V]
	// stamp is the time of the use that was noted. If it is still the entry's,
	// the note is in order; else the entry was hit again later.
	stamp uint64
}

// postpone notes e, which is about to be stamped with the next time.
func (c *Cache[V]) postpone(e *entry[V]) {
	if c.late.len == lateRoom {
		c.settle()
	}
	c.late.uses[c.late.len] = lateUse[V]{e, c.clock + 1}
	c.late.len++
	e.late = true
}

// settle puts the recency lists in order. Every operation but a hit in Normal
// mode does so first.
func (c *Cache[V]) settle() {
	if c.late.len == 0 {
		return
	}
	var (
		uses  = c.late.uses[:c.late.len]
		once  = uses[:0]
		again = c.late.again[:0]
	)
	for _, u := range uses {
		u.entry.late = false
		if u.entry.stamp == u.stamp {
			once = append(once, u)
		} else {
			again = append(again, lateUse[V]{u.entry, u.entry.stamp})
		}
	}
	slices.SortFunc(again, func(a, b lateUse[V]) int { return cmp.Compare(a.stamp, b.stamp) })
	i, j := 0, 0
	for i < len(once) || j < len(again) {
		if j == len(again) || i < len(once) && once[i].stamp < again[j].stamp {
			c.list(once[i].entry).moveToFront(once[i].entry)
			i++
		} else {
			c.list(again[j].entry).moveToFront(again[j].entry)
			j++
		}
	}
	clear(uses)
	clear(again)
	c.late.len = 0
}
