package pool

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vkcompute/vk"
)

func TestDeviceMemoryIsHandedOutAgainAtOnceAndInheritsTheSerial(t *testing.T) {
	m, _, tl := newFake(t, Options{})
	a, err := m.Alloc(4096)
	require.NoError(t, err)
	off := a.Offset()
	require.NoError(t, a.Use(7)) // a batch that has not been submitted
	require.NoError(t, a.Release())
	b, err := m.Alloc(4096)
	require.NoError(t, err)
	assert.Equal(t, off, b.Offset(), "a barrier orders what comes next")
	assert.Equal(t, uint64(7), b.LastUse())
	assert.False(t, b.Idle(), "the host must not touch what serial 7 may still use")
	tl.complete(7)
	assert.True(t, b.Idle())
	valid(t, m)
}

func TestAnExclusivePageInheritsTheSerialToo(t *testing.T) {
	m, src, _ := newFake(t, Options{Layout: ExclusivePages()})
	a, err := m.Alloc(4000)
	require.NoError(t, err)
	require.NoError(t, a.Use(7))
	require.NoError(t, a.Release())
	b, err := m.Alloc(4096)
	require.NoError(t, err)
	require.Equal(t, 1, src.calls)
	assert.Equal(t, uint64(7), b.LastUse())
	valid(t, m)
}

func TestWhatTheHostTouchesWaitsForItsSerial(t *testing.T) {
	for name, alloc := range map[string]func(*Manager) (Slice, error){
		"info":     func(m *Manager) (Slice, error) { return m.AllocInfo(256) },
		"upload":   func(m *Manager) (Slice, error) { return m.AllocRole(256, vk.UploadMemory) },
		"readback": func(m *Manager) (Slice, error) { return m.AllocRole(256, vk.ReadbackMemory) },
		"host":     func(m *Manager) (Slice, error) { return m.AllocFor(256, vk.DeviceMemory, NextHost) },
	} {
		t.Run(name, func(t *testing.T) {
			m, _, tl := newFake(t, Options{})
			a, err := alloc(m)
			require.NoError(t, err)
			where := [2]any{a.s.page, a.Offset()}
			require.NoError(t, a.Use(3))
			require.NoError(t, a.Release())
			assert.Equal(t, 1, m.Stats().Total.Waiting)
			valid(t, m)
			b, err := alloc(m)
			require.NoError(t, err)
			assert.NotEqual(t, where, [2]any{b.s.page, b.Offset()})
			assert.True(t, b.Idle())
			m.Drain()
			require.Equal(t, 1, m.Stats().Total.Waiting, "serial 3 has not completed")
			tl.complete(3)
			m.Drain()
			require.Zero(t, m.Stats().Total.Waiting)
			c, err := alloc(m)
			require.NoError(t, err)
			assert.Equal(t, where, [2]any{c.s.page, c.Offset()})
			assert.True(t, c.Idle())
			valid(t, m)
		})
	}
}

func TestASliceUsedByAnotherStreamWaitsForIt(t *testing.T) {
	m, _, tl := newFake(t, Options{})
	other := &fakeTimeline{}
	a, err := m.Alloc(4096)
	require.NoError(t, err)
	off := a.Offset()
	require.NoError(t, a.Use(2))
	require.NoError(t, a.UseOn(other, 9))
	require.NoError(t, a.UseOn(other, 5))
	require.NoError(t, a.UseOn(tl, 4), "its own timeline is an ordinary use")
	require.Equal(t, uint64(4), a.LastUse())
	tl.complete(4)
	require.False(t, a.Idle())
	require.NoError(t, a.Release())
	m.Drain()
	b, err := m.Alloc(4096)
	require.NoError(t, err)
	assert.NotEqual(t, off, b.Offset())
	other.complete(8)
	m.Drain()
	require.Equal(t, 1, m.Stats().Total.Waiting)
	valid(t, m)
	other.complete(9)
	m.Drain()
	require.Zero(t, m.Stats().Total.Waiting)
	c, err := m.Alloc(4096)
	require.NoError(t, err)
	assert.Equal(t, off, c.Offset())
	assert.True(t, c.Idle())
	assert.Empty(t, m.stamps)
	valid(t, m)

	require.Error(t, c.UseOn(nil, 1))
}

func TestASharedSliceOfTheHostWaitsForBothTimelines(t *testing.T) {
	m, _, tl := newFake(t, Options{})
	other := &fakeTimeline{}
	a, err := m.AllocInfo(64)
	require.NoError(t, err)
	require.NoError(t, a.Use(5))
	require.NoError(t, a.UseOn(other, 1))
	require.NoError(t, a.Release())
	other.complete(1)
	m.Drain()
	require.Equal(t, 1, m.Stats().Total.Waiting)
	valid(t, m)
	tl.complete(5)
	m.Drain()
	require.Zero(t, m.Stats().Total.Waiting)
	valid(t, m)
}

// A stream that does nothing any more is not asked by anybody else: what it used comes back
// when memory is short, at a cleanup, an install and a close.
func TestIdleStreamsHoldNothingBack(t *testing.T) {
	for name, f := range map[string]func(m *Manager) error{
		"cleanup": func(m *Manager) error { m.Cleanup(); return nil },
		"install": func(m *Manager) error { return m.Install(Layout{}) },
		"close":   (*Manager).Close,
	} {
		m, src, _ := newFake(t, Options{})
		other := &fakeTimeline{}
		a, err := m.Alloc(4096)
		require.NoError(t, err)
		require.NoError(t, a.UseOn(other, 7))
		require.NoError(t, a.Release())
		var inUse *InUseError
		require.ErrorAs(t, m.Install(Layout{}), &inUse)
		require.Equal(t, InUseError{Waiting: 1}, *inUse)
		require.ErrorContains(t, inUse, "for other streams")
		require.NotContains(t, inUse.Error(), "serial")
		other.driver.Store(7)
		m.Drain()
		require.Equal(t, 1, m.Stats().Total.Waiting, "draining asks nobody")
		require.NoError(t, f(m), name)
		require.Empty(t, src.open, name)
		valid(t, m)
	}

	// Short of memory.
	m, src, _ := newFake(t, Options{})
	other := &fakeTimeline{}
	a, err := m.Alloc(1000)
	require.NoError(t, err)
	src.limit = src.bytes
	require.NoError(t, a.UseOn(other, 1))
	require.NoError(t, a.Release())
	var rest []Slice
	for {
		s, err := m.Alloc(1000)
		if err != nil {
			require.ErrorIs(t, err, ErrOutOfMemory)
			break
		}
		rest = append(rest, s)
	}
	other.driver.Store(1)
	b, err := m.Alloc(1000)
	require.NoError(t, err)
	require.Zero(t, b.Offset(), "it is the range that the other stream used")
	require.NotEmpty(t, rest)
	valid(t, m)
}

// What other streams use when a manager is closed goes when they are done with it.
func TestClosedManagersGiveBackWhatOthersUsed(t *testing.T) {
	for _, order := range []string{"released before the close", "released after it", "released when the other is done"} {
		m, src, _ := newFake(t, Options{})
		other := &fakeTimeline{}
		a, err := m.Alloc(4096)
		require.NoError(t, err)
		require.NoError(t, a.UseOn(other, 3))
		if order == "released before the close" {
			require.NoError(t, a.Release())
		}
		require.ErrorIs(t, m.Close(), ErrLeak)
		if order == "released after it" {
			require.NoError(t, a.Release())
			require.Len(t, src.open, 1)
		}
		other.complete(3)
		if order == "released when the other is done" {
			require.NoError(t, a.Release())
		} else {
			m.Drain()
		}
		require.Empty(t, src.open, order)
	}
}

// Serials further away than the wheel is long share a place with nearer ones.
func TestSerialsFarApart(t *testing.T) {
	m, _, tl := newFake(t, Options{})
	serials := []uint64{1, 2, wheelSize, wheelSize + 1, 2*wheelSize + 1, 10 * wheelSize, 1 << 40}
	for _, s := range serials {
		a, err := m.AllocInfo(64)
		require.NoError(t, err)
		require.NoError(t, a.Use(s))
		require.NoError(t, a.Release())
	}
	for i, s := range serials {
		tl.complete(s - 1)
		m.Drain()
		require.Equal(t, len(serials)-i, m.Stats().Total.Waiting, "before serial %d", s)
		valid(t, m)
		tl.complete(s)
		m.Drain()
		require.Equal(t, len(serials)-i-1, m.Stats().Total.Waiting, "after serial %d", s)
		valid(t, m)
	}
}

// A device that was left alone for long completes more serials at once than the wheel has places.
func TestManySerialsAtOnce(t *testing.T) {
	m, _, tl := newFake(t, Options{})
	const count = 2*wheelSize + 7
	for s := range uint64(count) {
		a, err := m.AllocInfo(64)
		require.NoError(t, err)
		require.NoError(t, a.Use(s+1))
		require.NoError(t, a.Release())
	}
	tl.complete(count - 1)
	m.Drain()
	require.Equal(t, 1, m.Stats().Total.Waiting)
	valid(t, m)
}

func TestReuseComesBeforeGrowth(t *testing.T) {
	m, src, tl := newFake(t, Options{Layout: Layout{Info: []PoolSpec{{Kind: Sliced, PageSize: 8 * kib, MaxSlice: 4 * kib}}}})
	fill := func(serial uint64) {
		for range 2 {
			a, err := m.AllocInfo(4096)
			require.NoError(t, err)
			require.NoError(t, a.Use(serial))
			require.NoError(t, a.Release())
		}
	}
	fill(1)
	require.Equal(t, 2, src.calls, "serial 1 is under way: growth instead of waiting")
	tl.driver.Store(1) // the driver knows, the timeline was not asked
	for s := range uint64(20) {
		fill(s + 2)
		tl.driver.Store(s + 2)
	}
	require.Equal(t, 2, src.calls)
	valid(t, m)
}

// One page is busy with commands although nothing on it is alive.
func TestABusyPageIsNotReturned(t *testing.T) {
	for _, kind := range []Kind{Sliced, Exclusive} {
		t.Run(fmt.Sprint(kind), func(t *testing.T) {
			m, src, tl := newFake(t, Options{Layout: Layout{Pools: []PoolSpec{{Kind: kind, PageSize: 64 * kib}}}})
			a, err := m.Alloc(1000)
			require.NoError(t, err)
			require.NoError(t, a.Use(4))
			require.NoError(t, a.Release())
			m.Cleanup()
			require.Len(t, src.open, 1)
			var inUse *InUseError
			require.ErrorAs(t, m.Install(Layout{}), &inUse)
			assert.Equal(t, uint64(4), inUse.Serial)
			tl.driver.Store(4)
			m.Cleanup()
			require.Empty(t, src.open)
			valid(t, m)
		})
	}
}

func TestALostDeviceHoldsNothingBack(t *testing.T) {
	m, src, tl := newFake(t, Options{})
	other := &fakeTimeline{}
	for i := range 4 {
		a, err := m.AllocInfo(64)
		require.NoError(t, err)
		require.NoError(t, a.Use(uint64(i)+3))
		if i == 0 {
			require.NoError(t, a.UseOn(other, 8))
		}
		require.NoError(t, a.Release())
	}
	b, err := m.Alloc(100)
	require.NoError(t, err)
	require.NoError(t, b.Use(10))
	require.NoError(t, b.Release())
	require.ErrorIs(t, m.Close(), ErrLeak)
	tl.err = fmt.Errorf("asking: %w", vk.ErrDeviceLost)
	require.NoError(t, m.Close())
	require.Empty(t, src.open)
}
