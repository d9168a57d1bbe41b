package pool

import (
	"encoding/json"
	"fmt"
	"strings"
)

// counters are the numbers of one pool, or of all.
type counters struct {
	slices, waiting, pages               int
	inUse, padding, held, reserved       uint64
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

func (c *counters) addPage(size uint64) {
	c.pages++
	c.reserved += size
	c.peakReserved = max(c.peakReserved, c.reserved)
}

func (c *counters) removePage(size uint64) {
	c.pages--
	c.reserved -= size
}

// Counts are the statistics of one pool, or of all of them. Sizes are bytes.
type Counts struct {
	Slices       int    `json:"slices"`        // alive
	InUse        uint64 `json:"in_use"`        // asked for by slices alive
	Padding      uint64 `json:"padding"`       // lost to alignment and rounding
	Waiting      int    `json:"waiting"`       // released slices that wait for their serials
	WaitingBytes uint64 `json:"waiting_bytes"` // their ranges
	Reserved     uint64 `json:"reserved"`      // of all pages
	Pages        int    `json:"pages"`
	PeakSlices   int    `json:"peak_slices"`
	PeakInUse    uint64 `json:"peak_in_use"`
	PeakReserved uint64 `json:"peak_reserved"`
	Largest      uint64 `json:"largest"` // the largest slice ever
}

func (c *counters) counts() Counts {
	return Counts{
		Slices: c.slices, InUse: c.inUse, Padding: c.padding, Waiting: c.waiting, WaitingBytes: c.held,
		Reserved: c.reserved, Pages: c.pages, PeakSlices: c.peakSlices, PeakInUse: c.peakInUse,
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
	Pools       []PoolStats `json:"pools"`
}

// Stats returns the statistics.
func (m *Manager) Stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := Stats{Total: m.total.counts(), HeldByGraph: m.heldByGraph, HeldByCache: m.heldByCache}
	m.eachPool(func(p *subPool) {
		s.Pools = append(s.Pools, PoolStats{
			Name: p.spec.Name, Kind: p.spec.Kind.String(), Replaced: p.orphan, Counts: p.stats.counts(),
		})
	})
	return s
}

// String returns a table, one line a pool.
func (s Stats) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-18s %8s %14s %12s %8s %14s %6s\n", "pool", "slices", "in use", "padding", "waiting", "reserved", "pages")
	row := func(name string, c Counts) {
		fmt.Fprintf(&b, "%-18s %8d %14d %12d %8d %14d %6d\n", name, c.Slices, c.InUse, c.Padding, c.Waiting, c.Reserved, c.Pages)
	}
	for _, p := range s.Pools {
		name := p.Name
		if p.Replaced {
			name += " (replaced)"
		}
		row(name, p.Counts)
	}
	row("total", s.Total)
	fmt.Fprintf(&b, "peaks: %d slices, %d bytes in use, %d reserved; held by graphs %d, by caches %d\n",
		s.Total.PeakSlices, s.Total.PeakInUse, s.Total.PeakReserved, s.HeldByGraph, s.HeldByCache)
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
