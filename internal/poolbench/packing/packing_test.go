package packing_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"vkcompute/internal/poolbench/packing"
)

func items(t *rapid.T) []packing.Item {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) packing.Item {
		begin := rapid.IntRange(0, 40).Draw(t, "begin")
		return packing.Item{Size: rapid.Uint64Range(0, 20).Draw(t, "size"), Begin: begin, End: begin + rapid.IntRange(0, 15).Draw(t, "life")}
	}), 0, 40).Draw(t, "items")
}

func TestNoTwoItemsOverlapAndTheBoundHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := items(t)
		p := packing.Best(list)
		require.NoError(t, p.Validate(list))
		// The bound, by looking at each moment.
		most := uint64(0)
		for at := range 60 {
			sum := uint64(0)
			for _, it := range list {
				if it.Begin <= at && at < it.End {
					sum += it.Size
				}
			}
			most = max(most, sum)
		}
		require.Equal(t, most, packing.Bound(list))
		require.GreaterOrEqual(t, p.Span, most)
		require.LessOrEqual(t, p.Span, 3*most, "worse than what can always be had")
	})
}

// Items of one size, by their beginnings, need no more than the bound: they are intervals to be coloured.
func TestEqualSizesArePackedPerfectly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := items(t)
		for i := range list {
			list[i].Size = 7
		}
		require.Equal(t, packing.Bound(list), packing.Best(list).Span)
	})
}

func TestADamagedPlacementIsFound(t *testing.T) {
	list := []packing.Item{{Size: 4, Begin: 0, End: 2}, {Size: 4, Begin: 1, End: 3}, {Size: 4, Begin: 2, End: 4}}
	p := packing.Best(list)
	require.NoError(t, p.Validate(list))
	assert.Equal(t, uint64(8), p.Span)
	for _, bad := range []packing.Placement{
		{Span: 8, Offsets: []uint64{0, 3, 0}}, {Span: 7, Offsets: p.Offsets}, {Span: 8, Offsets: []uint64{0, 4}},
	} {
		require.Error(t, bad.Validate(list))
	}
	assert.Zero(t, packing.Bound(nil))
	assert.Zero(t, packing.Best(nil).Span)
}
