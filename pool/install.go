package pool

import "slices"

// Install replaces the layout. It refuses with an [InUseError] while anything is alive, zero-size
// slices included, or while released ranges still wait for the device, and then changes
// nothing. Otherwise it returns every page and builds the pools anew.
//
// A stream finishes its work and clears the unpinned entries of its metadata cache first; cached infos
// are live slices too.
func (m *Manager) Install(l Layout) error { return m.install(l, keepNothing) }

// InstallAround is [Manager.Install] for a stream with graphs: slices that
// graphs hold do not stand in the way. Their pages, and with them what else is on those pages and held by
// graphs, remain until the last of their slices is released.
func (m *Manager) InstallAround(l Layout) error { return m.install(l, keepGraphs) }

type keep uint8

const (
	keepNothing keep = iota
	keepGraphs
)

func (m *Manager) install(l Layout, k keep) error {
	if err := l.Validate(); err != nil {
		return err
	}
	done, err := refreshed(m.tl)
	if err != nil {
		return err
	}
	m.lockSettled(done, theDriver)
	if m.closed {
		m.mu.Unlock()
		return ErrClosed
	}
	e := m.inUse(done)
	blocked := e.Slices > 0 || e.Waiting > 0 || e.Serial > 0 || e.Creating > 0
	if k == keepGraphs {
		// A page that waits for the device goes later, like one that a graph holds.
		blocked = e.Slices > e.HeldByGraph || e.Creating > 0
	}
	if blocked {
		m.mu.Unlock()
		return e
	}
	m.eachPool(func(p *subPool) { m.removeEmpty(p, done) })
	for _, list := range m.lists {
		for _, p := range list {
			p.orphan = true
			if len(p.pages) > 0 {
				m.orphans = append(m.orphans, p)
			}
		}
	}
	m.dropOrphans()
	m.build(l)
	m.unlockAndClose()
	return nil
}

// inUse tells what stands in the way of taking all pages back.
func (m *Manager) inUse(done uint64) *InUseError {
	e := &InUseError{
		Slices: m.total.slices, Bytes: m.total.inUse,
		HeldByGraph: m.heldByGraph, HeldByCache: m.heldByCache,
		Waiting: m.total.waiting, Creating: m.creating,
	}
	m.eachPage(func(pg *page) {
		if pg.stamp > done {
			e.Serial = max(e.Serial, pg.stamp)
		}
	})
	if m.wheel.count > 0 {
		e.Serial = max(e.Serial, m.wheel.latest)
	}
	return e
}

// removeEmpty takes the pages out on which nothing is alive and that no command may still use.
func (m *Manager) removeEmpty(p *subPool, done uint64) {
	for i := len(p.pages) - 1; i >= 0; i-- {
		if pg := p.pages[i]; pg.empty() && pg.stamp <= done {
			m.removePage(pg)
		}
	}
}

// sweepOrphans returns pages of replaced layouts that have become empty.
func (m *Manager) sweepOrphans() {
	if len(m.orphans) == 0 {
		m.orphansRipe = false
		return
	}
	for _, p := range m.orphans {
		m.removeEmpty(p, m.wheel.drained)
	}
	m.orphansRipe = false
	m.dropOrphans()
}

func (m *Manager) dropOrphans() {
	m.orphans = slices.DeleteFunc(m.orphans, func(p *subPool) bool { return len(p.pages) == 0 })
}

// sweepIdle returns pages that have been empty since the last sweep but one: a
// page is marked when something is placed on it or leaves it, and a sweep clears the marks.
func (m *Manager) sweepIdle() {
	if m.opts.IdlePeriod < 0 {
		return
	}
	now := m.now()
	if now.Sub(m.lastSweep) < m.opts.IdlePeriod {
		return
	}
	m.lastSweep = now
	for _, list := range m.lists {
		for _, p := range list {
			for i := len(p.pages) - 1; i >= 0; i-- {
				pg := p.pages[i]
				if pg.empty() && !pg.touched && pg.stamp <= m.wheel.drained {
					m.removePage(pg)
				}
				pg.touched = false
			}
		}
	}
}

// Cleanup asks the driver how far it is, moves ranges that are done back to their pages, and
// returns every page that is empty.
func (m *Manager) Cleanup() {
	m.lockSettled(theDriver.progress(m.tl), theDriver)
	m.eachPool(func(p *subPool) { m.removeEmpty(p, m.wheel.drained) })
	m.dropOrphans()
	m.unlockAndClose()
}

// Close returns all pages and makes further allocations fail with [ErrClosed]. It answers
// a [LeakError] if slices are still alive or the device is not done; what they
// lie on remains until they are released and done. Close may be called again, and answers nil once nothing remains.
func (m *Manager) Close() error {
	done := theDriver.progress(m.tl)
	m.lockSettled(done, theDriver)
	m.closed = true
	for i, list := range m.lists {
		for _, p := range list {
			p.orphan = true
			m.orphans = append(m.orphans, p)
		}
		m.lists[i] = nil
	}
	for _, p := range m.orphans {
		m.removeEmpty(p, m.wheel.drained)
	}
	m.dropOrphans()
	u := m.inUse(done)
	e := &LeakError{
		Slices: u.Slices, Bytes: u.Bytes, HeldByGraph: u.HeldByGraph, HeldByCache: u.HeldByCache,
		Waiting: u.Waiting, Serial: u.Serial, Pages: m.pages, Stacks: m.stacks.report(),
	}
	m.unlockAndClose()
	if e.Slices > 0 || e.Waiting > 0 || e.Pages > 0 {
		return e
	}
	return nil
}
