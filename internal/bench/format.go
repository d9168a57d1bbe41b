package bench

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
)

// Format is a form in which a report is written.
type Format string

const (
	JSON     Format = "json"
	CSV      Format = "csv"      // a line a figure
	Markdown Format = "markdown" // a table a workload
	Bench    Format = "bench"    // Go's benchmark format, a line a sample
	Prom     Format = "prom"     // Prometheus' text format, for a file that node-exporter reads
)

// Write writes the report in a format.
func (r *Report) Write(w io.Writer, f Format) error {
	if err := r.Validate(); err != nil {
		return err
	}
	var b bytes.Buffer
	var err error
	switch f {
	case JSON:
		return r.WriteJSON(w)
	case CSV:
		err = r.csv(&b)
	case Markdown:
		r.markdown(&b)
	case Bench:
		r.bench(&b)
	case Prom:
		r.prom(&b)
	default:
		return fmt.Errorf("bench: format %q: want %s, %s, %s, %s or %s", f, JSON, CSV, Markdown, Bench, Prom)
	}
	if err != nil {
		return err
	}
	_, err = w.Write(b.Bytes())
	return err
}

func exact(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

func (r *Report) csv(b *bytes.Buffer) error {
	w := csv.NewWriter(b)
	w.Write([]string{"workload", "case", "metric", "unit", "samples", "median", "p10", "p90", "unstable", "reference", "reference median", "ratio", "note", "device", "driver", "commit"})
	e := &r.Environment
	for i := range r.Results {
		x := &r.Results[i]
		line := []string{x.Workload, x.Case, x.Metric, x.Unit, strconv.Itoa(len(x.Samples)), exact(x.Median), exact(x.P10), exact(x.P90), strconv.FormatBool(x.Unstable)}
		rest := []string{x.Note, e.Device, e.Driver, e.Commit}
		references := x.References()
		if len(references) == 0 {
			w.Write(append(append(line, "", "", ""), rest...))
		}
		// A line for each reference: a reader filters by it.
		for _, name := range references {
			w.Write(append(append(line[:9:9], name, exact(x.Reference[name]), exact(places(x.quotient(name)))), rest...))
		}
	}
	w.Flush()
	return w.Error()
}

func (r *Report) markdown(b *bytes.Buffer) {
	e := &r.Environment
	cell := strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;").Replace
	for _, line := range [][2]string{{"device", e.Device}, {"driver", e.Driver}, {"Vulkan", e.API}, {"host", e.CPU + ", " + e.OS + ", " + e.Go}, {"commit", e.Commit}, {"profile", e.Profile}, {"setup", e.Setup}} {
		if line[1] != "" {
			fmt.Fprintf(b, "- %s: %s\n", line[0], cell(line[1]))
		}
	}
	for _, warning := range r.Warnings {
		fmt.Fprintf(b, "- **warning**: %s\n", cell(warning))
	}
	for _, workload := range r.workloads() {
		fmt.Fprintf(b, "\n## %s\n\n| case | median | unit | p10 … p90 | beside | |\n| --- | ---: | --- | --- | --- | --- |\n", workload)
		for i := range r.Results {
			x := &r.Results[i]
			if x.Workload != workload {
				continue
			}
			scale, unit := Scale(x.Median, x.Unit)
			name := x.Case
			if x.Metric != "wall" {
				name += " " + x.Metric
			}
			var beside []string
			for _, ref := range x.References() {
				beside = append(beside, fmt.Sprintf("%s %s (×%s)", ref, Number(x.Reference[ref]/scale), share(x.quotient(ref))))
			}
			fmt.Fprintf(b, "| %s | %s%s | %s | %s … %s | %s | %s |\n", cell(name), Number(x.Median/scale), mark(x), unit, Number(x.P10/scale), Number(x.P90/scale), strings.Join(beside, ", "), cell(x.Note))
		}
	}
	if len(r.Unsupported) > 0 {
		b.WriteString("\n## unsupported\n\n| case | reason |\n| --- | --- |\n")
		for _, u := range r.Unsupported {
			fmt.Fprintf(b, "| %s | %s |\n", cell(u.Workload+" "+u.Case), cell(u.Reason))
		}
	}
	b.WriteString("\n~ marks figures whose samples spread by more than " + strconv.Itoa(100*UnstableSpread) + " %.\n")
}

// workloads in the order in which they appear.
func (r *Report) workloads() []string {
	var list []string
	for i := range r.Results {
		if w := r.Results[i].Workload; len(list) == 0 || list[len(list)-1] != w {
			list = append(list, w)
		}
	}
	return list
}

// benchUnit is what benchstat calls a unit, and the factor to it. Its own tidying makes
// seconds of ns/op and bytes of B/s, and it knows which way those improve.
func benchUnit(unit string) (string, float64) {
	switch unit {
	case "GB/s":
		return "B/s", 1e9
	case "GFLOP/s":
		return "FLOP/s", 1e9
	case "ns", "ns/op":
		return "ns/op", 1
	}
	if rest, ok := strings.CutPrefix(unit, "ns/"); ok {
		return "sec/" + rest, 1e-9
	}
	return strings.ReplaceAll(unit, " ", "-"), 1
}

func (r *Report) bench(b *bytes.Buffer) {
	e := &r.Environment
	for _, line := range [][2]string{{"goos", before(e.OS, "/")}, {"goarch", after(e.OS, "/")}, {"cpu", e.CPU}, {"device", e.Device}, {"driver", e.Driver}, {"vulkan", e.API}, {"toolchain", e.Go}, {"commit", e.Commit}, {"profile", e.Profile}, {"setup", e.Setup}} {
		if line[1] != "" {
			fmt.Fprintf(b, "%s: %s\n", line[0], oneLine(line[1]))
		}
	}
	units := map[string]bool{}
	for i := range r.Results {
		x := &r.Results[i]
		unit, _ := benchUnit(x.Unit)
		if !units[unit] && unit != "ns/op" && unit != "B/s" {
			units[unit] = true
			better := "lower"
			if x.Better() == Higher {
				better = "higher"
			}
			fmt.Fprintf(b, "Unit %s better=%s\n", unit, better)
		}
	}
	b.WriteString("\n")
	for i := range r.Results {
		x := &r.Results[i]
		unit, factor := benchUnit(x.Unit)
		name := benchName(x.Workload)
		for _, part := range strings.Split(x.Case, "/") {
			name += "/" + benchWord(part)
		}
		if x.Metric != "wall" {
			name += "/metric=" + benchWord(x.Metric)
		}
		for _, s := range x.Samples {
			fmt.Fprintf(b, "Benchmark%s 1 %s %s\n", name, exact(s*factor), unit)
		}
	}
}

func before(s, sep string) string { a, _, _ := strings.Cut(s, sep); return a }
func after(s, sep string) string  { _, a, _ := strings.Cut(s, sep); return a }

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// benchName begins in upper case, as a benchmark's name must.
func benchName(s string) string {
	s = benchWord(s)
	for i, c := range s {
		return string(unicode.ToUpper(c)) + s[i+len(string(c)):]
	}
	return s
}

// benchWord holds no space, and no hyphen with a number at its end, which would read as
// GOMAXPROCS.
func benchWord(s string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsSpace(c) || c == '-' {
			return '_'
		}
		return c
	}, s)
}

func (r *Report) prom(b *bytes.Buffer) {
	e := &r.Environment
	label := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace
	host := fmt.Sprintf(`device="%s"`, label(e.Device))
	family := func(name, help string, write func(x *Result, labels string)) {
		fmt.Fprintf(b, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name)
		for i := range r.Results {
			x := &r.Results[i]
			write(x, fmt.Sprintf(`%s,workload="%s",case="%s",metric="%s",unit="%s"`, host, label(x.Workload), label(x.Case), label(x.Metric), label(x.Unit)))
		}
	}
	family("vkbench_median", "Median of the samples, in the unit of the label.", func(x *Result, labels string) {
		fmt.Fprintf(b, "vkbench_median{%s} %s\n", labels, exact(x.Median))
	})
	family("vkbench_quantile", "Tenth and ninetieth percentile of the samples.", func(x *Result, labels string) {
		fmt.Fprintf(b, "vkbench_quantile{%s,quantile=\"0.1\"} %s\nvkbench_quantile{%s,quantile=\"0.9\"} %s\n", labels, exact(x.P10), labels, exact(x.P90))
	})
	family("vkbench_samples", "Number of samples.", func(x *Result, labels string) {
		fmt.Fprintf(b, "vkbench_samples{%s} %d\n", labels, len(x.Samples))
	})
	family("vkbench_reference", "Median of what was measured beside it.", func(x *Result, labels string) {
		for _, name := range x.References() {
			fmt.Fprintf(b, "vkbench_reference{%s,reference=\"%s\"} %s\n", labels, label(name), exact(x.Reference[name]))
		}
	})
	fmt.Fprintf(b, "# HELP vkbench_info Where the figures come from.\n# TYPE vkbench_info gauge\nvkbench_info{%s,driver=\"%s\",vulkan=\"%s\",go=\"%s\",cpu=\"%s\",commit=\"%s\",profile=\"%s\"} 1\n",
		host, label(e.Driver), label(e.API), label(e.Go), label(e.CPU), label(e.Commit), label(e.Profile))
	fmt.Fprintf(b, "# HELP vkbench_warnings Number of warnings of the run.\n# TYPE vkbench_warnings gauge\nvkbench_warnings{%s} %d\n", host, len(r.Warnings))
}
