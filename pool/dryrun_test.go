package pool

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"vkcompute/vk"
)

// What a dry run reports is what the same allocations take.
func TestADryRunIsRight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		info := rapid.SampledFrom([]vk.DeviceInfo{
			{Limits: fakeLimits()}, discrete(40*mib, 60*mib), withWindow(30*mib, 2*mib, 60*mib),
		}).Draw(t, "device")
		l := rapid.SampledFrom([]Layout{{}, ExclusivePages(), oneSliced(1*mib, BudgetSpill)}).Draw(t, "layout")
		demands := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Demand {
			return Demand{
				Size: rapid.Uint64Range(0, 700*kib).Draw(t, "size"), Role: vk.MemoryRole(rapid.IntRange(0, roles-1).Draw(t, "role")),
				Next: Access(rapid.IntRange(0, 1).Draw(t, "next")), Count: rapid.IntRange(0, 9).Draw(t, "count"),
			}
		}), 0, 20).Draw(t, "demands")
		report, dryErr := DryRun(l, info, demands)

		src := newFakeSource()
		src.unbacked = true
		if len(info.MemoryTypes) > 0 {
			var err error
			src.budgets, err = newVirtual(&info)
			require.NoError(t, err)
		}
		m, err := newManager(src, info.Limits, &fakeTimeline{}, Options{Layout: l})
		require.NoError(t, err)
		var wetErr error
		for _, d := range demands {
			for range max(d.Count, 1) {
				if wetErr == nil {
					_, wetErr = m.AllocFor(d.Size, d.Role, d.Next)
				}
			}
		}
		require.Equal(t, wetErr == nil, dryErr == nil, "%v, %v", wetErr, dryErr)
		st := m.Stats()
		require.Equal(t, st, report.Stats)
		sum := uint64(0)
		for _, h := range report.Heaps {
			sum += h.Reserved
			require.Equal(t, len(info.Heaps) > 0, h.Budget > 0)
		}
		require.Equal(t, st.Total.Reserved, sum)
		if dryErr != nil {
			return
		}

		// What is alive needs under its own layout what it takes there, if it was allocated in this order.
		before := m.Stats()
		again, err := m.DryRun(l)
		require.Equal(t, before, m.Stats())
		if err == nil {
			require.Equal(t, [2]uint64{uint64(before.Total.Slices), before.Total.InUse}, [2]uint64{uint64(again.Stats.Total.Slices), again.Stats.Total.InUse})
		} else {
			require.ErrorIs(t, err, ErrOutOfMemory)
		}
		require.NoError(t, m.Validate())
	})
}

func TestADryRunThatDoesNotFitSaysSo(t *testing.T) {
	report, err := DryRun(Layout{}, discrete(10*mib, 10*mib), []Demand{{Size: 1 * mib, Count: 4}, {Size: 8 * mib}})
	var oom *OutOfMemoryError
	require.ErrorAs(t, err, &oom)
	assert.Contains(t, err.Error(), "demand 2 of 2")
	assert.Equal(t, uint64(10*mib), oom.Budget)
	assert.Equal(t, 4, report.Stats.Total.Slices)
	assert.Contains(t, report.String(), "of a budget of 10485760 (")
	b, err := json.Marshal(report)
	require.NoError(t, err)
	var back Report
	require.NoError(t, json.Unmarshal(b, &back))
	assert.Equal(t, report, back)

	for _, d := range []Demand{{Count: -1}, {Role: 9}, {Next: 9}} {
		_, err = DryRun(Layout{}, vk.DeviceInfo{}, []Demand{d})
		require.Error(t, err)
	}
	_, err = DryRun(oneSliced(0, BudgetFail), vk.DeviceInfo{}, nil)
	require.ErrorIs(t, err, ErrLayout)
	_, err = DryRun(Layout{}, vk.DeviceInfo{MemoryTypes: []vk.MemoryType{{Flags: vk.DeviceLocal, Heap: 1}}}, nil)
	require.Error(t, err)
}

// Memory that others use is not there for a layout; what the manager itself has would be.
func TestADryRunCountsWhatOthersUse(t *testing.T) {
	m, src, _ := newBudgeted(t, discrete(40*mib, 40*mib), Options{Layout: oneSliced(16*mib, BudgetFail)})
	src.unbacked = true
	_, err := m.Alloc(10 * mib)
	require.NoError(t, err)
	src.budgets.heaps[0].Used += 20 * mib
	r, err := m.DryRun(oneSliced(12*mib, BudgetFail))
	require.NoError(t, err)
	assert.Equal(t, []HeapNeed{{Heap: 0, Reserved: 10 * mib, Budget: 20 * mib}}, r.Heaps, "a page of an eighth of the heap would not hold it")
	src.budgets.heaps[0].Used += 15 * mib
	_, err = m.DryRun(oneSliced(12*mib, BudgetFail))
	require.ErrorIs(t, err, ErrOutOfMemory)
}

func TestAVirtualManagerHasPagesWithoutMemory(t *testing.T) {
	m, err := NewVirtual(vk.DeviceInfo{}, nil, Options{Touch: TouchAhead})
	require.NoError(t, err)
	a, err := m.Alloc(1 << 40)
	require.NoError(t, err)
	b, err := m.AllocInfo(100)
	require.NoError(t, err)
	assert.NotZero(t, a.Page())
	assert.NotZero(t, b.Page())
	assert.NotEqual(t, a.Page(), b.Page())
	assert.Nil(t, a.Buffer())
	assert.Nil(t, a.Mapped())
	require.NoError(t, b.Use(7))
	require.NoError(t, b.Release())
	assert.Zero(t, b.Page())
	assert.Zero(t, Slice{}.Page())
	require.NoError(t, a.Release())
	require.NoError(t, m.Close(), "nothing is ever in flight")
}
