package bench

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// WriteTable shows results as a person compares them: a line a case, with what was
// measured beside it and the quotient. Further metrics of a case are columns.
func WriteTable(w io.Writer, intro string, results []Result) error {
	var references, metrics []string
	notes := false
	first := map[string]int{}
	var order []int
	for i := range results {
		r := &results[i]
		if at, ok := first[r.Case]; ok && results[at].Metric != r.Metric {
			if !slices.Contains(metrics, r.Metric) {
				metrics = append(metrics, r.Metric)
			}
			continue
		}
		first[r.Case] = i
		order = append(order, i)
		for name := range r.Reference {
			if !slices.Contains(references, name) {
				references = append(references, name)
			}
		}
		notes = notes || r.Note != ""
	}
	slices.Sort(references)
	header := table.Row{"case", "median", "", "p10 … p90"}
	left := []int{1, 3, 4}
	for _, m := range metrics {
		header = append(header, m, "")
		left = append(left, len(header))
	}
	for _, name := range references {
		header = append(header, name, "×"+name)
	}
	if notes {
		header = append(header, "")
		left = append(left, len(header))
	}
	t := NewTable(len(header), left...)
	t.AppendHeader(header)
	for _, i := range order {
		r := &results[i]
		scale, unit := Scale(r.Median, r.Unit)
		row := table.Row{r.Case, Number(r.Median/scale) + mark(r), unit, Number(r.P10/scale) + " … " + Number(r.P90/scale)}
		for _, m := range metrics {
			at := slices.IndexFunc(results, func(x Result) bool { return x.Case == r.Case && x.Metric == m })
			if at < 0 || at == i {
				row = append(row, "", "")
				continue
			}
			row = append(row, Number(results[at].Median), results[at].Unit)
		}
		for _, ref := range references {
			v, ok := r.Reference[ref]
			if !ok {
				row = append(row, "", "")
				continue
			}
			row = append(row, Number(v/scale), share(r.quotient(ref)))
		}
		if notes {
			row = append(row, r.Note)
		}
		t.AppendRow(row)
	}
	_, err := fmt.Fprintf(w, "%s\n%s\n\n", strings.TrimRight(intro, "\n"), t.Render())
	return err
}

func mark(r *Result) string {
	if r.Unstable {
		return " ~"
	}
	return ""
}

// quotient is the result over a reference: round by round where that is known.
func (r *Result) quotient(name string) float64 {
	if q, ok := r.Ratio[name]; ok {
		return q.Median
	}
	return r.Median / r.Reference[name]
}

// NewTable is a table in the style of this program, with the columns numbered in left
// aligned to the left and the others to the right.
func NewTable(columns int, left ...int) table.Writer {
	t := table.NewWriter()
	style := table.StyleLight
	style.Format.Header = text.FormatDefault // upper case would turn µ into M
	t.SetStyle(style)
	var list []table.ColumnConfig
	for i := 1; i <= columns; i++ {
		c := table.ColumnConfig{Number: i, Align: text.AlignRight, AlignHeader: text.AlignRight}
		if slices.Contains(left, i) {
			c.Align, c.AlignHeader = text.AlignLeft, text.AlignLeft
		}
		list = append(list, c)
	}
	t.SetColumnConfigs(list)
	return t
}

// Scale chooses a larger unit for times that are long in nanoseconds.
func Scale(v float64, unit string) (by float64, name string) {
	rest, ok := strings.CutPrefix(unit, "ns")
	switch {
	case !ok || rest != "" && !strings.HasPrefix(rest, "/"):
		return 1, unit
	case v >= 1e7:
		return 1e6, "ms" + rest
	case v >= 1e4:
		return 1e3, "µs" + rest
	}
	return 1, unit
}

// Number writes three digits and more, and two of what is small.
func Number(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v < 0.1 && v > -0.1:
		return strconv.FormatFloat(v, 'g', 2, 64)
	case v < 10 && v > -10:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case v < 100 && v > -100:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}

// share writes a quotient to the hundredth, and a small one to two digits.
func share(v float64) string {
	if v < 0.1 {
		return Number(v)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// References are the names of what was measured beside the result, in order.
func (r *Result) References() []string { return slices.Sorted(maps.Keys(r.Reference)) }

// WriteUnsupported says what was not measured, and why.
func WriteUnsupported(w io.Writer, list []Unsupported) error {
	if len(list) == 0 {
		return nil
	}
	var b strings.Builder
	for _, u := range list {
		fmt.Fprintf(&b, "unsupported: %s %s: %s\n", u.Workload, u.Case, u.Reason)
	}
	b.WriteString("\n")
	_, err := io.WriteString(w, b.String())
	return err
}
