package page

import (
	"math"
	"strconv"
)

// axis maps values to a range of a plot.
type axis struct {
	lo, hi   float64 // values
	from, to float64 // of the plot
	log      bool
}

// newAxis covers values from lo to hi, on a logarithmic scale where they span much.
func newAxis(lo, hi, from, to float64) axis {
	a := axis{lo, hi, from, to, lo > 0 && hi/lo > 6}
	if a.log {
		a.lo, a.hi = lo/1.15, hi*1.15
		return a
	}
	a.lo = min(0, lo)
	if a.hi <= a.lo {
		a.hi = a.lo + 1
	}
	step := tickStep(a.hi - a.lo)
	a.hi = math.Ceil(a.hi/step) * step
	if a.lo < 0 {
		a.lo = math.Floor(a.lo/step) * step
	}
	return a
}

// logAxis is logarithmic whatever the span.
func logAxis(lo, hi, from, to float64) axis {
	if lo <= 0 || hi <= 0 {
		return newAxis(lo, hi, from, to)
	}
	if hi/lo < 2 {
		lo, hi = lo/1.5, hi*1.5
	}
	return axis{lo, hi, from, to, true}
}

func (a *axis) at(v float64) float64 {
	part := 0.0
	if a.log {
		part = math.Log(max(v, a.lo)/a.lo) / math.Log(a.hi/a.lo)
	} else {
		part = (v - a.lo) / (a.hi - a.lo)
	}
	return a.from + min(max(part, 0), 1)*(a.to-a.from)
}

// ticks are round values within the axis: three to seven of them.
func (a *axis) ticks() []float64 {
	var list []float64
	if !a.log {
		step := tickStep(a.hi - a.lo)
		for i := math.Ceil(a.lo/step - 1e-9); i*step <= a.hi*(1+1e-9); i++ {
			list = append(list, i*step)
		}
		return list
	}
	decades := math.Log10(a.hi / a.lo)
	factors := []float64{1}
	switch {
	case decades < 1.2:
		factors = []float64{1, 2, 5}
	case decades < 2.2:
		factors = []float64{1, 3}
	}
	every := max(1, math.Ceil(decades/6))
	for e := math.Floor(math.Log10(a.lo)); e <= math.Log10(a.hi); e++ {
		if math.Mod(e, every) != 0 {
			continue
		}
		for _, f := range factors {
			if v := f * math.Pow(10, e); v >= a.lo*(1-1e-9) && v <= a.hi*(1+1e-9) {
				list = append(list, v)
			}
		}
	}
	return list
}

func tickStep(span float64) float64 {
	step := math.Pow(10, math.Floor(math.Log10(span)))
	switch {
	case span/step < 2:
		return step / 2
	case span/step < 5:
		return step
	}
	return 2 * step
}

// short writes a number for an axis or a label: 1.2k rather than 1200.
func short(v float64) string {
	switch a := math.Abs(v); {
	case a >= 999_500_000:
		return digits(v/1e9) + "G"
	case a >= 999_500:
		return digits(v/1e6) + "M"
	case a >= 9_995:
		return digits(v/1e3) + "k"
	}
	return digits(v)
}

// digits keeps three of them and no trailing zeros.
func digits(v float64) string {
	if v == 0 {
		return "0"
	}
	places := 2 - int(math.Floor(math.Log10(math.Abs(v))+1e-9))
	if places <= 0 {
		return strconv.FormatFloat(math.Round(v), 'f', 0, 64)
	}
	s := strconv.FormatFloat(v, 'f', min(places, 4), 64)
	for s[len(s)-1] == '0' {
		s = s[:len(s)-1]
	}
	if s[len(s)-1] == '.' {
		s = s[:len(s)-1]
	}
	return s
}
