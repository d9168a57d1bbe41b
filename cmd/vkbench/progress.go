package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"
)

// progress is one line on a terminal that is written over again and again. Elsewhere it
// writes nothing.
type progress struct {
	w     io.Writer
	shown bool
	last  time.Time
}

func newProgress(w io.Writer) *progress {
	if f, ok := w.(*os.File); ok && isTerminal(f) {
		return &progress{w: w}
	}
	return &progress{}
}

func (p *progress) say(s string) {
	if p.w == nil {
		return
	}
	fmt.Fprintf(p.w, "\r\x1b[K%s", s)
	p.shown = true
}

// step shows how far workload i of n has come, and the run with it.
func (p *progress) step(i, n int, name, text string, part float64) {
	// Writing to a terminal wakes whoever draws it, while something is being measured.
	if p.w == nil || p.shown && time.Since(p.last) < 100*time.Millisecond {
		return
	}
	p.last = time.Now()
	part = min(max(part, 0), 1)
	p.say(fmt.Sprintf("%s %3.0f %%  %d/%d %s: %s", bar((float64(i)+part)/float64(max(n, 1)), 20), 100*part, i+1, n, name, text))
}

// bar is so many characters wide and filled to an eighth of one.
func bar(part float64, width int) string {
	eighths := int(math.Round(part * float64(8*width)))
	full := eighths / 8
	b := strings.Repeat("█", full)
	if rest := eighths % 8; rest > 0 {
		b += string([]rune(" ▏▎▍▌▋▊▉")[rest])
		full++
	}
	return "▕" + b + strings.Repeat(" ", width-full) + "▏"
}

func (p *progress) clear() {
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.shown = false
	}
}
