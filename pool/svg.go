package pool

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"vkcompute/vk"
)

// The picture is laid out in pixels of a page svgWidth wide; viewers scale it.
const (
	svgWidth  = 1200
	svgMargin = 36
	svgLabel  = 116 // left of a bar
	svgNote   = 246 // right of a bar
	svgBar    = 26  // height of a page
	svgStep   = 36  // from page to page
	svgSpan   = svgWidth - 2*svgMargin - svgLabel - svgNote

	svgMaxPages = 12   // drawn in full for each pool
	svgMaxFlow  = 600  // exclusive pages drawn side by side
	svgMaxCells = 1080 // of the overview of a larger pool
	svgCellRow  = 54
	svgCell     = 14

	// svgLeast is the narrowest range that is drawn by itself. Narrower neighbours share
	// a column in which each state has its part of the height.
	svgLeast = 2.5
)

// svgStyle has the colours of both schemes. They are literal, without variables, so that
// programs that only know the older parts of CSS draw them too.
const svgStyle = `
text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;font-size:13px;fill:#1f2328}
.h1{font-size:22px;font-weight:600}.h2{font-size:15px;font-weight:600}.big{font-size:20px;font-weight:600}
.dim,.end{fill:#656d76;font-size:12px}.end{text-anchor:end}
.paper{fill:#ffffff}.card{fill:#f6f8fa;stroke:#d8dee4}.rule{stroke:#d8dee4}
.free{fill:#eaeef2}.frame{fill:none;stroke:#afb8c1}
.user{fill:#2f6fd0}.graph{fill:#8250df}.cache{fill:#0f9d82}.wait{fill:#d9840d}.busy{fill:#9cc4f5}.tail{fill:#d0d7de}.pad{fill:#0a2450;fill-opacity:.6}
.heap{fill:#2f6fd0}.other{fill:#9cc4f5}.mark{stroke:#cf222e;stroke-width:2}
.f0{fill:#eaeef2}.f1{fill:#c7dcf6}.f2{fill:#93bdf0}.f3{fill:#5b95e3}.f4{fill:#2f6fd0}
@media (prefers-color-scheme:dark){
text{fill:#e6edf3}.dim,.end{fill:#8d96a0}
.paper{fill:#0d1117}.card{fill:#161b22;stroke:#30363d}.rule{stroke:#30363d}
.free{fill:#21262d}.frame{stroke:#57606a}
.user{fill:#4d8fef}.graph{fill:#a475f9}.cache{fill:#2bb89a}.wait{fill:#e3a13c}.busy{fill:#27476f}.tail{fill:#3a424c}.pad{fill:#0d1117;fill-opacity:.6}
.heap{fill:#4d8fef}.other{fill:#27476f}.mark{stroke:#ff7b72}
.f0{fill:#21262d}.f1{fill:#1c3557}.f2{fill:#27538c}.f3{fill:#3871bd}.f4{fill:#4d8fef}
}
`

var svgClass = [rangeStates]string{"free", "busy", "wait", "user", "graph", "cache", "tail"}

// WriteSVG draws the pages and slices of a manager; see [Map.WriteSVG].
func (m *Manager) WriteSVG(w io.Writer) error { return m.Map().WriteSVG(w) }

// WriteSVG draws the picture: each page a bar, its slices to scale, with their state as colour.
// Of a pool with many pages the most fragmented are drawn in full, and all as cells of an overview. It needs no
// script and no network, follows the viewer's light or dark scheme, and tells sizes on hovering.
func (p Map) WriteSVG(w io.Writer) error {
	d := &drawing{y: svgMargin}
	d.head(p)
	d.heaps(p)
	d.legend()
	for i := range p.Pools {
		d.pool(&p.Pools[i])
	}
	if len(p.Pools) == 0 {
		d.text(svgMargin, d.y+24, "dim", "No pages: nothing was allocated, or everything was returned.")
		d.y += 40
	}
	height := math.Ceil(d.y + svgMargin - 12)
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %.0f" width="%d" height="%.0f" role="img" aria-label="Pages and slices of the device memory pools">
<style>%s</style>
<rect class="paper" width="%d" height="%.0f"/>
%s</svg>
`, svgWidth, height, svgWidth, height, svgStyle, svgWidth, height, d.b.Bytes())
	return err
}

type drawing struct {
	b bytes.Buffer
	y float64 // where the next thing goes
}

func (d *drawing) printf(format string, args ...any) { fmt.Fprintf(&d.b, format, args...) }

// num is a coordinate in as few characters as do.
func num(x float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", x), "0"), ".")
}

func escape(s string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(s)) // a buffer takes everything
	return b.String()
}

func (d *drawing) text(x, y float64, class, s string) {
	d.printf("<text class=\"%s\" x=\"%s\" y=\"%s\">%s</text>\n", class, num(x), num(y), escape(s))
}

func (d *drawing) rect(class string, x, y, w, h float64, title string) {
	d.printf("<rect class=\"%s\" x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\"", class, num(x), num(y), num(w), num(h))
	if title == "" {
		d.printf("/>\n")
		return
	}
	d.printf("><title>%s</title></rect>\n", escape(title))
}

// size tells bytes as people do.
func size(n uint64) string {
	units := []string{"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	u, x := 0, float64(n)
	for x >= 1024 && u < len(units)-1 {
		u, x = u+1, x/1024
	}
	if u == 0 || x >= 100 || x == math.Trunc(x) {
		return fmt.Sprintf("%.0f %s", x, units[u])
	}
	return fmt.Sprintf("%.1f %s", x, units[u])
}

func percent(part, of uint64) string {
	if of == 0 {
		return "0 %"
	}
	p := float64(part) / float64(of) * 100
	if p > 0 && p < 10 {
		return fmt.Sprintf("%.1f %%", p)
	}
	return fmt.Sprintf("%.0f %%", p)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// tally is the sum of some pages.
type tally struct {
	bytes            [rangeStates]uint64
	size, hole       uint64 // hole: the largest free range
	ranges, holes    int
	slices           int
	padding, largest uint64
}

func (t *tally) page(pg *MapPage) {
	t.size += pg.Size
	free := uint64(0) // free ranges of either kind merge when they are freed, but look different
	for i, r := range pg.Ranges {
		t.bytes[r.State] += r.Size
		t.ranges++
		if r.State == RangeFree || r.State == RangeBusy {
			free += r.Size
			t.hole = max(t.hole, free)
			if i == 0 || pg.Ranges[i-1].State > RangeBusy {
				t.holes++
			}
			continue
		}
		free = 0
		if r.State.Alive() {
			t.slices++
			t.padding += r.Size - r.Asked
			t.largest = max(t.largest, r.Asked)
		}
	}
}

func (t *tally) alive() uint64 {
	return t.bytes[RangeUser] + t.bytes[RangeGraph] + t.bytes[RangeCache]
}
func (t *tally) free() uint64 { return t.bytes[RangeFree] + t.bytes[RangeBusy] }

// scattered is the free memory outside the largest hole: what fragmentation makes hard to use.
func (t *tally) scattered() uint64 { return t.free() - t.hole }

func (d *drawing) head(p Map) {
	var all tally
	scattered := uint64(0)
	for i := range p.Pools {
		for j := range p.Pools[i].Pages {
			var one tally
			one.page(&p.Pools[i].Pages[j])
			scattered += one.scattered()
			all.page(&p.Pools[i].Pages[j])
		}
	}
	d.text(svgMargin, d.y+18, "h1", "Device memory pools")
	s := p.Stats
	d.text(svgMargin, d.y+40, "dim", fmt.Sprintf("%s on %s in %s. Peaks: %s in use, %s reserved.",
		count(s.Total.Slices, "slice"), count(s.Total.Pages, "page"), count(len(p.Pools), "pool"), size(s.Total.PeakInUse), size(s.Total.PeakReserved)))
	d.y += 60
	cards := []struct{ name, value, note string }{
		{"reserved", size(s.Total.Reserved), spilledNote(s.Total.Spilled)},
		{"in use", size(s.Total.InUse), percent(s.Total.InUse, s.Total.Reserved) + " of what is reserved"},
		{"padding", size(s.Total.Padding), percent(s.Total.Padding, s.Total.InUse+s.Total.Padding) + " of the ranges in use"},
		{"waiting for the device", size(s.Total.WaitingBytes), count(s.Total.Waiting, "slice") + " released"},
		{"free and scattered", size(scattered), percent(scattered, all.free()) + " of " + size(all.free()) + " free"},
	}
	const gap = 12.0
	w := (svgWidth - 2*svgMargin - gap*float64(len(cards)-1)) / float64(len(cards))
	for i, c := range cards {
		x := svgMargin + float64(i)*(w+gap)
		d.printf("<rect class=\"card\" x=\"%s\" y=\"%s\" width=\"%s\" height=\"78\" rx=\"8\"/>\n", num(x), num(d.y), num(w))
		d.text(x+14, d.y+22, "dim", c.name)
		d.text(x+14, d.y+47, "big", c.value)
		d.text(x+14, d.y+66, "dim", c.note)
	}
	d.y += 100
}

func spilledNote(n uint64) string {
	if n == 0 {
		return "none of it spilled"
	}
	return size(n) + " of it spilled"
}

// heaps draws what the pools and others use of each heap, with its budget.
func (d *drawing) heaps(p Map) {
	for h, u := range p.Heaps {
		if u.Size == 0 || u.Size >= maxSize {
			continue
		}
		own := p.Stats.Heaps[h]
		used := max(u.Used, own)
		scale := func(n uint64) float64 { return float64(min(n, u.Size)) / float64(u.Size) * svgSpan }
		x := float64(svgMargin + svgLabel)
		d.text(svgMargin, d.y+13, "", fmt.Sprintf("heap %d", h))
		d.rect("free", x, d.y+3, svgSpan, 12, fmt.Sprintf("heap of %s", size(u.Size)))
		d.rect("other", x, d.y+3, scale(used), 12, fmt.Sprintf("%s used through this device", size(used)))
		d.rect("heap", x, d.y+3, scale(own), 12, fmt.Sprintf("%s reserved by these pools", size(own)))
		b := x + scale(u.Budget)
		d.printf("<line class=\"mark\" x1=\"%s\" y1=\"%s\" x2=\"%s\" y2=\"%s\"><title>budget %s</title></line>\n", num(b), num(d.y), num(b), num(d.y+18), size(u.Budget))
		d.text(x+svgSpan+14, d.y+13, "dim", fmt.Sprintf("%s of a budget of %s", size(own), size(u.Budget)))
		d.y += 26
	}
	if len(p.Heaps) > 0 {
		d.y += 6
	}
}

func (d *drawing) legend() {
	x := float64(svgMargin)
	entry := func(name string, classes ...string) {
		for _, c := range classes {
			d.printf("<rect class=\"%s\" x=\"%s\" y=\"%s\" width=\"14\" height=\"14\" rx=\"3\"/>\n", c, num(x), num(d.y))
		}
		d.text(x+20, d.y+11.5, "dim", name)
		x += 48 + 6.4*float64(len(name))
	}
	for _, s := range []RangeState{RangeUser, RangeGraph, RangeCache, RangeWaiting, RangeBusy, RangeFree, RangeTail} {
		name := s.String()
		if s == RangeTail {
			name = "not usable"
		}
		entry(name, svgClass[s])
		if s == RangeCache {
			entry("padding", svgClass[RangeUser], "pad")
		}
	}
	d.y += 34
}

func (d *drawing) pool(p *MapPool) {
	var all tally
	pages := make([]tally, len(p.Pages))
	largest := uint64(0)
	for i := range p.Pages {
		pages[i].page(&p.Pages[i])
		all.page(&p.Pages[i])
		largest = max(largest, p.Pages[i].Size)
	}
	kind := p.Kind.String()
	if p.Replaced {
		kind += ", replaced"
	}
	d.printf("<line class=\"rule\" x1=\"%d\" y1=\"%s\" x2=\"%d\" y2=\"%s\"/>\n", svgMargin, num(d.y), svgWidth-svgMargin, num(d.y))
	d.printf("<text class=\"h2\" x=\"%d\" y=\"%s\">%s<tspan class=\"dim\" dx=\"10\" font-weight=\"400\">%s</tspan></text>\n", svgMargin, num(d.y+26), escape(p.Name), escape(kind))
	d.text(svgWidth-svgMargin, d.y+26, "end", fmt.Sprintf("%s in %s, %s reserved, %s in use",
		count(all.slices, "slice"), count(len(p.Pages), "page"), size(all.size), percent(all.alive(), all.size)))
	d.y += 44

	order := make([]int, len(p.Pages))
	for i := range order {
		order[i] = i
	}
	switch {
	case len(order) <= svgMaxPages && (p.Kind == Sliced || len(order) <= 3):
		for _, i := range order {
			d.page(&p.Pages[i], &pages[i], largest)
		}
	case p.Kind == Exclusive && len(order) <= svgMaxFlow:
		d.flow(p, pages, all.size, largest)
	default:
		d.cells(p, pages)
		if p.Kind == Exclusive {
			break // a page has one slice, and no fragments
		}
		slices.SortStableFunc(order, func(a, b int) int {
			return cmp.Or(cmp.Compare(pages[b].scattered(), pages[a].scattered()), cmp.Compare(pages[b].holes, pages[a].holes))
		})
		d.text(svgMargin, d.y+4, "dim", fmt.Sprintf("the %d most fragmented pages", svgMaxPages))
		d.y += 18
		for _, i := range order[:svgMaxPages] {
			d.page(&p.Pages[i], &pages[i], largest)
		}
	}
	d.y += 12
}

// flow draws exclusive pages side by side, the largest first, all to one scale.
func (d *drawing) flow(p *MapPool, pages []tally, total, largest uint64) {
	order := make([]int, len(pages))
	used := 0
	for i := range order {
		order[i] = i
		if pages[i].alive() > 0 {
			used++
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p.Pages[b].Size, p.Pages[a].Size) })
	const rows = 4
	scale := min(svgSpan/float64(largest), rows*svgSpan/float64(total))
	left := float64(svgMargin + svgLabel)
	x := left
	d.text(svgMargin, d.y+11.5, "", count(len(pages), "page"))
	d.text(svgMargin, d.y+25, "dim", size(p.Pages[order[len(order)-1]].Size)+" to "+size(largest))
	d.text(left+svgSpan+14, d.y+11.5, "", fmt.Sprintf("%d in use, %d free", used, len(pages)-used))
	for _, i := range order {
		pg := &p.Pages[i]
		w := max(float64(pg.Size)*scale, 3)
		if x+w > left+svgSpan+.01 && x > left {
			x = left
			d.y += svgBar + 4
		}
		gap := 0.0
		if w >= 6 {
			gap = 1.5
		}
		d.rect("free", x, d.y, w-gap, svgBar, fmt.Sprintf("page %d: %s, %s", pg.ID, size(pg.Size), pg.use()))
		for _, r := range pg.Ranges {
			d.slice(r, x+float64(r.Offset)/float64(pg.Size)*(w-gap), d.y, float64(r.Size)/float64(pg.Size)*(w-gap))
		}
		x += w
	}
	d.y += svgStep
}

// cells draws an overview: each page, or some of them where there are too many, is a
// cell that is the darker the fuller it is.
func (d *drawing) cells(p *MapPool, pages []tally) {
	each := (len(pages) + svgMaxCells - 1) / svgMaxCells
	what := "a cell is a page"
	if each > 1 {
		what = fmt.Sprintf("a cell is %d pages", each)
	}
	d.text(svgMargin, d.y+11, "dim", what)
	x0 := float64(svgMargin + svgLabel)
	n := 0
	for i := 0; i < len(pages); i += each {
		var t tally
		last := min(i+each, len(pages))
		for j := i; j < last; j++ {
			t.page(&p.Pages[j])
		}
		fill := 0
		if t.size > 0 && t.alive() > 0 {
			fill = min(1+int(float64(t.alive())/float64(t.size)*4), 4)
		}
		name := fmt.Sprintf("page %d", p.Pages[i].ID)
		if last > i+1 {
			name = fmt.Sprintf("pages %d to %d", p.Pages[i].ID, p.Pages[last-1].ID)
		}
		x, y := x0+float64(n%svgCellRow*svgCell), d.y+float64(n/svgCellRow*svgCell)
		d.printf("<rect class=\"f%d\" x=\"%s\" y=\"%s\" width=\"%d\" height=\"%d\" rx=\"2\"><title>%s: %s, %s in use</title></rect>\n",
			fill, num(x), num(y), svgCell-2, svgCell-2, name, size(t.size), percent(t.alive(), t.size))
		n++
	}
	x := x0 + svgSpan + 14
	d.text(x, d.y+11, "dim", "empty")
	for i := range 5 {
		d.rect(fmt.Sprintf("f%d", i), x+44+float64(i*svgCell), d.y, svgCell-2, svgCell-2, "")
	}
	d.text(x+44+5*svgCell+4, d.y+11, "dim", "full")
	d.y += float64((n+svgCellRow-1)/svgCellRow*svgCell) + 14
}

// use says what a page is for.
func (pg *MapPage) use() string {
	s := pg.Role.String()
	if pg.Role == vk.DeviceMemory && pg.Next == NextHost {
		s += ", host"
	}
	if pg.Spilled {
		s += ", spilled"
	}
	return s
}

func (d *drawing) page(pg *MapPage, t *tally, largest uint64) {
	x := float64(svgMargin + svgLabel)
	width := max(float64(pg.Size)/float64(largest)*svgSpan, 3)
	d.text(svgMargin, d.y+11.5, "", size(pg.Size))
	d.text(svgMargin, d.y+25, "dim", pg.use())
	coherent := "coherent"
	if !pg.Coherent {
		coherent = "not coherent"
	}
	d.rect("free", x, d.y, width, svgBar, fmt.Sprintf("page %d: %s, %s memory of heap %d, %s", pg.ID, size(pg.Size), pg.use(), pg.Heap, coherent))
	scale := width / float64(pg.Size)
	for i := 0; i < len(pg.Ranges); {
		r := pg.Ranges[i]
		if w := float64(r.Size) * scale; w >= svgLeast {
			d.slice(r, x+float64(r.Offset)*scale, d.y, w)
			i++
			continue
		}
		i += d.column(pg.Ranges[i:], x, scale)
	}
	d.printf("<rect class=\"frame\" x=\"%s\" y=\"%s\" width=\"%s\" height=\"%d\" rx=\"2\"/>\n", num(x-.5), num(d.y-.5), num(width+1), svgBar+1)
	note := x + svgSpan + 14
	d.text(note, d.y+11.5, "", percent(t.alive(), t.size)+" in use, "+count(t.slices, "slice"))
	holes := "no hole"
	switch {
	case t.holes == 1:
		holes = "one hole of " + size(t.hole)
	case t.holes > 1:
		holes = fmt.Sprintf("%d holes, largest %s", t.holes, size(t.hole))
	}
	d.text(note, d.y+25, "dim", holes)
	d.y += svgStep
}

// slice draws a range that is wide enough to be seen.
func (d *drawing) slice(r MapRange, x, y, w float64) {
	if r.State == RangeFree {
		return // as the page behind it
	}
	title := fmt.Sprintf("%s: %s at %d", r.State, size(r.Size), r.Offset)
	if r.Asked > 0 && r.Asked != r.Size {
		title = fmt.Sprintf("%s: %s at %d, of which %s padding", r.State, size(r.Asked), r.Offset, size(r.Size-r.Asked))
	}
	gap := 0.0
	if w >= 4 {
		gap = .75
	}
	d.rect(svgClass[r.State], x, y, w-gap, svgBar, title)
	if pad := float64(r.Size-r.Asked) / float64(r.Size) * w; r.State.Alive() && pad >= 1 {
		d.rect("pad", x+w-pad, y, max(pad-gap, .5), svgBar, "")
	}
}

// column draws ranges that are too narrow as one column, in which each state has the part of the height
// that it has of the bytes. It returns how many ranges it took.
func (d *drawing) column(ranges []MapRange, x, scale float64) int {
	var part [rangeStates]uint64
	total, n := uint64(0), 0
	for n < len(ranges) {
		r := ranges[n]
		if n > 0 && (float64(r.Size)*scale >= svgLeast || float64(total)*scale >= svgLeast) {
			break
		}
		part[r.State] += r.Size
		total += r.Size
		n++
	}
	x += float64(ranges[0].Offset) * scale
	w := float64(total) * scale
	bottom := d.y + svgBar
	for _, s := range []RangeState{RangeUser, RangeGraph, RangeCache, RangeWaiting, RangeTail, RangeBusy} {
		if part[s] == 0 {
			continue
		}
		h := float64(part[s]) / float64(total) * svgBar
		bottom -= h
		d.rect(svgClass[s], x, bottom, w, h, "")
	}
	return n
}
