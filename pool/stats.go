package pool

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// counters are the numbers of one pool, or of all.
type counters struct {
	slices, waiting, pages               int
	inUse, padding, held, reserved       uint64
	spilled                              uint64
	peakSlices                           int
	peakInUse, peakReserved, largestSize uint64
}

func (c *counters) add(size, span uint64) {
	c.slices++
	c.inUse += size
	c.padding += span - min(size, span)
	c.peakSlices = max(c.peakSlices, c.slices)
	c.peakInUse = max(c.peakInUse, c.inUse)
	c.largestSize = max(c.largestSize, size)
}

func (c *counters) remove(size, span uint64) {
	c.slices--
	c.inUse -= size
	c.padding -= span - min(size, span)
}

func (c *counters) wait(span uint64)        { c.waiting++; c.held += span }
func (c *counters) stopWaiting(span uint64) { c.waiting--; c.held -= span }

func (c *counters) addPage(pg *page) {
	c.pages++
	c.reserved += pg.mem.size
	if pg.lot&spilledTo != 0 {
		c.spilled += pg.mem.size
	}
	c.peakReserved = max(c.peakReserved, c.reserved)
}

func (c *counters) removePage(pg *page) {
	c.pages--
	c.reserved -= pg.mem.size
	if pg.lot&spilledTo != 0 {
		c.spilled -= pg.mem.size
	}
}

// Counts are the statistics of one pool, or of all of them. Sizes are bytes.
type Counts struct {
	Slices       int    `json:"slices"`        // alive
	InUse        uint64 `json:"in_use"`        // asked for by slices alive
	Padding      uint64 `json:"padding"`       // lost to alignment and rounding
	Waiting      int    `json:"waiting"`       // released slices that wait for their serials
	WaitingBytes uint64 `json:"waiting_bytes"` // their ranges
	Reserved     uint64 `json:"reserved"`      // of all pages
	Spilled      uint64 `json:"spilled"`       // of pages in memory that is not the best for their role
	Pages        int    `json:"pages"`
	PeakSlices   int    `json:"peak_slices"`
	PeakInUse    uint64 `json:"peak_in_use"`
	PeakReserved uint64 `json:"peak_reserved"`
	Largest      uint64 `json:"largest"` // the largest slice ever
}

func (c *counters) counts() Counts {
	return Counts{
		Slices: c.slices, InUse: c.inUse, Padding: c.padding, Waiting: c.waiting, WaitingBytes: c.held,
		Reserved: c.reserved, Spilled: c.spilled, Pages: c.pages, PeakSlices: c.peakSlices, PeakInUse: c.peakInUse,
		PeakReserved: c.peakReserved, Largest: c.largestSize,
	}
}

// PoolStats are the statistics of one pool.
type PoolStats struct {
	Name string `json:"name"`
	Kind string `json:"kind"`
	// Replaced marks a pool of an earlier layout whose pages graphs still hold.
	Replaced bool `json:"replaced,omitempty"`
	Counts
}

// Stats are the statistics of a manager at one moment. They add up: what the pools hold is what the total says,
// zero-size slices excepted, which are in the total alone.
type Stats struct {
	Total       Counts      `json:"total"`
	HeldByGraph int         `json:"held_by_graph"`
	HeldByCache int         `json:"held_by_cache"`
	Heaps       []uint64    `json:"heaps"` // bytes of pages in each of the device's heaps
	Pools       []PoolStats `json:"pools"`
}

// Stats returns the statistics.
func (m *Manager) Stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stats()
}

func (m *Manager) stats() Stats {
	s := Stats{Total: m.total.counts(), HeldByGraph: m.heldByGraph, HeldByCache: m.heldByCache, Heaps: slices.Clone(m.byHeap)}
	m.eachPool(func(p *subPool) {
		s.Pools = append(s.Pools, PoolStats{
			Name: p.spec.Name, Kind: p.spec.Kind.String(), Replaced: p.orphan, Counts: p.stats.counts(),
		})
	})
	return s
}

// String returns a table, one line a pool and one for all.
func (s Stats) String() string {
	const head, line = "%-20s %8s %14s %12s %8s %14s %6s %14s %14s %14s\n", "%-20s %8d %14d %12d %8d %14d %6d %14d %14d %14d\n"
	var b strings.Builder
	fmt.Fprintf(&b, head, "pool", "slices", "in use", "padding", "waiting", "reserved", "pages", "peak in use", "peak reserved", "largest")
	row := func(name string, c Counts) {
		fmt.Fprintf(&b, line, name, c.Slices, c.InUse, c.Padding, c.Waiting, c.Reserved, c.Pages, c.PeakInUse, c.PeakReserved, c.Largest)
	}
	for _, p := range s.Pools {
		name := p.Name
		if p.Replaced {
			name += " (replaced)"
		}
		row(name, p.Counts)
	}
	row("total", s.Total)
	fmt.Fprintf(&b, "held by graphs %d, by caches %d; %d bytes wait, %d spilled; reserved by heap %v\n",
		s.HeldByGraph, s.HeldByCache, s.Total.WaitingBytes, s.Total.Spilled, s.Heaps)
	return b.String()
}

// Var returns the statistics as a variable for package expvar, whose String is JSON, taken anew at
// each call: expvar.Publish("pools", m.Var()).
func (m *Manager) Var() Var { return Var{m} }

// Var implements expvar.Var without making every user of this package import it.
type Var struct{ m *Manager }

// String returns the statistics as JSON.
func (v Var) String() string {
	b, err := json.Marshal(v.m.Stats())
	if err != nil {
		return "{}"
	}
	return string(b)
}
