package metaport

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"unsafe"
)

// Mode says which rules a look-up follows.
type Mode uint8

const (
	// Normal caches small infos under a bound.
	Normal Mode = iota
	// Capture caches every info and pins it.
	Capture
)

// Cache is the port. Make one with New.
type Cache[V any] struct {
	maxEntries    int
	maxCachedSize int
	release       func(V)

	entries map[string]*entry[V]
	clock   uint64

	// The reference lets a store obey whichever look-up came last, also when
	// that was somebody else's.
	mode Mode

	captured map[string]struct{}
	graphs   map[uint64][]string

	visited int
}

type entry[V any] struct {
	value    V
	lastUsed uint64
	pins     uint32
}

// New returns an empty cache of at most maxEntries infos of at most
// maxCachedSize bytes in Normal mode.
func New[V any](maxEntries, maxCachedSize int, release func(V)) (*Cache[V], error) {
	if maxEntries < 0 || maxCachedSize < 0 {
		return nil, fmt.Errorf("metaport: want bounds of 0 or more, got %d entries of %d bytes", maxEntries, maxCachedSize)
	}
	if release == nil {
		return nil, errors.New("metaport: want a release function, got nil")
	}
	return &Cache[V]{
		maxEntries:    maxEntries,
		maxCachedSize: maxCachedSize,
		release:       release,
		entries:       map[string]*entry[V]{},
		captured:      map[string]struct{}{},
		graphs:        map[uint64][]string{},
	}, nil
}

// Lookup returns the value stored under words, or says by store whether the
// caller should store the one it is about to build.
func (c *Cache[V]) Lookup(mode Mode, words []uint64) (v V, hit, store bool) {
	c.mode = mode
	if !c.shouldCache(mode, 8*len(words)) {
		return v, false, false
	}
	c.clock++
	e, ok := c.entries[view(words)]
	if !ok {
		return v, false, true
	}
	e.lastUsed = c.clock
	if mode == Capture {
		if _, pinned := c.captured[view(words)]; !pinned {
			c.captured[clone(words)] = struct{}{}
			e.pins++
		}
	}
	return e.value, true, false
}

// Store puts v under words by the mode of the last look-up, and replaces what
// was there.
func (c *Cache[V]) Store(words []uint64, v V) {
	capacity := c.maxEntries
	if c.mode == Capture {
		capacity = math.MaxInt
	}
	if len(c.entries) >= capacity {
		c.evict()
	}
	key := clone(words)
	e := &entry[V]{value: v, lastUsed: c.clock}
	if c.mode == Capture {
		e.pins = 1
		c.captured[key] = struct{}{}
	}
	old, replaced := c.entries[key]
	c.entries[key] = e
	if replaced {
		c.release(old.value)
	}
}

func (c *Cache[V]) evict() {
	var (
		victim string
		oldest uint64 = math.MaxUint64
		found  bool
	)
	c.visited += len(c.entries)
	for key, e := range c.entries {
		if e.pins == 0 && e.lastUsed < oldest {
			victim, oldest, found = key, e.lastUsed, true
		}
	}
	if found {
		c.remove(victim)
	}
}

// CaptureCommit gives the pins of the running capture to graph.
func (c *Cache[V]) CaptureCommit(graph uint64) {
	keys := make([]string, 0, len(c.captured))
	for key := range c.captured {
		keys = append(keys, key)
	}
	clear(c.captured)
	c.graphs[graph] = keys
}

// CaptureDiscard drops the pins of the running capture.
func (c *Cache[V]) CaptureDiscard() {
	for key := range c.captured {
		if e, ok := c.entries[key]; ok && e.pins > 0 {
			e.pins--
		}
	}
	clear(c.captured)
}

// GraphRelease drops the pins of graph and every entry left without any.
func (c *Cache[V]) GraphRelease(graph uint64) {
	for _, key := range c.graphs[graph] {
		e, ok := c.entries[key]
		if !ok {
			continue
		}
		if e.pins > 0 {
			e.pins--
		}
		if e.pins == 0 {
			c.remove(key)
		}
	}
	delete(c.graphs, graph)
}

// ClearUnpinned drops every entry without a pin.
func (c *Cache[V]) ClearUnpinned() {
	for key, e := range c.entries {
		if e.pins == 0 {
			c.remove(key)
		}
	}
}

// Clear drops every entry, pinned or not, and forgets no graph.
func (c *Cache[V]) Clear() {
	for key := range c.entries {
		c.remove(key)
	}
}

// Visited returns how many entries evictions have looked at: each looks at all.
func (c *Cache[V]) Visited() int { return c.visited }

// Len returns the number of entries.
func (c *Cache[V]) Len() int { return len(c.entries) }

func (c *Cache[V]) remove(key string) {
	e := c.entries[key]
	delete(c.entries, key)
	c.release(e.value)
}

func (c *Cache[V]) shouldCache(mode Mode, size int) bool {
	return mode == Capture || (c.maxEntries > 0 && size <= c.maxCachedSize)
}

// view is words as a map key that must not outlive the call: it shares their
// memory.
func view(words []uint64) string {
	return unsafe.String((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 8*len(words))
}

func clone(words []uint64) string {
	return strings.Clone(view(words))
}
