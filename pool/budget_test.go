package pool

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vkcompute/vk"
)

// oneSliced is a layout of one sliced pool with a policy.
func oneSliced(page uint64, b BudgetPolicy) Layout {
	return Layout{Pools: []PoolSpec{{Name: "only", Kind: Sliced, PageSize: page, Budget: b}}}
}

func fillUp(t *testing.T, m *Manager, size uint64) (live []Slice, last error) {
	t.Helper()
	for range 10_000 {
		s, err := m.Alloc(size)
		if err != nil {
			return live, err
		}
		live = append(live, s)
	}
	t.Fatal("memory has no end")
	return nil, nil
}

// Cleanup, once more, smaller pages, the next type, an error: in this order.
func TestTheOrderOfAttemptsWhenMemoryIsShort(t *testing.T) {
	info := withWindow(256*kib, 128*kib, 64*kib)
	m, src, _ := newBudgeted(t, info, Options{Layout: Layout{
		Pools: []PoolSpec{{Kind: Exclusive, Budget: BudgetSpill}},
	}})
	_, err := m.Alloc(80 * kib)
	require.NoError(t, err)
	a, err := m.Alloc(160 * kib)
	require.NoError(t, err)
	require.NoError(t, a.Release())
	src.asked = nil
	// 160 KiB are idle and must go; then 240 are one too many for the page of the first,
	// and for the window; the bucket of 249 KiB is 256, and the smallest page that holds it 249.
	_, err = m.Alloc(249*kib - 100)
	require.ErrorIs(t, err, ErrOutOfMemory)
	assert.Equal(t, []string{"1:256", "1:256", "1:249", "100:256", "100:249", "10:256", "10:249"}, src.asked)
	assert.Equal(t, 1, src.closed, "the idle page was returned first")
	var oom *OutOfMemoryError
	require.ErrorAs(t, err, &oom)
	assert.Equal(t, uint64(64*kib), oom.Budget, "of the last heap tried")
	src.asked = nil
	s, err := m.Alloc(170 * kib)
	require.NoError(t, err, "everything still works")
	assert.Equal(t, []string{"1:176"}, src.asked)
	require.NoError(t, s.Release())
	valid(t, m)
}

func TestPoliciesWhenDeviceMemoryIsUsedUp(t *testing.T) {
	const device, host = 320 * kib, 800 * kib
	for _, c := range []struct {
		policy BudgetPolicy
		most   [2]uint64 // bytes by heap in the end
		budget uint64    // that the error tells
	}{
		{BudgetDefault, [2]uint64{device, 0}, device},
		{BudgetFail, [2]uint64{device, 0}, device},
		{BudgetSpill, [2]uint64{device, host}, host},
		{BudgetAllow, [2]uint64{device * 5 / 4, 0}, device * 5 / 4},
	} {
		t.Run(c.policy.String(), func(t *testing.T) {
			var log bytes.Buffer
			m, src, _ := newBudgeted(t, discrete(device, host), Options{
				Layout: oneSliced(32*kib, c.policy), Logger: slog.New(slog.NewTextHandler(&log, nil)),
			})
			live, err := fillUp(t, m, 4*kib)
			var oom *OutOfMemoryError
			require.ErrorAs(t, err, &oom)
			require.ErrorIs(t, err, vk.ErrOutOfDeviceMemory)
			heaps := src.budgets.heaps
			assert.Equal(t, c.most, [2]uint64{heaps[0].Used, heaps[1].Used})
			all := c.most[0] + c.most[1]
			assert.Equal(t, OutOfMemoryError{Wanted: 4 * kib, InUse: all, Reserved: all, Budget: c.budget, Pool: "only", Cause: oom.Cause}, *oom)
			st := m.Stats()
			assert.Equal(t, c.most[1], st.Total.Spilled)
			assert.Equal(t, c.most[1] > 0, strings.Count(log.String(), "spilling to another kind") == 1, "%s", log.String())
			valid(t, m)

			// The better memory is taken first when both have room.
			require.NoError(t, live[0].Release())
			require.NoError(t, live[len(live)-1].Release())
			s, err := m.Alloc(4 * kib)
			require.NoError(t, err)
			assert.Zero(t, s.s.page.mem.heap)
			_, err = m.Alloc(4 * kib)
			require.NoError(t, err)
			valid(t, m)
		})
	}
}

func TestInfosAndStagingSpillByThemselves(t *testing.T) {
	m, src, _ := newBudgeted(t, withWindow(400*kib, 48*kib, 192*kib), Options{Layout: Layout{
		Staging: []PoolSpec{{Kind: Sliced, PageSize: 32 * kib}},
		Info:    []PoolSpec{{Kind: Sliced, PageSize: 16 * kib}},
	}})
	i, err := m.AllocInfo(100)
	require.NoError(t, err)
	assert.Equal(t, 2, i.s.page.mem.heap, "memory of the device that the host sees")
	require.True(t, i.s.page.mem.visible)
	up, err := m.AllocRole(100, vk.UploadMemory)
	require.NoError(t, err)
	assert.Equal(t, 1, up.s.page.mem.heap, "not the scarce memory that both see")
	for src.budgets.heaps[2].Used+8*kib <= 48*kib {
		_, err = m.AllocInfo(4000)
		require.NoError(t, err)
	}
	for range 20 {
		i, err = m.AllocInfo(4000)
		require.NoError(t, err)
	}
	assert.Equal(t, 1, i.s.page.mem.heap)
	_, err = m.Alloc(1)
	require.NoError(t, err)
	valid(t, m)
}

// An earlier pool that gets no memory is no reason to overlook room that a later one has.
func TestRoomInALaterPoolIsBetterThanAnError(t *testing.T) {
	m, src, _ := newBudgeted(t, discrete(640*kib, 1), Options{Layout: Layout{Pools: []PoolSpec{
		{Name: "small", Kind: Sliced, PageSize: 4 * kib, MaxSlice: 1 * kib},
		{Name: "large", Kind: Sliced, PageSize: 60 * kib},
	}}})
	src.budgets.heaps[0].Used = (640 - 64) * kib // by others
	_, err := m.Alloc(40 * kib)
	require.NoError(t, err)
	where := map[string]int{}
	for {
		s, err := m.Alloc(1 * kib)
		if err != nil {
			require.ErrorIs(t, err, ErrOutOfMemory)
			break
		}
		where[s.s.page.pool.spec.Name]++
	}
	assert.Equal(t, map[string]int{"small": 4, "large": 20}, where)
	valid(t, m)
}

func TestAPageLeavesRoomOnASmallHeap(t *testing.T) {
	m, src, _ := newBudgeted(t, discrete(8*mib, 8*mib), Options{})
	_, err := m.Alloc(1000)
	require.NoError(t, err)
	_, err = m.Alloc(100 * kib)
	require.NoError(t, err)
	_, err = m.Alloc(2500 * kib)
	require.NoError(t, err)
	assert.LessOrEqual(t, src.budgets.heaps[0].Used, uint64(5*mib), "pages of 1, 16 and 128 MiB by the layout")
	assert.Equal(t, 3, src.calls, "and nothing was asked for in vain")
	valid(t, m)
}

func TestWhatOnlyFewerPagesCouldHelpIsNotTriedSmaller(t *testing.T) {
	info := discrete(64*mib, 64*mib)
	info.Limits.MaxMemoryAllocationCount = 2
	m, src, _ := newBudgeted(t, info, Options{Layout: Layout{Pools: []PoolSpec{
		{Kind: Sliced, PageSize: 64 * kib, Budget: BudgetSpill}, {Kind: Exclusive, Budget: BudgetSpill},
	}}})
	for range 2 {
		_, err := m.Alloc(40 * kib)
		require.NoError(t, err)
	}
	src.asked = nil
	_, err := m.Alloc(40 * kib)
	require.ErrorIs(t, err, ErrOutOfMemory)
	assert.Equal(t, []string{"1:64", "1:64"}, src.asked, "once more after the cleanup, and no more")
	_, err = m.Alloc(20 * kib)
	require.NoError(t, err)
	valid(t, m)
}

func TestNoPageIsLargerThanAnAllocationMayBe(t *testing.T) {
	info := discrete(900*mib, 900*mib)
	info.Limits.MaxMemoryAllocationSize = 3*mib + 100
	m, src, _ := newBudgeted(t, info, Options{Layout: Layout{Pools: []PoolSpec{{PageSize: 4 * mib}}}})
	s, err := m.Alloc(100 * kib)
	require.NoError(t, err)
	assert.Equal(t, uint64(3*mib), s.s.page.mem.size, "the layout would have 4 MiB")
	var large *TooLargeError
	_, err = m.Alloc(3*mib + 1)
	require.ErrorAs(t, err, &large)
	assert.Equal(t, uint64(3*mib), large.Max)
	assert.Equal(t, 1, src.calls)
	valid(t, m)
}

func TestATypeThatBuffersMayNotUseIsPassedOver(t *testing.T) {
	m, src, _ := newBudgeted(t, withWindow(1*mib, 1*mib, 1*mib), Options{})
	src.budgets.kinds[vk.DeviceMemory] = src.budgets.kinds[vk.DeviceMemory][1:] // as the requirements of a buffer may
	s, err := m.Alloc(100)
	require.NoError(t, err)
	assert.Equal(t, 2, s.s.page.mem.heap)
	src.budgets.kinds[vk.DeviceMemory] = nil
	_, err = m.Alloc(20 * mib)
	require.ErrorIs(t, err, vk.ErrUnsupported)
	require.ErrorIs(t, err, ErrOutOfMemory)
	valid(t, m)
}

// No order of events in many goroutines, of several managers on one device, passes the budget.
func TestManyGoroutinesKeepTheBudget(t *testing.T) {
	info := withWindow(512*kib, 64*kib, 256*kib)
	v, err := newVirtual(&info)
	require.NoError(t, err)
	watch := &watcher{virtual: v, t: t}
	var wg sync.WaitGroup
	for range 3 {
		m, err := newManager(watch, info.Limits, idle{}, Options{Layout: Layout{
			Pools:   []PoolSpec{{Kind: Sliced, PageSize: 64 * kib, MaxSlice: 8 * kib, Budget: BudgetSpill}, {Kind: Exclusive}},
			Staging: []PoolSpec{{Kind: Exclusive}},
			Info:    []PoolSpec{{Kind: Sliced, PageSize: 16 * kib, MaxSlice: 4 * kib}},
		}})
		require.NoError(t, err)
		for id := range 3 {
			wg.Go(func() {
				var live []Slice
				for i := range 400 {
					role := vk.MemoryRole((i + id) % roles)
					s, err := m.AllocRole(uint64(i*977%12_000), role)
					if err == nil {
						live = append(live, s)
					} else if !errorsIsAny(err, ErrOutOfMemory, ErrTooLarge) {
						t.Error(err)
					}
					if len(live) > 30 || err != nil && len(live) > 0 {
						if err := live[0].Release(); err != nil {
							t.Error(err)
						}
						live = live[1:]
					}
				}
				for _, s := range live {
					if err := s.Release(); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
}

// watcher looks at the heaps whenever memory was made.
type watcher struct {
	*virtual
	t *testing.T
}

func (w *watcher) newMemory(spec vk.BufferSpec) (memory, error) {
	mem, err := w.virtual.newMemory(spec)
	w.mu.Lock()
	defer w.mu.Unlock()
	for h, u := range w.heaps {
		if u.Used > u.Budget {
			w.t.Errorf("heap %d: %d of %d bytes", h, u.Used, u.Budget)
		}
	}
	return mem, err
}

// What the budget of a heap refused to one memory type, it would refuse to the next of that heap.
func TestTypesOfOneHeapAreNotAskedOneByOne(t *testing.T) {
	info := discrete(640*kib, 640*kib)
	info.MemoryTypes = append(info.MemoryTypes, vk.MemoryType{Flags: vk.DeviceLocal | vk.HostVisible | vk.HostCoherent, Heap: 0})
	m, src, _ := newBudgeted(t, info, Options{Layout: Layout{Pools: []PoolSpec{{Kind: Exclusive}}}})
	src.budgets.heaps[0].Used = 600 * kib // by others
	_, err := m.Alloc(64 * kib)
	require.ErrorIs(t, err, ErrOutOfMemory)
	assert.Equal(t, []string{"1:64", "1:64"}, src.asked)
	_, err = m.Alloc(16 * kib)
	require.NoError(t, err)
	valid(t, m)
}
