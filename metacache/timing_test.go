package metacache_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vkcompute/internal/metaport/workload"
)

// missTime is the time of a miss, its store and the eviction for it.
type missTime struct{ cache, port time.Duration }

// missTimes measures full caches of so many entries.
func missTimes(t *testing.T, entries int) missTime {
	miss, err := workload.Miss(entries)
	require.NoError(t, err)
	return missTime{cache: best(t, miss.Cache, 2000), port: best(t, miss.Port, 20)}
}

// best returns the time of one operation in the best of a few rounds of n,
// which is the one that nothing else on the machine disturbed.
func best(t *testing.T, run func(int) error, n int) time.Duration {
	least := time.Duration(math.MaxInt64)
	for range 5 {
		begun := time.Now()
		require.NoError(t, run(n))
		least = min(least, time.Since(begun))
	}
	return least / time.Duration(n)
}
