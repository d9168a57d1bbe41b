package pool

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vkcompute/vk"
)

func TestAFullPoolSpillsWithOneWarning(t *testing.T) {
	var log bytes.Buffer
	m, _, _ := newFake(t, Options{
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Layout: Layout{Pools: []PoolSpec{
			{Name: "first", Kind: Sliced, PageSize: 64 * kib, Cap: 128 * kib},
			{Name: "second", Kind: Exclusive, Cap: 64 * kib},
		}},
	})
	where := map[string]int{}
	var last error
	var live []Slice
	for range 20 {
		s, err := m.Alloc(16 * kib)
		if err != nil {
			last = err
			continue
		}
		where[s.s.page.pool.spec.Name]++
		live = append(live, s)
	}
	assert.Equal(t, map[string]int{"first": 8, "second": 4}, where)
	var oom *OutOfMemoryError
	require.ErrorAs(t, last, &oom)
	assert.Equal(t, OutOfMemoryError{Wanted: 16 * kib, InUse: 192 * kib, Reserved: 192 * kib, Budget: 64 * kib, Pool: "second"}, *oom)
	assert.Equal(t, 1, strings.Count(log.String(), "pool=first"))
	valid(t, m)
	require.NoError(t, live[0].Release())
	s, err := m.Alloc(16 * kib)
	require.NoError(t, err)
	assert.Equal(t, "first", s.s.page.pool.spec.Name, "room in an earlier pool is used again")
}

func TestACapCutsTheLastPage(t *testing.T) {
	m, src, _ := newFake(t, Options{Layout: Layout{Pools: []PoolSpec{{Kind: Sliced, PageSize: 64 * kib, MaxSlice: 8 * kib, Cap: 80 * kib}}}})
	for range 10 {
		_, err := m.Alloc(8 * kib)
		require.NoError(t, err)
	}
	assert.Equal(t, uint64(80*kib), src.bytes)
	_, err := m.Alloc(8 * kib)
	require.ErrorIs(t, err, ErrOutOfMemory)
	valid(t, m)
}

func TestOutOfMemoryCleansUpThenTriesSmallerPages(t *testing.T) {
	m, src, _ := newFake(t, Options{Layout: Layout{Pools: []PoolSpec{
		{Name: "small", Kind: Sliced, PageSize: 1 * mib, MaxSlice: 64 * kib},
		{Name: "big", Kind: Exclusive},
	}}})
	src.limit = 1*mib + 300*kib
	a, err := m.Alloc(1000)
	require.NoError(t, err)
	require.NoError(t, a.Release())
	// 1 MiB is reserved and idle: it must go for this one.
	b, err := m.Alloc(1200 * kib)
	require.NoError(t, err)
	valid(t, m)
	// A page of a MiB does not fit beside it, a smaller one does.
	c, err := m.Alloc(1000)
	require.NoError(t, err)
	assert.Less(t, c.s.page.mem.size, uint64(mib))
	valid(t, m)
	_, err = m.Alloc(300 * kib)
	var oom *OutOfMemoryError
	require.ErrorAs(t, err, &oom)
	require.ErrorIs(t, err, vk.ErrOutOfDeviceMemory)
	assert.Equal(t, uint64(300*kib), oom.Wanted)
	assert.Equal(t, uint64(1200*kib+1000), oom.InUse)
	assert.Equal(t, src.bytes, oom.Reserved)
	// Everything still works.
	require.NoError(t, b.Release())
	_, err = m.Alloc(300 * kib)
	require.NoError(t, err)
	valid(t, m)
}

func TestTheDriverIsNotAskedForWhatItRefused(t *testing.T) {
	m, src, _ := newFake(t, Options{Layout: Layout{Pools: []PoolSpec{
		{Kind: Sliced, PageSize: 64 * kib, MaxSlice: 4 * kib},
		{Kind: Exclusive, PageSize: 8 * kib},
		{Kind: Exclusive, PageSize: 1 * kib},
	}}})
	src.limit = 1
	_, err := m.Alloc(3000)
	require.ErrorIs(t, err, ErrOutOfMemory)
	// 64 KiB twice, then halves down to the 3 KiB that the slice needs; other pools would ask for no less.
	assert.Equal(t, 7, src.calls)
	valid(t, m)
}

func TestTheNumberOfAllocationsIsRespected(t *testing.T) {
	m, src, _ := newFake(t, Options{Layout: ExclusivePages()})
	src.maxOpen = 3
	var live []Slice
	for range 3 {
		s, err := m.Alloc(10_000)
		require.NoError(t, err)
		live = append(live, s)
	}
	_, err := m.Alloc(20_000)
	require.ErrorIs(t, err, ErrOutOfMemory)
	var limit *vk.LimitError
	require.ErrorAs(t, err, &limit)
	require.NoError(t, live[0].Release())
	_, err = m.Alloc(20_000) // the idle page of another size is given up for it
	require.NoError(t, err)
	valid(t, m)
}

func TestADriverErrorIsPassedOn(t *testing.T) {
	m, src, _ := newFake(t, Options{})
	src.err = errFake
	_, err := m.Alloc(100)
	require.ErrorIs(t, err, errFake)
	require.Equal(t, 1, src.calls, "nothing but lack of memory is worth a retry")
	valid(t, m)
	src.err = nil
	_, err = m.Alloc(100)
	require.NoError(t, err)
}

func TestPagesGrowWithThePool(t *testing.T) {
	m, src, _ := newFake(t, Options{})
	src.unbacked = true
	for range 100_000 {
		_, err := m.Alloc(64 * kib)
		require.NoError(t, err)
	}
	assert.Less(t, src.calls, 300, "6 GiB of small slices")
	assert.Less(t, float64(src.bytes), 100_000*64*kib*1.02)
	valid(t, m)
}

func TestMorePagesThanSixteenBitsCount(t *testing.T) {
	const pages = 66_000
	for _, kind := range []Kind{Sliced, Exclusive} {
		m, src, _ := newFake(t, Options{Layout: Layout{Pools: []PoolSpec{{Kind: kind, PageSize: 256, MaxSlice: 256}}}})
		src.unbacked = true
		live := make([]Slice, pages)
		seen := make(map[*page]bool, pages)
		for i := range live {
			var err error
			live[i], err = m.Alloc(256)
			require.NoError(t, err)
			require.False(t, seen[live[i].s.page])
			seen[live[i].s.page] = true
		}
		require.Equal(t, pages, m.Stats().Total.Pages)
		valid(t, m)
		for _, s := range live {
			require.NoError(t, s.Release())
		}
		m.Cleanup()
		require.Empty(t, src.open)
		valid(t, m)
	}
}

func TestEmptyPagesGoAfterAPeriodOfDisuse(t *testing.T) {
	closing := []uint64{}
	m, src, _ := newFake(t, Options{IdlePeriod: time.Minute, PageClosing: func(id uint64) { closing = append(closing, id) }})
	clock := m.now()
	m.now = func() time.Time { return clock }
	a, err := m.Alloc(100)
	require.NoError(t, err)
	b, err := m.Alloc(1 * mib) // another page
	require.NoError(t, err)
	require.NoError(t, a.Release())
	clock = clock.Add(59 * time.Second)
	m.Drain()
	require.Len(t, src.open, 2)
	clock = clock.Add(time.Minute)
	m.Drain()
	require.Len(t, src.open, 2, "used in the period that ended")
	clock = clock.Add(time.Minute)
	m.Drain()
	require.Len(t, src.open, 1)
	require.Len(t, closing, 1)
	require.True(t, b.Valid())
	valid(t, m)

	never, src, _ := newFake(t, Options{IdlePeriod: -1})
	never.now = func() time.Time { clock = clock.Add(time.Hour); return clock }
	a, err = never.Alloc(100)
	require.NoError(t, err)
	require.NoError(t, a.Release())
	for range 5 {
		never.Drain()
	}
	require.Len(t, src.open, 1)
}

func TestTouchAheadTouchesCoherentMemoryOnly(t *testing.T) {
	for _, coherent := range []bool{true, false} {
		src := newFakeSource()
		src.coherent = coherent
		m, err := newManager(markingSource{src}, fakeLimits(), &fakeTimeline{}, Options{Touch: TouchAhead})
		require.NoError(t, err)
		s, err := m.AllocInfo(16)
		require.NoError(t, err)
		assert.Equal(t, coherent, s.Mapped()[0] == 0)
		assert.Equal(t, coherent, s.s.page.mem.mapped[8192] == 0)
	}
}

// markingSource fills memory, so that a touch shows.
type markingSource struct{ *fakeSource }

func (s markingSource) newMemory(spec vk.BufferSpec) (memory, error) {
	mem, err := s.fakeSource.newMemory(spec)
	for i := range mem.mapped {
		mem.mapped[i] = 0xaa
	}
	return mem, err
}
