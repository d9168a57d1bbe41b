package pool_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/pool"
	"vkcompute/vk"
)

func TestExclusive(t *testing.T) {
	for _, c := range []struct {
		layout pool.Layout
		role   vk.MemoryRole
		size   uint64
		want   bool
	}{
		{pool.SubSlices(), vk.DeviceMemory, 64, false},
		{pool.SubSlices(), vk.DeviceMemory, 64 << 20, true},
		{pool.SubSlices(), vk.UploadMemory, 64, false},
		{pool.ExclusivePages(), vk.DeviceMemory, 64, true},
		{pool.ExclusivePages(), vk.UploadMemory, 64, true},
		{pool.ExclusivePages(), vk.InfoMemory, 64, false},
		{pool.ExclusivePages(), vk.DeviceMemory, 0, false}, // on no page at all
	} {
		m, err := pool.NewVirtual(vk.DeviceInfo{}, nil, pool.Options{Layout: c.layout})
		require.NoError(t, err)
		s, err := m.AllocRole(c.size, c.role)
		require.NoError(t, err)
		require.Equal(t, c.want, s.Exclusive(), "%v of %d bytes", c.role, c.size)
		other, err := m.AllocRole(c.size, c.role)
		require.NoError(t, err)
		if c.size > 0 {
			require.Equal(t, c.want, s.Page() != other.Page())
		}
		require.NoError(t, s.Release())
		require.False(t, s.Exclusive(), "it is gone")
		require.NoError(t, other.Release())
		require.NoError(t, m.Close())
	}
	require.False(t, pool.Slice{}.Exclusive())
}

// Free pages of one size, returned in any order and taken again in between.
func TestFreePagesOfOneSizeGoInAnyOrder(t *testing.T) {
	m, err := pool.NewVirtual(vk.DeviceInfo{}, nil, pool.Options{Layout: pool.ExclusivePages()})
	require.NoError(t, err)
	rnd := rand.New(rand.NewPCG(1, 1))
	for range 50 {
		live := make([]pool.Slice, 1+rnd.IntN(40))
		for i := range live {
			live[i], err = m.Alloc(4096 + uint64(rnd.IntN(2))<<20)
			require.NoError(t, err)
		}
		rnd.Shuffle(len(live), func(i, k int) { live[i], live[k] = live[k], live[i] })
		kept := rnd.IntN(len(live))
		for _, s := range live[kept:] {
			require.NoError(t, s.Release())
			require.NoError(t, m.Validate())
		}
		m.Cleanup()
		require.NoError(t, m.Validate())
		require.Equal(t, kept, m.Stats().Total.Pages)
		for _, s := range live[:kept] {
			require.NoError(t, s.Release())
		}
		if rnd.IntN(2) == 0 {
			m.Cleanup()
			require.Zero(t, m.Stats().Total.Pages)
		}
		require.NoError(t, m.Validate())
	}
	require.NoError(t, m.Close())
}
