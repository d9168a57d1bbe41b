package launch

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"vkcompute/internal/bench"
	"vkcompute/internal/cfloor"
)

const (
	unitLaunch = "ns/launch"
	unitSubmit = "ns/submit"
)

// groups are the cases of every size, and the empty submission. A library's case is
// followed by its references in the order of their names.
func (r *rig) groups() []bench.Group {
	var list []bench.Group
	for _, s := range r.sizes {
		var g bench.Group
		add := func(name string, ours runner, references map[string]runner) {
			g.Cases = append(g.Cases, bench.Case{Name: name, Run: ours})
			for _, reference := range slices.Sorted(maps.Keys(references)) {
				g.Cases = append(g.Cases, bench.Case{Name: name + " in plain C", Run: references[reference]})
			}
		}
		for _, m := range modesOf(r.d) {
			add(fmt.Sprintf("%v/n=%d", m, s.n), r.library(m, s), plainModes(m, s))
		}
		if r.o.Scope == Full {
			add(fmt.Sprintf("nop/n=%d", s.n), func(shots int) error { return s.nopOurs.replay(r.ctx, s.nop, shots) },
				map[string]runner{"c": func(shots int) error { return s.nopChain.Run(cfloor.Replay, shots) }})
		}
		list = append(list, g)
	}
	if r.idle != nil {
		list = append(list, bench.Group{Cases: []bench.Case{
			{Name: "empty-submit", Run: func(shots int) error { return r.idle.run(context.WithoutCancel(r.ctx), shots) }},
			{Name: "empty-submit in plain C", Run: func(shots int) error { return r.idle.floor.Run(cfloor.Empty, shots) }},
		}})
	}
	return list
}

func (r *rig) result(name, unit string, ns []float64, per float64) bench.Result {
	return bench.NewResult(Name, r.o.Prefix+name, "wall", unit, ns, per)
}

// results turns the samples of groups into results.
func (r *rig) results(samples [][]bench.Samples) []bench.Result {
	var list []bench.Result
	// By mode and size, for the lines: the library's totals, then plain C's.
	var totals [modeCount][2][]bench.Samples
	for i, s := range r.sizes {
		at := 0
		next := func() bench.Samples { at++; return samples[i][at-1] }
		per := float64(s.n)
		for _, m := range modesOf(r.d) {
			ours := next()
			x := r.result(fmt.Sprintf("%v/n=%d", m, s.n), unitLaunch, ours, per)
			x.Launches, x.Barriers = s.n, s.barriers[m]
			totals[m][0] = append(totals[m][0], ours)
			for _, reference := range slices.Sorted(maps.Keys(plainModes(m, s))) {
				theirs := next()
				x.Against(reference, r.result("", unitLaunch, theirs, per))
				if reference == "c" {
					totals[m][1] = append(totals[m][1], theirs)
				}
			}
			list = append(list, x)
		}
		if r.o.Scope == Full {
			x := r.result(fmt.Sprintf("nop/n=%d", s.n), unitLaunch, next(), per)
			x.Against("c", r.result("", unitLaunch, next(), per))
			x.Launches, x.Barriers = s.n, graphBarriers(s.nop)
			list = append(list, x)
		}
	}
	if r.idle != nil {
		g := samples[len(samples)-1]
		x := r.result("empty-submit", unitSubmit, g[0], 1)
		x.Against("c", r.result("", unitSubmit, g[1], 1))
		list = append(list, x)
	}
	if len(r.sizes) > 1 {
		for _, m := range modesOf(r.d) {
			list = append(list, r.lines(m, totals[m])...)
		}
	}
	return list
}

// lines fits the totals of a mode, round by round.
func (r *rig) lines(m mode, totals [2][]bench.Samples) []bench.Result {
	sizes := make([]float64, len(r.sizes))
	for i, s := range r.sizes {
		sizes[i] = float64(s.n)
	}
	var fixed, each [2][]float64
	total := make([]float64, len(sizes))
	for who := range totals {
		for round := range totals[who][0] {
			for i := range sizes {
				total[i] = totals[who][i][round]
			}
			line := bench.Fit(sizes, total)
			fixed[who] = append(fixed[who], line.Fixed)
			each[who] = append(each[who], line.Each)
		}
	}
	var list []bench.Result
	for _, part := range []struct {
		metric, unit string
		values       [2][]float64
	}{{"per-submit", unitSubmit, fixed}, {"per-launch", unitLaunch, each}} {
		x := bench.NewResult(Name, r.o.Prefix+"line/"+m.String(), part.metric, part.unit, part.values[0], 1)
		// A line through noisy points may cross zero below it: no reference then.
		if y := bench.NewResult(Name, "", part.metric, part.unit, part.values[1], 1); y.Median > 0 {
			x.Against("c", y)
		}
		list = append(list, x)
	}
	return list
}
