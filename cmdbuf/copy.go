package cmdbuf

import (
	"fmt"

	"vkcompute/pool"
	"vkcompute/shaders"
	"vkcompute/vk"
)

// endsOfCopy checks a copy and says what it moves. Tensors that are not contiguous are
// copied by a kernel instead.
func (s *Stream) endsOfCopy(destination, source Arg) (to, from *view, err error) {
	to, from = viewOf(destination), viewOf(source)
	if to == nil || from == nil {
		return nil, nil, fmt.Errorf("cmdbuf: copy: want two tensors, found %T and %T", destination, source)
	}
	for _, v := range []*view{to, from} {
		if v.stream.dev != s.dev {
			return nil, nil, fmt.Errorf("cmdbuf: copy: %w", ErrForeign)
		}
		if !v.alive() {
			return nil, nil, fmt.Errorf("cmdbuf: copy: tensor: %w", ErrClosed)
		}
	}
	a, b := to.layout, from.layout
	if a.Rank != b.Rank || a.Shape != b.Shape || to.dtype != from.dtype {
		return nil, nil, fmt.Errorf("cmdbuf: copy: %w: %v of %v from %v of %v", ErrShape, to.dtype, a, from.dtype, b)
	}
	if to.slice == from.slice && overlap(a, b) {
		return nil, nil, fmt.Errorf("cmdbuf: copy: %w", ErrOverlap)
	}
	if !contiguous(a) || !contiguous(b) {
		return nil, nil, fmt.Errorf("cmdbuf: copy: %w: want contiguous tensors, found %v and %v; launch shaders.Copy for others", ErrShape, a, b)
	}
	return to, from, nil
}

// Copy copies the elements of a contiguous tensor to another of the same shape and type.
func (s *Stream) Copy(destination, source Arg) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.idle("copy"); err != nil {
		return err
	}
	to, from, err := s.endsOfCopy(destination, source)
	if err != nil || to.layout.Len() == 0 {
		return err
	}
	at, size := to.reached()
	start, _ := from.reached()
	if err := s.transfer(transferEnd{from.slice, start}, transferEnd{to.slice, at}, size); err != nil {
		return fmt.Errorf("cmdbuf: copy: %w", err)
	}
	return nil
}

// Copy records a copy of the elements of a contiguous tensor to another of the same shape
// and type.
func (c *Capture) Copy(destination, source Arg) error {
	return c.step(func() error {
		to, from, err := c.stream.endsOfCopy(destination, source)
		if err != nil || to.layout.Len() == 0 {
			return err
		}
		at, size := to.reached()
		start, _ := from.reached()
		return c.transfer(transferEnd{from.slice, start}, transferEnd{to.slice, at}, size)
	})
}

// WriteIn records an upload: each replay puts these elements, of which the graph keeps a
// copy, into a contiguous tensor.
func WriteIn[T Element](c *Capture, t *Tensor[T], host []T) error {
	if t == nil {
		return fmt.Errorf("cmdbuf: write: want a tensor, found nil")
	}
	return c.write(&t.v, bytesOf(host))
}

func (c *Capture) write(v *view, host []byte) error {
	return c.step(func() error {
		s := c.stream
		switch n := v.layout.Len() * elementSize; {
		case v.stream != s:
			return fmt.Errorf("cmdbuf: write: %w", ErrForeign)
		case !v.alive():
			return fmt.Errorf("cmdbuf: write: tensor: %w", ErrClosed)
		case n != len(host):
			return fmt.Errorf("cmdbuf: write: %w: the tensor has %d bytes, the slice %d", ErrShape, n, len(host))
		case !contiguous(v.layout):
			return fmt.Errorf("cmdbuf: write: %w: in a capture want a contiguous tensor, found %v", ErrShape, v.layout)
		case n == 0:
			return nil
		}
		staging, err := s.pools.AllocRole(uint64(len(host)), vk.UploadMemory)
		if err != nil {
			return fmt.Errorf("cmdbuf: write: staging memory: %w", err)
		}
		defer staging.Release()
		copy(staging.Mapped(), host)
		if err := staging.Written(0, uint64(len(host))); err != nil {
			return fmt.Errorf("cmdbuf: write: %w", err)
		}
		at, size := v.reached()
		return c.transfer(transferEnd{staging, 0}, transferEnd{v.slice, at}, size)
	})
}

// transfer records a copy between slices.
func (c *Capture) transfer(source, destination transferEnd, size uint64) error {
	for _, slice := range []pool.Slice{source.slice, destination.slice} {
		if _, err := c.ops.hold(&c.index, slice); err != nil {
			return fmt.Errorf("cmdbuf: copy: %w", err)
		}
	}
	o := op{kind: opCopy, info: -1, set: -1}
	o.accesses.from = int32(len(c.ops.accesses))
	c.ops.accesses = append(c.ops.accesses, source.binding(size, shaders.Read), destination.binding(size, shaders.Write))
	o.accesses.to = int32(len(c.ops.accesses))
	c.ops.list = append(c.ops.list, o)
	return nil
}

// LaunchIndirect is Launch with a grid that the device reads when the launch runs: three
// elements of a tensor, the numbers of workgroups. They are not checked against the
// device's limits; the kernel sees at most the elements its arguments have.
func (s *Stream) LaunchIndirect(k *shaders.Kernel, grid *Tensor[uint32], args ...Arg) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.idle("indirect launch"); err != nil {
		return err
	}
	b, err := s.grid(k, grid)
	if err != nil {
		return err
	}
	s.next.grid = b
	l, err := s.prepare(k, args)
	s.next.grid = binding{}
	if err != nil || l.empty() {
		return err
	}
	return s.enqueue(l)
}
