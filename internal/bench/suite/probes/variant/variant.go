// Package variant lists what the sources of package probes are compiled to. It is apart
// from that package, which embeds the binaries and so cannot be built before they exist.
package variant

import "fmt"

// Binary is one way to compile a source.
type Binary struct {
	Name    string // of the binary, without its extension
	Source  string
	Defines []string
}

// FMA is a variant of the arithmetic probe.
type FMA struct {
	Width        int // components of a chain: 1 or 4
	Accumulators int // independent chains
	Unroll       int // steps of each before the loop turns
}

// String is how results name the variant.
func (f FMA) String() string {
	kind := "float"
	if f.Width == 4 {
		kind = "vec4"
	}
	return fmt.Sprintf("%s×%d/unroll=%d", kind, f.Accumulators, f.Unroll)
}

// File is the name of its binary.
func (f FMA) File() string { return fmt.Sprintf("fma-%dx%d-%d", f.Width, f.Accumulators, f.Unroll) }

// FMAs are all variants.
func FMAs() []FMA {
	var list []FMA
	for _, shape := range [][2]int{{1, 1}, {1, 4}, {1, 8}, {1, 12}, {1, 16}, {4, 1}, {4, 2}, {4, 4}, {4, 8}} {
		for _, unroll := range []int{1, 4, 16} {
			list = append(list, FMA{shape[0], shape[1], unroll})
		}
	}
	return list
}

// Binaries are everything that is compiled.
func Binaries() []Binary {
	var list []Binary
	for _, f := range FMAs() {
		t := "float"
		if f.Width == 4 {
			t = "vec4"
		}
		list = append(list, Binary{f.File(), "fma.comp", []string{"T=" + t, fmt.Sprintf("ACC=%d", f.Accumulators), fmt.Sprintf("UNROLL=%d", f.Unroll)}})
	}
	for name, defines := range map[string][]string{"read-turns": nil, "read-runs": {"RUNS"}, "copy-turns": {"COPY"}, "copy-runs": {"COPY", "RUNS"}} {
		list = append(list, Binary{name, "memory.comp", defines})
	}
	return list
}
