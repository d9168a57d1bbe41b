package pool_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/pool"
	"vkcompute/vk"
)

const mib = 1 << 20

// A slice that is larger in each step lies on one page in the end, not on one for each size it had.
func TestGrowingSlicesLeaveNoPagesBehind(t *testing.T) {
	for _, role := range []vk.MemoryRole{vk.DeviceMemory, vk.UploadMemory, vk.ReadbackMemory} {
		m, err := pool.NewVirtual(vk.DeviceInfo{}, nil, pool.Options{IdlePeriod: -1})
		require.NoError(t, err)
		most := uint64(0)
		for size := uint64(64 << 10); size < 2*mib; size += 40 << 10 {
			s, err := m.AllocRole(size, role)
			require.NoError(t, err)
			require.NoError(t, s.Release())
			require.NoError(t, m.Validate())
			most = max(most, m.Stats().Total.Reserved)
		}
		require.Less(t, most, uint64(3*mib), "the last slice has 2 MiB")
		require.NoError(t, m.Close())
	}
}

// A page on which something lies, or that commands may still use, stays.
func TestPagesInUseAreNotReplaced(t *testing.T) {
	var tl clock
	m, err := pool.NewVirtual(vk.DeviceInfo{}, &tl, pool.Options{IdlePeriod: -1})
	require.NoError(t, err)
	alloc := func(size uint64) pool.Slice {
		s, err := m.Alloc(size)
		require.NoError(t, err)
		return s
	}
	busy, alive := alloc(200<<10), alloc(220<<10)
	require.NotEqual(t, busy.Page(), alive.Page())
	require.NoError(t, busy.Use(1))
	require.NoError(t, busy.Release())
	next := alloc(300 << 10)
	require.Equal(t, 3, m.Stats().Total.Pages)
	tl.done.Store(1)
	last := alloc(400 << 10)
	require.Equal(t, 3, m.Stats().Total.Pages, "the first is gone, the last has come")
	for _, s := range []pool.Slice{alive, next, last} {
		require.True(t, s.Valid())
		require.NoError(t, s.Release())
	}
	require.NoError(t, m.Close())
}

// A program that does the same again and again makes no pages for ever.
func TestPagesSettle(t *testing.T) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		phases := make([][]uint64, 2+rnd.IntN(4))
		for i := range phases {
			phases[i] = make([]uint64, 1+rnd.IntN(12))
			most := 1 + rnd.Uint64N(6*mib)
			for k := range phases[i] {
				phases[i][k] = 1 + rnd.Uint64N(most)
			}
		}
		m, err := pool.NewVirtual(vk.DeviceInfo{}, nil, pool.Options{IdlePeriod: -1})
		require.NoError(t, err)
		seen := map[uint64]bool{}
		latest := 0 // round in which a page was made
		for round := range 60 {
			for _, sizes := range phases {
				var live []pool.Slice
				for _, size := range sizes {
					s, err := m.AllocRole(size, vk.UploadMemory)
					require.NoError(t, err)
					if !seen[s.Page()] {
						seen[s.Page()] = true
						latest = round
					}
					live = append(live, s)
				}
				for _, s := range live {
					require.NoError(t, s.Release())
				}
			}
		}
		require.Less(t, latest, 20, "seed %d: %d pages, the last made in round %d", seed, len(seen), latest)
		require.NoError(t, m.Close())
	}
}
