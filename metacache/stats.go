package metacache

import "fmt"

// counts is what a cache counts; it only grows. Hits are not among it: they are
// the uses that are no stores, and a hit has one thing less to do.
type counts struct {
	misses, uncacheable, rejected, stores, evictions uint64
	// kept counts the stores that found the key there.
	kept uint64
	// visited counts the entries that evictions and the admission rule looked
	// at. Tests hold it to a constant for each miss.
	visited uint64
}

// Stats is a reading of a cache. Counts begin with the cache; sizes are those
// of the moment, in bytes of info words.
type Stats struct {
	// Hits and Misses count the look-ups of both modes.
	Hits, Misses uint64
	// Uncacheable counts the misses that the policy never caches, Rejected those
	// that its admission rule turned away. Both are among Misses.
	Uncacheable, Rejected uint64
	// Stores counts new entries, Evictions those that had to go for a bound.
	Stores, Evictions uint64
	// Entries and bytes that a graph or the running capture pins.
	PinnedEntries int
	PinnedBytes   int64
	// Entries and bytes that nothing pins: what MaxEntries and MaxBytes bound.
	UnpinnedEntries int
	UnpinnedBytes   int64
	// Graphs counts the committed captures that were not released.
	Graphs int
	// Captures is 1 while a capture runs, CapturePins the number of entries that
	// it pins so far. A graph may pin some of them as well.
	Captures, CapturePins int
}

// Stats reads the cache's statistics.
func (c *Cache[V]) Stats() Stats {
	pins := 0
	if c.capture != nil {
		pins = len(c.capture.entries)
	}
	return Stats{
		Hits:            c.clock - c.counts.stores - c.counts.kept,
		Misses:          c.counts.misses,
		Uncacheable:     c.counts.uncacheable,
		Rejected:        c.counts.rejected,
		Stores:          c.counts.stores,
		Evictions:       c.counts.evictions,
		PinnedEntries:   c.pinned.len,
		PinnedBytes:     c.pinned.bytes,
		UnpinnedEntries: c.unpinned.len,
		UnpinnedBytes:   c.unpinned.bytes,
		Graphs:          len(c.graphs),
		Captures:        c.openCaptures(),
		CapturePins:     pins,
	}
}

// Lookups returns the number of look-ups.
func (s Stats) Lookups() uint64 { return s.Hits + s.Misses }

// HitRate returns the share of look-ups that hit, from 0 to 1; 0 without any.
func (s Stats) HitRate() float64 {
	if s.Lookups() == 0 {
		return 0
	}
	return float64(s.Hits) / float64(s.Lookups())
}

// LiveBytes returns the bytes of all entries.
func (s Stats) LiveBytes() int64 { return s.PinnedBytes + s.UnpinnedBytes }

// String returns the statistics as one line for a person.
func (s Stats) String() string {
	return fmt.Sprintf("%d of %d look-ups hit (%.1f %%), %d uncacheable, %d rejected; %d stored, %d evicted; %d entries (%s) unpinned, %d entries (%s) pinned, by %s",
		s.Hits, s.Lookups(), 100*s.HitRate(), s.Uncacheable, s.Rejected, s.Stores, s.Evictions,
		s.UnpinnedEntries, humanBytes(s.UnpinnedBytes), s.PinnedEntries, humanBytes(s.PinnedBytes), s.pinnedBy())
}

// pinnedBy says what the pins are of.
func (s Stats) pinnedBy() string {
	by := fmt.Sprintf("%d graphs", s.Graphs)
	if s.Captures > 0 {
		by += fmt.Sprintf(" and a running capture of %d", s.CapturePins)
	}
	return by
}

func humanBytes(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}
