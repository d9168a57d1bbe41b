package bench

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"golang.org/x/perf/benchmath"
)

// Comparison is what became of the figures of one report in another.
type Comparison struct {
	Schema int      `json:"schema"`
	Old    string   `json:"old"`
	New    string   `json:"new"`
	Notes  []string `json:"notes,omitempty"` // what makes the two hard to compare
	Lines  []Change `json:"changes"`
	// OnlyOld and OnlyNew are figures without a counterpart.
	OnlyOld []string `json:"only_old,omitempty"`
	OnlyNew []string `json:"only_new,omitempty"`
}

// Change is what became of one figure.
type Change struct {
	Workload string `json:"workload"`
	Case     string `json:"case"`
	Metric   string `json:"metric"`
	Unit     string `json:"unit"`
	// Old and New are medians, OldCI and NewCI their 95 % confidence intervals; too few
	// samples give none.
	Old    float64     `json:"old"`
	OldCI  *[2]float64 `json:"old_confidence,omitempty"`
	New    float64     `json:"new"`
	NewCI  *[2]float64 `json:"new_confidence,omitempty"`
	Counts [2]int      `json:"samples"`
	// Percent is the change of the median.
	Percent float64 `json:"percent"`
	// P is the probability, by the Mann-Whitney U test, that samples of one distribution
	// differ as much. Above 0.05 a change is none.
	P float64 `json:"p"`
	// Verdict is same, better, worse, or different where there are too few samples to tell.
	Verdict Verdict `json:"verdict"`
}

// Verdict says what a change means.
type Verdict string

const (
	Same      Verdict = "same"
	Improved  Verdict = "better"
	Worsened  Verdict = "worse"
	Undecided Verdict = "too few samples"
)

// Worse is by how many per cent the figure got worse, if it did for sure; else 0. The
// cost per unit of work counts: half the rate is 100 % worse, as twice the time is.
func (c *Change) Worse() float64 {
	if c.Verdict != Worsened {
		return 0
	}
	r := Result{Metric: c.Metric, Unit: c.Unit}
	if r.Better() == Higher {
		return 100 * (c.Old/c.New - 1)
	}
	return c.Percent
}

// ErrNothing: two reports have no figure in common.
var ErrNothing = errors.New("nothing to compare")

// Compare finds what became of the figures of one report in another, as benchstat would
// say it: medians, and a change only where the Mann-Whitney U test sees one at the level
// of 5 %.
func Compare(before, after *Report) (*Comparison, error) {
	c := &Comparison{Schema: Schema, Old: before.Environment.Commit, New: after.Environment.Commit}
	a, b := before.Environment, after.Environment
	for _, f := range [][3]string{{"device", a.Device, b.Device}, {"driver", a.Driver, b.Driver}, {"processor", a.CPU, b.CPU}, {"toolchain", a.Go, b.Go}, {"profile", a.Profile, b.Profile}, {"setup", a.Setup, b.Setup}} {
		if f[1] != f[2] {
			c.Notes = append(c.Notes, fmt.Sprintf("%s differs: %q and %q", f[0], f[1], f[2]))
		}
	}
	for i := range before.Results {
		x := &before.Results[i]
		y := after.Find(x.Workload, x.Case, x.Metric)
		if y == nil || y.Unit != x.Unit {
			c.OnlyOld = append(c.OnlyOld, x.Workload+"/"+x.Case+" "+x.Metric)
			continue
		}
		c.Lines = append(c.Lines, compare(x, y))
	}
	for i := range after.Results {
		y := &after.Results[i]
		if x := before.Find(y.Workload, y.Case, y.Metric); x == nil || y.Unit != x.Unit {
			c.OnlyNew = append(c.OnlyNew, y.Workload+"/"+y.Case+" "+y.Metric)
		}
	}
	if len(c.Lines) == 0 {
		return nil, fmt.Errorf("%w: no figure is in both reports", ErrNothing)
	}
	return c, nil
}

func compare(x, y *Result) Change {
	t := benchmath.DefaultThresholds
	s1, s2 := benchmath.NewSample(x.Samples, &t), benchmath.NewSample(y.Samples, &t)
	m1, m2 := benchmath.AssumeNothing.Summary(s1, 0.95), benchmath.AssumeNothing.Summary(s2, 0.95)
	test := benchmath.AssumeNothing.Compare(s1, s2)
	c := Change{Workload: x.Workload, Case: x.Case, Metric: x.Metric, Unit: x.Unit, Old: m1.Center, New: m2.Center,
		OldCI: finite(m1), NewCI: finite(m2), Counts: [2]int{len(x.Samples), len(y.Samples)}, P: test.P, Verdict: Same}
	if m1.Center != 0 {
		c.Percent = 100 * (m2.Center/m1.Center - 1)
	}
	switch {
	case len(test.Warnings) > 0 && test.P >= test.Alpha && m1.Center != m2.Center:
		c.Verdict = Undecided // the test says that it can see nothing in so few
	case test.P >= test.Alpha || m1.Center == m2.Center:
	case (m2.Center < m1.Center) == (x.Better() == Lower):
		c.Verdict = Improved
	default:
		c.Verdict = Worsened
	}
	return c
}

// finite is a confidence interval that has ends.
func finite(s benchmath.Summary) *[2]float64 {
	for _, v := range []float64{s.Lo, s.Hi} {
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return nil
		}
	}
	return &[2]float64{s.Lo, s.Hi}
}

// Above lists the changes that are for sure worse by more than so many per cent.
func (c *Comparison) Above(percent float64) []Change {
	var list []Change
	for _, l := range c.Lines {
		if l.Worse() > percent {
			list = append(list, l)
		}
	}
	return list
}

// WriteTable shows the changes, a table a workload.
func (c *Comparison) WriteTable(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "old %s\nnew %s\n", c.Old, c.New)
	for _, n := range c.Notes {
		fmt.Fprintf(&b, "warning %s\n", n)
	}
	for from := 0; from < len(c.Lines); {
		to := from
		for to < len(c.Lines) && c.Lines[to].Workload == c.Lines[from].Workload {
			to++
		}
		t := NewTable(8, 1, 4, 5, 8)
		t.AppendHeader(table.Row{"case", "old", "new", "", "±", "change", "p", ""})
		product, n := 0.0, 0
		for _, l := range c.Lines[from:to] {
			scale, unit := Scale(l.Old, l.Unit)
			name := l.Case
			if l.Metric != "wall" {
				name += " " + l.Metric
			}
			change := "~"
			switch l.Verdict {
			case Improved, Worsened:
				change = fmt.Sprintf("%+.1f %%", l.Percent)
			case Undecided:
				change = fmt.Sprintf("(%+.1f %%)", l.Percent)
			}
			verdict := ""
			if l.Verdict != Same {
				verdict = string(l.Verdict)
			}
			t.AppendRow(table.Row{name, Number(l.Old / scale), Number(l.New / scale), unit, half(l.OldCI, l.Old) + ", " + half(l.NewCI, l.New), change, fmt.Sprintf("%.3f", l.P), verdict})
			if l.Old > 0 && l.New > 0 && l.Metric == c.Lines[from].Metric {
				product += math.Log(l.New / l.Old)
				n++
			}
		}
		fmt.Fprintf(&b, "\n%s\n%s\n", c.Lines[from].Workload, t.Render())
		if n > 1 {
			fmt.Fprintf(&b, "geometric mean of the %d changes of %s: %+.1f %%\n", n, c.Lines[from].Metric, 100*(math.Exp(product/float64(n))-1))
		}
		from = to
	}
	for _, l := range c.OnlyOld {
		fmt.Fprintf(&b, "only in old: %s\n", l)
	}
	for _, l := range c.OnlyNew {
		fmt.Fprintf(&b, "only in new: %s\n", l)
	}
	b.WriteString("\n~ no change that the Mann-Whitney U test sees at 5 %; ± 95 % confidence of the medians, old and new.\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func half(ci *[2]float64, center float64) string {
	switch {
	case ci == nil:
		return "∞"
	case center == 0:
		return "0 %"
	}
	return fmt.Sprintf("%.0f %%", 100*max(ci[1]-center, center-ci[0])/math.Abs(center))
}
