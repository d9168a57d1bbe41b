//go:build poolstacks

package pool

import (
	"fmt"
	"runtime"
	"strings"
)

// recordsStacks tells the tests, since recording allocates.
const recordsStacks = true

// stacks records where each slice alive was allocated.
type stacks struct{ of map[*slot][]uintptr }

func (k *stacks) record(sl *slot) {
	pcs := make([]uintptr, 32)
	pcs = pcs[:runtime.Callers(3, pcs)]
	if k.of == nil {
		k.of = make(map[*slot][]uintptr)
	}
	k.of[sl] = pcs
}

func (k *stacks) forget(sl *slot) { delete(k.of, sl) }

func (k *stacks) report() []string {
	var out []string
	for sl, pcs := range k.of {
		var b strings.Builder
		fmt.Fprintf(&b, "slice of %d bytes at %d, allocated at", sl.size, sl.off)
		frames := runtime.CallersFrames(pcs)
		for {
			f, more := frames.Next()
			fmt.Fprintf(&b, "\n\t%s\n\t\t%s:%d", f.Function, f.File, f.Line)
			if !more {
				break
			}
		}
		out = append(out, b.String())
	}
	return out
}
