package metacache_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/internal/metaport"
	"vkcompute/internal/metaport/trace"
	"vkcompute/metacache"
)

// subject is what the cache and the port of the reference have in common, so
// that a test of a property can be shown to fail on a cache without it.
type subject interface {
	// lookup returns a hit's value, or the store for what was missed; that is
	// nil if no store is wanted.
	lookup(mode metacache.Mode, words []uint64) (value uint64, hit bool, store storeFunc)
	// insert stores in Normal mode without a look-up.
	insert(words []uint64, value uint64) (kept uint64, err error)
	begin() error
	commit(graph uint64) error
	discard() error
	graphRelease(graph uint64)
	clearUnpinned()
	clear() error
	len() int
	// takeReleased returns the values released since it was called last,
	// ascending.
	takeReleased() []uint64
	validate() error
}

type storeFunc func(value uint64) (kept uint64, err error)

// ours is the cache as a subject and as a target of traces.
type ours struct {
	cache    *metacache.Cache[uint64]
	capture  *metacache.Capture[uint64]
	released []uint64
	pending  metacache.Miss[uint64]
}

func newOurs(p metacache.Policy) (*ours, error) {
	o := &ours{}
	cache, err := metacache.New(p, func(v uint64) { o.released = append(o.released, v) })
	o.cache = cache
	return o, err
}

func (o *ours) find(mode metacache.Mode, words []uint64) (uint64, bool, metacache.Miss[uint64], error) {
	if mode == metacache.Normal {
		v, hit, miss := o.cache.Lookup(words)
		return v, hit, miss, nil
	}
	if err := o.begin(); err != nil {
		return 0, false, metacache.Miss[uint64]{}, err
	}
	v, hit, miss := o.capture.Lookup(words)
	return v, hit, miss, nil
}

func (o *ours) lookup(mode metacache.Mode, words []uint64) (uint64, bool, storeFunc) {
	v, hit, miss, err := o.find(mode, words)
	if err != nil || hit || !miss.Wanted() {
		return v, hit, nil
	}
	return 0, false, miss.Store
}

func (o *ours) insert(words []uint64, value uint64) (uint64, error) {
	return o.cache.Insert(words, value)
}

// begin opens a capture unless one is open, as the traces need it.
func (o *ours) begin() (err error) {
	if o.capture == nil {
		o.capture, err = o.cache.Begin()
	}
	return err
}

func (o *ours) commit(graph uint64) error {
	if err := o.begin(); err != nil {
		return err
	}
	err := o.capture.Commit(metacache.GraphID(graph))
	if err == nil {
		o.capture = nil
	}
	return err
}

func (o *ours) discard() error {
	if err := o.begin(); err != nil {
		return err
	}
	err := o.capture.Discard()
	o.capture = nil
	return err
}

func (o *ours) graphRelease(graph uint64) { o.cache.GraphRelease(metacache.GraphID(graph)) }
func (o *ours) clearUnpinned()            { o.cache.ClearUnpinned() }
func (o *ours) clear() error              { return o.cache.Clear() }
func (o *ours) len() int                  { return o.cache.Len() }
func (o *ours) validate() error           { return o.cache.Validate() }

func (o *ours) takeReleased() []uint64 {
	released := o.released
	o.released = nil
	slices.Sort(released)
	return released
}

// The rest makes ours a trace.Target.

func (o *ours) Lookup(mode metaport.Mode, words []uint64) (uint64, trace.Answer, error) {
	v, hit, miss, err := o.find(metacache.Mode(mode), words)
	o.pending = miss
	switch {
	case hit:
		return v, trace.Hit, err
	case miss.Wanted():
		return 0, trace.MissStore, err
	}
	return 0, trace.MissKeep, err
}

func (o *ours) Store(_ []uint64, value uint64) error {
	_, err := o.pending.Store(value)
	return err
}

func (o *ours) CaptureCommit(graph uint64) error { return o.commit(graph) }
func (o *ours) CaptureDiscard() error            { return o.discard() }
func (o *ours) GraphRelease(graph uint64)        { o.graphRelease(graph) }
func (o *ours) ClearUnpinned()                   { o.clearUnpinned() }
func (o *ours) Len() int                         { return o.len() }
func (o *ours) TakeReleased() []uint64           { return o.takeReleased() }

// port is the port of the reference as a subject.
type port struct {
	cache    *metaport.Cache[uint64]
	released []uint64
}

func newPort(p metacache.Policy) (*port, error) {
	s := &port{}
	cache, err := metaport.New(p.MaxEntries, p.MaxCachedSize, func(v uint64) { s.released = append(s.released, v) })
	s.cache = cache
	return s, err
}

func (s *port) lookup(mode metacache.Mode, words []uint64) (uint64, bool, storeFunc) {
	v, hit, store := s.cache.Lookup(metaport.Mode(mode), words)
	if !store {
		return v, hit, nil
	}
	return 0, false, func(value uint64) (uint64, error) { return s.insert(words, value) }
}

func (s *port) insert(words []uint64, value uint64) (uint64, error) {
	s.cache.Store(words, value)
	return value, nil
}

func (s *port) begin() error { return nil }

func (s *port) commit(graph uint64) error {
	s.cache.CaptureCommit(graph)
	return nil
}

func (s *port) discard() error {
	s.cache.CaptureDiscard()
	return nil
}

func (s *port) graphRelease(graph uint64) { s.cache.GraphRelease(graph) }
func (s *port) clearUnpinned()            { s.cache.ClearUnpinned() }

func (s *port) clear() error {
	s.cache.Clear()
	return nil
}

func (s *port) len() int { return s.cache.Len() }

func (s *port) takeReleased() []uint64 {
	released := s.released
	s.released = nil
	slices.Sort(released)
	return released
}

func (s *port) validate() error { return nil }

// words is a key of one word.
func words(n uint64) []uint64 { return []uint64{n} }

// policy bounds the entries, of at most two words each.
func policy(entries int) metacache.Policy {
	return metacache.Policy{MaxEntries: entries, MaxCachedSize: 16}
}

// newCache returns a cache and what it has released so far.
func newCache(t testing.TB, p metacache.Policy) (*metacache.Cache[int], *[]int) {
	t.Helper()
	released := &[]int{}
	c, err := metacache.New(p, func(v int) { *released = append(*released, v) })
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Validate()) })
	return c, released
}

// begin opens a capture.
func begin(t testing.TB, c *metacache.Cache[int]) *metacache.Capture[int] {
	t.Helper()
	k, err := c.Begin()
	require.NoError(t, err)
	return k
}

// put makes the look-up miss and stores v for it.
func put(t testing.TB, lookup func([]uint64) (int, bool, metacache.Miss[int]), key []uint64, v int) {
	t.Helper()
	_, hit, miss := lookup(key)
	require.False(t, hit)
	kept, err := miss.Store(v)
	require.NoError(t, err)
	require.Equal(t, v, kept)
}
