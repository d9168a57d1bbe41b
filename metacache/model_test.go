package metacache_test

import (
	"cmp"
	"fmt"
	"slices"

	"vkcompute/metacache"
)

// model is the cache written for obviousness: every question is answered by
// looking at everything.
type model struct {
	policy  metacache.Policy
	entries map[string]*modelEntry
	clock   int
	graphs  map[metacache.GraphID]map[string]bool
	// capture holds the keys that the running capture pins, nil without one.
	capture map[string]bool
	// keep is the key whose value a store that is releasing will return.
	keep string
	// released holds the values the operation lets go of.
	released []int
	stats    metacache.Stats
	// frequency is the cache's reckoning of look-ups. How good it is concerns the
	// tests of the sketch; whose it has to be compared with, the model knows.
	frequency func(words []uint64) uint64
}

type modelEntry struct {
	words []uint64
	value int
	used  int
}

const noKey = "none"

func newModel(p metacache.Policy) *model {
	return &model{
		policy:  p,
		entries: map[string]*modelEntry{},
		graphs:  map[metacache.GraphID]map[string]bool{},
		keep:    noKey,
	}
}

func modelKey(words []uint64) string { return fmt.Sprint(words) }

func (m *model) cacheable(words []uint64) bool {
	return m.policy.MaxEntries > 0 && 8*len(words) <= m.policy.MaxCachedSize &&
		(m.policy.MaxBytes == 0 || int64(8*len(words)) <= m.policy.MaxBytes)
}

func (m *model) pins(key string) int {
	n := 0
	for _, pinned := range m.graphs {
		if pinned[key] {
			n++
		}
	}
	if m.capture[key] {
		n++
	}
	return n
}

// lookup returns the entry that hits, else whether a store is wanted.
func (m *model) lookup(words []uint64, mode metacache.Mode) (hit *modelEntry, wanted bool) {
	if mode == metacache.Normal && !m.cacheable(words) {
		m.stats.Misses++
		m.stats.Uncacheable++
		return nil, false
	}
	key := modelKey(words)
	e := m.entries[key]
	if e == nil {
		m.stats.Misses++
		if mode == metacache.Normal && m.policy.Admission == metacache.AdmitFrequent && !m.admits(words) {
			m.stats.Rejected++
			return nil, false
		}
		return nil, true
	}
	m.stats.Hits++
	m.use(key)
	if mode == metacache.Capturing {
		m.capture[key] = true
	}
	return e, false
}

func (m *model) use(key string) {
	m.clock++
	m.entries[key].used = m.clock
}

func (m *model) store(words []uint64, value int, mode metacache.Mode) (kept int) {
	key := modelKey(words)
	if _, found := m.entries[key]; found {
		m.released = append(m.released, value)
	} else {
		m.stats.Stores++
		m.entries[key] = &modelEntry{words: slices.Clone(words), value: value}
	}
	m.use(key)
	if mode == metacache.Capturing {
		m.capture[key] = true
	} else {
		for !m.fits() {
			m.stats.Evictions++
			m.remove(m.oldest())
		}
	}
	return m.entries[key].value
}

// unpinned returns the keys of the unpinned entries, the least recently used
// first.
func (m *model) unpinned() []string {
	var keys []string
	for key := range m.entries {
		if m.pins(key) == 0 {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Compare(m.entries[a].used, m.entries[b].used) })
	return keys
}

func (m *model) oldest() string { return m.unpinned()[0] }

func (m *model) fits() bool {
	s := m.sizes()
	return s.UnpinnedEntries <= m.policy.MaxEntries && (m.policy.MaxBytes == 0 || s.UnpinnedBytes <= m.policy.MaxBytes)
}

// admits says whether words were looked up more often than each of the entries
// that their store would evict, or than the first so many of those.
func (m *model) admits(words []uint64) bool {
	s := m.sizes()
	entries, bytes := s.UnpinnedEntries+1, s.UnpinnedBytes+int64(8*len(words))
	for i, key := range m.unpinned() {
		fits := entries <= m.policy.MaxEntries && (m.policy.MaxBytes == 0 || bytes <= m.policy.MaxBytes)
		if fits || i == metacache.ComparedVictims {
			return true
		}
		victim := m.entries[key].words
		if m.frequency(victim) >= m.frequency(words) {
			return false
		}
		entries--
		bytes -= int64(8 * len(victim))
	}
	return true
}

func (m *model) remove(key string) {
	m.released = append(m.released, m.entries[key].value)
	delete(m.entries, key)
}

func (m *model) commit(graph metacache.GraphID) bool {
	if _, used := m.graphs[graph]; used {
		return false
	}
	m.graphs[graph], m.capture = m.capture, nil
	return true
}

func (m *model) discard() {
	pinned := m.capture
	m.capture = nil
	for key := range pinned {
		if m.pins(key) == 0 && !m.cacheable(m.entries[key].words) {
			m.remove(key)
		}
	}
}

func (m *model) graphRelease(graph metacache.GraphID) bool {
	pinned, used := m.graphs[graph]
	delete(m.graphs, graph)
	for key := range pinned {
		if m.pins(key) == 0 && key != m.keep {
			m.remove(key)
		}
	}
	return used
}

func (m *model) clearUnpinned() {
	for _, key := range m.unpinned() {
		if key != m.keep {
			m.remove(key)
		}
	}
}

func (m *model) pinned() int {
	n := 0
	for key := range m.entries {
		if m.pins(key) > 0 {
			n++
		}
	}
	return n
}

func (m *model) close() {
	for key := range m.entries {
		m.remove(key)
	}
	m.capture = nil
	clear(m.graphs)
	m.policy = metacache.Policy{}
}

// sizes returns the statistics.
func (m *model) sizes() metacache.Stats {
	s := m.stats
	s.Graphs = len(m.graphs)
	if m.capture != nil {
		s.Captures, s.CapturePins = 1, len(m.capture)
	}
	for key, e := range m.entries {
		if m.pins(key) > 0 {
			s.PinnedEntries++
			s.PinnedBytes += int64(8 * len(e.words))
		} else {
			s.UnpinnedEntries++
			s.UnpinnedBytes += int64(8 * len(e.words))
		}
	}
	return s
}
