package pool_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vkcompute/internal/shim"
	"vkcompute/internal/vktest"
	"vkcompute/pool"
	"vkcompute/vk"
)

// fillDevice allocates until there is no more.
func fillDevice(t testing.TB, m *pool.Manager, size uint64, role vk.MemoryRole) ([]pool.Slice, *pool.OutOfMemoryError) {
	t.Helper()
	var live []pool.Slice
	for range 10_000 {
		s, err := m.AllocRole(size, role)
		if err != nil {
			var oom *pool.OutOfMemoryError
			require.ErrorAs(t, err, &oom)
			return live, oom
		}
		live = append(live, s)
	}
	t.Fatal("memory has no end")
	return nil, nil
}

func releaseAll(t testing.TB, live []pool.Slice) {
	t.Helper()
	for _, s := range live {
		require.NoError(t, s.Release())
	}
}

// Small heaps: all of the budget can be had and no more, by every policy, and afterwards everything works.
func TestSmallHeapsAreUsedUpAndNotPassed(t *testing.T) {
	dev, _ := vktest.OpenProfile(t, shim.Tiny)
	for _, policy := range []pool.BudgetPolicy{pool.BudgetFail, pool.BudgetSpill, pool.BudgetAllow} {
		t.Run(policy.String(), func(t *testing.T) {
			r := newRigOn(t, dev, pool.Options{Layout: pool.Layout{Pools: []pool.PoolSpec{{PageSize: 2 << 20, Budget: policy}}}})
			heaps := dev.HeapUsages()
			bound := heaps[0].Budget
			if policy == pool.BudgetAllow {
				bound = heaps[0].Size
			}
			live, oom := fillDevice(t, r.m, 300_000, vk.DeviceMemory)
			now := dev.HeapUsages()
			assert.LessOrEqual(t, now[0].Used, bound)
			assert.Greater(t, now[0].Used, bound-300_000-4096)
			st := r.m.Stats().Total
			if policy == pool.BudgetSpill {
				assert.Greater(t, now[1].Used, now[1].Budget-300_000-4096)
				assert.LessOrEqual(t, now[1].Used, now[1].Budget)
				assert.Equal(t, now[1].Used-heaps[1].Used, st.Spilled)
				bound = now[1].Budget
			} else {
				assert.Zero(t, st.Spilled)
			}
			assert.Equal(t, []uint64{300_000, st.InUse, st.Reserved, bound}, []uint64{oom.Wanted, oom.InUse, oom.Reserved, oom.Budget})
			require.ErrorIs(t, oom, vk.ErrOutOfDeviceMemory)

			// The last one lies in the farthest memory that there is; it works as any other.
			last := live[len(live)-1]
			r.fill(last, 9)
			r.submit()
			r.wait()
			releaseAll(t, live[1:])
			r.m.Cleanup()
			out, err := r.m.AllocRole(256, vk.ReadbackMemory)
			require.NoError(t, err)
			r.fill(live[0], 7)
			r.copy(out, live[0])
			r.submit()
			r.wait()
			assert.Equal(t, pattern(7, 256), r.read(out))
			releaseAll(t, []pool.Slice{out, live[0]})
		})
	}
}

func TestTheNumberOfAllocationsOfADeviceIsRespected(t *testing.T) {
	dev, _ := vktest.OpenProfile(t, shim.Tiny)
	r := newRigOn(t, dev, pool.Options{Layout: pool.ExclusivePages()})
	live, oom := fillDevice(t, r.m, 4096, vk.DeviceMemory)
	assert.EqualValues(t, dev.Limits().MaxMemoryAllocationCount, len(live))
	var limit *vk.LimitError
	require.ErrorAs(t, oom, &limit)
	assert.Equal(t, "maxMemoryAllocationCount", limit.Name)
	require.NoError(t, live[0].Release())
	s, err := r.m.Alloc(64 << 10) // the page of another size goes for it
	require.NoError(t, err)
	releaseAll(t, append(live[1:], s))
}

// A budget shrinks while the program runs, because others came. What there is stays, nothing new is
// had beyond it, and when it grows again there is more.
func TestABudgetThatShrinks(t *testing.T) {
	dev, driver := vktest.OpenProfile(t, shim.Budget)
	r := newRigOn(t, dev, pool.Options{Layout: pool.Layout{Pools: []pool.PoolSpec{{PageSize: 1 << 20}}}})
	const mib = 1 << 20
	driver.SetBudget(0, 20*mib)
	live, oom := fillDevice(t, r.m, 1*mib, vk.DeviceMemory)
	assert.Len(t, live, 20)
	assert.EqualValues(t, 20*mib, oom.Budget)
	driver.SetBudget(0, 10*mib)
	require.NoError(t, live[0].Release())
	r.m.Cleanup()
	more, oom := fillDevice(t, r.m, 1*mib, vk.DeviceMemory)
	assert.Empty(t, more)
	assert.EqualValues(t, 10*mib, oom.Budget)
	driver.SetBudget(0, 21*mib)
	more, _ = fillDevice(t, r.m, 1*mib, vk.DeviceMemory)
	assert.Len(t, more, 2)
	releaseAll(t, append(live[1:], more...))

	// One that is larger than its heap is cut.
	for _, h := range dev.HeapUsages() {
		assert.LessOrEqual(t, h.Budget, h.Size)
	}
	_, err := r.m.AllocRole(2<<30, vk.UploadMemory)
	require.Error(t, err, "memory of two heaps")
}

// Streams of one device take from one budget, whatever the order of their calls.
func TestStreamsShareTheBudget(t *testing.T) {
	dev, driver := vktest.OpenProfile(t, shim.Budget)
	const mib = 1 << 20
	driver.SetBudget(0, 24*mib)
	driver.SetBudget(1, 4*mib)
	var rigs []*rig
	for range 3 {
		rigs = append(rigs, newRigOn(t, dev, pool.Options{Layout: pool.Layout{
			Pools: []pool.PoolSpec{{PageSize: 1 * mib, MaxSlice: 512 << 10}, {Kind: pool.Exclusive}},
		}}))
	}
	var wg sync.WaitGroup
	for id, r := range rigs {
		wg.Go(func() {
			var live []pool.Slice
			for i := range 300 {
				s, err := r.m.AllocRole(uint64((i*7919+id*977)%(900<<10))+1, vk.MemoryRole(i%4))
				if err == nil {
					live = append(live, s)
				}
				for h, u := range dev.HeapUsages() {
					if u.Used > u.Budget {
						t.Errorf("heap %d: %d of %d bytes", h, u.Used, u.Budget)
					}
				}
				if len(live) > 0 && (err != nil || len(live) > 40) {
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
	wg.Wait()
	for _, r := range rigs {
		require.NoError(t, r.m.Validate())
	}
}

func TestWhereEachRoleLies(t *testing.T) {
	for profile, want := range map[string]struct {
		heaps  [4]int // by role
		mapped [4]bool
	}{
		shim.DiscreteGPU: {[4]int{0, 1, 1, 1}, [4]bool{false, true, true, true}},
		shim.Rebar256:    {[4]int{0, 1, 1, 2}, [4]bool{false, true, true, true}},
		shim.NonCoherent: {[4]int{0, 1, 1, 0}, [4]bool{false, true, true, true}}, // mapped, but not for slices that commands write
		shim.Tiny:        {[4]int{0, 1, 1, 1}, [4]bool{false, true, true, true}},
	} {
		t.Run(profile, func(t *testing.T) {
			dev, _ := vktest.OpenProfile(t, profile)
			r := newRigOn(t, dev, pool.Options{})
			for role := range vk.MemoryRole(4) {
				s, err := r.m.AllocRole(1000, role)
				require.NoError(t, err)
				assert.Equal(t, want.heaps[role], s.Buffer().HeapIndex(), role)
				assert.Equal(t, want.mapped[role], s.Mapped() != nil, role)
				if s.Buffer().Mapped() == nil {
					require.ErrorIs(t, s.Written(0, 4), pool.ErrNotHostWritable)
				}
				require.NoError(t, s.Release())
			}
		})
	}
}

// When the memory that both sides see is used up, infos go to the host's.
func TestInfosLeaveAFullWindow(t *testing.T) {
	dev, _ := vktest.OpenProfile(t, shim.Rebar256)
	r := newRigOn(t, dev, pool.Options{})
	size := min(uint64(16<<20), dev.Limits().MaxStorageBufferRange)
	var live []pool.Slice
	heap := 2
	for heap == 2 {
		s, err := r.m.AllocInfo(size)
		require.NoError(t, err)
		live = append(live, s)
		heap = s.Buffer().HeapIndex()
	}
	assert.Equal(t, 1, heap)
	u := dev.HeapUsages()[2]
	assert.LessOrEqual(t, u.Used, u.Budget)
	assert.Greater(t, u.Used+size+8192, u.Budget)
	assert.NotZero(t, r.m.Stats().Total.Spilled)
	releaseAll(t, live)
}
