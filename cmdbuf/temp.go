package cmdbuf

import (
	"fmt"
	"sync/atomic"

	"vkcompute/pool"
	"vkcompute/shaders"
)

// arena is the memory of a capture's temporaries. One that was closed gives its memory to
// the next that fits, in the order of the calls; the barriers between the launches that
// use it come from its bytes, like all others.
type arena struct {
	slots []arenaSlot
	size  uint64 // bytes of all slots: the peak
}

type arenaSlot struct {
	slice pool.Slice
	free  bool
}

// take returns a slot of at least size bytes, the smallest that is free.
func (a *arena) take(size uint64) (int, bool) {
	best := -1
	for i := range a.slots {
		s := &a.slots[i]
		if s.free && s.slice.Size() >= size && (best < 0 || s.slice.Size() < a.slots[best].slice.Size()) {
			best = i
		}
	}
	// A slot of many times the size is better kept for what needs it.
	if best < 0 || a.slots[best].slice.Size() > 4*size+4096 {
		return 0, false
	}
	a.slots[best].free = false
	return best, true
}

// release gives back the capture's own references. The graph has its own on what it used.
func (a *arena) release() {
	for i := range a.slots {
		a.slots[i].slice.Release()
	}
	a.slots = nil
}

// Temp allocates a tensor that only the graph being captured uses. Closed inside the
// capture, its memory serves later temporaries of the same graph; a capture then needs
// little more than one pass of the same launches. The tensor ends with the capture:
// nothing outside can use it.
func Temp[T Element](c *Capture, shape ...int) (*Tensor[T], error) {
	t := &Tensor[T]{v: view{stream: c.stream, layout: shaders.Contiguous(shape...), closed: new(atomic.Bool), capture: c}}
	err := c.step(func() (err error) {
		if t.v.element, err = elementOf[T](c.stream); err != nil {
			return fmt.Errorf("cmdbuf: temporary: %w", err)
		}
		return c.temp(&t.v)
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

func (c *Capture) temp(v *view) error {
	if err := v.layout.Validate(); err != nil {
		return fmt.Errorf("cmdbuf: temporary: %w: %w", ErrShape, err)
	}
	a := &c.arena
	size, err := v.bytes(&v.layout)
	if err != nil {
		return fmt.Errorf("cmdbuf: temporary: %w", err)
	}
	slot, ok := a.take(size)
	if !ok {
		slice, err := c.stream.pools.Alloc(size)
		if err != nil {
			return fmt.Errorf("cmdbuf: temporary of shape %v: %w", v.layout.Shape[:v.layout.Rank], err)
		}
		slot = len(a.slots)
		a.slots = append(a.slots, arenaSlot{slice: slice})
		a.size += size
	}
	v.slice, v.slot = a.slots[slot].slice, slot
	return v.bind()
}

// closeTemp gives the memory of a temporary to the next.
func (v *view) closeTemp() {
	c := v.capture
	c.stream.mu.Lock()
	defer c.stream.mu.Unlock()
	if !c.over {
		c.arena.slots[v.slot].free = true
	}
}

// alive tells whether a view can be used: the tensor it is of was not closed, though
// others may keep its memory alive, and the capture of a temporary still runs.
func (v *view) alive() bool {
	return v.slice.Valid() && (v.closed == nil || !v.closed.Load()) && (v.capture == nil || !v.capture.over)
}
