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
	m.Drain()
	if s, ok, err := m.tryAgain(size, want, c); ok || err != nil {
		return s, err
	}
	m.mu.Lock()
	waiting := m.wheel.count > 0 || len(m.parked) > 0
	m.mu.Unlock()
	if waiting {
		if done, err := refreshed(m.tl); err == nil {
			m.drainTo(done, theDriver)
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

// maxTypes is how many memory types Vulkan has at most.
const maxTypes = 32

// growth is the search for a page that is to hold one slice.
type growth struct {
	size, want uint64
	class      class
	cleaned    bool                 // empty pages were returned
	least      [maxTypes + 1]uint64 // by type index + 1: the smallest page refused, plus one; 0: none
	fail       OutOfMemoryError
}

// grow makes a page for the slice. The pools that accept the size are tried in order, and for
// each the memory types that its policy allows. When the driver has no memory, empty pages of
// all pools are returned and it is asked once more; after that smaller pages are asked for,
// then the next type, then the next pool.
func (m *Manager) grow(size, want uint64, c class) (Slice, error) {
	g := &growth{size: size, want: want, class: c, fail: OutOfMemoryError{Wanted: size}}
	accepted := false
	for i := 0; ; i++ {
		p, pl, s, state := m.plan(g, i, accepted)
		switch state {
		case planPlaced:
			return s, nil
		case planSkip:
			continue
		case planEnd:
			if !accepted {
				return Slice{}, m.tooLarge(want, c)
			}
			m.mu.Lock()
			g.fail.InUse, g.fail.Reserved = m.total.inUse, m.reserved
			m.mu.Unlock()
			return Slice{}, &g.fail
		}
		accepted = true
		if pl.room < pl.need {
			g.fail.Budget = p.spec.Cap
			if pl.warn {
				m.log.Warn("pool is full, spilling to the next",
					slog.String("pool", p.spec.Name), slog.Uint64("cap", p.spec.Cap), slog.Uint64("wanted", size))
			}
			continue
		}
		for _, t := range m.allowed(p, c) {
			if g.refused(t, pl.need) {
				continue
			}
			s, err := m.growIn(g, p, t, pl)
			var none *noMemoryError
			switch {
			case errors.Is(err, errReplaced):
				return m.allocSlowly(size, want, c)
			case errors.As(err, &none):
				g.fail.Cause = none.cause
			default:
				return s, err
			}
		}
	}
}

// refused reports whether the type has refused a page as small as this.
func (g *growth) refused(t memoryType, size uint64) bool {
	n := g.least[t.index+1]
	return n != 0 && n-1 <= size
}

// refuse notes that a type has no page of a size. What a budget or the number of allocations
// refused, every type of that heap, or of the device, would.
func (g *growth) refuse(m *Manager, t memoryType, size uint64, err error) {
	note := func(t memoryType) {
		if n := &g.least[t.index+1]; *n == 0 || size < *n-1 {
			*n = size + 1
		}
	}
	note(t)
	var budget *vk.MemoryError
	heap := errors.As(err, &budget)
	device := tooMany(err)
	for _, o := range m.kinds[g.class.role()].all {
		if device || heap && o.heap == t.heap {
			note(o)
		}
	}
}

type planState uint8

const (
	planGrow   planState = iota // ask for a page
	planPlaced                  // the slice found room after all
	planSkip                    // this pool does not take the size
	planEnd                     // there is no such pool
)

// pagePlan is what is asked of a pool.
type pagePlan struct {
	need, size, room uint64
	warn             bool // that the pool is full, for the first time
}

// plan looks at one pool of the layout. Where an earlier pool got no memory, room in the pages
// of this one is better than an error.
func (m *Manager) plan(g *growth, i int, spilling bool) (*subPool, pagePlan, Slice, planState) {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := m.list(g.class)
	if i >= len(list) {
		return nil, pagePlan{}, Slice{}, planEnd
	}
	p := list[i]
	pl := pagePlan{need: m.leastPage(p, g.want, g.class)}
	if !p.spec.accepts(g.want) || pl.need > m.largestPage() {
		return nil, pagePlan{}, Slice{}, planSkip
	}
	if spilling {
		if s, ok := m.fitIn(p, g.size, g.want, g.class); ok {
			return nil, pagePlan{}, s, planPlaced
		}
	}
	g.fail.Pool = p.spec.Name
	pl.room = p.room()
	pl.size = min(m.planPage(p, g.want, g.class), m.largestPage(), pl.room&^(m.pageAlign()-1))
	pl.warn = pl.room < pl.need && !p.warned
	p.warned = p.warned || pl.warn
	return p, pl, Slice{}, planGrow
}

// largestPage is the most that one allocation of this device may have.
func (m *Manager) largestPage() uint64 {
	if n := m.limits.MaxMemoryAllocationSize; n > 0 {
		return min(n, maxSize) &^ (m.pageAlign() - 1)
	}
	return maxSize
}

// noMemoryError says that one memory type has no page for the slice.
type noMemoryError struct{ cause error }

func (e *noMemoryError) Error() string { return fmt.Sprintf("no page: %v", e.cause) }

// errReplaced says that the layout was replaced while a page was planned.
var errReplaced = errors.New("pool: layout was replaced")

// heapShare is the part of a heap that a page of many slices has at most: on a small
// heap large pages would leave room for few pools.
const heapShare = 8

// growIn makes a page in one pool and memory type, as large as planned or, when memory is short,
// smaller, but not smaller than needed.
func (m *Manager) growIn(g *growth, p *subPool, t memoryType, pl pagePlan) (Slice, error) {
	size := pl.size
	if p.spec.Kind == Sliced && t.heapSize > 0 {
		size = min(size, max(pl.need, t.heapSize/heapShare&^(m.pageAlign()-1)))
	}
	for {
		s, err := m.makePage(g, p, t, size)
		if err == nil {
			return s, nil
		}
		if unfit := errors.Is(err, vk.ErrUnsupported); unfit || !outOfMemory(err) {
			if unfit {
				err = &noMemoryError{cause: err}
			}
			return Slice{}, err
		}
		if !g.cleaned {
			g.cleaned = true
			m.Cleanup()
			// Another goroutine, or the cleanup, may have left room in a page.
			if s, ok, err := m.tryAgain(g.size, g.want, g.class); ok || err != nil {
				return s, err
			}
			continue
		}
		g.refuse(m, t, size, err)
		if size <= pl.need || tooMany(err) {
			if tooMany(err) {
				g.refuse(m, t, 0, err)
			}
			g.fail.Budget = m.budgetOf(t, err)
			return Slice{}, &noMemoryError{cause: err}
		}
		size = max(pl.need, (size/2)&^(m.pageAlign()-1))
	}
}

// budgetOf returns the budget that a refusal was for.
func (m *Manager) budgetOf(t memoryType, err error) uint64 {
	var budget *vk.MemoryError
	if errors.As(err, &budget) {
		return budget.Budget
	}
	return m.src.usage(t.heap).Budget
}

// outOfMemory reports whether a smaller page, or fewer of them, could help.
func outOfMemory(err error) bool {
	var limit *vk.LimitError
	return errors.Is(err, vk.ErrOutOfDeviceMemory) || errors.Is(err, vk.ErrOutOfHostMemory) || errors.As(err, &limit)
}

// tooMany reports whether only fewer pages could help.
func tooMany(err error) bool {
	var limit *vk.LimitError
	return errors.As(err, &limit) && limit.Name == "maxMemoryAllocationCount"
}

// makePage makes one page, without the lock while the driver works, and allocates the slice from it.
func (m *Manager) makePage(g *growth, p *subPool, t memoryType, pageSize uint64) (Slice, error) {
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
		g.fail.Budget = p.spec.Cap
		return Slice{}, &noMemoryError{cause: fmt.Errorf("pool %q is full at its cap of %d bytes", p.spec.Name, p.spec.Cap)}
	}
	p.claimed += pageSize
	m.creating++
	c := g.class
	m.replaceEmpty(p, c, pageSize)
	m.unlockAndClose()

	mem, err := m.src.newMemory(vk.BufferSpec{
		Size: pageSize, Role: c.role(), MemoryTypes: t.mask(), Budget: p.spec.Budget.rule(), Name: "pool " + p.spec.Name,
	})
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
	spilled := m.spilled(c.role(), t)
	pg, err := m.addPage(p, mem, c, lotOf(mem.coherent, spilled))
	if err != nil {
		m.closing = append(m.closing, mem)
		m.unlockAndClose()
		return Slice{}, err
	}
	var s Slice
	ok := true
	if p.spec.Kind == Exclusive {
		s = m.place(pg, 0, g.size, pg.usable, 0, 0)
	} else {
		s, ok = m.fitIn(p, g.size, g.want, c)
	}
	warn := spilled && !p.warnedOf
	p.warnedOf = p.warnedOf || warn
	m.mu.Unlock()
	if warn {
		m.log.Warn("memory is used up, spilling to another kind", slog.String("pool", p.spec.Name), slog.Int("heap", mem.heap), slog.Uint64("page", pageSize))
	}
	if !ok {
		return Slice{}, fmt.Errorf("pool: a new page of %d bytes does not hold a slice of %d", pageSize, g.want)
	}
	return s, nil
}

const recentPages = 64

// replaceEmpty takes the empty pages of a sliced pool out that a new page makes up for. They are all too small for
// the slice that the new page is for, and what they are good for lies on the new page later. Without this, a slice that
// grows with each step of a program would leave a page behind each time. No more goes than comes, so that other
// slices find as much room as before, and since the pages only become larger this comes to an end.
// The pages left behind are among the latest, and only those are looked at: there may be very many.
func (m *Manager) replaceEmpty(p *subPool, c class, size uint64) {
	if p.spec.Kind != Sliced {
		return
	}
	for i := len(p.pages) - 1; i >= max(0, len(p.pages)-recentPages); i-- {
		pg := p.pages[i]
		if pg.class == c && pg.mem.size < size && pg.empty() && pg.stamp <= m.wheel.drained {
			size -= pg.mem.size
			m.removePage(pg)
		}
	}
}

// touch writes to each 4 KiB of fresh memory, whose content is undefined anyway.
func touch(b []byte) {
	for i := 0; i < len(b); i += 4 * kib {
		b[i] = 0
	}
}

// addPage puts fresh memory into a pool.
func (m *Manager) addPage(p *subPool, mem memory, c class, l lot) (*page, error) {
	pg := &page{mem: mem, class: c, lot: l, pool: p, index: len(p.pages), touched: true}
	if p.spec.Kind == Exclusive {
		pg.usable = mem.size
		if p.free[c][l] == nil {
			p.free[c][l] = make(map[uint64]*page)
		}
	} else {
		a, err := m.arenaFor(p, c, l)
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
	p.byClass[c] += mem.size
	m.reserved += mem.size
	m.pages++
	for len(m.byHeap) <= mem.heap {
		m.byHeap = append(m.byHeap, 0)
	}
	m.byHeap[mem.heap] += mem.size
	p.stats.addPage(pg)
	m.total.addPage(pg)
	return pg, nil
}

// arenaFor returns the arena of a class. On non-coherent memory that the host writes each slice has its
// atoms to itself: the flush of one never covers bytes of another.
func (m *Manager) arenaFor(p *subPool, c class, l lot) (*arena, error) {
	if a := p.arenas[c][l]; a != nil {
		return a, nil
	}
	align := m.align
	if l&incoherent != 0 && c.hostWritten() {
		align = max(align, m.atom)
	}
	cut, err := tlsf.New(align)
	if err != nil {
		return nil, err
	}
	a := &arena{cut: cut, align: align}
	p.arenas[c][l] = a
	return a, nil
}

// growShare is how many times its next page a pool has at least, once it is large. What is reserved
// and not yet needed is then at most a part of what is, and the number of pages grows with the logarithm.
const growShare = 8

// share is growShare, but for infos 1: theirs are small beside what they tell of, and each page of infos costs each
// kernel a descriptor set, so that there should be few.
func share(c class) uint64 {
	if c == classInfo {
		return 1
	}
	return growShare
}

// planPage returns the size of the pool's next page. Pages grow with the pool, so
// that their number stays small against the limit on allocations.
func (m *Manager) planPage(p *subPool, want uint64, c class) uint64 {
	if p.spec.Kind == Exclusive {
		return max(m.exclusivePage(p, want), m.exactPage(m.tail(c)))
	}
	n := p.spec.PageSize
	if grown := p.byClass[c] / share(c); grown > n {
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
		e.Max = max(e.Max, min(p.spec.MaxSlice, m.largestPage()))
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
		unlinkFree(pg)
		if free := p.free[pg.class][pg.lot]; free[pg.usable] == nil {
			delete(free, pg.usable)
		}
	}
	last := len(p.pages) - 1
	p.pages[pg.index] = p.pages[last]
	p.pages[pg.index].index = pg.index
	p.pages[last] = nil
	p.pages = p.pages[:last]
	p.reserved -= pg.mem.size
	p.byClass[pg.class] -= pg.mem.size
	m.reserved -= pg.mem.size
	m.pages--
	m.byHeap[pg.mem.heap] -= pg.mem.size
	p.stats.removePage(pg)
	m.total.removePage(pg)
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

// unlockAndClose ends a critical section and closes the memory that it took out. The driver and the
// caller's hook run without the lock. While flushes are under way it waits for their end: they may name
// that memory.
func (m *Manager) unlockAndClose() {
	var list []memory
	if m.flushing == 0 {
		list, m.closing = m.closing, nil
	}
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
