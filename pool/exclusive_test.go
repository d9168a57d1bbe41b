package pool_test

import (
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
