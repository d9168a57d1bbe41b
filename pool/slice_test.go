package pool

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vkcompute/vk"
)

func valid(t testing.TB, m *Manager) {
	t.Helper()
	require.NoError(t, m.Validate())
}

func TestSliceLivesUntilItsLastReference(t *testing.T) {
	m, _, _ := newFake(t, Options{})
	s, err := m.Alloc(1000)
	require.NoError(t, err)
	require.True(t, s.Valid())
	assert.Equal(t, uint64(1000), s.Size())
	assert.Len(t, s.Mapped(), 1000)
	require.NoError(t, s.Retain())
	require.NoError(t, s.Release())
	require.True(t, s.Valid())
	require.NoError(t, s.Release())
	require.False(t, s.Valid())
	valid(t, m)
}

func TestMisuseIsAnErrorAndChangesNothing(t *testing.T) {
	m, _, _ := newFake(t, Options{})
	other, _, _ := newFake(t, Options{})
	s, err := m.Alloc(1000)
	require.NoError(t, err)
	stale := s
	require.NoError(t, s.Release())
	next, err := m.Alloc(1000) // the same slot, the next generation
	require.NoError(t, err)

	for name, bad := range map[string]Slice{"stale": stale, "zero": {}} {
		t.Run(name, func(t *testing.T) {
			assert.ErrorIs(t, bad.Release(), ErrReleased)
			assert.ErrorIs(t, bad.Retain(), ErrReleased)
			assert.ErrorIs(t, bad.Use(7), ErrReleased)
			assert.ErrorIs(t, bad.UseOn(&fakeTimeline{}, 7), ErrReleased)
			assert.ErrorIs(t, bad.Written(0, 1), ErrReleased)
			assert.ErrorIs(t, bad.HandOver(User, Cache), ErrReleased)
			_, _, err := bad.InvalidateRange(0, 1)
			assert.ErrorIs(t, err, ErrReleased)
			assert.ErrorIs(t, m.Check(bad), ErrReleased)
			assert.Nil(t, bad.Mapped())
			assert.Nil(t, bad.Buffer())
			assert.Zero(t, bad.Offset())
			assert.Zero(t, bad.Size())
			assert.Zero(t, bad.LastUse())
		})
	}
	assert.ErrorIs(t, other.Check(next), ErrForeign)
	assert.NoError(t, m.Check(next))
	assert.True(t, next.Valid())
	assert.Zero(t, next.LastUse())
	assert.NotEqual(t, stale, next)
	valid(t, m)
	assert.Equal(t, 1, m.Stats().Total.Slices)
}

func TestHoldersAreCountedApart(t *testing.T) {
	m, _, _ := newFake(t, Options{})
	s, err := m.AllocInfo(64)
	require.NoError(t, err)
	require.ErrorIs(t, s.ReleaseAs(Graph), ErrNotHeld)
	require.ErrorIs(t, s.ReleaseAs(Cache), ErrNotHeld)
	require.ErrorIs(t, s.HandOver(Graph, Cache), ErrNotHeld)
	require.NoError(t, s.HandOver(User, Cache))
	require.NoError(t, s.RetainAs(Graph))
	require.NoError(t, s.RetainAs(Graph))
	require.ErrorIs(t, s.Release(), ErrNotHeld, "the user handed the reference over")
	st := m.Stats()
	assert.Equal(t, [2]int{1, 1}, [2]int{st.HeldByGraph, st.HeldByCache})
	require.NoError(t, s.ReleaseAs(Cache))
	require.NoError(t, s.ReleaseAs(Graph))
	require.True(t, s.Valid())
	require.NoError(t, s.ReleaseAs(Graph))
	require.False(t, s.Valid())
	st = m.Stats()
	assert.Equal(t, [2]int{0, 0}, [2]int{st.HeldByGraph, st.HeldByCache})
	assert.Error(t, Slice{}.RetainAs(Holder(9)))
	valid(t, m)
}

func TestZeroSizeSlicesAreAlive(t *testing.T) {
	m, src, _ := newFake(t, Options{})
	s, err := m.Alloc(0)
	require.NoError(t, err)
	require.True(t, s.Valid())
	assert.Nil(t, s.Buffer())
	assert.Zero(t, src.calls, "no page for no bytes")
	assert.Equal(t, 1, m.Stats().Total.Slices)
	require.NoError(t, s.Use(5))
	require.NoError(t, s.UseOn(&fakeTimeline{}, 5))
	require.NoError(t, s.Written(0, 0))
	require.ErrorIs(t, s.Written(0, 1), ErrBounds)
	valid(t, m)
	require.ErrorIs(t, m.Install(Layout{}), ErrInUse)
	require.NoError(t, s.Release())
	require.ErrorIs(t, s.Release(), ErrReleased)
	require.NoError(t, m.Install(Layout{}))
	valid(t, m)
}

func TestASlotWithoutGenerationsLeftIsNotUsedAgain(t *testing.T) {
	m, _, _ := newFake(t, Options{})
	s, err := m.Alloc(64)
	require.NoError(t, err)
	s.s.gen.Store(1<<32 - 2)
	s.gen = 1<<32 - 2
	require.NoError(t, s.Release())
	n, err := m.Alloc(64)
	require.NoError(t, err)
	assert.NotSame(t, s.s, n.s)
	valid(t, m)
}

func TestRolesAndAccessesNeverShareAPage(t *testing.T) {
	m, _, _ := newFake(t, Options{})
	alloc := []func() (Slice, error){
		func() (Slice, error) { return m.Alloc(64) },
		func() (Slice, error) { return m.AllocFor(64, vk.DeviceMemory, NextHost) },
		func() (Slice, error) { return m.AllocRole(64, vk.UploadMemory) },
		func() (Slice, error) { return m.AllocRole(64, vk.ReadbackMemory) },
		func() (Slice, error) { return m.AllocInfo(64) },
	}
	seen := map[*page]bool{}
	for _, f := range alloc {
		a, err := f()
		require.NoError(t, err)
		b, err := f()
		require.NoError(t, err)
		assert.Same(t, a.s.page, b.s.page)
		assert.False(t, seen[a.s.page])
		seen[a.s.page] = true
		assert.Zero(t, b.Offset()%m.Alignment())
	}
	_, err := m.AllocRole(64, vk.MemoryRole(99))
	assert.Error(t, err)
	valid(t, m)
}
