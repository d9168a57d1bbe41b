package metacache_test

import (
	"container/list"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRecencyIsExact compares every victim with that of a textbook list, for
// fewer and for many more entries and hits between stores than the cache puts
// off ordering.
func TestRecencyIsExact(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, entries := range []int{1, 10, 511, 512, 513, 1500} {
		for _, hitsPerStore := range []int{1, 20, 3000} {
			c, released := newCache(t, policy(entries))
			order, at := list.New(), map[uint64]*list.Element{}
			keys := make([]uint64, 0, entries) // those in the cache
			for n := range uint64(8000) {
				if len(keys) < entries || random.IntN(hitsPerStore) == 0 {
					put(t, c.Lookup, words(n), int(n))
					at[n] = order.PushFront(n)
					if len(keys) < entries {
						keys = append(keys, n)
						continue
					}
					oldest := order.Remove(order.Back()).(uint64)
					delete(at, oldest)
					require.Equal(t, []int{int(oldest)}, *released)
					*released = nil
					keys[slices.Index(keys, oldest)] = n
					continue
				}
				// Some keys come far more often than others.
				key := keys[int(float64(entries)*random.Float64()*random.Float64())]
				v, hit, _ := c.Lookup(words(key))
				require.True(t, hit)
				require.Equal(t, int(key), v)
				order.MoveToFront(at[key])
				if n%1000 == 0 {
					require.NoError(t, c.Validate())
				}
			}
			for order.Len() > 0 {
				put(t, c.Lookup, words(1<<20+uint64(order.Len())), -1)
				require.Equal(t, []int{int(order.Remove(order.Back()).(uint64))}, *released)
				*released = nil
			}
		}
	}
}

// TestADiscardKeepsTheOrderOfUse: entries that a discarded capture had pinned
// go back among the others where their last use puts them.
func TestADiscardKeepsTheOrderOfUse(t *testing.T) {
	c, released := newCache(t, policy(4))
	put(t, c.Lookup, words(1), 1)
	k := begin(t, c)
	put(t, k.Lookup, words(2), 2)
	put(t, c.Lookup, words(3), 3)
	put(t, k.Lookup, words(4), 4)
	c.Lookup(words(2)) // a use in Normal mode counts as well
	require.NoError(t, k.Discard())
	for n := 5; n < 9; n++ {
		put(t, c.Lookup, words(uint64(n)), n)
	}
	require.Equal(t, []int{1, 3, 4, 2}, *released)
}
