package cmdbuf

import (
	"fmt"
	"sort"

	"vkcompute/shaders"
	"vkcompute/vk"
)

// hazards decides where a barrier goes. It keeps the byte ranges bound for reading and
// writing since the last barrier. A command that conflicts with them (read after write,
// write after write, write after read) needs a barrier first; one global barrier orders
// everything before it with everything after, so the ranges then start anew.
//
// Ranges are those of the buffer, not of slices: a slice released and handed out again
// within a batch is the same bytes under another name.
type hazards struct {
	buffers map[uint64]*accesses // by vk.Buffer.ID
	dirty   []*accesses          // those with ranges since the last barrier
}

type accesses struct {
	read, written spans
	listed        bool
}

func newHazards() hazards { return hazards{buffers: map[uint64]*accesses{}} }

// of returns the record of a buffer.
func (h *hazards) of(buffer uint64) *accesses {
	a := h.buffers[buffer]
	if a == nil {
		a = &accesses{}
		h.buffers[buffer] = a
	}
	return a
}

// conflict tells whether an access to bytes lo to hi (exclusive) must wait for an earlier one.
func (h *hazards) conflict(buffer, lo, hi uint64, access shaders.Access) bool {
	a := h.buffers[buffer]
	if a == nil || !a.listed {
		return false
	}
	return a.written.overlap(lo, hi) || access&shaders.Write != 0 && a.read.overlap(lo, hi)
}

// note records an access after the barrier it may have needed.
func (h *hazards) note(buffer, lo, hi uint64, access shaders.Access) {
	a := h.of(buffer)
	if !a.listed {
		a.listed = true
		h.dirty = append(h.dirty, a)
	}
	if access&shaders.Read != 0 {
		a.read.add(lo, hi)
	}
	if access&shaders.Write != 0 {
		a.written.add(lo, hi)
	}
}

// clear forgets all ranges: everything before is ordered with everything after.
func (h *hazards) clear() {
	for _, a := range h.dirty {
		a.read, a.written, a.listed = a.read[:0], a.written[:0], false
	}
	h.dirty = h.dirty[:0]
}

// forget drops the record of a buffer that is gone. Nothing pending names it.
func (h *hazards) forget(buffer uint64) {
	a := h.buffers[buffer]
	if a == nil {
		return
	}
	delete(h.buffers, buffer)
	for i, d := range h.dirty {
		if d == a {
			h.dirty = append(h.dirty[:i], h.dirty[i+1:]...)
			return
		}
	}
}

// Validate checks the invariants.
func (h *hazards) Validate() error {
	listed := map[*accesses]bool{}
	for _, a := range h.dirty {
		if listed[a] {
			return fmt.Errorf("hazards: a buffer is listed twice")
		}
		listed[a] = true
	}
	for id, a := range h.buffers {
		if a.listed != listed[a] {
			return fmt.Errorf("hazards: buffer %d: listed %v, in the list %v", id, a.listed, listed[a])
		}
		if !a.listed && len(a.read)+len(a.written) > 0 {
			return fmt.Errorf("hazards: buffer %d has ranges from before the last barrier", id)
		}
		for _, s := range []spans{a.read, a.written} {
			if err := s.Validate(); err != nil {
				return fmt.Errorf("hazards: buffer %d: %w", id, err)
			}
		}
	}
	return nil
}

// The two sides of the one kind of barrier between commands: every earlier access of a
// shader or a transfer happens before every later one, and earlier writes are visible to
// it and to indirect arguments. Reads need no visibility, only the order, so the first
// side names writes alone.
var (
	barrierFrom = vk.Scope{Stages: vk.StageCompute | vk.StageTransfer, Access: vk.AccessShaderWrite | vk.AccessTransferWrite}
	barrierTo   = vk.Scope{Stages: vk.StageCompute | vk.StageTransfer | vk.StageIndirect,
		Access: vk.AccessShaderRead | vk.AccessShaderWrite | vk.AccessTransferRead | vk.AccessTransferWrite | vk.AccessIndirectRead}
	// hostReads makes writes visible to a host that waits for the submission.
	hostReads = vk.Scope{Stages: vk.StageHost, Access: vk.AccessHostRead}
	// A graph begins after whatever ran before it, and what follows can rely on it.
	graphBegin = vk.Scope{Stages: barrierTo.Stages, Access: barrierFrom.Access}
	graphEnd   = vk.Scope{Stages: barrierTo.Stages | hostReads.Stages, Access: barrierTo.Access | hostReads.Access}
)

// span is the bytes from lo up to, not including, hi.
type span struct{ lo, hi uint64 }

// spans is a set of bytes: ascending, disjoint and not adjacent.
type spans []span

// from is the index of the first span that ends at or after x.
func (s spans) from(x uint64) int {
	if n := len(s); n == 0 || s[n-1].hi < x {
		return n // the common case of ranges that come in order
	}
	return sort.Search(len(s), func(i int) bool { return s[i].hi >= x })
}

func (s spans) overlap(lo, hi uint64) bool {
	i := s.from(lo)
	if i < len(s) && s[i].hi == lo {
		i++ // touches, does not overlap
	}
	return i < len(s) && s[i].lo < hi
}

func (s *spans) add(lo, hi uint64) {
	if lo >= hi {
		return
	}
	v := *s
	i := v.from(lo)
	j := i
	for j < len(v) && v[j].lo <= hi {
		lo, hi = min(lo, v[j].lo), max(hi, v[j].hi)
		j++
	}
	switch {
	case j == i:
		v = append(v, span{})
		copy(v[i+1:], v[i:])
	case j > i+1:
		v = append(v[:i+1], v[j:]...)
	}
	v[i] = span{lo, hi}
	*s = v
}

// Validate checks order and gaps.
func (s spans) Validate() error {
	for i, x := range s {
		if x.lo >= x.hi || i > 0 && s[i-1].hi >= x.lo {
			return fmt.Errorf("span %d of %v is empty, out of order or adjacent", i, s)
		}
	}
	return nil
}
