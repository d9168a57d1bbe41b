package metacache_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vkcompute/metacache"
)

func TestStats(t *testing.T) {
	c, _ := newCache(t, policy(2))
	assert.Equal(t, metacache.Stats{}, c.Stats())
	assert.Zero(t, c.Stats().HitRate())

	put(t, c.Lookup, words(1), 1)
	put(t, c.Lookup, words(2), 2)
	put(t, c.Lookup, []uint64{3, 3}, 3)
	c.Lookup(words(2))
	c.Lookup(make([]uint64, 3))
	k := begin(t, c)
	put(t, k.Lookup, make([]uint64, 300), 4)
	k.Lookup(words(2))
	require.NoError(t, k.Commit(1))

	s := c.Stats()
	assert.Equal(t, metacache.Stats{
		Hits: 2, Misses: 5, Uncacheable: 1, Stores: 4, Evictions: 1,
		PinnedEntries: 2, PinnedBytes: 2408, UnpinnedEntries: 1, UnpinnedBytes: 16, Graphs: 1,
	}, s)
	assert.Equal(t, uint64(7), s.Lookups())
	assert.Equal(t, int64(2424), s.LiveBytes())
	assert.InDelta(t, 2.0/7, s.HitRate(), 1e-9)
	assert.Equal(t, "2 of 7 look-ups hit (28.6 %), 1 uncacheable, 0 rejected; 4 stored, 1 evicted; 1 entries (16 B) unpinned, 2 entries (2.4 KiB) pinned, by 1 graphs", s.String())

	k = begin(t, c)
	k.Lookup(words(2))
	put(t, k.Lookup, words(5), 5)
	s = c.Stats()
	assert.Equal(t, 1, s.Captures)
	assert.Equal(t, 2, s.CapturePins)
	assert.Equal(t, 3, s.PinnedEntries)
	assert.Contains(t, s.String(), "3 entries (2.4 KiB) pinned, by 1 graphs and a running capture of 2")
}

func TestStatsStringScales(t *testing.T) {
	assert.Contains(t, metacache.Stats{UnpinnedBytes: 3 << 20}.String(), "3.0 MiB")
	assert.Contains(t, metacache.Stats{UnpinnedBytes: 5 << 30}.String(), "5.0 GiB")
}
