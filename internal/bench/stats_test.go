package bench_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"vkcompute/internal/bench"
)

func TestSummariseKnown(t *testing.T) {
	for _, c := range []struct {
		samples          []float64
		median, p10, p90 float64
	}{
		{[]float64{7}, 7, 7, 7},
		{[]float64{4, 1}, 2.5, 1.3, 3.7},
		{[]float64{5, 1, 3}, 3, 1.4, 4.6},
		{[]float64{10, 0, 9, 1, 8, 2, 7, 3, 6, 4, 5}, 5, 1, 9},
	} {
		s := bench.Summarise(c.samples)
		require.Equal(t, len(c.samples), s.Count)
		require.InDelta(t, c.median, s.Median, 1e-12)
		require.InDelta(t, c.p10, s.P10, 1e-12)
		require.InDelta(t, c.p90, s.P90, 1e-12)
	}
	require.True(t, math.IsNaN(bench.Median(nil)))
}

func TestSummariseProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		samples := rapid.SliceOfN(rapid.Float64Range(0.1, 1e9), 1, 60).Draw(t, "samples")
		before := slices.Clone(samples)
		s := bench.Summarise(samples)
		if !slices.Equal(before, samples) {
			t.Fatal("the samples were reordered")
		}
		if !(slices.Min(samples) <= s.P10 && s.P10 <= s.Median && s.Median <= s.P90 && s.P90 <= slices.Max(samples)) {
			t.Fatalf("not in order: %+v of %v", s, samples)
		}
		if got := bench.Summarise(rapid.Permutation(samples).Draw(t, "shuffled")); got != s {
			t.Fatalf("order matters: %+v, %+v", s, got)
		}
		factor := rapid.Float64Range(0.5, 8).Draw(t, "factor")
		scaled := make([]float64, len(samples))
		for i := range samples {
			scaled[i] = samples[i] * factor
		}
		if got := bench.Median(scaled); math.Abs(got-factor*s.Median) > 1e-9*got {
			t.Fatalf("scaled by %v the median is %v, was %v", factor, got, s.Median)
		}
	})
}

func TestUnstable(t *testing.T) {
	steady := []float64{100, 101, 99, 100, 102, 98, 100, 101, 99, 100, 5000}
	require.False(t, bench.Summarise(steady).Unstable(), "one outlier is no spread")
	require.True(t, bench.Summarise([]float64{100, 165, 100, 165, 100, 165}).Unstable(), "two speeds are")
	require.False(t, bench.Summarise([]float64{0, 0, 0}).Unstable())
}

func TestRatios(t *testing.T) {
	// A machine that slows down by half in some rounds leaves the ratio alone.
	ours, theirs := []float64{110, 165, 110}, []float64{100, 150, 100}
	for _, r := range bench.Ratios(ours, theirs) {
		require.InDelta(t, 1.1, r, 1e-12)
	}
}

func TestFitFindsTheLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := bench.Line{Fixed: rapid.Float64Range(1, 1e6).Draw(t, "fixed"), Each: rapid.Float64Range(1, 1e4).Draw(t, "each")}
		sizes := rapid.SliceOfNDistinct(rapid.IntRange(1, 5000), 2, 8, rapid.ID).Draw(t, "sizes")
		var n, total []float64
		for _, s := range sizes {
			n = append(n, float64(s))
			total = append(total, want.Fixed+want.Each*float64(s))
		}
		got := bench.Fit(n, total)
		if math.IsNaN(got.Fixed) { // points too close to tell
			return
		}
		for i := range n {
			if p := got.Fixed + got.Each*n[i]; math.Abs(p-total[i]) > 1e-3*total[i] {
				t.Fatalf("want %+v, found %+v: at %v it gives %v, not %v", want, got, n[i], p, total[i])
			}
		}
	})
}

// The fixed part must come from the small sizes even when the large ones are noisy.
func TestFitWeighsRelatively(t *testing.T) {
	n := []float64{1, 16, 256, 1024}
	total := []float64{22000, 50000, 530000, 2.1e6}
	total[3] *= 1.05
	got := bench.Fit(n, total)
	require.InEpsilon(t, 20000, got.Fixed, 0.05)
	require.InEpsilon(t, 2000, got.Each, 0.08)
}

func TestFitNeedsTwoSizes(t *testing.T) {
	for _, n := range [][]float64{{}, {4}, {4, 4, 4}} {
		total := make([]float64, len(n))
		for i := range total {
			total[i] = 10
		}
		require.True(t, math.IsNaN(bench.Fit(n, total).Each), "%v", n)
	}
}

func TestChance(t *testing.T) {
	of := func(below, above int) []float64 {
		return append(slices.Repeat([]float64{0.9}, below), slices.Repeat([]float64{1.1}, above)...)
	}
	require.Equal(t, 1.0, bench.Chance(nil))
	require.Equal(t, 1.0, bench.Chance(of(0, 7)))
	require.InDelta(t, 0.5, bench.Chance(of(1, 0)), 1e-12)
	require.InDelta(t, 1.0/512, bench.Chance(of(9, 0)), 1e-12)
	require.InDelta(t, 10.0/512, bench.Chance(of(8, 1)), 1e-12)
	require.InDelta(t, 0.0059, bench.Chance(of(16, 4)), 1e-4, "as tables have it")
	require.Equal(t, bench.Chance(of(0, 3)), bench.Chance([]float64{1, 1, 1}), "no faster is not faster")
	require.InDelta(t, 0.5, bench.Chance(of(501, 500)), 1e-9, "of a thousand")
}
