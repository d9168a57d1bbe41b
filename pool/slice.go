package pool

import (
	"fmt"
	"math"
	"sync/atomic"
	"unsafe"

	"vkcompute/pool/internal/tlsf"
	"vkcompute/vk"
)

// Holder names who keeps a reference on a slice. It changes nothing about
// the slice; it lets [InUseError] and [LeakError] say whom to ask.
type Holder uint8

const (
	// User is everybody who is not named below.
	User Holder = iota
	// Graph is a recorded graph.
	Graph
	// Cache is a metadata cache.
	Cache
)

func (h Holder) String() string {
	switch h {
	case User:
		return "user"
	case Graph:
		return "graph"
	case Cache:
		return "cache"
	}
	return fmt.Sprintf("Holder(%d)", uint8(h))
}

// Slice is a reference on a range of a page. It is a small value, may be copied
// and compared, and is checked at every use: two equal slices are the same range in
// the same life. The zero Slice is invalid. See the package documentation for its life.
type Slice struct {
	s   *slot
	gen uint32
}

// slot is what a Slice points to. Slots are never freed, only used again
// under the next generation, so a stale Slice always has something to compare with.
//
// gen may be read at any time. page, off and size are written while no valid Slice exists,
// so whoever holds a reference may read them without the lock. lastUse is raised without the lock. The
// rest belongs to the manager's lock. The size is one cache line, which is what
// the speed of an allocator with many live slices depends on.
type slot struct {
	m       *Manager
	page    *page
	off     uint64
	size    uint64 // as asked for
	lastUse atomic.Uint64
	next    *slot // in the list of unused or of waiting slots
	gen     atomic.Uint32
	refs    uint32 // of all holders
	block   tlsf.Block
	holds   holds
}

const _ = uint(64 - unsafe.Sizeof(slot{})) // one cache line

// holds counts the references of graphs (24 bits) and caches (7 bits), and has one bit
// that says whether other timelines stamped the slice.
type holds uint32

const (
	graphMax            = 1<<24 - 1
	cacheUnit     holds = 1 << 24
	cacheMax            = 1<<7 - 1
	foreignStamps holds = 1 << 31
)

func (h holds) graphs() uint32 { return uint32(h & graphMax) }
func (h holds) caches() uint32 { return uint32(h>>24) & cacheMax }
func (h holds) foreign() bool  { return h&foreignStamps != 0 }

// Valid reports whether the slice is alive.
func (s Slice) Valid() bool { return s.s != nil && s.s.gen.Load() == s.gen }

// Manager returns the manager that the slice came from, also when it is released; nil for the zero Slice.
func (s Slice) Manager() *Manager {
	if s.s == nil {
		return nil
	}
	return s.s.m
}

// Range returns what a descriptor or a copy needs, in one check. The buffer
// is nil for a zero-size slice. ok is false when the slice is not alive.
func (s Slice) Range() (buf *vk.Buffer, off, size uint64, ok bool) {
	if s.s == nil {
		return nil, 0, 0, false
	}
	p, off, size := s.s.page, s.s.off, s.s.size
	if s.s.gen.Load() != s.gen {
		return nil, 0, 0, false
	}
	return p.mem.buf, off, size, true
}

// Buffer returns the buffer that the slice lies in. It is nil for a zero-size slice (info slots
// excepted) and for one that is not alive.
func (s Slice) Buffer() *vk.Buffer {
	buf, _, _, _ := s.Range()
	return buf
}

// Offset returns where in the buffer the slice begins, in bytes.
func (s Slice) Offset() uint64 {
	_, off, _, _ := s.Range()
	return off
}

// Size returns the bytes that were asked for.
func (s Slice) Size() uint64 {
	_, _, size, _ := s.Range()
	return size
}

// Page returns a number that tells the pages of a manager apart: the [vk.Buffer.ID] of the buffer where
// there is one, 0 for a slice that lies on no page or is not alive.
func (s Slice) Page() uint64 {
	if s.s == nil {
		return 0
	}
	id := s.s.page.mem.id
	if s.s.gen.Load() != s.gen {
		return 0
	}
	return id
}

// Role returns the kind of memory of the slice.
func (s Slice) Role() vk.MemoryRole {
	if !s.Valid() {
		return vk.DeviceMemory
	}
	return s.s.page.class.role()
}

// Mapped returns the bytes of the slice as the host sees them: memory of the driver, not of Go, valid
// while the caller holds a reference. It is nil when the memory is not mapped,
// and when the slice was allocated for commands on non-coherent memory, where a
// flush of host writes could overwrite what the device wrote beside them.
//
// The host may touch the bytes only when [Slice.Idle] says so, and must
// report its writes with [Slice.Written].
func (s Slice) Mapped() []byte {
	if s.s == nil {
		return nil
	}
	p, off, size := s.s.page, s.s.off, s.s.size
	if s.s.gen.Load() != s.gen || p.mem.mapped == nil || !p.hostVisible() {
		return nil
	}
	return p.mem.mapped[off : off+size : off+size]
}

// Coherent reports whether host writes need no flush and host reads no invalidate.
func (s Slice) Coherent() bool { return s.Valid() && s.s.page.mem.coherent }

// LastUse returns the latest serial that the range is needed until: of the uses stamped with [Slice.Use]
// and, when the range was handed out again before its last owner's commands had run, of that owner's.
func (s Slice) LastUse() uint64 {
	if !s.Valid() {
		return 0
	}
	return s.s.lastUse.Load()
}

// Idle reports whether no command that was stamped may still touch the range, so
// that the host may. It asks the timelines for what they know, not the driver.
func (s Slice) Idle() bool {
	if !s.Valid() {
		return true
	}
	m := s.s.m
	if s.s.lastUse.Load() > m.tl.Completed() {
		return false
	}
	return m.foreignIdle(s)
}

// Use stamps the slice: the range is needed until the serial completes on the
// manager's timeline. Serials of batches not yet submitted are welcome. It takes no lock.
func (s Slice) Use(serial uint64) error {
	if !s.Valid() {
		return fmt.Errorf("use at serial %d: %w", serial, ErrReleased)
	}
	for {
		old := s.s.lastUse.Load()
		if old >= serial || s.s.lastUse.CompareAndSwap(old, serial) {
			return nil
		}
	}
}

// Retain adds a reference.
func (s Slice) Retain() error { return s.RetainAs(User) }

// RetainAs adds a reference for a holder, who gives it back with [Slice.ReleaseAs].
func (s Slice) RetainAs(h Holder) error {
	if s.s == nil {
		return fmt.Errorf("retain for %v: %w", h, ErrReleased)
	}
	m := s.s.m
	m.mu.Lock()
	err := m.retain(s, h)
	m.mu.Unlock()
	if err != nil {
		return fmt.Errorf("retain for %v: %w", h, err)
	}
	return nil
}

// HandOver changes whose reference one of the references is.
func (s Slice) HandOver(from, to Holder) error {
	if s.s == nil {
		return fmt.Errorf("hand over from %v to %v: %w", from, to, ErrReleased)
	}
	m := s.s.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.retain(s, to); err != nil {
		return fmt.Errorf("hand over from %v to %v: %w", from, to, err)
	}
	if err := m.drop(s, from); err != nil {
		_ = m.drop(s, to) // the reference added above, so this cannot fail
		return fmt.Errorf("hand over from %v to %v: %w", from, to, err)
	}
	return nil
}

// retain adds a reference under the lock.
func (m *Manager) retain(s Slice, h Holder) error {
	sl := s.s
	switch {
	case sl.gen.Load() != s.gen:
		return ErrReleased
	case sl.refs == math.MaxUint32,
		h == Graph && sl.holds.graphs() == graphMax,
		h == Cache && sl.holds.caches() == cacheMax:
		return ErrTooManyReferences
	}
	switch h {
	case User:
	case Graph:
		if sl.holds.graphs() == 0 {
			m.heldByGraph++
		}
		sl.holds++
	case Cache:
		if sl.holds.caches() == 0 {
			m.heldByCache++
		}
		sl.holds += cacheUnit
	default:
		return fmt.Errorf("%w: unknown holder %v", ErrNotHeld, h)
	}
	sl.refs++
	return nil
}

// drop takes a reference away under the lock, without looking at whether it was the last.
func (m *Manager) drop(s Slice, h Holder) error {
	sl := s.s
	if sl.gen.Load() != s.gen {
		return ErrReleased
	}
	switch h {
	case User:
		if sl.refs <= sl.holds.graphs()+sl.holds.caches() {
			return ErrNotHeld
		}
	case Graph:
		if sl.holds.graphs() == 0 {
			return ErrNotHeld
		}
		sl.holds--
		if sl.holds.graphs() == 0 {
			m.heldByGraph--
		}
	case Cache:
		if sl.holds.caches() == 0 {
			return ErrNotHeld
		}
		sl.holds -= cacheUnit
		if sl.holds.caches() == 0 {
			m.heldByCache--
		}
	default:
		return fmt.Errorf("%w: unknown holder %v", ErrNotHeld, h)
	}
	sl.refs--
	return nil
}

// Release gives a reference back. The last one ends the slice's life and
// retires its range.
func (s Slice) Release() error { return s.ReleaseAs(User) }

// ReleaseAs gives a holder's reference back.
func (s Slice) ReleaseAs(h Holder) error {
	if s.s == nil {
		return fmt.Errorf("release by %v: %w", h, ErrReleased)
	}
	m := s.s.m
	m.mu.Lock()
	err := m.drop(s, h)
	if err == nil && s.s.refs == 0 {
		if len(m.recordings) > 0 {
			m.recordRelease(s.s)
		}
		m.retire(s.s)
	}
	ripe := m.orphansRipe || m.closed && len(m.parked) > 0
	m.mu.Unlock()
	if err != nil {
		return fmt.Errorf("release by %v: %w", h, err)
	}
	if ripe {
		m.Drain()
	}
	return nil
}
