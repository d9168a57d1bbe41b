// Package drawing shows a recorded graph: its operations, the barriers between them, and
// the hazards each barrier is there for, as DOT for graphviz, as SVG, and as JSON.
package drawing

import (
	"encoding/json"
	"fmt"
	"html"
	"io"
	"strings"

	"vkcompute/cmdbuf"
)

// Graph is what is drawn.
type Graph struct {
	Title   string
	Explain cmdbuf.Explanation
	Stats   cmdbuf.GraphStats
}

// levels are the numbers of the operations between two barriers.
func (g *Graph) levels() [][]int {
	list := [][]int{nil}
	next := 0
	for i := range g.Explain.Operations {
		if next < len(g.Explain.Barriers) && g.Explain.Barriers[next].Before == i {
			list = append(list, nil)
			next++
		}
		list[len(list)-1] = append(list[len(list)-1], i)
	}
	return list
}

// edge is all hazards between two operations.
type edge struct {
	from, to int
	kinds    []string
	bytes    uint64
}

// edges joins the hazards of the barriers by pair of operations, in order.
func (g *Graph) edges() []edge {
	at := map[[2]int]int{}
	var list []edge
	for _, b := range g.Explain.Barriers {
		for _, h := range b.Hazards {
			k := [2]int{h.Producer, h.Consumer}
			i, ok := at[k]
			if !ok {
				i = len(list)
				at[k] = i
				list = append(list, edge{from: h.Producer, to: h.Consumer})
			}
			list[i].kinds = append(list[i].kinds, h.Kind.String())
			list[i].bytes += h.Size
		}
	}
	return list
}

// short names a hazard as engineers do.
func short(kind string) string {
	return map[string]string{"read after write": "RAW", "write after write": "WAW", "write after read": "WAR"}[kind]
}

func (e *edge) label() string {
	var parts []string
	seen := map[string]bool{}
	for _, k := range e.kinds {
		if s := short(k); !seen[s] {
			seen[s] = true
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, "+") + " " + size(e.bytes)
}

func size(n uint64) string {
	switch {
	case n >= 10<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 10<<10:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d B", n)
}

func (g *Graph) summary() string {
	return fmt.Sprintf("%s: %d launches, %d transfers, %d barriers", g.Title, g.Stats.Launches, g.Stats.Transfers, g.Stats.Barriers)
}

// DOT writes the graph for graphviz: a rank for each level.
func (g *Graph) DOT(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %q {\n\tlabel=%q\n\tlabelloc=t\n\tnode [shape=box, style=rounded, fontname=\"sans-serif\"]\n\tedge [fontname=\"sans-serif\", fontsize=10]\n", g.Title, g.summary())
	for l, ops := range g.levels() {
		fmt.Fprintf(&b, "\tsubgraph level%d {\n\t\trank=same\n", l)
		for _, i := range ops {
			fmt.Fprintf(&b, "\t\top%d [label=%q]\n", i, fmt.Sprintf("%d %s", i, g.Explain.Operations[i]))
		}
		b.WriteString("\t}\n")
	}
	for _, e := range g.edges() {
		fmt.Fprintf(&b, "\top%d -> op%d [label=%q, color=%q]\n", e.from, e.to, e.label(), colour(e.kind()))
	}
	b.WriteString("}\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// kind is the strongest of an edge's: a value that is read says more than memory that is
// used again.
func (e *edge) kind() string {
	for _, k := range []string{"RAW", "WAW"} {
		for _, have := range e.kinds {
			if short(have) == k {
				return k
			}
		}
	}
	return "WAR"
}

func colour(kind string) string {
	return map[string]string{"RAW": "#2b6cd8", "WAW": "#d4602a", "WAR": "#12876a"}[kind]
}

// JSON writes operations, levels and barriers.
func (g *Graph) JSON(w io.Writer) error {
	type hazard struct {
		Kind     string `json:"kind"`
		Producer int    `json:"producer"`
		Consumer int    `json:"consumer"`
		Buffer   uint64 `json:"buffer"`
		Offset   uint64 `json:"offset"`
		Size     uint64 `json:"size"`
	}
	type barrier struct {
		Before  int      `json:"before"`
		Hazards []hazard `json:"hazards"`
	}
	form := struct {
		Schema     int       `json:"schema"`
		Workload   string    `json:"workload"`
		Launches   int       `json:"launches"`
		Transfers  int       `json:"transfers"`
		Operations []string  `json:"operations"`
		Levels     [][]int   `json:"levels"`
		Barriers   []barrier `json:"barriers"`
	}{1, g.Title, g.Stats.Launches, g.Stats.Transfers, g.Explain.Operations, g.levels(), []barrier{}}
	for _, x := range g.Explain.Barriers {
		one := barrier{Before: x.Before, Hazards: []hazard{}}
		for _, h := range x.Hazards {
			one.Hazards = append(one.Hazards, hazard{h.Kind.String(), h.Producer, h.Consumer, h.Buffer, h.Offset, h.Size})
		}
		form.Barriers = append(form.Barriers, one)
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	return e.Encode(form)
}

// Of the drawing, in pixels.
const (
	boxWide, boxHigh = 150, 34
	gapWide, gapHigh = 16, 56
	margin           = 24
	head             = 56
	perRow           = 6 // boxes beside each other before a level goes on below
)

// SVG draws levels from top to bottom with a line for each barrier and a curve for each
// hazard, which tells its bytes on hovering.
func (g *Graph) SVG(w io.Writer) error {
	type place struct{ x, y float64 }
	at := make([]place, len(g.Explain.Operations))
	var lines []float64 // of the barriers
	widest := 1
	for _, ops := range g.levels() {
		widest = max(widest, min(len(ops), perRow))
	}
	wide := max(420, float64(2*margin+widest*boxWide+(widest-1)*gapWide)) // for the legend
	y := float64(head)
	for l, ops := range g.levels() {
		if l > 0 {
			lines = append(lines, y-gapHigh/2)
		}
		for from := 0; from < len(ops); from += perRow {
			row := ops[from:min(from+perRow, len(ops))]
			x := (wide - float64(len(row)*boxWide+(len(row)-1)*gapWide)) / 2
			for _, i := range row {
				at[i] = place{x, y}
				x += boxWide + gapWide
			}
			y += boxHigh + 12
		}
		y += gapHigh - 12
	}
	high := y - gapHigh + margin
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" font-family="system-ui,sans-serif" font-size="13">
<style>svg{--p:#fff;--i:#1b1b19;--s:#66655e;--b:#f6f5f1;--l:#cfcdc4;--RAW:#2b6cd8;--WAW:#d4602a;--WAR:#12876a}@media (prefers-color-scheme:dark){svg{--p:#131312;--i:#edece6;--s:#a3a198;--b:#232320;--l:#45443e;--RAW:#75acff;--WAW:#ff9a62;--WAR:#4ecfa4}}text{fill:var(--i)}.s{fill:var(--s);font-size:12px}.box{fill:var(--b);stroke:var(--l)}.bar{stroke:var(--l);stroke-dasharray:4 4}.e{fill:none;stroke-width:1.6;opacity:.75}.e:hover{stroke-width:4;opacity:1}.RAW{stroke:var(--RAW)}.WAW{stroke:var(--WAW)}.WAR{stroke:var(--WAR)}</style>
<rect width="100%%" height="100%%" style="fill:var(--p)"/>
<text x="%d" y="24" font-weight="600">%s</text>
`, wide, high, wide, high, margin, html.EscapeString(g.summary()))
	x := margin
	for _, k := range []string{"RAW", "WAW", "WAR"} {
		long := map[string]string{"RAW": "read after write", "WAW": "write after write", "WAR": "write after read"}[k]
		fmt.Fprintf(&b, `<path class="e %s" d="M%d 39h18"/><text class="s" x="%d" y="43">%s</text>`+"\n", k, x, x+23, long)
		x += 132
	}
	for i, y := range lines {
		n := len(g.Explain.Barriers[i].Hazards)
		fmt.Fprintf(&b, `<line class="bar" x1="8" x2="%.0f" y1="%.1f" y2="%.1f"><title>barrier %d, for %d hazards</title></line>`+"\n", wide-8, y, y, i, n)
	}
	for _, e := range g.edges() {
		p, q := at[e.from], at[e.to]
		x1, y1, x2, y2 := p.x+boxWide/2, p.y+boxHigh, q.x+boxWide/2, q.y
		fmt.Fprintf(&b, `<path class="e %s" d="M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f"><title>%d → %d: %s</title></path>`+"\n",
			e.kind(), x1, y1, x1, y1+gapHigh/2, x2, y2-gapHigh/2, x2, y2, e.from, e.to, e.label())
	}
	for i, name := range g.Explain.Operations {
		label := []rune(fmt.Sprintf("%d %s", i, name))
		if len(label) > 19 {
			label = append(label[:18], '…')
		}
		fmt.Fprintf(&b, `<g><rect class="box" x="%.1f" y="%.1f" width="%d" height="%d" rx="7"/><text x="%.1f" y="%.1f" text-anchor="middle">%s</text><title>%s</title></g>`+"\n",
			at[i].x, at[i].y, boxWide, boxHigh, at[i].x+boxWide/2, at[i].y+boxHigh/2+4.5, html.EscapeString(string(label)), html.EscapeString(name))
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}
