package pool

import (
	"errors"
	"fmt"
	"log/slog"
	"math/bits"
	"sync"
	"time"

	"vkcompute/vk"
)

// Device is what a manager needs of a device. *vk.Device is one.
type Device interface {
	NewBuffer(vk.BufferSpec) (*vk.Buffer, error)
	Info() vk.DeviceInfo
	HeapUsages() []vk.HeapUsage
}

var _ Device = (*vk.Device)(nil)

// Timeline tells how far the device has come with the submissions of one stream. Serials grow;
// a submission that failed counts as completed.
//
// A manager calls both methods from any goroutine, without a lock of its own. Completed
// must be cheap, must not block and must not call into the pool; a
// stream calls the pool with its own lock held, so neither method may take that lock.
type Timeline interface {
	// Completed returns the last serial known to be complete.
	Completed() uint64
	// Refresh asks the driver first.
	Refresh() (uint64, error)
}

// Access tells what touches a slice first.
type Access uint8

const (
	// NextCommand is a command on the manager's own queue: kernel, copy or fill. The range may
	// still be in use by earlier commands, and a barrier must order the two.
	NextCommand Access = iota
	// NextHost is the host, through the mapping. The range is idle when it is handed out.
	NextHost
)

func (a Access) String() string {
	switch a {
	case NextCommand:
		return "next command"
	case NextHost:
		return "next host"
	}
	return fmt.Sprintf("Access(%d)", uint8(a))
}

// Touch tells when fresh host-visible memory is touched for the first time.
type Touch uint8

const (
	// TouchLate leaves it to whoever uses the memory.
	TouchLate Touch = iota
	// TouchAhead touches each 4 KiB of a coherent page when it is made. On a virtual machine the first touch
	// costs a thousand times a later one, and this moves it out of the launches.
	TouchAhead
)

// DefaultIdlePeriod is [Options.IdlePeriod] if Options say nothing.
const DefaultIdlePeriod = 30 * time.Second

// Options of a manager. The zero value is useful.
type Options struct {
	// Layout to begin with; the zero value is [SubSlices].
	Layout Layout
	// Logger gets the warnings. Nil discards them.
	Logger *slog.Logger
	// IdlePeriod is the disuse after which [Manager.Drain] returns an empty page. There is no timer: a drain
	// looks at the pages when the last look was a period or more ago, and returns those that were empty and unused since.
	// With drains all the time a page goes one to two periods after its last use; with few, at the second look after
	// it; without, never: a stream that does nothing keeps its pages until [Manager.Cleanup].
	// Zero is [DefaultIdlePeriod], negative is never.
	IdlePeriod time.Duration
	// Touch tells when fresh memory is touched.
	Touch Touch
	// PageClosing is called before a page's buffer is closed, with its ID, so that
	// descriptor sets that name it can be dropped. It runs without the manager's lock, in the
	// goroutine whose call let the page go, and must not call that manager.
	PageClosing func(bufferID uint64)
}

// Manager owns the pools of one stream. Its methods, and those of its slices, may be
// called from any goroutine. Create it with [New].
type Manager struct {
	src    source
	tl     Timeline
	limits vk.Limits
	kinds  [roles]kinds
	log    *slog.Logger
	opts   Options
	now    func() time.Time

	align uint64 // of every slice
	atom  uint64 // nonCoherentAtomSize

	mu      sync.Mutex
	layout  Layout
	lists   [3][]*subPool // device, staging, info
	orphans []*subPool
	zero    *page // where slices without bytes lie

	chunks [][]slot // all slots
	unused *slot    // slots to use again
	wheel  wheel
	foreign
	flushes     []pendingFlush
	flushing    int      // flushes taken and not done yet
	closing     []memory // taken out of the books, to be closed without the lock
	creating    int      // pages being made without the lock
	closed      bool
	orphansRipe bool

	heldByGraph int
	heldByCache int
	total       counters
	reserved    uint64
	byHeap      []uint64 // bytes of pages
	pages       int
	lastSweep   time.Time
	recordings  []*recording
	stacks      stacks
}

// New returns a manager whose pools are empty: pages come with the slices.
func New(dev Device, tl Timeline, o Options) (*Manager, error) {
	if dev == nil || tl == nil {
		return nil, errors.New("pool: New wants a device and a timeline")
	}
	info := dev.Info()
	return newManager(device{dev, info}, info.Limits, tl, o)
}

func newManager(src source, limits vk.Limits, tl Timeline, o Options) (*Manager, error) {
	align := max(limits.MinStorageBufferAlignment, minInfoSlot)
	atom := max(limits.NonCoherentAtomSize, 1)
	for _, a := range []uint64{align, atom} {
		if bits.OnesCount64(a) != 1 || a > maxSize {
			return nil, fmt.Errorf("pool: alignment %d of this device: want a power of two", a)
		}
	}
	if err := o.Layout.Validate(); err != nil {
		return nil, err
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.IdlePeriod == 0 {
		o.IdlePeriod = DefaultIdlePeriod
	}
	m := &Manager{
		src: src, tl: tl, limits: limits, kinds: kindsOf(src), log: o.Logger, opts: o, now: time.Now, align: align, atom: atom,
	}
	m.zero = &page{mem: memory{coherent: true, visible: true}, pool: &subPool{}}
	m.lastSweep = m.now()
	m.build(o.Layout)
	return m, nil
}

// build makes the pools of a layout.
func (m *Manager) build(l Layout) {
	m.layout = l.complete()
	for i, specs := range [][]PoolSpec{m.layout.Pools, m.layout.Staging, m.layout.Info} {
		m.lists[i] = make([]*subPool, len(specs))
		for j, s := range specs {
			m.lists[i][j] = &subPool{spec: s}
		}
	}
}

func (m *Manager) list(c class) []*subPool {
	switch c {
	case classUpload, classReadback:
		return m.lists[1]
	case classInfo:
		return m.lists[2]
	}
	return m.lists[0]
}

// Alloc allocates device memory whose next access is a command on the manager's queue.
func (m *Manager) Alloc(size uint64) (Slice, error) { return m.alloc(size, classCommands) }

// AllocRole allocates memory of a role: device memory for commands, staging memory in
// which the host writes or reads, or an info slot.
func (m *Manager) AllocRole(size uint64, role vk.MemoryRole) (Slice, error) {
	return m.AllocFor(size, role, NextCommand)
}

// AllocFor allocates memory of a role and says what touches it first. Only device memory leaves
// a choice: upload, read-back and info memory is for the host, and idle when it is handed out.
func (m *Manager) AllocFor(size uint64, role vk.MemoryRole, next Access) (Slice, error) {
	switch role {
	case vk.DeviceMemory:
		if next == NextHost {
			return m.alloc(size, classHost)
		}
		return m.alloc(size, classCommands)
	case vk.UploadMemory:
		return m.alloc(size, classUpload)
	case vk.ReadbackMemory:
		return m.alloc(size, classReadback)
	case vk.InfoMemory:
		return m.AllocInfo(size)
	}
	return Slice{}, fmt.Errorf("pool: allocate %d bytes: unknown memory role %v", size, role)
}

// AllocInfo allocates an info slot, host-visible and idle. Its buffer holds at least [Manager.InfoRange]
// bytes from the slot's offset. A slot of size zero has a buffer and an offset too.
func (m *Manager) AllocInfo(size uint64) (Slice, error) { return m.alloc(size, classInfo) }

// InfoRange returns the bytes that a descriptor for an info of this size covers: 4096 up to
// that size, then the next power of two. Infos of one range can share a
// descriptor set and differ in the dynamic offset.
func (m *Manager) InfoRange(size uint64) uint64 {
	if size <= infoRange {
		return infoRange
	}
	return 1 << bits.Len64(size-1)
}

// Alignment returns what the offset of every slice is a multiple of.
func (m *Manager) Alignment() uint64 { return m.align }

// Check tells whether a slice is alive and belongs to this manager.
func (m *Manager) Check(s Slice) error {
	switch {
	case s.s == nil:
		return ErrReleased
	case s.s.m != m:
		return ErrForeign
	case !s.Valid():
		return ErrReleased
	}
	return nil
}

// slotBytes returns what a slice of a class takes from the page's point of view, before
// alignment.
func (m *Manager) slotBytes(size uint64, c class) uint64 {
	if c != classInfo {
		return size
	}
	if size > infoRange {
		return m.InfoRange(size)
	}
	return max(size, minInfoSlot)
}

func (m *Manager) alloc(size uint64, c class) (Slice, error) {
	if size > maxSize {
		return Slice{}, &TooLargeError{Wanted: size, Max: maxSize}
	}
	want := m.slotBytes(size, c)
	if c == classInfo && want > infoRange && m.limits.MaxStorageBufferRange > 0 && want > m.limits.MaxStorageBufferRange {
		return Slice{}, &TooLargeError{Wanted: want, Max: m.limits.MaxStorageBufferRange}
	}
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return Slice{}, ErrClosed
	}
	if want == 0 {
		s := m.place(m.zero, 0, 0, 0, 0, 0)
		m.mu.Unlock()
		return s, nil
	}
	s, ok := m.fit(size, want, c)
	m.mu.Unlock()
	if ok {
		return s, nil
	}
	return m.allocSlowly(size, want, c)
}

// fit allocates from the pages there are. The first pool that accepts the size wins; a
// later one is looked at only when the earlier ones are capped and full.
func (m *Manager) fit(size, want uint64, c class) (Slice, bool) {
	for _, p := range m.list(c) {
		if !p.spec.accepts(want) {
			continue
		}
		if s, ok := m.fitIn(p, size, want, c); ok {
			return s, true
		}
		if p.spec.Cap == 0 || p.room() >= m.leastPage(p, want, c) {
			return Slice{}, false
		}
	}
	return Slice{}, false
}

// fitIn allocates from the pages that one pool has.
func (m *Manager) fitIn(p *subPool, size, want uint64, c class) (Slice, bool) {
	if p.spec.Kind == Exclusive {
		return m.fitExclusive(p, size, want, c)
	}
	for _, a := range &p.arenas[c] { // by lot, the better first
		if a == nil {
			continue
		}
		b, ok := a.cut.Alloc(want, a.align)
		if !ok {
			continue
		}
		r, off, span, stamp := a.cut.Range(b)
		return m.place(a.pages[r], off, size, span, stamp, b), true
	}
	return Slice{}, false
}

func (m *Manager) fitExclusive(p *subPool, size, want uint64, c class) (Slice, bool) {
	for _, free := range &p.free[c] {
		if free == nil {
			continue
		}
		key := m.exclusivePage(p, want)
		pg := free[key]
		if pg == nil {
			// Pages made when memory was short have no room to spare.
			key = m.exactPage(want)
			pg = free[key]
		}
		if pg != nil {
			unlinkFree(pg)
			return m.place(pg, 0, size, pg.usable, pg.stamp, 0), true
		}
	}
	return Slice{}, false
}

// pageAlign is what page sizes are multiples of, so that a flush rounded to atoms stays inside the page.
func (m *Manager) pageAlign() uint64 { return max(m.align, m.atom, 256) }

func (m *Manager) exclusivePage(p *subPool, want uint64) uint64 {
	return roundUp(p.spec.bucket(want), m.pageAlign())
}

func (m *Manager) exactPage(want uint64) uint64 { return roundUp(want, m.pageAlign()) }

// leastPage returns the bytes of the smallest page that could hold the slice.
func (m *Manager) leastPage(p *subPool, want uint64, c class) uint64 {
	if p.spec.Kind == Exclusive {
		return m.exactPage(max(want, m.tail(c)))
	}
	return roundUp(roundUp(want, max(m.align, m.atom))+m.tail(c), m.pageAlign())
}

// tail is what a page keeps free at its end: a descriptor of an info slot covers
// a fixed range, however small the slot, and must not reach beyond the buffer.
func (m *Manager) tail(c class) uint64 {
	if c == classInfo {
		return infoRange
	}
	return 0
}

// place makes the slice of a range.
func (m *Manager) place(p *page, off, size, span, stamp uint64, b blockID) Slice {
	sl := m.newSlot()
	sl.page, sl.off, sl.size, sl.block = p, off, size, b
	if sl.lastUse.Load() != stamp {
		sl.lastUse.Store(stamp)
	}
	sl.refs = 1
	p.live++
	p.bytes += size
	p.touched = true
	m.total.add(size, span)
	p.pool.stats.add(size, span)
	m.stacks.record(sl)
	if len(m.recordings) > 0 {
		m.recordAlloc(sl)
	}
	return Slice{s: sl, gen: sl.gen.Load()}
}

// slotChunk is how many slots are made at a time.
const slotChunk = 256

func (m *Manager) newSlot() *slot {
	if m.unused == nil {
		chunk := make([]slot, slotChunk)
		m.chunks = append(m.chunks, chunk)
		for i := range chunk {
			chunk[i].m = m
			chunk[i].page = m.zero
			chunk[i].next = m.unused
			m.unused = &chunk[i]
		}
	}
	sl := m.unused
	m.unused, sl.next = sl.next, nil
	return sl
}
