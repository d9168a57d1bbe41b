package pool

import (
	"errors"
	"fmt"
	"math"
	"reflect"

	"vkcompute/pool/internal/tlsf"
	"vkcompute/vk"
)

type blockID = tlsf.Block

// wheel holds the slots of released slices whose serials have not completed, by
// serial. Serials are dense, so a wheel finds what a newly completed serial sets free
// without looking at the rest; a slot whose serial is further away than the wheel is long is looked
// at once a turn.
type wheel struct {
	heads   [wheelSize]*slot
	count   int
	drained uint64 // every slot up to this serial has been taken out
	latest  uint64 // the latest serial that was put in
}

const (
	wheelSize = 256
	// everySerial stands for "all that ever were and will be" once the device is lost.
	everySerial = math.MaxUint64
)

func (w *wheel) put(sl *slot, serial uint64) {
	h := &w.heads[serial%wheelSize]
	sl.next = *h
	*h = sl
	w.count++
	w.latest = max(w.latest, serial)
}

// foreign keeps the stamps of other streams' timelines. Sharing a slice
// between streams is rare, so the stamps live beside the slots, not in them.
type foreign struct {
	stamps map[*slot][]foreignStamp
	parked []*slot // released slices that other timelines still use
}

type foreignStamp struct {
	timeline Timeline
	serial   uint64
}

// UseOn stamps the slice with a serial of another stream's timeline, a pointer. Once released, the range waits
// for that serial whatever its next access is: no barrier orders commands of different queues.
func (s Slice) UseOn(tl Timeline, serial uint64) error {
	if s.s == nil {
		return fmt.Errorf("use at serial %d of another timeline: %w", serial, ErrReleased)
	}
	// Timelines are compared, and comparing anything but pointers may panic.
	if t := reflect.TypeOf(tl); t == nil || t.Kind() != reflect.Pointer {
		return fmt.Errorf("pool: use at serial %d: timeline of type %T; want a pointer", serial, tl)
	}
	m := s.s.m
	if tl == m.tl {
		return s.Use(serial)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.s.gen.Load() != s.gen {
		return fmt.Errorf("use at serial %d of another timeline: %w", serial, ErrReleased)
	}
	if s.s.page == m.zero {
		return nil
	}
	if m.stamps == nil {
		m.stamps = make(map[*slot][]foreignStamp)
	}
	s.s.holds |= foreignStamps
	list := m.stamps[s.s]
	for i := range list {
		if list[i].timeline == tl {
			list[i].serial = max(list[i].serial, serial)
			return nil
		}
	}
	m.stamps[s.s] = append(list, foreignStamp{tl, serial})
	return nil
}

// foreignIdle reports whether the serials of other timelines have completed. The timelines are asked without the lock.
func (m *Manager) foreignIdle(s Slice) bool {
	m.mu.Lock()
	if s.s.gen.Load() != s.gen || !s.s.holds.foreign() {
		m.mu.Unlock()
		return true
	}
	list := append([]foreignStamp(nil), m.stamps[s.s]...)
	m.mu.Unlock()
	for _, st := range list {
		if st.timeline.Completed() < st.serial {
			return false
		}
	}
	return true
}

// retire ends the life of a slice whose last reference is gone. Its range is
// free at once if nothing is known to need it, or if what comes next is a command
// on the same queue; else it waits for its serials. The timeline is not asked, because it is not the pool's
// and must not be called under the lock; the next drain asks it.
func (m *Manager) retire(sl *slot) {
	sl.gen.Store(sl.gen.Load() + 1)
	m.stacks.forget(sl)
	p := sl.page
	p.live--
	p.bytes -= sl.size
	p.touched = true
	span := m.span(sl)
	m.total.remove(sl.size, span)
	p.pool.stats.remove(sl.size, span)
	if p == m.zero {
		m.reuse(sl)
		return
	}
	if sl.holds.foreign() {
		m.parked = append(m.parked, sl)
		m.wait(p, span)
		return
	}
	use := sl.lastUse.Load()
	if p.class.early() || use <= m.wheel.drained {
		m.freeRange(sl, use)
		return
	}
	m.wheel.put(sl, use)
	m.wait(p, span)
}

func (m *Manager) wait(p *page, span uint64) {
	p.waiting++
	m.total.wait(span)
	p.pool.stats.wait(span)
}

func (m *Manager) stopWaiting(sl *slot) {
	p, span := sl.page, m.span(sl)
	p.waiting--
	m.total.stopWaiting(span)
	p.pool.stats.stopWaiting(span)
}

// span returns the bytes that a slice occupies, padding included.
func (m *Manager) span(sl *slot) uint64 {
	p := sl.page
	if p.arena == nil {
		return p.usable
	}
	_, _, n, _ := p.arena.cut.Range(sl.block)
	return n
}

// freeRange gives a range back to its page, stamped with the serial until
// which commands may still use it.
func (m *Manager) freeRange(sl *slot, stamp uint64) {
	p := sl.page
	if stamp <= m.wheel.drained {
		stamp = 0
	}
	p.stamp = max(p.stamp, stamp)
	if p.arena != nil {
		// The block is in use by construction; Validate would tell otherwise.
		_ = p.arena.cut.Free(sl.block, stamp)
	} else {
		linkFree(p)
	}
	if p.pool.orphan && p.empty() {
		m.orphansRipe = true
	}
	m.reuse(sl)
}

// reuse makes a slot available again. A slot whose generations are used up stays out of use: the
// next one would make its oldest slices valid again.
func (m *Manager) reuse(sl *slot) {
	sl.page, sl.holds, sl.block = m.zero, 0, 0
	if sl.gen.Load() == math.MaxUint32 {
		return
	}
	sl.next = m.unused
	m.unused = sl
}

// drain frees the ranges that waited for serials up to done.
func (m *Manager) drain(done uint64) {
	w := &m.wheel
	if done <= w.drained {
		return
	}
	from := w.drained
	w.drained = done
	if w.count == 0 {
		return
	}
	for i := range min(done-from, wheelSize) {
		h := &w.heads[(from+1+i)%wheelSize]
		var later *slot
		for sl := *h; sl != nil; {
			next := sl.next
			if sl.lastUse.Load() <= done {
				w.count--
				m.stopWaiting(sl)
				m.freeRange(sl, 0)
			} else {
				sl.next = later
				later = sl
			}
			sl = next
		}
		*h = later
	}
}

// ask says how timelines are asked for their progress.
type ask uint8

const (
	whatIsKnown ask = iota // without a call of the driver
	theDriver              // since nobody else may ask for a stream that does nothing any more
)

func (a ask) progress(tl Timeline) uint64 {
	if a == theDriver {
		if done, err := refreshed(tl); err == nil {
			return done
		}
	}
	return tl.Completed()
}

// lockSettled frees the ranges that waited for serials up to done, and those that waited for other
// timelines and need not any more. It takes the lock and returns with it held; the other timelines are asked
// without it.
func (m *Manager) lockSettled(done uint64, a ask) {
	m.mu.Lock()
	m.drain(done)
	if len(m.parked) == 0 {
		return
	}
	reached := make(map[Timeline]uint64)
	for _, sl := range m.parked {
		for _, st := range m.stamps[sl] {
			reached[st.timeline] = 0
		}
	}
	m.mu.Unlock()
	for tl := range reached {
		reached[tl] = a.progress(tl)
	}
	m.mu.Lock()
	kept := m.parked[:0]
	for _, sl := range m.parked {
		if !m.foreignDone(sl, reached) {
			kept = append(kept, sl)
			continue
		}
		delete(m.stamps, sl)
		use := sl.lastUse.Load()
		if sl.page.class.early() || use <= m.wheel.drained {
			m.stopWaiting(sl)
			m.freeRange(sl, use)
		} else {
			m.wheel.put(sl, use)
		}
	}
	clear(m.parked[len(kept):])
	m.parked = kept
}

func (m *Manager) foreignDone(sl *slot, reached map[Timeline]uint64) bool {
	if m.wheel.drained == everySerial {
		return true // the device is lost, for all timelines
	}
	for _, st := range m.stamps[sl] {
		if r, ok := reached[st.timeline]; !ok || r < st.serial {
			return false
		}
	}
	return true
}

// refreshed asks the driver how far it is. A lost device runs nothing any more, so
// nothing waits for it: its memory can be returned, and it must be, before it is closed.
func refreshed(tl Timeline) (uint64, error) {
	done, err := tl.Refresh()
	if errors.Is(err, vk.ErrDeviceLost) {
		return everySerial, nil
	}
	return done, err
}

// Drain moves the ranges of released slices whose serials have completed back to their
// pages, and returns pages that were empty for longer than the idle period. Streams call it after they learned
// that a serial completed. It never waits.
func (m *Manager) Drain() { m.drainTo(m.tl.Completed(), whatIsKnown) }

func (m *Manager) drainTo(done uint64, a ask) {
	m.lockSettled(done, a)
	m.sweepOrphans()
	m.sweepIdle()
	m.unlockAndClose()
}
