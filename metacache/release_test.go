package metacache_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vkcompute/metacache"
)

// TestReleaseMayNotTakeTheValueAStoreReturns: what the release function does
// while a store is releasing must not release the value that the store is about
// to return.
func TestReleaseMayNotTakeTheValueAStoreReturns(t *testing.T) {
	for name, callBack := range map[string]func(*metacache.Cache[int]){
		"ClearUnpinned": func(c *metacache.Cache[int]) { c.ClearUnpinned() },
		"GraphRelease":  func(c *metacache.Cache[int]) { c.GraphRelease(1) },
	} {
		t.Run(name, func(t *testing.T) {
			var (
				c        *metacache.Cache[int]
				released []int
				err      error
			)
			c, err = metacache.New(policy(2), func(v int) {
				released = append(released, v)
				callBack(c)
				require.NoError(t, c.Validate())
			})
			require.NoError(t, err)
			k := begin(t, c)
			put(t, k.Lookup, words(1), 1)
			require.NoError(t, k.Commit(1))
			kept, err := c.Insert(words(1), 2) // releases 2, which calls back
			require.NoError(t, err)
			assert.Equal(t, 1, kept)
			assert.Equal(t, []int{2}, released)
			v, hit, _ := c.Lookup(words(1))
			assert.True(t, hit)
			assert.Equal(t, 1, v)

			put(t, c.Lookup, words(3), 3)
			put(t, c.Lookup, words(4), 4)
			put(t, c.Lookup, words(5), 5) // evicts, which calls back
			_, hit, _ = c.Lookup(words(5))
			assert.True(t, hit)
		})
	}
}

// TestReleaseMayLookUp: a look-up inside the release function sees the cache as
// the operation leaves it, and what it misses can be stored afterwards.
func TestReleaseMayLookUp(t *testing.T) {
	var (
		c    *metacache.Cache[int]
		late metacache.Miss[int]
		err  error
	)
	key := words(1)
	c, err = metacache.New(policy(1), func(v int) {
		_, hit, miss := c.Lookup(key)
		assert.False(t, hit, "%d is gone when it is released", v)
		_, err := miss.Store(v)
		require.ErrorIs(t, err, metacache.ErrReleasing)
		late = miss
		_, hit, _ = c.Lookup(words(2))
		assert.True(t, hit)
	})
	require.NoError(t, err)
	put(t, c.Lookup, key, 1)
	put(t, c.Lookup, words(2), 2)
	require.True(t, late.Wanted())
	assert.Equal(t, 1, c.Len())
	require.NoError(t, c.Validate())
}

// TestAPanicInReleasePassesThrough and leaves the other values to be released.
func TestAPanicInReleasePassesThrough(t *testing.T) {
	var released []int
	c, err := metacache.New(policy(4), func(v int) {
		released = append(released, v)
		if v == 1 {
			panic("release of 1")
		}
	})
	require.NoError(t, err)
	for n := range 3 {
		put(t, c.Lookup, words(uint64(n)), n)
	}
	assert.PanicsWithValue(t, "release of 1", func() { c.ClearUnpinned() })
	assert.Equal(t, []int{0, 1}, released)
	assert.Zero(t, c.Len())
	require.NoError(t, c.Validate())

	put(t, c.Lookup, words(9), 9)
	require.NoError(t, c.Close())
	assert.Equal(t, []int{0, 1, 2, 9}, released)
}

// TestAPanicInReleaseDuringCloseLosesNothing: closing again goes on.
func TestAPanicInReleaseDuringCloseLosesNothing(t *testing.T) {
	var released []int
	c, err := metacache.New(policy(4), func(v int) {
		released = append(released, v)
		if v == 0 {
			panic("release of 0")
		}
	})
	require.NoError(t, err)
	for n := range 3 {
		put(t, c.Lookup, words(uint64(n)), n)
	}
	assert.Panics(t, func() { _ = c.Close() })
	require.NoError(t, c.Close())
	assert.Equal(t, []int{0, 1, 2}, released)
}
