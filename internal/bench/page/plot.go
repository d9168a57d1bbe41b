package page

import (
	"fmt"
	"html/template"
	"math"
	"strings"
)

// Plots are so wide, and their letters at most, in units of about a pixel.
const (
	width  = 440
	letter = 8.2
)

// figure is a value with its percentiles.
type figure struct{ value, lo, hi float64 }

// series is a named set of points, drawn in the colour of its class.
type series struct {
	name  string
	class string // c1 … c6
	faint bool   // dashed: what it is compared with
	x     []float64
	y     []figure
	marks []string // names of the x; none: their numbers
}

type svg struct{ strings.Builder }

func (b *svg) f(format string, a ...any) { fmt.Fprintf(&b.Builder, format, a...) }

func (b *svg) text(x, y float64, class, s string) {
	b.f(`<text x="%.1f" y="%.1f" class="%s">%s</text>`, x, y, class, template.HTMLEscapeString(s))
}

func (b *svg) open(height float64, label string) {
	b.f(`<svg viewBox="0 0 %d %.0f" role="img" aria-label="%s">`, width, height, template.HTMLEscapeString(label))
}

func (b *svg) done() template.HTML {
	b.WriteString("</svg>")
	return template.HTML(b.String())
}

// legend names the series in rows at the top, and returns how high it is.
func (b *svg) legend(list []series) float64 {
	x, y := 4.0, 14.0
	for _, s := range list {
		w := 34 + letter*float64(len([]rune(s.name)))
		if x+w > width && x > 4 {
			x, y = 4, y+20
		}
		dash := ""
		if s.faint {
			dash = " faint"
		}
		b.f(`<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" class="stroke %s%s"/>`, x, x+18, y-4, y-4, s.class, dash)
		b.text(x+24, y, "label", s.name)
		x += w
	}
	return y + 12
}

// lines draws series over a logarithmic x, with the percentiles as bands.
func lines(label, xName, unit string, list []series) template.HTML {
	var b svg
	const height, left, right, bottom = 310.0, 54.0, 16.0, 40.0
	b.open(height, label)
	top := b.legend(list) + 26
	xlo, xhi, ylo, yhi := math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
	for _, s := range list {
		for i, x := range s.x {
			xlo, xhi = min(xlo, x), max(xhi, x)
			ylo, yhi = min(ylo, s.y[i].value), max(yhi, s.y[i].value)
			if !s.faint {
				ylo, yhi = min(ylo, s.y[i].lo), max(yhi, s.y[i].hi)
			}
		}
	}
	ax, ay := logAxis(xlo, xhi, left+12, width-right-12), newAxis(ylo, yhi, height-bottom, top)
	for _, t := range ay.ticks() {
		y := ay.at(t)
		b.f(`<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" class="grid"/>`, left, width-right, y, y)
		b.text(left-8, y+4, "tick end", short(t))
	}
	b.text(4, top-14, "tick", unit)
	seen := map[string]bool{}
	for _, s := range list {
		for i, x := range s.x {
			name := short(x)
			if s.marks != nil {
				name = s.marks[i]
			}
			if !seen[name] {
				seen[name] = true
				b.text(ax.at(x), height-bottom+18, "tick mid", name)
			}
		}
	}
	b.text((left+width-right)/2, height-4, "tick mid", xName)
	for _, s := range list {
		if !s.faint && len(s.x) > 1 {
			b.f(`<path class="band %s" d="`, s.class)
			for i, x := range s.x {
				b.f("%c%.1f %.1f", "ML"[min(i, 1)], ax.at(x), ay.at(s.y[i].hi))
			}
			for i := len(s.x) - 1; i >= 0; i-- {
				b.f("L%.1f %.1f", ax.at(s.x[i]), ay.at(s.y[i].lo))
			}
			b.f(`Z"/>`)
		}
		dash := ""
		if s.faint {
			dash = " faint"
		}
		b.f(`<path class="stroke %s%s" d="`, s.class, dash)
		for i, x := range s.x {
			b.f("%c%.1f %.1f", "ML"[min(i, 1)], ax.at(x), ay.at(s.y[i].value))
		}
		b.f(`"/>`)
		if s.faint {
			continue
		}
		for i, x := range s.x {
			b.f(`<circle cx="%.1f" cy="%.1f" r="4" class="dot %s"><title>%s, %s %s: %s %s</title></circle>`, ax.at(x), ay.at(s.y[i].value), s.class,
				template.HTMLEscapeString(s.name), template.HTMLEscapeString(xName), short(x), short(s.y[i].value), template.HTMLEscapeString(unit))
		}
	}
	return b.done()
}

// row is a line of a plot of rows.
type row struct {
	name   string
	values []figure // one for each series; a NaN is none
	text   string   // beside the first
	limit  float64  // a mark to compare with; 0 is none
}

// rows draws a bar for a single series from zero, or dots with their percentiles for
// several or where the values span much.
func rows(label, unit string, list []series, rs []row, most float64) template.HTML {
	var b svg
	lo, hi, longest := math.Inf(1), math.Inf(-1), 0
	for _, r := range rs {
		longest = max(longest, len([]rune(r.name)))
		for _, v := range r.values {
			if !math.IsNaN(v.value) {
				lo, hi = min(lo, v.lo, v.value), max(hi, v.hi, v.value)
			}
		}
		if r.limit > 0 {
			lo, hi = min(lo, r.limit), max(hi, r.limit)
		}
	}
	if most > 0 {
		lo, hi = 0, most
	}
	left := min(14+letter*float64(longest), 0.55*width)
	const right, step, bottom = 62.0, 22.0, 26.0
	top := 6.0
	if len(list) > 1 {
		// Measured before it is written: the height comes first.
		var try svg
		top = try.legend(list)
	}
	height := top + step*float64(len(rs)) + bottom
	b.open(height, label)
	if len(list) > 1 {
		b.legend(list)
	}
	a := newAxis(lo, hi, left, width-right)
	if most > 0 {
		a = axis{lo: 0, hi: most, from: left, to: width - right}
	}
	for _, t := range a.ticks() {
		x := a.at(t)
		b.f(`<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" class="grid"/>`, x, x, top, height-bottom)
		if x+letter*float64(len(short(t)))/2 < width-6-letter*float64(len([]rune(unit))) {
			b.text(x, height-bottom+16, "tick mid", short(t))
		}
	}
	b.text(width-2, height-bottom+16, "tick end", unit)
	for i, r := range rs {
		y := top + step*(float64(i)+0.5)
		b.text(left-8, y+4, "label end", clip(r.name, int((left-14)/letter+1e-9)))
		at, first := a.from, a.to
		for k, v := range r.values {
			if math.IsNaN(v.value) {
				continue
			}
			s := list[k]
			title := fmt.Sprintf("<title>%s%s: %s %s, 10 to 90 %%: %s to %s</title>", template.HTMLEscapeString(r.name), template.HTMLEscapeString(inBrackets(s.name)), short(v.value), template.HTMLEscapeString(unit), short(v.lo), short(v.hi))
			x := a.at(v.value)
			at = max(at, x)
			if first = min(first, a.at(v.lo)); len(list) == 1 && !a.log {
				b.f(`<rect x="%.1f" y="%.1f" width="%.1f" height="12" rx="3" class="fill %s">%s</rect>`, left, y-6, max(x-left, 1.5), s.class, title)
				if v.hi > v.lo {
					b.f(`<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" class="whisker"/>`, a.at(v.lo), a.at(v.hi), y, y)
					at = max(at, a.at(v.hi))
				}
				continue
			}
			dy := 0.0
			if len(list) > 1 {
				dy = (float64(k) - float64(len(list)-1)/2) * min(6, 14/float64(len(list)))
			}
			if v.hi > v.lo {
				b.f(`<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" class="stroke range %s"/>`, a.at(v.lo), a.at(v.hi), y+dy, y+dy, s.class)
				at = max(at, a.at(v.hi))
			}
			b.f(`<circle cx="%.1f" cy="%.1f" r="4" class="dot %s">%s</circle>`, x, y+dy, s.class, title)
		}
		if r.limit > 0 {
			x := a.at(r.limit)
			b.f(`<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" class="limit"/>`, x, x, y-8, y+8)
			at = max(at, x)
		}
		// Beside the marks, or before them where there is no room.
		if wide := letter * float64(len([]rune(r.text))); at+7+wide <= width-2 || first-7-wide < left {
			b.text(min(at+7, width-2-wide), y+4, "value", r.text)
		} else {
			b.text(first-7, y+4, "value end", r.text)
		}
	}
	return b.done()
}

func inBrackets(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}

func clip(s string, n int) string {
	r := []rune(s)
	if len(r) <= n || n < 2 {
		return s
	}
	return string(r[:n-1]) + "…"
}

// heat draws a table of values, the larger the stronger.
func heat(label string, columns, names []string, values [][]float64, unit string) template.HTML {
	var b svg
	const left, top, high = 84.0, 30.0, 30.0
	b.open(top+high*float64(len(names))+22, label)
	most := 0.0
	for _, line := range values {
		for _, v := range line {
			most = max(most, v)
		}
	}
	w := (width - left - 4) / float64(len(columns))
	for i, c := range columns {
		b.text(left+w*(float64(i)+0.5), 20, "tick mid", c)
	}
	for i, name := range names {
		y := top + high*float64(i)
		b.text(left-8, y+high/2+4, "label end", name)
		for k, v := range values[i] {
			if v == 0 {
				continue
			}
			best := ""
			if v == most {
				best = " best"
			}
			part := v / most
			b.f(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="4" class="fill c1%s" fill-opacity="%.2f"><title>%s, %s: %s %s</title></rect>`,
				left+w*float64(k)+1.5, y+1.5, w-3, high-3, best, 0.08+0.77*part*part, template.HTMLEscapeString(name), template.HTMLEscapeString(columns[k]), short(v), unit)
			strong := ""
			if part > 0.8 {
				strong = " on"
			}
			b.text(left+w*(float64(k)+0.5), y+high/2+4, "tick mid"+strong, short(v))
		}
	}
	b.text(width-4, top+high*float64(len(names))+16, "tick end", unit)
	return b.done()
}
