package launch

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"vkcompute/internal/bench"
)

// Section is a set of results shown together: those whose cases begin with Prefix.
type Section struct{ Title, Prefix string }

// WriteTable shows results the way a person compares them: a row for each number of
// launches, the library beside plain C, and what replaying saves.
func WriteTable(w io.Writer, results []bench.Result, sections []Section) error {
	var b strings.Builder
	b.WriteString("launch: one workgroup adds 64 strided elements; every launch needs the result of the one before.\n" +
		"Nanoseconds per launch (median); n launches are submitted together and waited for.\n")
	for _, s := range sections {
		v := view{results, s.Prefix}
		sizes := v.sizes()
		if len(sizes) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n%s\n%s\n", s.Title, v.modes(sizes))
		if v.find("empty-submit", "wall") != nil {
			fmt.Fprintf(&b, "\nControls: what is the driver's\n%s\n", v.controls(sizes))
		}
		if v.find("line/replay", "per-launch") != nil {
			fmt.Fprintf(&b, "\nLine through the totals, T(n) = a + b·n\n%s\n", v.lines())
		}
		if v.find("first", "wall") != nil {
			fmt.Fprintf(&b, "\nOnce\n%s\n", v.once(sizes))
		}
	}
	b.WriteString("\n×C: divided by plain C, the same commands on the same driver in the same rounds. C fresh: a buffer and memory made for each info.\n" +
		"~ marks figures whose samples spread by more than " + strconv.Itoa(100*bench.UnstableSpread) + " %.\n")
	_, err := io.WriteString(w, b.String())
	return err
}

type view struct {
	results []bench.Result
	prefix  string
}

func (v view) find(name, metric string) *bench.Result {
	for i := range v.results {
		if r := &v.results[i]; r.Workload == Name && r.Case == v.prefix+name && r.Metric == metric {
			return r
		}
	}
	return nil
}

// sizes are the numbers of launches there are figures of.
func (v view) sizes() []int {
	var list []int
	for _, r := range v.results {
		if n, err := strconv.Atoi(strings.TrimPrefix(r.Case, v.prefix+"replay/n=")); err == nil && strings.HasPrefix(r.Case, v.prefix) {
			list = append(list, n)
		}
	}
	slices.Sort(list)
	return list
}

// figure is a median, marked when it is unstable.
func figure(r *bench.Result, unit float64) string {
	if r == nil {
		return "–"
	}
	mark := ""
	if r.Unstable {
		mark = "~"
	}
	return mark + number(r.Median/unit)
}

func number(v float64) string {
	switch {
	case v < 10 && v > -10:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case v < 100 && v > -100:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}

func reference(r *bench.Result, name string, unit float64) string {
	if r == nil || r.Reference[name] == 0 {
		return "–"
	}
	return number(r.Reference[name] / unit)
}

func over(r *bench.Result, name string) string {
	if r == nil || r.Reference[name] == 0 {
		return "–"
	}
	return strconv.FormatFloat(r.Median/r.Reference[name], 'f', 2, 64)
}

func (v view) modes(sizes []int) string {
	t := bench.NewTable(12)
	t.AppendHeader(table.Row{"n", "rebuild", "C", "×C", "C fresh", "cached", "C", "×C", "replay", "C", "×C", "replay is cheaper"})
	for _, n := range sizes {
		r, c, p := v.find(fmt.Sprintf("rebuild/n=%d", n), "wall"), v.find(fmt.Sprintf("cached/n=%d", n), "wall"), v.find(fmt.Sprintf("replay/n=%d", n), "wall")
		times := "–"
		if r != nil && p != nil && p.Median > 0 {
			times = strconv.FormatFloat(r.Median/p.Median, 'f', 2, 64) + " times"
		}
		t.AppendRow(table.Row{n,
			figure(r, 1), reference(r, "c", 1), over(r, "c"), reference(r, "c.buffer", 1),
			figure(c, 1), reference(c, "c", 1), over(c, "c"),
			figure(p, 1), reference(p, "c", 1), over(p, "c"), times})
	}
	return t.Render()
}

func (v view) controls(sizes []int) string {
	t := bench.NewTable(5, 1, 5)
	t.AppendHeader(table.Row{"", "library", "C", "×C", ""})
	empty := v.find("empty-submit", "wall")
	t.AppendRow(table.Row{"empty submission and wait", figure(empty, 1), reference(empty, "c", 1), over(empty, "c"), "ns/submit"})
	for _, n := range sizes {
		r := v.find(fmt.Sprintf("nop/n=%d", n), "wall")
		t.AppendRow(table.Row{fmt.Sprintf("replay of a kernel that does nothing, n=%d", n), figure(r, 1), reference(r, "c", 1), over(r, "c"), "ns/launch"})
	}
	for _, n := range sizes {
		if r := v.find(fmt.Sprintf("addressed/n=%d", n), "wall"); r != nil {
			t.AppendRow(table.Row{fmt.Sprintf("replay by device address, C by descriptor, n=%d", n), figure(r, 1), reference(r, "c", 1), over(r, "c"), "ns/launch"})
		}
	}
	return t.Render()
}

func (v view) lines() string {
	t := bench.NewTable(7, 1)
	t.AppendHeader(table.Row{"", "a: µs/submit", "C", "×C", "b: ns/launch", "C", "×C"})
	for m := range modeCount {
		a, b := v.find("line/"+m.String(), "per-submit"), v.find("line/"+m.String(), "per-launch")
		if a == nil {
			continue
		}
		t.AppendRow(table.Row{m.String(), figure(a, 1000), reference(a, "c", 1000), over(a, "c"), figure(b, 1), reference(b, "c", 1), over(b, "c")})
	}
	return t.Render()
}

func (v view) once(sizes []int) string {
	t := bench.NewTable(3, 1, 3)
	t.AppendHeader(table.Row{"", "median", ""})
	t.AppendRow(table.Row{"first launch of a stream, with the first touch of its pages", figure(v.find("first", "wall"), 1000), "µs"})
	for _, n := range sizes {
		t.AppendRow(table.Row{fmt.Sprintf("recording a graph of %d launches", n), figure(v.find(fmt.Sprintf("capture/n=%d", n), "wall"), 1), "ns/launch"})
	}
	for _, n := range sizes {
		t.AppendRow(table.Row{fmt.Sprintf("host's part of a replay of %d launches", n), figure(v.find(fmt.Sprintf("host/n=%d", n), "host"), 1), "ns"})
		t.AppendRow(table.Row{fmt.Sprintf("what changing a parameter adds to it, of %d launches", n), figure(v.find(fmt.Sprintf("set/n=%d", n), "host"), 1), "ns"})
	}
	return t.Render()
}
