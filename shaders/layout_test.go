package shaders_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"vkcompute/shaders"
	"vkcompute/shaders/ref"
)

// layouts draws small layouts of every kind, overlapping and empty ones too.
func layouts() *rapid.Generator[shaders.Layout] {
	return rapid.Custom(func(t *rapid.T) shaders.Layout {
		l := shaders.Layout{Rank: rapid.IntRange(0, 4).Draw(t, "rank"), Offset: rapid.IntRange(0, 50).Draw(t, "offset")}
		for d := range l.Rank {
			l.Shape[d] = rapid.IntRange(0, 4).Draw(t, "extent")
			l.Stride[d] = rapid.IntRange(-12, 12).Draw(t, "stride")
		}
		return l
	})
}

func TestLenAndBoundsCountWhatIsTouched(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := layouts().Draw(t, "layout")
		n, lo, hi := 0, math.MaxInt, math.MinInt
		ref.Each(l.Shape[:l.Rank], func(_ int, pos []int) {
			at := ref.Index(l, pos)
			n, lo, hi = n+1, min(lo, at), max(hi, at)
		})
		require.Equal(t, n, l.Len())
		gotLo, gotHi := l.Bounds()
		if n == 0 {
			require.Greater(t, gotLo, gotHi)
			return
		}
		require.Equal(t, [2]int{lo, hi}, [2]int{gotLo, gotHi})
		require.Equal(t, lo < 0, l.Validate() != nil)
	})
}

// An output that names an element twice is refused, always.
func TestOverlappingOutputsAreRefused(t *testing.T) {
	env := envOf(shaders.Fill, devices[0])
	value := shaders.Operand{Kind: shaders.ScalarParam, DType: shaders.Float32}
	rapid.Check(t, func(t *rapid.T) {
		l := layouts().Draw(t, "layout")
		seen, twice := map[int]bool{}, false
		ref.Each(l.Shape[:l.Rank], func(_ int, pos []int) {
			at := ref.Index(l, pos)
			twice = twice || seen[at]
			seen[at] = true
		})
		var p shaders.Plan
		err := shaders.Fill.Plan(env, []shaders.Operand{value, f32(l)}, &p)
		if twice {
			require.Error(t, err, l.String())
		}
	})
	// A few random layouts may hold no such output; this is one.
	twice := shaders.Layout{Rank: 2, Shape: [shaders.MaxRank]int{2, 2}, Stride: [shaders.MaxRank]int{1, 1}}
	require.Error(t, shaders.Fill.Plan(env, []shaders.Operand{value, f32(twice)}, &shaders.Plan{}))
	// And a view made by slicing and permuting never is.
	rng := rand.New(rand.NewPCG(1, 1))
	for _, c := range ref.Cases(rng, 50) {
		if c.Kernel == shaders.Fill {
			require.NoError(t, c.Kernel.Plan(env, c.Operands, &shaders.Plan{}), c.Name)
		}
	}
}

func TestLayoutsSaturate(t *testing.T) {
	const huge = math.MaxInt
	l := shaders.Layout{Rank: 3, Offset: huge, Shape: [8]int{huge, huge, 2}, Stride: [8]int{huge, huge, math.MinInt}}
	require.Equal(t, huge, l.Len())
	lo, hi := l.Bounds()
	require.LessOrEqual(t, lo, 0)
	require.Equal(t, huge, hi)
	require.Error(t, l.Validate())
	require.Zero(t, shaders.Layout{Rank: -1}.Len())
	require.Error(t, shaders.Layout{Rank: -1}.Validate())
	require.Equal(t, "layout of rank 9", shaders.Layout{Rank: 9}.String())
	require.Error(t, shaders.Contiguous(1, 1, 1, 1, 1, 1, 1, 1, 1).Validate())
	require.NoError(t, shaders.Contiguous().Validate())
	require.Equal(t, 1, shaders.Contiguous().Len())
}
