package cmdbuf

import (
	"fmt"
	"strings"

	"vkcompute/shaders"
)

// HazardKind is why two accesses to the same bytes must be ordered.
type HazardKind uint8

const (
	ReadAfterWrite HazardKind = iota
	WriteAfterWrite
	WriteAfterRead
)

func (k HazardKind) String() string {
	return [...]string{"read after write", "write after write", "write after read"}[k]
}

// Hazard is a pair of operations that a barrier keeps apart.
type Hazard struct {
	Kind               HazardKind
	Producer, Consumer int    // operations, in the order of the graph
	Buffer             uint64 // number of the buffer, as debuggers show it by name
	Offset, Size       uint64 // the bytes both touch
}

// Barrier is one barrier of a graph with the hazards it is there for: those between its
// operation and the ones since the barrier before it.
type Barrier struct {
	Before  int // the operation it precedes
	Hazards []Hazard
}

// Explanation lists what a graph does and why it waits where it does.
type Explanation struct {
	Operations []string // by name
	Barriers   []Barrier
}

// Explain says for each barrier between the graph's operations which accesses it orders.
// It looks at all pairs between two barriers and is meant for people and tests.
func (g *Graph) Explain() Explanation {
	g.stream.mu.Lock()
	defer g.stream.mu.Unlock()
	var e Explanation
	since := 0
	for i := range g.ops.list {
		o := &g.ops.list[i]
		e.Operations = append(e.Operations, o.name())
		if !o.barrier {
			continue
		}
		b := Barrier{Before: i}
		for j := since; j < i; j++ {
			b.Hazards = g.ops.hazards(b.Hazards, j, i)
		}
		e.Barriers = append(e.Barriers, b)
		since = i
	}
	return e
}

// hazards appends those between two operations, one for each kind and pair of ranges.
func (o *ops) hazards(list []Hazard, producer, consumer int) []Hazard {
	for _, a := range o.accessesOf(&o.list[producer]) {
		fromA, toA, accessA := a.touches()
		for _, b := range o.accessesOf(&o.list[consumer]) {
			fromB, toB, accessB := b.touches()
			lo, hi := max(fromA, fromB), min(toA, toB)
			if a.bufferID != b.bufferID || lo >= hi {
				continue
			}
			h := Hazard{Producer: producer, Consumer: consumer, Buffer: a.bufferID, Offset: lo, Size: hi - lo}
			add := func(when bool, k HazardKind) {
				if when {
					h.Kind = k
					list = append(list, h)
				}
			}
			add(accessA&shaders.Write != 0 && accessB&shaders.Read != 0, ReadAfterWrite)
			add(accessA&shaders.Write != 0 && accessB&shaders.Write != 0, WriteAfterWrite)
			add(accessA&shaders.Read != 0 && accessB&shaders.Write != 0, WriteAfterRead)
		}
	}
	return list
}

// String writes a line an operation and one for each hazard a barrier is there for.
func (e Explanation) String() string {
	var s strings.Builder
	next := 0
	for i, name := range e.Operations {
		if next < len(e.Barriers) && e.Barriers[next].Before == i {
			for _, h := range e.Barriers[next].Hazards {
				fmt.Fprintf(&s, "       barrier: %v of operation %d, bytes %d to %d of buffer %d\n", h.Kind, h.Producer, h.Offset, h.Offset+h.Size-1, h.Buffer)
			}
			next++
		}
		fmt.Fprintf(&s, "%6d %s\n", i, name)
	}
	return s.String()
}
