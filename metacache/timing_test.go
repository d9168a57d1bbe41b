package metacache_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vkcompute/internal/metaport/workload"
)

// evictionTime returns the time of a miss, its store and the eviction in a full
// cache of so many entries: the best of a few rounds, which is the one that
// nothing else on the machine disturbed.
func evictionTime(t *testing.T, entries int) time.Duration {
	miss, err := workload.Miss(entries)
	require.NoError(t, err)
	const n = 4000
	best := time.Duration(math.MaxInt64)
	for range 5 {
		begun := time.Now()
		require.NoError(t, miss.Cache(n))
		best = min(best, time.Since(begun)/n)
	}
	return best
}
