package pool

import (
	"fmt"
	"slices"
)

// Validate checks every invariant of the manager and returns the first that does not hold. It visits every
// page; it is meant for tests and for a damage report.
func (m *Manager) Validate() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var total counters
	var err error
	m.eachPool(func(p *subPool) {
		if err == nil {
			err = m.validatePool(p, &total)
		}
	})
	if err != nil {
		return err
	}
	total.slices += m.zero.live
	type sums struct {
		slices, waiting, pages         int
		inUse, padding, held, reserved uint64
		spilled                        uint64
	}
	got := sums{m.total.slices, m.total.waiting, m.total.pages, m.total.inUse, m.total.padding, m.total.held, m.total.reserved, m.total.spilled}
	want := sums{total.slices, total.waiting, total.pages, total.inUse, total.padding, total.held, total.reserved, total.spilled}
	if got != want {
		return fmt.Errorf("pool: totals %+v, pools add up to %+v", got, want)
	}
	if err := m.validateHeaps(); err != nil {
		return err
	}
	if m.pages != total.pages || m.reserved != total.reserved {
		return fmt.Errorf("pool: %d pages of %d bytes, pools have %d of %d", m.pages, m.reserved, total.pages, total.reserved)
	}
	if m.heldByGraph > total.slices || m.heldByCache > total.slices || m.heldByGraph < 0 || m.heldByCache < 0 {
		return fmt.Errorf("pool: graphs hold %d and caches %d of %d slices", m.heldByGraph, m.heldByCache, total.slices)
	}
	waiting := len(m.parked)
	for i, sl := range m.wheel.heads {
		for ; sl != nil; sl = sl.next {
			waiting++
			if use := sl.lastUse.Load(); use%wheelSize != uint64(i) || use <= m.wheel.drained {
				return fmt.Errorf("pool: slot of serial %d waits in place %d though %d is drained", use, i, m.wheel.drained)
			}
		}
	}
	if waiting != m.total.waiting || m.wheel.count != waiting-len(m.parked) {
		return fmt.Errorf("pool: %d slots wait, counters say %d and %d", waiting, m.total.waiting, m.wheel.count)
	}
	for _, f := range m.flushes {
		if f.lo >= f.hi || f.hi > f.page.mem.size || f.page.mem.coherent || !f.page.mem.visible || !f.page.class.hostWritten() {
			return fmt.Errorf("pool: pending flush [%d,%d) of a page of %d bytes", f.lo, f.hi, f.page.mem.size)
		}
	}
	return nil
}

func (m *Manager) validatePool(p *subPool, total *counters) error {
	var sum counters
	var byClass [classCount]uint64
	for i, pg := range p.pages {
		if pg.index != i || pg.pool != p {
			return fmt.Errorf("pool %q: page %d believes it is %d", p.spec.Name, i, pg.index)
		}
		if pg.live < 0 || pg.waiting < 0 {
			return fmt.Errorf("pool %q: page %d has %d slices alive and %d waiting", p.spec.Name, i, pg.live, pg.waiting)
		}
		if pg.bytes > pg.usable || pg.usable+m.tail(pg.class)*uint64(p.spec.Kind^Exclusive) > pg.mem.size {
			return fmt.Errorf("pool %q: page %d: %d bytes in use, %d usable, %d in all", p.spec.Name, i, pg.bytes, pg.usable, pg.mem.size)
		}
		if pg.arena == nil && pg.live+pg.waiting > 1 {
			return fmt.Errorf("pool %q: exclusive page %d has %d slices", p.spec.Name, i, pg.live+pg.waiting)
		}
		if pg.arena != nil && pg.arena.cut.Used(pg.area) != pg.live+pg.waiting {
			return fmt.Errorf("pool %q: page %d has %d blocks for %d slices alive and %d waiting", p.spec.Name, i, pg.arena.cut.Used(pg.area), pg.live, pg.waiting)
		}
		if pg.arena != nil && pg.arena.pages[pg.area] != pg {
			return fmt.Errorf("pool %q: page %d is not where its arena looks for it", p.spec.Name, i)
		}
		sum.slices += pg.live
		sum.waiting += pg.waiting
		sum.inUse += pg.bytes
		sum.reserved += pg.mem.size
		byClass[pg.class] += pg.mem.size
		if pg.lot&spilledTo != 0 {
			sum.spilled += pg.mem.size
			if p.spec.Budget != BudgetSpill {
				return fmt.Errorf("pool %q: page %d lies in memory that the policy %q does not allow", p.spec.Name, i, p.spec.Budget)
			}
		}
		sum.pages++
	}
	if err := m.validateFree(p); err != nil {
		return err
	}
	for c := range p.arenas {
		for _, a := range p.arenas[c] {
			if a == nil {
				continue
			}
			if err := a.cut.Validate(); err != nil {
				return fmt.Errorf("pool %q class %d: %w", p.spec.Name, c, err)
			}
		}
	}
	s := p.stats
	if s.slices != sum.slices || s.waiting != sum.waiting || s.inUse != sum.inUse || s.reserved != sum.reserved ||
		s.pages != sum.pages || s.spilled != sum.spilled || p.reserved != sum.reserved || p.byClass != byClass {
		return fmt.Errorf("pool %q: counters %+v, pages add up to %+v", p.spec.Name, s, sum)
	}
	if p.spec.Cap > 0 && p.reserved+p.claimed > p.spec.Cap {
		return fmt.Errorf("pool %q: %d bytes reserved, cap %d", p.spec.Name, p.reserved+p.claimed, p.spec.Cap)
	}
	total.slices += s.slices
	total.waiting += s.waiting
	total.pages += s.pages
	total.inUse += s.inUse
	total.padding += s.padding
	total.held += s.held
	total.reserved += s.reserved
	total.spilled += s.spilled
	return nil
}

func (m *Manager) validateHeaps() error {
	sum := make([]uint64, len(m.byHeap))
	m.eachPage(func(pg *page) { sum[pg.mem.heap] += pg.mem.size })
	if !slices.Equal(sum, m.byHeap) {
		return fmt.Errorf("pool: %v bytes reserved by heap, pages add up to %v", m.byHeap, sum)
	}
	return nil
}

func (m *Manager) validateFree(p *subPool) error {
	if p.spec.Kind != Exclusive {
		return nil
	}
	listed := 0
	for c := range p.free {
		for l, free := range p.free[c] {
			for size, pg := range free {
				for prev := (*page)(nil); pg != nil; prev, pg = pg, pg.nextFree {
					if !pg.empty() || pg.usable != size || int(pg.class) != c || int(pg.lot) != l {
						return fmt.Errorf("pool %q: page of %d bytes with %d slices is listed as free with size %d", p.spec.Name, pg.usable, pg.live, size)
					}
					if pg.prevFree != prev {
						return fmt.Errorf("pool %q: a free page of %d bytes does not link back to the one before it", p.spec.Name, size)
					}
					if listed++; listed > len(p.pages) {
						return fmt.Errorf("pool %q: list of free pages has a cycle", p.spec.Name)
					}
				}
			}
		}
	}
	empty := 0
	for _, pg := range p.pages {
		if pg.empty() {
			empty++
		}
	}
	if listed != empty {
		return fmt.Errorf("pool %q: %d pages are free, %d are listed", p.spec.Name, empty, listed)
	}
	return nil
}
