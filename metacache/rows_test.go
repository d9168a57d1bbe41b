package metacache_test

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vkcompute/metacache"
)

// A property is something that the reference gets wrong. Its check returns nil
// for a cache that has the property.
type property struct {
	name   string
	policy metacache.Policy
	check  func(subject) error
}

// properties that both caches can be asked about. The letters number the faults:
// the tests below have those that are missing here.
var properties = []property{
	{"A storing over a pinned key keeps the entry and its pins", policy(4), func(s subject) error {
		if err := recorded(s, 1, words(1), 10); err != nil {
			return err
		}
		kept, err := s.insert(words(1), 11)
		return errors.Join(err,
			equal("kept value", kept, 10),
			equal("released", s.takeReleased(), []uint64{11}),
			equal("survives ClearUnpinned", survivors(s, words(1)), 1))
	}},
	{"B storing over a pinned key in a capture keeps the recorded value", policy(4), func(s subject) error {
		_, _, store := s.lookup(metacache.Capturing, words(1))
		if _, _, again := s.lookup(metacache.Capturing, words(1)); again != nil {
			if _, err := store(10); err != nil {
				return err
			}
			kept, err := again(11)
			return errors.Join(err,
				equal("kept value", kept, 10),
				equal("released", s.takeReleased(), []uint64{11}))
		}
		return errors.New("want a miss until something is stored")
	}},
	{"C storing over a key pinned by an older graph keeps the older pins", policy(4), func(s subject) error {
		_, _, store := s.lookup(metacache.Capturing, words(1))
		_, _, late := s.lookup(metacache.Capturing, words(1))
		if _, err := store(10); err != nil {
			return err
		}
		if err := s.commit(1); err != nil {
			return err
		}
		// The late store belongs to a capture that is over; another look-up of
		// the second capture hits and pins.
		s.lookup(metacache.Capturing, words(1))
		_, _ = late(11)
		if err := s.commit(2); err != nil {
			return err
		}
		s.graphRelease(2)
		value, hit, _ := s.lookup(metacache.Normal, words(1))
		return errors.Join(equal("hit", hit, true), equal("value", value, 10))
	}},
	{"D committing an ID in use is an error and keeps the pins of both", policy(4), func(s subject) error {
		if err := recorded(s, 1, words(1), 10); err != nil {
			return err
		}
		_, _, store := s.lookup(metacache.Capturing, words(2))
		if _, err := store(20); err != nil {
			return err
		}
		if err := s.commit(1); !errors.Is(err, metacache.ErrGraphInUse) {
			return fmt.Errorf("want ErrGraphInUse, got %v", err)
		}
		if err := s.commit(2); err != nil {
			return err
		}
		s.graphRelease(1)
		first := s.takeReleased()
		s.graphRelease(2)
		return errors.Join(
			equal("released with the first", first, []uint64{10}),
			equal("released with the second", s.takeReleased(), []uint64{20}))
	}},
	{"E clear refuses while anything is pinned", policy(4), func(s subject) error {
		if err := recorded(s, 1, words(1), 10); err != nil {
			return err
		}
		if err := s.clear(); !errors.Is(err, metacache.ErrPinned) {
			return fmt.Errorf("want ErrPinned, got %v", err)
		}
		if released := s.takeReleased(); len(released) > 0 {
			return fmt.Errorf("want nothing released, got %v", released)
		}
		s.graphRelease(1)
		return s.clear()
	}},
	{"F the next store after a discarded capture restores the bound", policy(2), func(s subject) error {
		for n := range uint64(10) {
			_, _, store := s.lookup(metacache.Capturing, words(n))
			if _, err := store(n); err != nil {
				return err
			}
		}
		if err := s.discard(); err != nil {
			return err
		}
		_, _, store := s.lookup(metacache.Normal, words(100))
		_, err := store(100)
		return errors.Join(err,
			equal("entries", s.len(), 2),
			equal("released", s.takeReleased(), []uint64{0, 1, 2, 3, 4, 5, 6, 7, 8}))
	}},
	{"G pinned entries take no room from ordinary ones", policy(3), func(s subject) error {
		if err := manyRecorded(s, 1, 20); err != nil {
			return err
		}
		for n := uint64(100); n < 103; n++ {
			_, _, store := s.lookup(metacache.Normal, words(n))
			if _, err := store(n); err != nil {
				return err
			}
		}
		hits := 0
		for n := uint64(100); n < 103; n++ {
			if _, hit, _ := s.lookup(metacache.Normal, words(n)); hit {
				hits++
			}
		}
		return equal("ordinary entries that hit", hits, 3)
	}},
	{"H a running capture takes no room from ordinary entries", policy(3), func(s subject) error {
		for n := range uint64(20) {
			_, _, store := s.lookup(metacache.Capturing, words(n))
			if _, err := store(n); err != nil {
				return err
			}
		}
		for n := uint64(100); n < 104; n++ {
			_, _, store := s.lookup(metacache.Normal, words(n))
			if _, err := store(n); err != nil {
				return err
			}
		}
		return errors.Join(
			equal("released", s.takeReleased(), []uint64{100}),
			equal("entries", s.len(), 23))
	}},
	{"I a discard releases what Normal mode could never hit", policy(2), func(s subject) error {
		_, _, store := s.lookup(metacache.Capturing, []uint64{1, 2, 3})
		if _, err := store(10); err != nil {
			return err
		}
		_, _, store = s.lookup(metacache.Capturing, words(1))
		if _, err := store(11); err != nil {
			return err
		}
		return errors.Join(s.discard(),
			equal("released", s.takeReleased(), []uint64{10}),
			equal("entries", s.len(), 1))
	}},
	{"I a discard releases everything of a cache that is disabled", policy(0), func(s subject) error {
		_, _, store := s.lookup(metacache.Capturing, words(1))
		if _, err := store(10); err != nil {
			return err
		}
		return errors.Join(s.discard(), equal("released", s.takeReleased(), []uint64{10}))
	}},
	{"K entries stored without a look-up leave in the order they came", policy(64), func(s subject) error {
		s.lookup(metacache.Normal, words(1000)) // sets the mode of the reference
		for n := range uint64(64) {
			if _, err := s.insert(words(n), n); err != nil {
				return err
			}
		}
		for n := range uint64(64) {
			if _, err := s.insert(words(100+n), 100+n); err != nil {
				return err
			}
			if err := equal("victim", s.takeReleased(), []uint64{n}); err != nil {
				return err
			}
		}
		return nil
	}},
	{"M storing over a key at the bound evicts nobody", policy(2), func(s subject) error {
		s.lookup(metacache.Normal, words(1000))
		for n := range uint64(2) {
			if _, err := s.insert(words(n), n); err != nil {
				return err
			}
			s.lookup(metacache.Normal, words(n))
		}
		if _, err := s.insert(words(1), 11); err != nil {
			return err
		}
		_, hit, _ := s.lookup(metacache.Normal, words(0))
		return equal("the other entry hits", hit, true)
	}},
	{"Q a store belongs to its look-up, capture first", policy(2), func(s subject) error {
		_, _, captured := s.lookup(metacache.Capturing, words(1))
		s.lookup(metacache.Normal, words(2))
		if _, err := captured(10); err != nil {
			return err
		}
		if err := s.commit(1); err != nil {
			return err
		}
		return equal("survives ClearUnpinned", survivors(s, words(1)), 1)
	}},
	{"Q a store belongs to its look-up, normal first", policy(2), func(s subject) error {
		_, _, normal := s.lookup(metacache.Normal, words(1))
		s.lookup(metacache.Capturing, words(2))
		if _, err := normal(10); err != nil {
			return err
		}
		if err := s.commit(1); err != nil {
			return err
		}
		return equal("survives ClearUnpinned", survivors(s, words(1)), 0)
	}},
	{"U pins that were dropped are not dropped again", policy(4), func(s subject) error {
		// Graph 1 and graph 2 pin one entry each time it is stored; storing over
		// it, releasing and committing again must leave graph 2's pin alone.
		if err := recorded(s, 1, words(1), 10); err != nil {
			return err
		}
		s.lookup(metacache.Capturing, words(1))
		if err := s.commit(2); err != nil {
			return err
		}
		s.lookup(metacache.Normal, words(1000))
		if _, err := s.insert(words(1), 11); err != nil {
			return err
		}
		s.graphRelease(1)
		value, hit, _ := s.lookup(metacache.Normal, words(1))
		return errors.Join(equal("hit", hit, true), equal("value", value, 10))
	}},
}

func TestProperties(t *testing.T) {
	for _, p := range properties {
		t.Run(p.name, func(t *testing.T) {
			cache, err := newOurs(p.policy)
			require.NoError(t, err)
			require.NoError(t, p.check(cache))
			require.NoError(t, cache.validate())
		})
	}
}

// TestPropertiesFailOnTheReference: each check above finds the fault it is
// there for.
func TestPropertiesFailOnTheReference(t *testing.T) {
	for _, p := range properties {
		t.Run(p.name, func(t *testing.T) {
			reference, err := newPort(p.policy)
			require.NoError(t, err)
			require.Error(t, p.check(reference))
		})
	}
}

// The remaining properties concern what the reference does not have.

func TestLASecondBeginIsAnErrorAndChangesNothing(t *testing.T) {
	c, released := newCache(t, policy(4))
	first := begin(t, c)
	put(t, first.Lookup, words(1), 1)
	second, err := c.Begin()
	require.ErrorIs(t, err, metacache.ErrCaptureOpen)
	assert.Nil(t, second)

	// An abandoned capture ends by its own token and no other way, so its pins
	// cannot become another graph's.
	require.NoError(t, first.Discard())
	next := begin(t, c)
	put(t, next.Lookup, words(2), 2)
	require.NoError(t, next.Commit(1))
	c.ClearUnpinned()
	assert.Equal(t, []int{1}, *released)
}

// TestNEvictionDoesNotScan counts the entries that are looked at for a miss, its
// store and the eviction, in caches of 64 and of 32768 entries.
func TestNEvictionDoesNotScan(t *testing.T) {
	const misses = 10
	for _, admission := range []metacache.Admission{metacache.AdmitAll, metacache.AdmitFrequent} {
		for _, entries := range []int{64, 32768} {
			c, released := newCache(t, metacache.Policy{MaxEntries: entries, MaxCachedSize: 16, Admission: admission})
			for n := range uint64(entries) {
				put(t, c.Lookup, words(n), int(n))
			}
			require.Zero(t, c.Visited(), "there was room")
			for n := range uint64(misses) {
				if admission == metacache.AdmitAll {
					put(t, c.Lookup, words(1<<20+n), 0)
				} else {
					c.Lookup(words(1<<20 + n)) // seen once, as all are
				}
			}
			assert.Equal(t, uint64(misses), c.Visited(), "%d entries, %s: want one entry looked at for a miss", entries, admission)
			if admission == metacache.AdmitAll {
				assert.Len(t, *released, misses)
			}
		}
	}
	reference, err := newPort(policy(64))
	require.NoError(t, err)
	for n := range uint64(64 + misses) {
		_, _, store := reference.lookup(metacache.Normal, words(n))
		_, err := store(n)
		require.NoError(t, err)
	}
	assert.Equal(t, 64*misses, reference.cache.Visited(), "want the reference to scan")
}

func TestPOnlyWhatIsRecordedIsPinned(t *testing.T) {
	c, released := newCache(t, policy(8))
	put(t, c.Lookup, words(1), 1) // a launch before the capture
	k := begin(t, c)
	put(t, c.Lookup, words(2), 2) // one beside it
	put(t, k.Lookup, words(3), 3)
	require.NoError(t, k.Commit(1))
	assert.Equal(t, 1, c.Stats().PinnedEntries)
	c.ClearUnpinned()
	assert.ElementsMatch(t, []int{1, 2}, *released)
}

func TestRBytesAreBounded(t *testing.T) {
	p := metacache.Policy{MaxEntries: 100, MaxCachedSize: 64, MaxBytes: 100}
	c, released := newCache(t, p)
	put(t, c.Lookup, make([]uint64, 5), 1) // 40 bytes
	put(t, c.Lookup, make([]uint64, 6), 2) // 88
	assert.Empty(t, *released)
	put(t, c.Lookup, make([]uint64, 1), 3) // 96
	assert.Empty(t, *released)
	put(t, c.Lookup, make([]uint64, 7), 4) // 56 more: both older ones must go
	assert.Equal(t, []int{1, 2}, *released)
	assert.Equal(t, int64(64), c.Stats().UnpinnedBytes)

	// Pinned bytes are not in the bound.
	k := begin(t, c)
	put(t, k.Lookup, make([]uint64, 500), 5)
	require.NoError(t, k.Commit(1))
	put(t, c.Lookup, make([]uint64, 4), 6)
	assert.Equal(t, []int{1, 2}, *released)
	assert.Equal(t, int64(96), c.Stats().UnpinnedBytes)
	assert.Equal(t, int64(4000), c.Stats().PinnedBytes)
}

func TestRAnInfoLargerThanAllBytesIsNotCacheable(t *testing.T) {
	p := metacache.Policy{MaxEntries: 100, MaxCachedSize: 64, MaxBytes: 32}
	c, released := newCache(t, p)
	put(t, c.Lookup, words(1), 1)
	_, _, miss := c.Lookup(make([]uint64, 5))
	assert.False(t, miss.Wanted())
	assert.Empty(t, *released)
}

// recorded stores value under key in a capture committed as graph.
func recorded(s subject, graph uint64, key []uint64, value uint64) error {
	_, hit, store := s.lookup(metacache.Capturing, key)
	if hit {
		return errors.New("want a miss")
	}
	if _, err := store(value); err != nil {
		return err
	}
	if err := s.commit(graph); err != nil {
		return err
	}
	s.lookup(metacache.Normal, words(999)) // the reference stores by the last mode
	return nil
}

// manyRecorded records n infos.
func manyRecorded(s subject, graph, n uint64) error {
	for i := range n {
		_, _, store := s.lookup(metacache.Capturing, words(i))
		if _, err := store(i); err != nil {
			return err
		}
	}
	return s.commit(graph)
}

// survivors clears what is unpinned and returns how many of the keys still hit.
func survivors(s subject, keys ...[]uint64) int {
	s.clearUnpinned()
	n := 0
	for _, key := range keys {
		if _, hit, _ := s.lookup(metacache.Normal, key); hit {
			n++
		}
	}
	return n
}

func equal(what string, got, want any) error {
	if w := reflect.ValueOf(want); reflect.TypeOf(got) != w.Type() {
		want = w.Convert(reflect.TypeOf(got)).Interface()
	}
	if !reflect.DeepEqual(got, want) {
		return fmt.Errorf("%s: want %v, got %v", what, want, got)
	}
	return nil
}
