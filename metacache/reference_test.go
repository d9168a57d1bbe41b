package metacache_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vkcompute/metacache"
)

// The tests in this file are the reference's own, by the properties it names.

func TestNormalModeGatesOnSize(t *testing.T) {
	c, _ := newCache(t, policy(4))
	_, hit, miss := c.Lookup([]uint64{1, 2})
	assert.False(t, hit)
	assert.True(t, miss.Wanted(), "16 bytes are within 16")

	_, hit, miss = c.Lookup([]uint64{1, 2, 3})
	assert.False(t, hit)
	assert.False(t, miss.Wanted(), "24 bytes are not")
}

func TestClearUnpinnedKeepsOnlyGraphPinnedEntries(t *testing.T) {
	c, released := newCache(t, policy(4))
	put(t, c.Lookup, words(1), 1)
	k := begin(t, c)
	put(t, k.Lookup, words(2), 2)
	require.NoError(t, k.Commit(1))

	c.ClearUnpinned()
	assert.Equal(t, []int{1}, *released)
	_, hit, _ := c.Lookup(words(2))
	assert.True(t, hit)
	assert.Equal(t, 1, c.Len())
}

func TestCaptureCachesAnySize(t *testing.T) {
	c, _ := newCache(t, policy(4))
	large := make([]uint64, 1000)
	k := begin(t, c)
	put(t, k.Lookup, large, 1)
	v, hit, _ := k.Lookup(large)
	assert.True(t, hit)
	assert.Equal(t, 1, v)
}

func TestHitReturnsTheValueAndRecordsUse(t *testing.T) {
	c, released := newCache(t, policy(2))
	put(t, c.Lookup, words(1), 1)
	put(t, c.Lookup, words(2), 2)
	v, hit, _ := c.Lookup(words(1))
	assert.True(t, hit)
	assert.Equal(t, 1, v)

	put(t, c.Lookup, words(3), 3)
	assert.Equal(t, []int{2}, *released, "the hit made 1 younger than 2")
}

func TestNormalModeEvictsTheLeastRecentlyUsed(t *testing.T) {
	c, released := newCache(t, policy(2))
	for n := range 5 {
		put(t, c.Lookup, words(uint64(n)), n)
	}
	assert.Equal(t, []int{0, 1, 2}, *released)
	assert.Equal(t, 2, c.Len())
}

func TestCaptureIsUnbounded(t *testing.T) {
	c, released := newCache(t, policy(2))
	k := begin(t, c)
	for n := range 100 {
		put(t, k.Lookup, words(uint64(n)), n)
	}
	assert.Equal(t, 100, c.Len())
	assert.Empty(t, *released)
}

func TestZeroCapacityDisables(t *testing.T) {
	c, _ := newCache(t, policy(0))
	_, hit, miss := c.Lookup(words(1))
	assert.False(t, hit)
	assert.False(t, miss.Wanted())
	_, err := c.Insert(words(1), 1)
	require.ErrorIs(t, err, metacache.ErrNotCacheable)
	assert.Zero(t, c.Len())
}

func TestPinnedSurvivesEvictionUntilItsGraphIsReleased(t *testing.T) {
	c, released := newCache(t, policy(2))
	k := begin(t, c)
	put(t, k.Lookup, words(1), 1)
	require.NoError(t, k.Commit(7))
	for n := 10; n < 20; n++ {
		put(t, c.Lookup, words(uint64(n)), n)
	}
	assert.NotContains(t, *released, 1)
	v, hit, _ := c.Lookup(words(1))
	assert.True(t, hit)
	assert.Equal(t, 1, v)

	assert.True(t, c.GraphRelease(7))
	assert.Contains(t, *released, 1)
	_, hit, _ = c.Lookup(words(1))
	assert.False(t, hit)
}

func TestCaptureHitOnANormalEntryPinsIt(t *testing.T) {
	c, released := newCache(t, policy(1))
	put(t, c.Lookup, words(1), 1)
	k := begin(t, c)
	_, hit, _ := k.Lookup(words(1))
	require.True(t, hit)
	require.NoError(t, k.Commit(1))
	put(t, c.Lookup, words(2), 2)
	put(t, c.Lookup, words(3), 3)
	assert.Equal(t, []int{2}, *released)

	assert.True(t, c.GraphRelease(1))
	assert.Equal(t, []int{2, 1}, *released)
}

func TestPinsAreReferenceCountedAcrossGraphs(t *testing.T) {
	c, released := newCache(t, policy(2))
	k := begin(t, c)
	put(t, k.Lookup, words(1), 1)
	_, hit, _ := k.Lookup(words(1))
	require.True(t, hit, "a second use in one capture is no second pin")
	require.NoError(t, k.Commit(1))
	k = begin(t, c)
	_, hit, _ = k.Lookup(words(1))
	require.True(t, hit)
	require.NoError(t, k.Commit(2))

	assert.True(t, c.GraphRelease(1))
	assert.Empty(t, *released)
	assert.True(t, c.GraphRelease(2))
	assert.Equal(t, []int{1}, *released)
	assert.False(t, c.GraphRelease(2))
}

func TestCaptureDiscardUnpinsWithoutRemoving(t *testing.T) {
	c, released := newCache(t, policy(2))
	k := begin(t, c)
	put(t, k.Lookup, words(1), 1)
	require.NoError(t, k.Discard())
	assert.Empty(t, *released)
	_, hit, _ := c.Lookup(words(1))
	assert.True(t, hit)

	c.ClearUnpinned()
	assert.Equal(t, []int{1}, *released)
}
