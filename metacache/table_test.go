package metacache_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vkcompute/metacache"
)

// TestInfosOfOneTagAreToldApart: more infos than tags, stored, found, evicted
// and released like any others.
func TestInfosOfOneTagAreToldApart(t *testing.T) {
	const entries = 20
	released := map[int]int{}
	c, err := metacache.New(policy(entries), func(v int) { released[v]++ })
	require.NoError(t, err)
	c.Crowd()
	for n := range uint64(3 * entries) {
		put(t, c.Lookup, words(n), int(n))
		require.NoError(t, c.Validate())
		for older := range n + 1 {
			if older+entries > n {
				v, hit, _ := c.Lookup(words(older))
				require.True(t, hit)
				require.Equal(t, int(older), v)
			} else {
				require.Equal(t, 1, released[int(older)])
			}
		}
	}
	k := begin(t, c)
	_, hit, _ := k.Lookup(words(3*entries - 1))
	require.True(t, hit)
	require.NoError(t, k.Commit(1))
	c.ClearUnpinned()
	assert.Equal(t, 1, c.Len())
	assert.True(t, c.GraphRelease(1))
	assert.Zero(t, c.Len())
	assert.Len(t, released, 3*entries)
	require.NoError(t, c.Validate())
}
