package metacache_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vkcompute/metacache"
)

func TestLookupsAllocateNothing(t *testing.T) {
	for _, admission := range []metacache.Admission{metacache.AdmitAll, metacache.AdmitFrequent} {
		p := metacache.Policy{MaxEntries: 2, MaxCachedSize: 64, Admission: admission}
		c, _ := newCache(t, p)
		k := begin(t, c)
		put(t, k.Lookup, []uint64{1, 2, 3, 4}, 1)
		put(t, c.Lookup, []uint64{5, 6, 7, 8}, 2)
		n := uint64(100)
		for name, look := range map[string]func(){
			// The words are on the caller's stack: the cache must not move them
			// to the heap either.
			"hit": func() {
				words := [4]uint64{5, 6, 7, 8}
				_, hit, _ := c.Lookup(words[:])
				require.True(t, hit)
			},
			"miss": func() {
				n++
				words := [4]uint64{n, 6, 7, 8}
				_, hit, _ := c.Lookup(words[:])
				require.False(t, hit)
			},
			"uncacheable miss": func() {
				words := [100]uint64{}
				_, _, miss := c.Lookup(words[:])
				require.False(t, miss.Wanted())
			},
			"capture hit": func() {
				words := [4]uint64{1, 2, 3, 4}
				_, hit, _ := k.Lookup(words[:])
				require.True(t, hit)
			},
			"capture miss": func() {
				n++
				words := [4]uint64{n, 2, 3, 4}
				_, _, miss := k.Lookup(words[:])
				require.True(t, miss.Wanted())
			},
		} {
			assert.Zero(t, testing.AllocsPerRun(1000, look), "%s, %s", name, admission)
		}
	}
}

func TestAStoreThatEvictsItsLikeAllocatesNothing(t *testing.T) {
	c, err := metacache.New(policy(64), func(int) {})
	require.NoError(t, err)
	n := uint64(0)
	store := func() {
		n++
		words := [2]uint64{n, 1}
		_, _, miss := c.Lookup(words[:])
		_, err := miss.Store(1)
		require.NoError(t, err)
	}
	for range 10_000 { // the map grows to its size
		store()
	}
	assert.Zero(t, testing.AllocsPerRun(1000, store))
}
