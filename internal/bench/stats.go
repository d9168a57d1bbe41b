package bench

import (
	"math"
	"slices"
)

// Summary is what is said of a set of samples.
type Summary struct {
	Count            int
	Median, P10, P90 float64
}

// UnstableSpread is how far the tenth and the ninetieth percentile may lie apart, as a
// part of the median, before a figure is marked.
const UnstableSpread = 0.3

// Summarise describes samples; of none everything is NaN.
func Summarise(samples []float64) Summary {
	sorted := slices.Clone(samples)
	slices.Sort(sorted)
	return Summary{Count: len(sorted), Median: quantile(sorted, 0.5), P10: quantile(sorted, 0.1), P90: quantile(sorted, 0.9)}
}

// Median is the middle of the samples.
func Median(samples []float64) float64 { return Summarise(samples).Median }

// quantile interpolates linearly between the two nearest of sorted samples (type 7 of
// Hyndman and Fan, "Sample Quantiles in Statistical Packages", 1996).
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}

// Spread is the distance of the percentiles as a part of the median.
func (s Summary) Spread() float64 {
	if s.P90 == s.P10 {
		return 0
	}
	return (s.P90 - s.P10) / s.Median
}

// Unstable reports a spread beyond UnstableSpread.
func (s Summary) Unstable() bool { return s.Spread() > UnstableSpread }

// Ratios divides sample by sample. Both slices are of the same rounds, so a slow moment
// of the machine is in both and goes away.
func Ratios(of, by []float64) []float64 {
	r := make([]float64, min(len(of), len(by)))
	for i := range r {
		r[i] = of[i] / by[i]
	}
	return r
}

// Chance is the probability that as many of the ratios lie below 1 if either side of it
// were as likely: the sign test (Arbuthnot, 1710), which one slow moment in ten does not
// sway. Of no ratios it is 1.
func Chance(ratios []float64) float64 {
	below := 0
	for _, r := range ratios {
		if r < 1 {
			below++
		}
	}
	n := len(ratios)
	// Terms of the binomial distribution, from the last on, each from the one before.
	term, sum := math.Pow(0.5, float64(n)), 0.0
	for k := n; k >= below; k-- {
		sum += term
		term *= float64(k) / float64(n-k+1)
	}
	return min(sum, 1)
}

// Line is T(n) = Fixed + Each·n.
type Line struct{ Fixed, Each float64 }

// Fit draws the line through points by least squares of the relative errors: the totals
// span orders of magnitude, and unweighted the largest alone would say what the
// fixed part is. Fewer than two different n give NaN.
func Fit(n, total []float64) Line {
	// Dividing T = a + b·n by T leaves 1 = a·u + b·v with u = 1/T, v = n/T.
	var uu, uv, vv, u1, v1 float64
	for i := range n {
		u, v := 1/total[i], n[i]/total[i]
		uu += u * u
		uv += u * v
		vv += v * v
		u1 += u
		v1 += v
	}
	det := uu*vv - uv*uv
	if len(n) < 2 || det <= 1e-12*uu*vv {
		return Line{math.NaN(), math.NaN()}
	}
	return Line{Fixed: (u1*vv - v1*uv) / det, Each: (v1*uu - u1*uv) / det}
}
