package pool

import (
	"errors"
	"fmt"
	"log/slog"
	"math/bits"

	"vkcompute/pool/internal/tlsf"
	"vkcompute/vk"
)

// allocSlowly is for a slice that the pages do not hold: it frees what waited and is
// done, returns to the pages, and only then makes a page. Reuse comes
// before growth, because fresh memory costs far more than a question to the driver.
func (m *Manager) allocSlowly(size, want uint64, c class) (Slice, error) {
	m.drainTo(m.tl.Completed())
	if s, ok, err := m.tryAgain(size, want, c); ok || err != nil {
		return s, err
	}
	m.mu.Lock()
	waiting := m.wheel.count > 0 || len(m.parked) > 0
	m.mu.Unlock()
	if waiting {
		if done, err := m.refresh(); err == nil {
			m.drainTo(done)
		}
		if s, ok, err := m.tryAgain(size, want, c); ok || err != nil {
			return s, err
		}
	}
	return m.grow(size, want, c)
}

func (m *Manager) tryAgain(size, want uint64, c class) (Slice, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return Slice{}, false, ErrClosed
	}
	s, ok := m.fit(size, want, c)
	return s, ok, nil
}

// grow makes a page for the slice. The pools that accept the size are tried in order. When the
// driver has no memory, empty pages of all pools are returned and it is asked once
// more; after that only smaller pages are asked for.
func (m *Manager) grow(size, want uint64, c class) (Slice, error) {
	fail := &OutOfMemoryError{Wanted: size}
	accepted := false
	least := uint64(maxSize) // the smallest page that was refused
	for i := 0; ; i++ {
		m.mu.Lock()
		list := m.list(c)
		if i >= len(list) {
			m.mu.Unlock()
			break
		}
		p := list[i]
		if !p.spec.accepts(want) {
			m.mu.Unlock()
			continue
		}
		accepted = true
		fail.Pool = p.spec.Name
		pageSize := m.planPage(p, want, c)
		need := m.leastPage(p, want, c)
		room := p.room()
		warn := room < need && !p.warned
		if warn {
			p.warned = true
		}
		m.mu.Unlock()
		if room < need {
			fail.Budget = p.spec.Cap
			if warn {
				m.log.Warn("pool is full, spilling to the next",
					slog.String("pool", p.spec.Name), slog.Uint64("cap", p.spec.Cap), slog.Uint64("wanted", size))
			}
			continue
		}
		if least <= need {
			continue
		}
		pageSize = min(pageSize, room&^(m.pageAlign()-1))
		s, err := m.growIn(p, pageSize, need, size, want, c)
		if errors.Is(err, errReplaced) {
			return m.allocSlowly(size, want, c)
		}
		var oom *noMemoryError
		if !errors.As(err, &oom) {
			return s, err
		}
		fail.Cause = oom.cause
		least = min(least, oom.least)
	}
	if !accepted {
		return Slice{}, m.tooLarge(want, c)
	}
	m.mu.Lock()
	fail.InUse, fail.Reserved = m.total.inUse, m.reserved
	m.mu.Unlock()
	return Slice{}, fail
}

// noMemoryError says that the driver refused every page down to least bytes.
type noMemoryError struct {
	least uint64
	cause error
}

func (e *noMemoryError) Error() string {
	return fmt.Sprintf("no page of %d bytes: %v", e.least, e.cause)
}

// errReplaced says that the layout was replaced while a page was planned.
var errReplaced = errors.New("pool: layout was replaced")

// growIn makes a page in one pool, of pageSize bytes or, when memory is short, fewer, but not fewer than need.
func (m *Manager) growIn(p *subPool, pageSize, need, size, want uint64, c class) (Slice, error) {
	cleaned := false
	for {
		s, err := m.makePage(p, pageSize, size, want, c)
		if err == nil || !outOfMemory(err) {
			return s, err
		}
		if !cleaned {
			cleaned = true
			m.Cleanup()
			// Another goroutine, or the cleanup, may have left room in a page.
			if s, ok, err := m.tryAgain(size, want, c); ok || err != nil {
				return s, err
			}
			continue
		}
		if pageSize <= need {
			return Slice{}, &noMemoryError{least: pageSize, cause: err}
		}
		pageSize = max(need, (pageSize/2)&^(m.pageAlign()-1))
	}
}

// outOfMemory reports whether a smaller page, or fewer of them, could help.
func outOfMemory(err error) bool {
	var limit *vk.LimitError
	return errors.Is(err, vk.ErrOutOfDeviceMemory) || errors.Is(err, vk.ErrOutOfHostMemory) || errors.As(err, &limit)
}

// makePage makes one page, without the lock while the driver works, and allocates the slice from it.
func (m *Manager) makePage(p *subPool, pageSize, size, want uint64, c class) (Slice, error) {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return Slice{}, ErrClosed
	}
	if p.orphan {
		m.mu.Unlock()
		return Slice{}, errReplaced
	}
	if p.room() < pageSize {
		// Another goroutine took the room since it was planned. This says
		// nothing about what the driver has.
		m.mu.Unlock()
		return Slice{}, &noMemoryError{least: maxSize, cause: fmt.Errorf("pool %q is full at its cap of %d bytes", p.spec.Name, p.spec.Cap)}
	}
	p.claimed += pageSize
	m.creating++
	m.mu.Unlock()

	mem, err := m.src.newMemory(vk.BufferSpec{Size: pageSize, Role: c.role(), Name: "pool " + p.spec.Name})
	if err == nil && m.opts.Touch == TouchAhead && mem.coherent {
		// Not on other memory: dirty cache lines of the host could be
		// written back over what the device writes later.
		touch(mem.mapped)
	}

	m.mu.Lock()
	p.claimed -= pageSize
	m.creating--
	if err != nil {
		m.mu.Unlock()
		return Slice{}, err
	}
	if m.closed {
		m.closing = append(m.closing, mem)
		m.unlockAndClose()
		return Slice{}, ErrClosed
	}
	pg, err := m.addPage(p, mem, c)
	if err != nil {
		m.closing = append(m.closing, mem)
		m.unlockAndClose()
		return Slice{}, err
	}
	var s Slice
	ok := true
	if p.spec.Kind == Exclusive {
		s = m.place(pg, 0, size, pg.usable, 0, 0)
	} else {
		s, ok = m.fitIn(p, size, want, c)
	}
	m.mu.Unlock()
	if !ok {
		return Slice{}, fmt.Errorf("pool: a new page of %d bytes does not hold a slice of %d", pageSize, want)
	}
	return s, nil
}

// touch writes to each 4 KiB of fresh memory, whose content is undefined anyway.
func touch(b []byte) {
	for i := 0; i < len(b); i += 4 * kib {
		b[i] = 0
	}
}

// addPage puts fresh memory into a pool.
func (m *Manager) addPage(p *subPool, mem memory, c class) (*page, error) {
	pg := &page{mem: mem, class: c, pool: p, index: len(p.pages), touched: true}
	if p.spec.Kind == Exclusive {
		pg.usable = mem.size
		if p.free[c] == nil {
			p.free[c] = make(map[uint64]*page)
		}
	} else {
		a, err := m.arenaFor(p, c, mem.coherent)
		if err != nil {
			return nil, err
		}
		pg.usable = mem.size - min(mem.size, m.tail(c))
		area, err := a.cut.AddRegion(pg.usable)
		if err != nil {
			return nil, err
		}
		for len(a.pages) <= int(area) {
			a.pages = append(a.pages, nil)
		}
		a.pages[area] = pg
		pg.arena, pg.area = a, area
	}
	p.pages = append(p.pages, pg)
	p.reserved += mem.size
	m.reserved += mem.size
	m.pages++
	p.stats.addPage(mem.size)
	m.total.addPage(mem.size)
	return pg, nil
}

// arenaFor returns the arena of a class. On non-coherent memory that the host writes each slice has its
// atoms to itself: the flush of one never covers bytes of another.
func (m *Manager) arenaFor(p *subPool, c class, coherent bool) (*arena, error) {
	if a := p.arenas[c][lot(coherent)]; a != nil {
		return a, nil
	}
	align := m.align
	if !coherent && c.hostWritten() {
		align = max(align, m.atom)
	}
	cut, err := tlsf.New(align)
	if err != nil {
		return nil, err
	}
	a := &arena{cut: cut, align: align}
	p.arenas[c][lot(coherent)] = a
	return a, nil
}

// planPage returns the size of the pool's next page. Pages grow with the pool, so
// that their number stays small against the limit on allocations.
func (m *Manager) planPage(p *subPool, want uint64, c class) uint64 {
	if p.spec.Kind == Exclusive {
		return max(m.exclusivePage(p, want), m.exactPage(m.tail(c)))
	}
	n := p.spec.PageSize
	if grown := p.reserved / 2; grown > n {
		n = min(1<<(bits.Len64(grown)-1), p.spec.MaxPageSize)
		n = max(n, p.spec.PageSize)
	}
	return max(roundUp(n, m.pageAlign()), m.leastPage(p, want, c))
}

func (m *Manager) tooLarge(want uint64, c class) error {
	e := &TooLargeError{Wanted: want}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.list(c) {
		e.Max = max(e.Max, p.spec.MaxSlice)
	}
	return e
}

// removePage takes an empty page out of the books. Its memory is closed by unlockAndClose.
func (m *Manager) removePage(pg *page) {
	p := pg.pool
	if pg.arena != nil {
		// The page is empty, so its region is; Validate would tell otherwise.
		_ = pg.arena.cut.RemoveRegion(pg.area)
		pg.arena.pages[pg.area] = nil
	} else {
		unlinkFree(p.free[pg.class], pg)
	}
	last := len(p.pages) - 1
	p.pages[pg.index] = p.pages[last]
	p.pages[pg.index].index = pg.index
	p.pages[last] = nil
	p.pages = p.pages[:last]
	p.reserved -= pg.mem.size
	m.reserved -= pg.mem.size
	m.pages--
	p.stats.removePage(pg.mem.size)
	m.total.removePage(pg.mem.size)
	kept := m.flushes[:0]
	for _, f := range m.flushes {
		if f.page != pg {
			kept = append(kept, f)
		}
	}
	clear(m.flushes[len(kept):])
	m.flushes = kept
	m.closing = append(m.closing, pg.mem)
}

func unlinkFree(free map[uint64]*page, pg *page) {
	if free[pg.usable] == pg {
		if pg.nextFree == nil {
			delete(free, pg.usable)
		} else {
			free[pg.usable] = pg.nextFree
		}
		pg.nextFree = nil
		return
	}
	for q := free[pg.usable]; q != nil; q = q.nextFree {
		if q.nextFree == pg {
			q.nextFree, pg.nextFree = pg.nextFree, nil
			return
		}
	}
}

// unlockAndClose ends a critical section and closes the memory that it took out. The driver and the
// caller's hook run without the lock.
func (m *Manager) unlockAndClose() {
	list := m.closing
	m.closing = nil
	m.mu.Unlock()
	for _, mem := range list {
		if m.opts.PageClosing != nil {
			m.opts.PageClosing(mem.id)
		}
		mem.close()
	}
}

// eachPage calls f for every page, those of replaced layouts too.
func (m *Manager) eachPage(f func(*page)) {
	m.eachPool(func(p *subPool) {
		for _, pg := range p.pages {
			f(pg)
		}
	})
}

func (m *Manager) eachPool(f func(*subPool)) {
	for _, list := range m.lists {
		for _, p := range list {
			f(p)
		}
	}
	for _, p := range m.orphans {
		f(p)
	}
}
