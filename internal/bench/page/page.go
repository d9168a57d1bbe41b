package page

import (
	"fmt"
	"html/template"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"vkcompute/internal/bench"
)

// Source is a report with the name it goes by on the page, such as its file's.
type Source struct {
	Name   string
	Report *bench.Report
}

// most is how many reports a page compares: there are as many colours.
const most = 6

// Write makes the page. With one report it shows each workload as suits it, with
// several it shows every figure of theirs beside each other.
func Write(w io.Writer, sources []Source) error {
	if len(sources) == 0 || len(sources) > most {
		return fmt.Errorf("page: want 1 to %d reports, found %d", most, len(sources))
	}
	for _, s := range sources {
		if err := s.Report.Validate(); err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	p := content{Sources: sources, Title: sources[0].Report.Environment.Device, Several: len(sources) > 1}
	if p.Several {
		p.Title = fmt.Sprintf("%d runs", len(sources))
		for i, s := range sources {
			p.Keys = append(p.Keys, key{Class: class(i), Name: s.Name, Env: s.Report.Environment})
		}
	} else {
		p.Env = facts(sources[0].Report.Environment)
		p.Warnings = sources[0].Report.Warnings
		p.Unsupported = sources[0].Report.Unsupported
		p.Tiles = tiles(sources[0].Report)
	}
	for _, name := range workloads(sources) {
		p.Sections = append(p.Sections, newSection(name, sources))
	}
	return document.Execute(w, p)
}

type content struct {
	Title       string
	Several     bool
	Sources     []Source
	Keys        []key
	Env         [][2]string
	Warnings    []string
	Unsupported []bench.Unsupported
	Tiles       []tile
	Sections    []section
}

type key struct {
	Class, Name string
	Env         bench.Environment
}

type tile struct{ Value, Unit, Name, Note string }

type section struct {
	ID, Title, About string
	Plots            []plot
	Tables           []tableOf
}

type plot struct {
	Title string
	SVG   template.HTML
	Note  string
}

type tableOf struct {
	Name string
	Rows []line
}

type line struct{ Case, Value, Unit, Range, Beside, Note string }

func class(i int) string { return "c" + strconv.Itoa(i+1) }

func facts(e bench.Environment) [][2]string {
	var list [][2]string
	for _, f := range [][2]string{{"driver", e.Driver}, {"Vulkan", e.API}, {"processor", e.CPU}, {"system", e.OS}, {"toolchain", e.Go}, {"commit", e.Commit}, {"profile", e.Profile}, {"setup", e.Setup}} {
		if f[1] != "" {
			list = append(list, f)
		}
	}
	return list
}

func workloads(sources []Source) []string {
	var list []string
	for _, s := range sources {
		for _, r := range s.Report.Results {
			if !slices.Contains(list, r.Workload) {
				list = append(list, r.Workload)
			}
		}
	}
	return list
}

// about says in a sentence what a workload is.
var about = map[string]string{
	"launch":    "One workgroup adds 64 strided elements, and every launch needs the result of the one before. Dashed: the same commands in plain C on the same driver.",
	"scalar":    "Steps of 96 launches, a quarter of them with a number that no launch had before.",
	"transfer":  "Bandwidth is bytes read plus written: 2n for an upload, a download or a copy of n bytes, n for a fill.",
	"metacache": "The metadata cache by itself. Dashed: a straightforward port of the cache it is modelled on.",
	"pool":      "The allocator by itself: one of so many slices is released and another allocated.",
	"peak":      "What the device does at best in float32 fused multiply-adds, by independent accumulators and steps unrolled, and in memory read and copied by kernels.",
	"kernels":   "Each kernel as a share of what memory or arithmetic allows at best, as probes of the same run found it.",
	"decode":    "One step of a decoder-only transformer for each token.",
	"train":     "A classifier trained from a recorded graph of one step.",
}

func newSection(name string, sources []Source) section {
	s := section{ID: name, Title: name, About: about[name]}
	if len(sources) > 1 {
		s.About = strings.Split(s.About, " Dashed:")[0]
	}
	if len(sources) == 1 {
		s.Plots = special(name, sources[0].Report)
	}
	if len(s.Plots) == 0 {
		s.Plots = dots(name, sources)
	}
	for _, source := range sources {
		t := tableOf{Name: source.Name}
		for i := range source.Report.Results {
			if r := &source.Report.Results[i]; r.Workload == name {
				t.Rows = append(t.Rows, newLine(r))
			}
		}
		if len(t.Rows) > 0 {
			s.Tables = append(s.Tables, t)
		}
	}
	return s
}

func newLine(r *bench.Result) line {
	scale, unit := bench.Scale(r.Median, r.Unit)
	l := line{Case: r.Case, Value: bench.Number(r.Median / scale), Unit: unit, Range: bench.Number(r.P10/scale) + " … " + bench.Number(r.P90/scale), Note: r.Note}
	if r.Metric != "wall" {
		l.Case += " " + r.Metric
	}
	if r.Unstable {
		l.Value = "~" + l.Value
	}
	var beside []string
	for _, name := range r.References() {
		beside = append(beside, fmt.Sprintf("%s %s", name, bench.Number(r.Reference[name]/scale)))
	}
	l.Beside = strings.Join(beside, ", ")
	return l
}

// tiles are the figures to remember.
func tiles(r *bench.Report) []tile {
	var list []tile
	rebuild, replay := r.Find("launch", "rebuild/n=256", "wall"), r.Find("launch", "replay/n=256", "wall")
	if rebuild != nil && replay != nil && replay.Median > 0 {
		list = append(list,
			tile{bench.Number(replay.Median), "ns", "a replayed launch", "of 256 in a submission"},
			tile{fmt.Sprintf("%.2f", rebuild.Median/replay.Median), "×", "cheaper than rebuilt", bench.Number(rebuild.Median) + " ns with everything made anew"})
		if q := replay.Ratio["c"].Median; q > 0 {
			list = append(list, tile{fmt.Sprintf("%.2f", q), "×", "plain C", "the same commands, same driver, same rounds"})
		}
	}
	if x := r.Find("peak", "fma", "arithmetic"); x != nil {
		list = append(list, tile{bench.Number(x.Median), "GFLOP/s", "float32 multiply-add", x.Note})
	}
	if x := r.Find("peak", "copy", "bandwidth"); x != nil {
		list = append(list, tile{bench.Number(x.Median), "GB/s", "copied by a kernel", "bytes read plus written"})
	}
	for _, x := range r.Results {
		if x.Workload == "decode" && x.Unit == "tokens/s" && strings.HasSuffix(x.Case, "/replay") {
			list = append(list, tile{bench.Number(x.Median), "tokens/s", x.Case, "one step recorded, replayed for each token"})
			break
		}
	}
	return list
}

func figureOf(r *bench.Result) figure { return figure{r.Median, r.P10, r.P90} }

// special plots a workload as suits it; nothing where its figures are not there.
func special(name string, r *bench.Report) []plot {
	switch name {
	case "launch":
		return launchPlots(r)
	case "metacache":
		return metacachePlots(r)
	case "peak":
		return peakPlots(r)
	case "kernels":
		return kernelPlots(r)
	case "transfer":
		return transferPlots(r)
	}
	return nil
}

// along collects the cases prefix+number of a workload, with a reference beside.
func along(r *bench.Report, workload, prefix, class, name, reference string) []series {
	ours, theirs := series{name: name, class: class}, series{name: name + ", " + reference, class: class, faint: true}
	found := map[float64]*bench.Result{}
	for i := range r.Results {
		x := &r.Results[i]
		if rest, ok := strings.CutPrefix(x.Case, prefix); ok && x.Workload == workload && x.Metric == "wall" {
			if n, err := strconv.ParseFloat(rest, 64); err == nil {
				found[n] = x
			}
		}
	}
	for _, n := range slices.Sorted(maps.Keys(found)) {
		ours.x, ours.y = append(ours.x, n), append(ours.y, figureOf(found[n]))
		if v := found[n].Reference[reference]; v > 0 {
			theirs.x, theirs.y = append(theirs.x, n), append(theirs.y, figure{v, v, v})
		}
	}
	if len(ours.x) == 0 {
		return nil
	}
	if len(theirs.x) == 0 {
		return []series{ours}
	}
	return []series{ours, theirs}
}

func launchPlots(r *bench.Report) []plot {
	var list []series
	for i, m := range []string{"rebuild", "cached", "replay"} {
		list = append(list, along(r, "launch", m+"/n=", class(i), m, "c")...)
	}
	if len(list) == 0 {
		return nil
	}
	plots := []plot{{"What a launch costs", lines("nanoseconds per launch by launches in a submission", "launches in a submission", "ns per launch", list), "Lines are medians, bands the tenth to the ninetieth percentile."}}
	var ratio []series
	for i, m := range []string{"rebuild", "cached", "replay"} {
		s := series{name: m, class: class(i)}
		for _, n := range []int{1, 16, 256, 1024, 4096} {
			if x := r.Find("launch", fmt.Sprintf("%s/n=%d", m, n), "wall"); x != nil && x.Ratio["c"].Median > 0 {
				q := x.Ratio["c"]
				s.x, s.y = append(s.x, float64(n)), append(s.y, figure{q.Median, q.P10, q.P90})
			}
		}
		if len(s.x) > 0 {
			ratio = append(ratio, s)
		}
	}
	if len(ratio) > 0 {
		plots = append(plots, plot{"Beside plain C", lines("times plain C by launches in a submission", "launches in a submission", "× plain C", ratio), "1 is plain C: the same commands, in the same rounds."})
	}
	return plots
}

func metacachePlots(r *bench.Report) []plot {
	var plots []plot
	if list := along(r, "metacache", "hit/words=", "c1", "hit", "port"); len(list) > 0 {
		plots = append(plots, plot{"A hit", lines("nanoseconds of a hit by words of the info", "words of the info", "ns", list), ""})
	}
	if list := along(r, "metacache", "miss/entries=", "c2", "miss, store, evict", "port"); len(list) > 0 {
		plots = append(plots, plot{"A miss", lines("nanoseconds of a miss by entries of the cache", "entries of the cache", "ns", list), "The port looks at every entry to find the one to evict."})
	}
	var rs []row
	for _, x := range r.Results {
		if name, ok := strings.CutPrefix(x.Case, "scalar/"); ok && x.Workload == "metacache" && x.Metric == "wall" {
			text := short(x.Median) + " ns"
			if h := r.Find("metacache", x.Case, "hits"); h != nil {
				text += ", " + short(h.Median) + " %"
			}
			rs = append(rs, row{name: name, values: []figure{figureOf(&x)}, text: text})
		}
	}
	if len(rs) > 0 {
		plots = append(plots, plot{"A scalar that is always another", rows("nanoseconds per launch", "ns", []series{{class: "c3"}}, rs, 0), "Time of a launch's look-up, and the share that hits."})
	}
	return plots
}

func peakPlots(r *bench.Report) []plot {
	type at struct{ shape, unroll string }
	found := map[at]float64{}
	var shapes, unrolls []string
	for _, x := range r.Results {
		rest, ok := strings.CutPrefix(x.Case, "fma/")
		if !ok || x.Workload != "peak" {
			continue
		}
		shape, unroll, _ := strings.Cut(rest, "/unroll=")
		if !slices.Contains(shapes, shape) {
			shapes = append(shapes, shape)
		}
		if !slices.Contains(unrolls, unroll) {
			unrolls = append(unrolls, unroll)
		}
		found[at{shape, unroll}] = x.Median
	}
	var plots []plot
	if len(shapes) > 0 {
		var columns []string
		values := make([][]float64, len(shapes))
		for _, u := range unrolls {
			columns = append(columns, "unrolled "+u)
		}
		for i, s := range shapes {
			for _, u := range unrolls {
				values[i] = append(values[i], found[at{s, u}])
			}
		}
		plots = append(plots, plot{"Arithmetic, by accumulators", heat("GFLOP/s by accumulators and unrolling", columns, shapes, values, "GFLOP/s"), "Few independent chains wait for each other; too many do not fit the registers."})
	}
	var rs []row
	for _, name := range []string{"read", "copy"} {
		if x := r.Find("peak", name, "bandwidth"); x != nil {
			rs = append(rs, row{name: name, values: []figure{figureOf(x)}, text: short(x.Median)})
		}
	}
	if len(rs) > 0 {
		plots = append(plots, plot{"Memory", rows("GB/s", "GB/s", []series{{class: "c3"}}, rs, 0), "Bytes read plus written, by kernels."})
	}
	return plots
}

// chunk is how many rows one plot holds.
const chunk = 24

func kernelPlots(r *bench.Report) []plot {
	type share struct {
		name  string
		value figure
		bound string
	}
	var list []share
	for _, x := range r.Results {
		roof := x.Reference["roof"]
		if x.Workload != "kernels" || x.Metric != "wall" || roof <= 0 || x.Median <= 0 {
			continue
		}
		bound := "memory"
		if strings.Contains(x.Note, "arithmetic") {
			bound = "arithmetic"
		}
		list = append(list, share{x.Case, figure{100 * roof / x.Median, 100 * roof / max(x.P90, 1e-9), 100 * roof / max(x.P10, 1e-9)}, bound})
	}
	slices.SortStableFunc(list, func(a, b share) int { return int(math.Copysign(1, b.value.value-a.value.value)) })
	top := 0.0
	for _, s := range list {
		top = max(top, s.value.value)
	}
	// A plot each of the same scale: up to the roof, or beyond it where a cache helps.
	scale := 100.0
	if top < 50 {
		scale = math.Ceil(top/10) * 10
	} else if top > 100 {
		scale = math.Ceil(top/50) * 50
	}
	var plots []plot
	for from := 0; from < len(list); from += chunk {
		var rs []row
		for _, s := range list[from:min(from+chunk, len(list))] {
			// The bar is the median; its spread is in the table.
			v := s.value
			text := short(v.value) + " %"
			if s.bound == "arithmetic" {
				text += " ◆"
			}
			v.lo, v.hi = v.value, v.value
			rs = append(rs, row{name: s.name, values: []figure{v}, text: text})
		}
		p := plot{Title: "Share of the roof", SVG: rows("per cent of the roof", "%", []series{{class: "c1"}}, rs, scale)}
		if from > 0 {
			p.Title = "… continued"
		}
		if from+chunk >= len(list) {
			p.Note = "◆ bound by arithmetic, the others by memory."
		}
		plots = append(plots, p)
	}
	return plots
}

func transferPlots(r *bench.Report) []plot {
	var list []series
	for i, name := range []string{"upload", "download", "copy", "fill"} {
		s := series{name: name, class: class(i)}
		for _, size := range []struct {
			name  string
			bytes float64
		}{{"4KiB", 4 << 10}, {"1MiB", 1 << 20}, {"32MiB", 32 << 20}} {
			if x := r.Find("transfer", name+"/size="+size.name, "bandwidth"); x != nil {
				s.x, s.y = append(s.x, size.bytes), append(s.y, figureOf(x))
				s.marks = append(s.marks, strings.Replace(strings.Replace(size.name, "KiB", " KiB", 1), "MiB", " MiB", 1))
			}
		}
		if len(s.x) > 0 {
			list = append(list, s)
		}
	}
	if len(list) == 0 {
		return nil
	}
	plots := []plot{{"Bandwidth", lines("GB/s by size", "size", "GB/s", list), ""}}
	var rs []row
	for _, x := range r.Results {
		if x.Workload == "transfer" && x.Metric == "wall" && (strings.HasPrefix(x.Case, "reserve/") || strings.HasPrefix(x.Case, "first-touch/") || strings.HasPrefix(x.Case, "reuse/")) {
			scale, unit := bench.Scale(x.Median, "ns")
			rs = append(rs, row{name: strings.Replace(x.Case, "/size=", " ", 1), values: []figure{{x.Median / 1e3, x.P10 / 1e3, x.P90 / 1e3}}, text: short(x.Median/scale) + " " + unit})
		}
	}
	if len(rs) > 0 {
		plots = append(plots, plot{"Fresh memory", rows("microseconds", "µs", []series{{class: "c2"}}, rs, 0), "Reserving it, the first fill, which touches every page, and the next."})
	}
	return plots
}

// titleOf names a metric as a title.
func titleOf(metric string) string {
	if t := map[string]string{"wall": "Time", "hits": "Look-ups that hit", "per-launch": "Time for each launch", "per-submit": "Time for each submission"}[metric]; t != "" {
		return t
	}
	return strings.ToUpper(metric[:1]) + metric[1:]
}

// dots plots every figure of a workload, those of a unit together, with a series for
// each report.
func dots(name string, sources []Source) []plot {
	type entry struct{ title, unit, metric string }
	groups := map[entry][]string{}
	var order []entry
	for _, s := range sources {
		for _, r := range s.Report.Results {
			if r.Workload != name {
				continue
			}
			e := entry{titleOf(r.Metric), r.Unit, r.Metric}
			if _, ok := groups[e]; !ok {
				order = append(order, e)
			}
			if !slices.Contains(groups[e], r.Case) {
				groups[e] = append(groups[e], r.Case)
			}
		}
	}
	var list []series
	for i, s := range sources {
		list = append(list, series{name: s.Name, class: class(i)})
	}
	if len(list) == 1 {
		list[0].name = ""
	}
	var plots []plot
	for _, e := range order {
		cases := groups[e]
		for from := 0; from < len(cases); from += chunk {
			var rs []row
			limits := false
			for _, c := range cases[from:min(from+chunk, len(cases))] {
				x := row{name: c}
				for _, s := range sources {
					v := figure{math.NaN(), math.NaN(), math.NaN()}
					if r := s.Report.Find(name, c, e.metric); r != nil && r.Unit == e.unit {
						v = figureOf(r)
						if x.text == "" {
							x.text = short(r.Median)
						}
						if refs := r.References(); len(sources) == 1 && len(refs) == 1 {
							x.limit, limits = r.Reference[refs[0]], true
						}
					}
					x.values = append(x.values, v)
				}
				rs = append(rs, x)
			}
			p := plot{Title: e.title, SVG: rows(e.title+" in "+e.unit, e.unit, list, rs, 0)}
			if limits {
				p.Note = "The mark is what was measured beside it."
			}
			plots = append(plots, p)
		}
	}
	return plots
}
