package metacache_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vkcompute/internal/metaport/workload"
	"vkcompute/metacache"
)

// launch looks a key up and stores it if that is wanted.
func launch(t *testing.T, c *metacache.Cache[int], key uint64) (hit bool) {
	t.Helper()
	_, hit, miss := c.Lookup(words(key))
	if miss.Wanted() {
		_, err := miss.Store(int(key))
		require.NoError(t, err)
	}
	return hit
}

func admitting(t *testing.T, entries int, a metacache.Admission) *metacache.Cache[int] {
	c, _ := newCache(t, metacache.Policy{MaxEntries: entries, MaxCachedSize: 64, Admission: a})
	return c
}

// TestAKeySeenOnceDoesNotDisplaceOneSeenOften: 60 keys come again each step,
// beside 20 that never do, in a cache of 64.
func TestAKeySeenOnceDoesNotDisplaceOneSeenOften(t *testing.T) {
	hits := map[metacache.Admission]int{}
	const steps, often, once = 200, 60, 20
	for _, admission := range []metacache.Admission{metacache.AdmitAll, metacache.AdmitFrequent} {
		c := admitting(t, 64, admission)
		fresh := uint64(1 << 20)
		for range steps {
			for key := range uint64(often) {
				if launch(t, c, key) {
					hits[admission]++
				}
				if key%3 == 0 {
					fresh++
					require.False(t, launch(t, c, fresh))
				}
			}
		}
		if admission == metacache.AdmitFrequent {
			s := c.Stats()
			assert.Greater(t, s.Rejected, uint64(steps*once*9/10))
			assert.Equal(t, s.Misses, s.Rejected+s.Stores)
		}
	}
	assert.Less(t, hits[metacache.AdmitAll], steps*often/10, "without the rule the fresh keys flush the others")
	assert.Greater(t, hits[metacache.AdmitFrequent], steps*often*95/100)
}

func TestAKeySeenOftenIsAdmitted(t *testing.T) {
	c := admitting(t, 8, metacache.AdmitFrequent)
	for range 2 {
		for key := range uint64(8) {
			launch(t, c, key)
		}
	}
	require.False(t, launch(t, c, 100))
	require.False(t, launch(t, c, 100))
	for range 10 {
		if launch(t, c, 100) {
			return
		}
	}
	t.Fatal("want a key that was looked up a dozen times in the cache")
}

// TestAdmissionComparesWithTheEntryThatWouldGo: the hits of the oldest entry
// make it the newest, so a new key competes with one that nobody asks for, even if
// nothing was stored since.
func TestAdmissionComparesWithTheEntryThatWouldGo(t *testing.T) {
	c, released := newCache(t, metacache.Policy{MaxEntries: 4, MaxCachedSize: 64, Admission: metacache.AdmitFrequent})
	for key := range uint64(4) {
		require.False(t, launch(t, c, key))
	}
	for range 10 {
		require.True(t, launch(t, c, 0))
	}
	for lookups := 1; len(*released) == 0; lookups++ {
		// Twice is enough, but for what rare collisions in the sketch add.
		require.LessOrEqual(t, lookups, 4, "want a key that came again in the place of one that came once")
		launch(t, c, 100)
	}
	assert.Equal(t, []int{1}, *released)
}

func TestAWorkingSetThatChangesIsFollowed(t *testing.T) {
	c := admitting(t, 64, metacache.AdmitFrequent)
	for range 100 {
		for key := range uint64(60) {
			launch(t, c, key)
		}
	}
	hits := 0
	for step := range 100 {
		for key := range uint64(60) {
			if launch(t, c, 1000+key) && step >= 40 {
				hits++
			}
		}
	}
	assert.Greater(t, hits, 60*60*95/100)
}

func TestWithRoomEveryKeyIsAdmitted(t *testing.T) {
	c := admitting(t, 64, metacache.AdmitFrequent)
	for key := range uint64(64) {
		_, _, miss := c.Lookup(words(key))
		require.True(t, miss.Wanted())
		launch(t, c, key)
	}
	assert.Equal(t, 64, c.Len())
	for range 6 {
		for key := range uint64(64) {
			launch(t, c, key)
		}
	}
	_, _, miss := c.Lookup(words(1000))
	assert.False(t, miss.Wanted(), "full, and seen less often than what is there")
	_, err := c.Insert(words(1000), 1)
	require.NoError(t, err, "Insert does not ask")
	assert.Equal(t, uint64(1), c.Stats().Rejected)
}

func TestALargeInfoSeenOnceDoesNotDisplaceManySmallOnes(t *testing.T) {
	c, released := newCache(t, metacache.Policy{MaxEntries: 100, MaxCachedSize: 64, MaxBytes: 64, Admission: metacache.AdmitFrequent})
	launch(t, c, 100) // the tail, seen once
	for range 8 {
		for key := range uint64(7) {
			launch(t, c, key)
		}
	}
	large := make([]uint64, 8)
	c.Lookup(large)
	_, _, miss := c.Lookup(large) // more often than the tail, not than the rest
	assert.False(t, miss.Wanted())
	assert.Empty(t, *released)
}

func TestACaptureIsNotAskedForAdmission(t *testing.T) {
	c := admitting(t, 1, metacache.AdmitFrequent)
	for range 10 {
		launch(t, c, 1)
	}
	k := begin(t, c)
	put(t, k.Lookup, words(2), 2)
	require.NoError(t, k.Commit(1))
	assert.True(t, launch(t, c, 2))
	assert.True(t, launch(t, c, 1))
}

// TestTheScalarWorkload holds the measured program to what it is there to show.
func TestTheScalarWorkload(t *testing.T) {
	rates := map[workload.Scalar]float64{}
	for _, s := range workload.Scalars() {
		c, err := workload.NewScalar(s)
		require.NoError(t, err)
		require.NoError(t, c.Run(300*workload.LaunchesPerStep))
		rates[s] = c.Stats().HitRate()
	}
	assert.Less(t, rates[workload.ScalarInKey], 0.1)
	assert.InDelta(t, 0.75, rates[workload.ScalarInKeyAdmission], 0.05)
	assert.Greater(t, rates[workload.ScalarPushed], 0.99)
}
