package pool

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vkcompute/vk"
)

func newNonCoherent(t testing.TB, align, atom uint64) (*Manager, *fakeTimeline) {
	t.Helper()
	src, tl := newFakeSource(), &fakeTimeline{}
	src.coherent = false
	limits := fakeLimits()
	limits.MinStorageBufferAlignment, limits.NonCoherentAtomSize = align, atom
	m, err := newManager(src, limits, tl, Options{})
	require.NoError(t, err)
	return m, tl
}

func TestFlushesAreRoundedMergedAndTakenOnce(t *testing.T) {
	m, _ := newNonCoherent(t, 16, 64)
	a, err := m.AllocInfo(200)
	require.NoError(t, err)
	b, err := m.AllocInfo(40)
	require.NoError(t, err)
	require.Equal(t, uint64(256), b.Offset()-a.Offset(), "atoms are not shared")
	require.NoError(t, a.Written(65, 10))
	require.NoError(t, b.Written(39, 1))
	require.NoError(t, a.Written(0, 1)) // adjacent to the first, but not written next to it
	require.ErrorIs(t, a.Written(200, 1), ErrBounds)
	require.ErrorIs(t, a.Written(1<<63, 1<<63), ErrBounds)
	require.NoError(t, a.Release()) // what was written stays pending
	valid(t, m)
	got := m.PendingFlushes(nil)
	require.Equal(t, []vk.FlushRange{
		{Offset: a0(a), Size: 128},
		{Offset: a0(a) + 256, Size: 64},
	}, got)
	m.FlushesDone(got, nil)
	assert.Empty(t, m.PendingFlushes(nil))
	valid(t, m)
}

// a0 returns the offset of a slice that was released, and first in its page.
func a0(Slice) uint64 { return 0 }

func TestSmallSlicesOfTheHostHaveTheirAtomsToThemselves(t *testing.T) {
	for _, atom := range []uint64{64, 256, 4096} {
		m, _ := newNonCoherent(t, 16, atom)
		for range 10 {
			for _, f := range []func() (Slice, error){
				func() (Slice, error) { return m.AllocInfo(24) },
				func() (Slice, error) { return m.AllocRole(24, vk.UploadMemory) },
				func() (Slice, error) { return m.AllocFor(24, vk.DeviceMemory, NextHost) },
			} {
				s, err := f()
				require.NoError(t, err)
				assert.Zero(t, s.Offset()%atom)
				assert.NotNil(t, s.Mapped())
			}
		}
		valid(t, m)
	}
}

func TestTheHostCannotWriteWhatCommandsWriteOnNonCoherentMemory(t *testing.T) {
	m, _ := newNonCoherent(t, 16, 64)
	s, err := m.Alloc(100)
	require.NoError(t, err)
	assert.Nil(t, s.Mapped())
	assert.ErrorIs(t, s.Written(0, 4), ErrNotHostWritable)
	r, err := m.AllocRole(100, vk.ReadbackMemory)
	require.NoError(t, err)
	assert.NotNil(t, r.Mapped())
	assert.ErrorIs(t, r.Written(0, 4), ErrNotHostWritable)
	rng, needed, err := r.InvalidateRange(70, 20)
	require.NoError(t, err)
	assert.True(t, needed)
	assert.Equal(t, vk.FlushRange{Offset: 64, Size: 64}, rng)
	_, _, err = r.InvalidateRange(70, 31)
	assert.ErrorIs(t, err, ErrBounds)
	assert.Empty(t, m.PendingFlushes(nil))
}

func TestFlushesThatFailedArePendingAgain(t *testing.T) {
	m, _ := newNonCoherent(t, 16, 64)
	s, err := m.AllocInfo(100)
	require.NoError(t, err)
	buf := new(vk.Buffer) // only compared
	s.s.page.mem.buf = buf
	require.NoError(t, s.Written(70, 1))
	taken := m.PendingFlushes(nil)
	require.Len(t, taken, 1)
	m.FlushesDone(append(taken, vk.FlushRange{Buffer: new(vk.Buffer), Offset: 0, Size: 64}), errFake)
	again := m.PendingFlushes(nil)
	assert.Equal(t, taken, again)
	m.FlushesDone(again, nil)
	assert.Empty(t, m.PendingFlushes(nil))
	valid(t, m)
}

// A page that somebody else returns while the driver flushes it is closed afterwards.
func TestPagesOutliveTheirFlushes(t *testing.T) {
	m, _ := newNonCoherent(t, 16, 64)
	src := m.src.(*fakeSource)
	s, err := m.AllocInfo(100)
	require.NoError(t, err)
	require.NoError(t, s.Written(0, 100))
	taken := m.PendingFlushes(nil)
	require.NoError(t, s.Release())
	m.Cleanup()
	require.Len(t, src.open, 1)
	m.FlushesDone(taken, errFake)
	require.Empty(t, src.open)
	require.Empty(t, m.PendingFlushes(nil), "there is nothing left to flush")
	valid(t, m)
}

func TestCoherentMemoryNeedsNothing(t *testing.T) {
	m, _, _ := newFake(t, Options{})
	s, err := m.Alloc(100)
	require.NoError(t, err)
	require.NoError(t, s.Written(0, 100))
	assert.Empty(t, m.PendingFlushes(nil))
	_, needed, err := s.InvalidateRange(0, 100)
	require.NoError(t, err)
	assert.False(t, needed)
	assert.True(t, s.Coherent())
}

func TestPendingFlushesOfAReturnedPageAreForgotten(t *testing.T) {
	m, _ := newNonCoherent(t, 16, 64)
	s, err := m.AllocInfo(100)
	require.NoError(t, err)
	require.NoError(t, s.Written(0, 100))
	require.NoError(t, s.Release())
	m.Cleanup()
	assert.Empty(t, m.PendingFlushes(nil))
	valid(t, m)
}
