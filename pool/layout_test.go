package pool

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestPresetsAreValid(t *testing.T) {
	for name, l := range map[string]Layout{"zero": {}, "SubSlices": SubSlices(), "ExclusivePages": ExclusivePages()} {
		assert.NoError(t, l.Validate(), name)
	}
}

func TestInvalidLayoutsAreRefused(t *testing.T) {
	for name, p := range map[string]PoolSpec{
		"kind":              {Kind: 7, PageSize: 4096},
		"no page size":      {Kind: Sliced},
		"slice above page":  {Kind: Sliced, PageSize: 4096, MaxSlice: 8192},
		"bounds crossed":    {Kind: Sliced, PageSize: 4096, MinSlice: 100, MaxSlice: 50},
		"pages shrink":      {Kind: Sliced, PageSize: 4096, MaxPageSize: 100},
		"steps of sliced":   {Kind: Sliced, PageSize: 4096, Steps: 4},
		"steps not a power": {Kind: Exclusive, Steps: 3},
		"steps too fine":    {Kind: Exclusive, Steps: 64},
		"growing exclusive": {Kind: Exclusive, MaxPageSize: 1 << 20},
		"size wraps":        {Kind: Sliced, PageSize: math.MaxUint64},
		"cap wraps":         {Kind: Exclusive, Cap: math.MaxUint64},
	} {
		t.Run(name, func(t *testing.T) {
			for _, l := range []Layout{{Pools: []PoolSpec{p}}, {Staging: []PoolSpec{p}}, {Info: []PoolSpec{p}}} {
				require.ErrorIs(t, l.Validate(), ErrLayout)
				_, err := newManager(newFakeSource(), fakeLimits(), &fakeTimeline{}, Options{Layout: l})
				require.ErrorIs(t, err, ErrLayout)
				m, _, _ := newFake(t, Options{})
				require.ErrorIs(t, m.Install(l), ErrLayout)
			}
		})
	}
	require.ErrorIs(t, Layout{Pools: []PoolSpec{}}.Validate(), ErrLayout, "an empty list is not the default")
}

func TestBucketsHoldTheirSlicesAndWasteLittle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		steps := uint64(1) << rapid.IntRange(0, 5).Draw(t, "steps")
		p := PoolSpec{Kind: Exclusive, PageSize: 4096, Steps: steps}
		size := rapid.OneOf(rapid.Uint64Range(1, 1<<20), rapid.Uint64Range(1, maxSize)).Draw(t, "size")
		n := p.bucket(size)
		require.GreaterOrEqual(t, n, size)
		if size > 4096 {
			require.LessOrEqual(t, float64(n), float64(size)*(1+1/float64(steps)))
			require.Equal(t, n, p.bucket(n), "a page is its own bucket")
		} else {
			require.Equal(t, uint64(4096), n)
		}
	})
}

func TestTheFirstPoolThatAcceptsWins(t *testing.T) {
	m, _, _ := newFake(t, Options{Layout: Layout{Pools: []PoolSpec{
		{Name: "odd", Kind: Sliced, PageSize: 64 * kib, MinSlice: 1000, MaxSlice: 2000},
		{Name: "small", Kind: Sliced, PageSize: 64 * kib, MaxSlice: 4096},
		{Name: "rest", Kind: Exclusive, MaxSlice: 1 << 20},
	}}})
	for _, c := range []struct {
		size uint64
		pool string
	}{{999, "small"}, {1000, "odd"}, {2000, "odd"}, {2001, "small"}, {4096, "small"}, {4097, "rest"}, {1 << 20, "rest"}} {
		s, err := m.Alloc(c.size)
		require.NoError(t, err)
		assert.Equal(t, c.pool, s.s.page.pool.spec.Name, "size %d", c.size)
	}
	var large *TooLargeError
	_, err := m.Alloc(1<<20 + 1)
	require.ErrorAs(t, err, &large)
	require.ErrorIs(t, err, ErrTooLarge)
	assert.Equal(t, uint64(1<<20), large.Max)
	_, err = m.Alloc(math.MaxUint64)
	require.ErrorIs(t, err, ErrTooLarge)
	valid(t, m)
}

func TestADescriptorOfAnInfoStaysInsideItsBuffer(t *testing.T) {
	for _, l := range []Layout{SubSlices(), ExclusivePages(), {Info: []PoolSpec{{Kind: Exclusive}}}} {
		for _, align := range []uint64{16, 64, 256} {
			src := newFakeSource()
			limits := fakeLimits()
			limits.MinStorageBufferAlignment = align
			m, err := newManager(src, limits, &fakeTimeline{}, Options{Layout: l})
			require.NoError(t, err)
			for _, size := range []uint64{0, 1, 8, 16, 100, 4096, 4097, 8192, 60_000, 70_000, 300_000} {
				rng := m.InfoRange(size)
				require.GreaterOrEqual(t, rng, max(size, 4096))
				require.Equal(t, rng, m.InfoRange(rng), "the range of a range")
				for range 300_000 / (size + 2048) {
					s, err := m.AllocInfo(size)
					require.NoError(t, err)
					require.LessOrEqual(t, s.Offset()+rng, s.s.page.mem.size)
					require.Zero(t, s.Offset()%align)
					require.Len(t, s.Mapped(), int(size))
				}
			}
			valid(t, m)
			_, err = m.AllocInfo(1<<27 + 1)
			require.ErrorIs(t, err, ErrTooLarge, "no descriptor could bind it")
		}
	}
}
