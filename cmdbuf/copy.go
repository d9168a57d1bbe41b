package cmdbuf

import (
	"fmt"

	"vkcompute/pool"
	"vkcompute/shaders"
	"vkcompute/vk"
)

// endsOfCopy checks a copy and says what it moves, nothing if size is 0. Tensors that are
// not contiguous are copied by a kernel instead.
func (s *Stream) endsOfCopy(destination, source Arg) (from, to transferEnd, size uint64, err error) {
	dst, src := viewOf(destination), viewOf(source)
	if dst == nil || src == nil {
		return from, to, 0, fmt.Errorf("cmdbuf: copy: want two tensors, found %T and %T, or one that nobody made", destination, source)
	}
	for _, v := range []*view{dst, src} {
		if v.stream.dev != s.dev {
			return from, to, 0, fmt.Errorf("cmdbuf: copy: a tensor was %w", ErrForeign)
		}
		if !v.alive() {
			return from, to, 0, fmt.Errorf("cmdbuf: copy: tensor: %w", ErrClosed)
		}
	}
	a, b := dst.layout, src.layout
	if a.Rank != b.Rank || a.Shape != b.Shape || dst.element != src.element && !dst.sameElement(src) {
		return from, to, 0, fmt.Errorf("cmdbuf: copy: %w: %v of %v from %v of %v", ErrShape, dst.element, a, src.element, b)
	}
	if dst.slice == src.slice && overlap(a, b) {
		return from, to, 0, fmt.Errorf("cmdbuf: copy: %w", ErrOverlap)
	}
	if !contiguous(a) || !contiguous(b) {
		return from, to, 0, fmt.Errorf("cmdbuf: copy: %w: want contiguous tensors, found %v and %v; launch shaders.Copy for others", ErrShape, a, b)
	}
	if a.Len() > 0 {
		from.slice, to.slice = src.slice, dst.slice
		from.offset, _ = src.reached()
		to.offset, size = dst.reached()
	}
	return from, to, size, nil
}

// sameElement tells whether two views are of one type, which two streams know apart.
func (e *element) sameElement(o *view) bool {
	return e.dtype == o.dtype && (e.dtype != shaders.Composite || e.typ.Go == o.typ.Go)
}

func (e element) String() string {
	if e.typ != nil {
		return e.typ.String()
	}
	return e.dtype.String()
}

// Copy copies the elements of a contiguous tensor to another of the same shape and type.
func (s *Stream) Copy(destination, source Arg) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.idle("copy"); err != nil {
		return err
	}
	from, to, size, err := s.endsOfCopy(destination, source)
	if err != nil || size == 0 {
		return err
	}
	if err := s.transfer(from, to, size); err != nil {
		return fmt.Errorf("cmdbuf: copy: %w", err)
	}
	return nil
}

// Copy records a copy of the elements of a contiguous tensor to another of the same shape
// and type.
func (c *Capture) Copy(destination, source Arg) error {
	return c.step(func() error {
		from, to, size, err := c.stream.endsOfCopy(destination, source)
		if err != nil || size == 0 {
			return err
		}
		return c.transfer(from, to, size)
	})
}

// endOfFill checks a fill and says what it sets, nothing if size is 0.
func (s *Stream) endOfFill(destination Arg, value Scalar) (to transferEnd, size uint64, err error) {
	v := viewOf(destination)
	switch {
	case v == nil:
		return to, 0, fmt.Errorf("cmdbuf: fill: want a tensor, found %T, or one that nobody made", destination)
	case v.stream.dev != s.dev:
		return to, 0, fmt.Errorf("cmdbuf: fill: the tensor was %w", ErrForeign)
	case !v.alive():
		return to, 0, fmt.Errorf("cmdbuf: fill: tensor: %w", ErrClosed)
	case v.dtype != value.dtype:
		return to, 0, fmt.Errorf("cmdbuf: fill: %w: the tensor is of %v, the value %v", ErrShape, v.dtype, value.dtype)
	case !contiguous(v.layout):
		return to, 0, fmt.Errorf("cmdbuf: fill: %w: want a contiguous tensor, found %v; launch shaders.Fill for others", ErrShape, v.layout)
	case v.layout.Len() == 0:
		return to, 0, nil
	}
	to.slice = v.slice
	to.offset, size = v.reached()
	return to, size, nil
}

// Fill sets every element of a contiguous tensor to a value of its type.
func (s *Stream) Fill(destination Arg, value Scalar) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.idle("fill"); err != nil {
		return err
	}
	to, size, err := s.endOfFill(destination, value)
	if err != nil || size == 0 {
		return err
	}
	if err := s.fill(to, size, value.bits); err != nil {
		return fmt.Errorf("cmdbuf: fill: %w", err)
	}
	return nil
}

// Fill records that every element of a contiguous tensor is set to a value of its type.
func (c *Capture) Fill(destination Arg, value Scalar) error {
	return c.step(func() error {
		to, size, err := c.stream.endOfFill(destination, value)
		if err != nil || size == 0 {
			return err
		}
		return c.fill(to, size, value.bits)
	})
}

// WriteIn records an upload: each replay puts these elements, of which the graph keeps a
// copy, into a contiguous tensor.
func WriteIn[T Element](c *Capture, t *Tensor[T], host []T) error {
	if !t.made() {
		return fmt.Errorf("cmdbuf: write: %w", errNilArgument)
	}
	return c.write(&t.v, bytesOf(host))
}

func (c *Capture) write(v *view, host []byte) error {
	return c.step(func() error {
		s := c.stream
		switch n := v.layout.Len() * int(v.element.size); {
		case v.stream.dev != s.dev:
			return fmt.Errorf("cmdbuf: write: the tensor was %w", ErrForeign)
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
	c.ops.list = append(c.ops.list, op{kind: opCopy, info: -1, set: -1,
		accesses: c.ops.access(source.binding(size, shaders.Read), destination.binding(size, shaders.Write))})
	return nil
}

// fill records a fill.
func (c *Capture) fill(to transferEnd, size uint64, value uint32) error {
	if _, err := c.ops.hold(&c.index, to.slice); err != nil {
		return fmt.Errorf("cmdbuf: fill: %w", err)
	}
	c.ops.list = append(c.ops.list, op{kind: opFill, info: -1, set: -1, value: value, accesses: c.ops.access(to.binding(size, shaders.Write))})
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
