package metacache_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vkcompute/metacache"
)

// goRound looks up the keys below n in turn, and says whether the cache foresaw
// each of them.
func goRound(t *testing.T, c *metacache.Cache[int], n uint64) (foreseen bool) {
	t.Helper()
	foreseen = true
	for key := range n {
		foreseen = foreseen && c.Foresees(words(key))
		v, hit, _ := c.Lookup(words(key))
		require.True(t, hit)
		require.Equal(t, int(key), v)
	}
	return foreseen
}

func TestARepeatedOrderIsForeseen(t *testing.T) {
	for _, n := range []uint64{1, 2, 10, 1000} {
		c, _ := newCache(t, policy(1000))
		for key := range n {
			put(t, c.Lookup, words(key), int(key))
		}
		goRound(t, c, n)
		goRound(t, c, n)
		assert.True(t, goRound(t, c, n), "%d infos", n)

		// Also among entries that a graph pins.
		k := begin(t, c)
		for key := range n {
			k.Lookup(words(key))
		}
		require.NoError(t, k.Commit(1))
		goRound(t, c, n)
		goRound(t, c, n)
		assert.True(t, goRound(t, c, n), "%d infos", n)
	}
}

func TestAWrongGuessIsNoHit(t *testing.T) {
	c, _ := newCache(t, policy(8))
	for key := range uint64(3) {
		put(t, c.Lookup, words(key), int(key))
	}
	goRound(t, c, 3)
	require.True(t, goRound(t, c, 3))
	v, hit, _ := c.Lookup(words(2)) // 0 would be next
	assert.True(t, hit)
	assert.Equal(t, 2, v)
	goRound(t, c, 3)
	require.True(t, goRound(t, c, 3))
	_, hit, _ = c.Lookup(words(7))
	assert.False(t, hit)
}

// TestAGuessDoesNotOutliveItsEntry: what the cache foresaw is removed before it
// is looked up.
func TestAGuessDoesNotOutliveItsEntry(t *testing.T) {
	for name, remove := range map[string]func(*metacache.Cache[int]){
		"ClearUnpinned": func(c *metacache.Cache[int]) { c.ClearUnpinned() },
		"eviction": func(c *metacache.Cache[int]) {
			_, err := c.Insert(words(100), 100)
			require.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := newCache(t, policy(3))
			for key := range uint64(3) {
				put(t, c.Lookup, words(key), int(key))
			}
			goRound(t, c, 3)
			goRound(t, c, 3)
			require.True(t, c.Foresees(words(0)))
			remove(c)
			require.NoError(t, c.Validate())
			_, hit, _ := c.Lookup(words(0))
			assert.False(t, hit)
		})
	}
}

// TestTheEmptyKeyIsNoRoot: the root of a list is the neighbour of its newest
// entry and must not be taken for the entry of the empty key.
func TestTheEmptyKeyIsNoRoot(t *testing.T) {
	c, _ := newCache(t, policy(3))
	put(t, c.Lookup, words(1), 1)
	for range 3 {
		c.Lookup(words(1))
		_, hit, _ := c.Lookup(nil)
		require.False(t, hit)
	}
}
