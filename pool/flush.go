package pool

import (
	"cmp"
	"fmt"
	"slices"

	"vkcompute/vk"
)

// pendingFlush is a range of a page that the host wrote and the device cannot see yet.
type pendingFlush struct {
	page   *page
	lo, hi uint64 // rounded to atoms
}

// Written tells that the host wrote n bytes of the slice at off. On non-coherent memory the flush
// becomes pending, and stays so until [Manager.PendingFlushes] takes it, even if the slice is released
// before. On coherent memory it does nothing.
//
// The flush covers whole atoms (nonCoherentAtomSize). Within one slice the caller must
// see to it that an atom is not written by the host and the device in turn
// without an invalidate in between; atoms of different slices are never shared.
func (s Slice) Written(off, n uint64) error {
	if s.s == nil {
		return fmt.Errorf("report %d bytes written at %d: %w", n, off, ErrReleased)
	}
	p, at, size := s.s.page, s.s.off, s.s.size
	if s.s.gen.Load() != s.gen {
		return fmt.Errorf("report %d bytes written at %d: %w", n, off, ErrReleased)
	}
	if off > size || n > size-off {
		return fmt.Errorf("report %d bytes written at %d: %w of %d bytes", n, off, ErrBounds, size)
	}
	if n == 0 || p == s.s.m.zero {
		return nil
	}
	if !p.mem.visible {
		return fmt.Errorf("report %d bytes written at %d: %w: the host cannot see this memory; write upload memory and copy it", n, off, ErrNotHostWritable)
	}
	if p.mem.coherent {
		return nil
	}
	if !p.class.hostWritten() {
		return fmt.Errorf("report %d bytes written at %d: %w: it was allocated for %v and its memory is not coherent; allocate it with AllocFor and NextHost",
			n, off, ErrNotHostWritable, p.class.role())
	}
	m := s.s.m
	lo := (at + off) &^ (m.atom - 1)
	hi := min(roundUp(at+off+n, m.atom), p.mem.size)
	m.mu.Lock()
	defer m.mu.Unlock()
	// Infos are written one after the other, so most writes extend the last.
	if k := len(m.flushes); k > 0 {
		if f := &m.flushes[k-1]; f.page == p && lo <= f.hi && hi >= f.lo {
			f.lo, f.hi = min(f.lo, lo), max(f.hi, hi)
			return nil
		}
	}
	m.flushes = append(m.flushes, pendingFlush{p, lo, hi})
	return nil
}

// PendingFlushes appends the flushes that are pending to dst and forgets them. The ranges are rounded to
// atoms, disjoint and not adjacent. They belong before the next submission,
// whatever becomes of the batch that caused them. If there are any, [Manager.FlushesDone] must
// follow: until then no page is closed, whoever asks for that meanwhile.
func (m *Manager) PendingFlushes(dst []vk.FlushRange) []vk.FlushRange {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.flushes) == 0 {
		return dst
	}
	slices.SortFunc(m.flushes, func(a, b pendingFlush) int {
		return cmp.Or(cmp.Compare(a.page.mem.id, b.page.mem.id), cmp.Compare(a.lo, b.lo))
	})
	last := m.flushes[0]
	for _, f := range m.flushes[1:] {
		if f.page == last.page && f.lo <= last.hi {
			last.hi = max(last.hi, f.hi)
			continue
		}
		dst = append(dst, last.flushRange())
		last = f
	}
	dst = append(dst, last.flushRange())
	clear(m.flushes)
	m.flushes = m.flushes[:0]
	m.flushing++
	return dst
}

func (f pendingFlush) flushRange() vk.FlushRange {
	return vk.FlushRange{Buffer: f.page.mem.buf, Offset: f.lo, Size: f.hi - f.lo}
}

// FlushesDone ends the flushes that [Manager.PendingFlushes] returned. With an error they are pending
// again, but for ranges of pages that were taken out meanwhile. Without ranges it does nothing.
func (m *Manager) FlushesDone(ranges []vk.FlushRange, err error) {
	if len(ranges) == 0 {
		return
	}
	m.mu.Lock()
	defer m.unlockAndClose()
	m.flushing--
	if err == nil {
		return
	}
	for _, r := range ranges {
		m.eachPage(func(p *page) {
			if p.mem.buf != nil && p.mem.buf == r.Buffer {
				m.flushes = append(m.flushes, pendingFlush{p, r.Offset, r.Offset + r.Size})
			}
		})
	}
}

// InvalidateRange returns what must be invalidated before the host reads n bytes of the
// slice at off, rounded to atoms. needed is false on coherent memory, where nothing must.
func (s Slice) InvalidateRange(off, n uint64) (r vk.FlushRange, needed bool, err error) {
	if s.s == nil {
		return vk.FlushRange{}, false, fmt.Errorf("invalidate %d bytes at %d: %w", n, off, ErrReleased)
	}
	p, at, size := s.s.page, s.s.off, s.s.size
	if s.s.gen.Load() != s.gen {
		return vk.FlushRange{}, false, fmt.Errorf("invalidate %d bytes at %d: %w", n, off, ErrReleased)
	}
	if off > size || n > size-off {
		return vk.FlushRange{}, false, fmt.Errorf("invalidate %d bytes at %d: %w of %d bytes", n, off, ErrBounds, size)
	}
	if p.mem.coherent || n == 0 {
		return vk.FlushRange{}, false, nil
	}
	m := s.s.m
	lo := (at + off) &^ (m.atom - 1)
	hi := min(roundUp(at+off+n, m.atom), p.mem.size)
	return vk.FlushRange{Buffer: p.mem.buf, Offset: lo, Size: hi - lo}, true, nil
}
