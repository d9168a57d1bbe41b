package vk_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"vkcompute/vk"
)

const (
	local    = vk.DeviceLocal
	visible  = vk.HostVisible
	coherent = vk.HostCoherent
	cached   = vk.HostCached
)

func typed(flags ...vk.MemoryFlags) *vk.DeviceInfo {
	i := &vk.DeviceInfo{Heaps: []vk.Heap{{Size: 1 << 33, DeviceLocal: true}, {Size: 1 << 34}}}
	for _, f := range flags {
		heap := 1
		if f&local != 0 {
			heap = 0
		}
		i.MemoryTypes = append(i.MemoryTypes, vk.MemoryType{Flags: f, Heap: heap})
	}
	return i
}

// The best type of each role, on the memories that kinds of devices have.
func TestMemoryTypesByRole(t *testing.T) {
	const strange = vk.MemoryFlags(0x40) // device-coherent of one vendor
	for name, c := range map[string]struct {
		info                            *vk.DeviceInfo
		device, upload, readback, info_ int
	}{
		"discrete":                  {typed(0, local, visible|coherent, visible|coherent|cached), 1, 2, 3, 2},
		"with a mappable window":    {typed(local, visible|coherent, visible|coherent|cached, local|visible|coherent), 0, 1, 2, 3},
		"integrated":                {typed(local|visible|coherent, local|visible|coherent|cached), 0, 0, 1, 0},
		"one type":                  {typed(local | visible | coherent | cached), 0, 0, 0, 0},
		"cached is not coherent":    {typed(local, visible|coherent, visible|cached), 0, 1, 2, 1},
		"coherent by an odd flag":   {typed(local|strange, local, visible|coherent|cached|strange, visible|coherent, visible|coherent|cached), 1, 3, 4, 3},
		"lazily allocated, ignored": {typed(local|0x10, local|visible|coherent), 1, 1, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			for role, want := range map[vk.MemoryRole]int{vk.DeviceMemory: c.device, vk.UploadMemory: c.upload, vk.ReadbackMemory: c.readback, vk.InfoMemory: c.info_} {
				require.Equal(t, want, c.info.TypesFor(role)[0], "%v of %v", role, c.info.MemoryTypes)
			}
		})
	}
}

func TestMemoryTypesProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		flags := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) vk.MemoryFlags { return vk.MemoryFlags(rapid.Uint32Range(0, 255).Draw(t, "flags")) }), 0, 32).Draw(t, "types")
		info := typed(flags...)
		for _, role := range roles {
			list := info.TypesFor(role)
			for _, n := range list {
				f := info.MemoryTypes[n].Flags
				require.NotZero(t, f)
				require.Zero(t, f&^(local|visible|coherent|cached), "an unknown property")
				require.True(t, role == vk.DeviceMemory || f&visible != 0, "%v has to be mapped", role)
			}
			require.Equal(t, len(list), len(slices.Compact(slices.Sorted(slices.Values(list)))), "each once")
		}
	})
	require.Empty(t, typed(local).TypesFor(vk.MemoryRole(9)))
	require.Equal(t, "device-local host-visible coherent cached", (local | visible | coherent | cached).String())
	require.Equal(t, "none", vk.MemoryFlags(0).String())
}

func TestBooksOfMemory(t *testing.T) {
	info := *typed(local, visible)
	info.Heaps[0].Size, info.Heaps[1].Size = 1000, 500
	info.Limits.MaxMemoryAllocationCount = 3
	d := vk.FakeDevice(info)
	require.Equal(t, []vk.HeapUsage{{Size: 1000, Budget: 800}, {Size: 500, Budget: 400}}, d.HeapUsages())

	refused := func(memoryType int, size uint64, rule vk.BudgetRule, want vk.MemoryError) {
		t.Helper()
		before := d.HeapUsages()
		var e *vk.MemoryError
		require.ErrorAs(t, d.Reserve(memoryType, size, rule), &e)
		require.Equal(t, want, *e)
		require.Equal(t, before, d.HeapUsages())
	}
	refused(0, 801, vk.HoldBudget, vk.MemoryError{Want: 801, Budget: 800})
	refused(1, 401, vk.HoldBudget, vk.MemoryError{Want: 401, Budget: 400, Heap: 1})
	refused(0, 1<<64-1, vk.HoldBudget, vk.MemoryError{Want: 1<<64 - 1, Budget: 800})
	require.NoError(t, d.Reserve(0, 500, vk.HoldBudget))
	d.Settle(0, 500, true)
	refused(0, 301, vk.HoldBudget, vk.MemoryError{Want: 301, InUse: 500, Budget: 800})
	refused(0, 1<<64-400, vk.HoldBudget, vk.MemoryError{Want: 1<<64 - 400, InUse: 500, Budget: 800}) // the sum wraps
	refused(0, 501, vk.PassBudget, vk.MemoryError{Want: 501, InUse: 500, Budget: 1000})
	require.NoError(t, d.Reserve(0, 500, vk.PassBudget))
	d.Settle(0, 500, false) // the driver said no
	require.NoError(t, d.Reserve(0, 300, vk.HoldBudget))
	d.Settle(0, 300, true)
	require.Equal(t, uint64(800), d.HeapUsages()[0].Used)

	require.NoError(t, d.Reserve(1, 1, vk.HoldBudget), "another heap")
	d.Settle(1, 1, true)
	err := d.Reserve(1, 1, vk.HoldBudget)
	require.ErrorIs(t, err, vk.ErrOutOfDeviceMemory)
	var e *vk.LimitError
	require.ErrorAs(t, err, &e)
	require.Equal(t, vk.LimitError{Name: "maxMemoryAllocationCount", Want: 4, Max: 3, What: e.What}, *e)

	d.Unreserve(0, 500)
	d.Unreserve(0, 300)
	d.Unreserve(1, 1)
	require.Equal(t, []vk.HeapUsage{{Size: 1000, Budget: 800}, {Size: 500, Budget: 400}}, d.HeapUsages())
}

// Whatever the order of goroutines, no two pass the budget together.
func TestBooksFromSeveralGoroutines(t *testing.T) {
	info := *typed(local)
	info.Heaps[0].Size = 10000
	info.Limits.MaxMemoryAllocationCount = 1 << 20
	d := vk.FakeDevice(info)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 500 {
				if d.Reserve(0, 3000, vk.HoldBudget) != nil {
					continue
				}
				d.Settle(0, 3000, true)
				if u := d.HeapUsages()[0]; u.Used > u.Budget {
					t.Errorf("%d of %d in use", u.Used, u.Budget)
				}
				d.Unreserve(0, 3000)
			}
		})
	}
	wg.Wait()
	require.Zero(t, d.HeapUsages()[0].Used)
}
