package cmdbuf

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/bits"
	"runtime"
	"sync/atomic"
	"unsafe"

	"vkcompute/pool"
	"vkcompute/shaders"
)

// wordSize is the size of a word in bytes: what fills, updates and bindings count in.
const wordSize = 4

// view is a tensor without its element type: a strided window of a slice, with what a
// binding of it needs worked out once.
type view struct {
	id       uint64 // unique, from 1
	stream   *Stream
	slice    pool.Slice
	closed   *atomic.Bool // of the tensor that owns the memory, shared with its views; nil for a graph's
	capture  *Capture     // of a temporary
	slot     int          // its place in the capture's arena
	borrowed bool         // a view of another tensor
	root     any          // of a view: keeps the tensor it was made from
	element
	layout shaders.Layout // offset from the start of the slice

	// The binding: the bytes the view touches, begun at a multiple of the alignment that
	// descriptors need, and the layout as seen from there.
	buffer   uint64 // handle
	bufferID uint64
	offset   uint64 // in the buffer
	size     uint64 // 0: the view touches nothing
	address  uint64 // of its first byte, where the device has addresses
	bound    shaders.Layout
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func roundUp(n, to uint64) uint64 { return (n + to - 1) / to * to }

var viewIDs atomic.Uint64

// bind works out the binding. The layout must stay inside the slice.
func (v *view) bind() error {
	if err := v.layout.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrShape, err)
	}
	v.id = viewIDs.Add(1)
	v.bound = v.layout
	lo, hi := v.layout.Bounds()
	if lo > hi {
		v.size, v.bound.Offset = 0, 0
		return nil
	}
	elements := int(v.slice.Size() / v.element.size)
	if lo < 0 || hi >= elements {
		return fmt.Errorf("%w: %v reaches elements %d to %d, the tensor's memory has %d", ErrShape, v.layout, lo, hi, elements)
	}
	buffer, at, _, ok := v.slice.Range()
	if !ok {
		return fmt.Errorf("tensor: %w", ErrClosed)
	}
	v.buffer, v.bufferID = buffer.Handle(), buffer.ID()
	// The slice is aligned itself. What the binding leaves out must be whole elements too,
	// or the shader could not count to the first one.
	whole := v.element.size * v.stream.alignment / gcd(v.element.size, v.stream.alignment)
	skipped := uint64(lo) * v.element.size / whole * whole
	v.offset = at + skipped
	v.address = buffer.Address() + v.offset
	// Shaders read 16-bit elements two at a time.
	v.size = roundUp(uint64(hi+1)*v.element.size, wordSize) - skipped
	v.bound.Offset = v.layout.Offset - int(skipped/v.element.size)
	return nil
}

// Tensor is a typed window of device memory: shape and strides in elements over a slice
// of the stream's pools. One made by New or Upload owns its memory until Close; the
// views made from it borrow it and fail once it is closed.
type Tensor[T Element] struct {
	v        view
	unclosed runtime.Cleanup
}

// forgotten is what is left of a tensor that the collector found unclosed.
type forgotten struct {
	logger *slog.Logger
	slice  pool.Slice
	shape  []int
}

// neverClosed reports a tensor that nobody can close any more, and gives its memory back.
func neverClosed(f forgotten) {
	f.logger.Warn("cmdbuf: a tensor was never closed", "shape", f.shape, "bytes", f.slice.Size())
	f.slice.Release()
}

func (*Tensor[T]) isArg() {}

// New allocates a tensor, contiguous in row-major order. Its contents are undefined. A
// shape with a zero holds no elements; no shape at all is one element.
func New[T Element](s *Stream, shape ...int) (*Tensor[T], error) {
	if s == nil {
		return nil, fmt.Errorf("cmdbuf: new tensor: want a stream, found nil")
	}
	layout := shaders.Contiguous(shape...)
	if err := layout.Validate(); err != nil {
		return nil, fmt.Errorf("cmdbuf: new tensor: %w: %w", ErrShape, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.open("new tensor"); err != nil {
		return nil, err
	}
	e, err := elementOf[T](s)
	if err != nil {
		return nil, fmt.Errorf("cmdbuf: new tensor: %w", err)
	}
	size, err := e.bytes(&layout)
	if err != nil {
		return nil, fmt.Errorf("cmdbuf: new tensor: %w", err)
	}
	slice, err := s.pools.Alloc(size)
	if err != nil {
		return nil, fmt.Errorf("cmdbuf: new tensor of shape %v: %w", shape, err)
	}
	t := &Tensor[T]{v: view{stream: s, slice: slice, closed: new(atomic.Bool), element: e, layout: layout}}
	if err := t.v.bind(); err != nil {
		slice.Release()
		return nil, fmt.Errorf("cmdbuf: new tensor: %w", err)
	}
	t.unclosed = runtime.AddCleanup(t, neverClosed, forgotten{s.logger, slice, t.Shape()})
	return t, nil
}

// bytes is the memory that a contiguous tensor takes, in whole words.
func (e *element) bytes(l *shaders.Layout) (uint64, error) {
	hi, lo := bits.Mul64(uint64(l.Len()), e.size)
	if hi != 0 || lo > math.MaxInt-wordSize {
		return 0, fmt.Errorf("%w: %d elements of %d bytes are more than any memory holds", ErrShape, l.Len(), e.size)
	}
	return roundUp(lo, wordSize), nil
}

// Upload allocates a tensor and fills it with host's elements in row-major order.
func Upload[T Element](s *Stream, host []T, shape ...int) (*Tensor[T], error) {
	if n := shaders.Contiguous(shape...).Len(); n != len(host) {
		return nil, fmt.Errorf("cmdbuf: upload: %w: shape %v has %d elements, the slice %d", ErrShape, shape, n, len(host))
	}
	t, err := New[T](s, shape...)
	if err != nil {
		return nil, err
	}
	if err := t.Write(host); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// Close gives the memory back; the work that was launched with it still runs. Closing a
// view, or twice, does nothing.
func (t *Tensor[T]) Close() error {
	if t.v.borrowed || t.v.closed == nil || t.v.closed.Swap(true) {
		return nil
	}
	if t.v.capture != nil {
		t.v.closeTemp()
		return nil
	}
	t.unclosed.Stop()
	if err := t.v.slice.Release(); err != nil {
		return fmt.Errorf("cmdbuf: closing a tensor: %w", err)
	}
	return nil
}

// Shape returns the extents.
func (t *Tensor[T]) Shape() []int {
	return append([]int(nil), t.v.layout.Shape[:t.v.layout.Rank]...)
}

// Len is the number of elements.
func (t *Tensor[T]) Len() int { return t.v.layout.Len() }

// Layout is shape, strides and offset in elements, the offset from the start of the
// memory.
func (t *Tensor[T]) Layout() shaders.Layout { return t.v.layout }

// Slice is the memory behind the tensor, borrowed.
func (t *Tensor[T]) Slice() pool.Slice { return t.v.slice }

// made tells a tensor from nil and from the zero value, which no stream stands behind.
func (t *Tensor[T]) made() bool { return t != nil && t.v.stream != nil }

func bytesOf[T Element](p []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(p))), len(p)*int(unsafe.Sizeof(*new(T))))
}

// Write replaces the elements with host's, in row-major order. The call order counts:
// launches before it still see the old contents.
func (t *Tensor[T]) Write(host []T) error {
	if !t.made() {
		return fmt.Errorf("cmdbuf: write: %w", errNilArgument)
	}
	if t.Len() != len(host) {
		return fmt.Errorf("cmdbuf: write: %w: the tensor has %d elements, the slice %d", ErrShape, t.Len(), len(host))
	}
	return t.v.stream.write(&t.v, bytesOf(host))
}

// Read returns the elements in row-major order, after everything launched before. A
// cancelled context stops the waiting, not the work.
func (t *Tensor[T]) Read(ctx context.Context) ([]T, error) {
	if !t.made() {
		return nil, fmt.Errorf("cmdbuf: read: %w", errNilArgument)
	}
	host := make([]T, t.Len())
	return host, t.ReadInto(ctx, host)
}

// ReadInto is Read into a slice of the right length.
func (t *Tensor[T]) ReadInto(ctx context.Context, host []T) error {
	if !t.made() {
		return fmt.Errorf("cmdbuf: read: %w", errNilArgument)
	}
	if t.Len() != len(host) {
		return fmt.Errorf("cmdbuf: read: %w: the tensor has %d elements, the slice %d", ErrShape, t.Len(), len(host))
	}
	return t.v.stream.read(ctx, &t.v, bytesOf(host))
}

// ReadAsync is ReadInto that returns at once: the elements of this moment in the order of
// the calls arrive in host, and then one error or nil on the channel. Host must not be
// touched before that. A cancelled context leaves host as it is.
func (t *Tensor[T]) ReadAsync(ctx context.Context, host []T) <-chan error {
	if !t.made() {
		done := make(chan error, 1)
		done <- fmt.Errorf("cmdbuf: read: %w", errNilArgument)
		return done
	}
	if t.Len() != len(host) {
		done := make(chan error, 1)
		done <- fmt.Errorf("cmdbuf: read: %w: the tensor has %d elements, the slice %d", ErrShape, t.Len(), len(host))
		return done
	}
	return t.v.stream.readAsync(ctx, &t.v, bytesOf(host))
}

// Map gives f the elements in row-major order, after everything launched before, and
// then writes back what it left in them, before everything launched later. Where the
// host sees the memory of a contiguous tensor, these are the elements themselves. The
// slice dies with the call, and f must not use the stream.
func (t *Tensor[T]) Map(ctx context.Context, f func(host []T)) error {
	if !t.made() {
		return fmt.Errorf("cmdbuf: map: %w", errNilArgument)
	}
	s := t.v.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.Len() > 0 && contiguous(t.v.layout) && t.v.slice.Mapped() != nil {
		if err := s.ripen(ctx, &t.v); err != nil {
			return err
		}
		if s.untouched(&t.v) { // else another stream reads it still
			offset, size := t.v.reached()
			if err := s.visible(t.v.slice, offset, size); err != nil {
				return err
			}
			mapped := t.v.slice.Mapped()[offset : offset+size]
			f(unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(mapped))), t.Len()))
			return t.v.slice.Written(offset, size)
		}
	}
	host := make([]T, t.Len())
	if err := s.readLocked(ctx, &t.v, bytesOf(host)); err != nil {
		return err
	}
	f(host)
	return s.writeLocked(&t.v, bytesOf(host))
}

// derive makes a view with another layout over the same memory.
func (t *Tensor[T]) derive(what string, layout shaders.Layout) (*Tensor[T], error) {
	if !t.made() {
		return nil, fmt.Errorf("cmdbuf: %s: %w", what, errNilArgument)
	}
	d := &Tensor[T]{v: view{stream: t.v.stream, slice: t.v.slice, closed: t.v.closed, element: t.v.element, layout: layout,
		capture: t.v.capture, borrowed: true, root: t.v.root}}
	if d.v.root == nil {
		d.v.root = t
	}
	if err := d.v.bind(); err != nil {
		return nil, fmt.Errorf("cmdbuf: %s: %w", what, err)
	}
	return d, nil
}

// Strided makes a view with any layout that stays inside the tensor's memory; its offset
// counts from the start of that memory.
func (t *Tensor[T]) Strided(layout shaders.Layout) (*Tensor[T], error) {
	return t.derive("strided view", layout)
}

// Range keeps the elements from, from+step, … below to of one axis.
func (t *Tensor[T]) Range(axis, from, to, step int) (*Tensor[T], error) {
	l := t.v.layout
	if axis < 0 || axis >= l.Rank || step < 1 || from < 0 || to < from || to > l.Shape[axis] {
		return nil, fmt.Errorf("cmdbuf: range: %w: axis %d, %d to %d by %d, of shape %v; want 0 <= from <= to <= extent and step >= 1", ErrShape, axis, from, to, step, t.Shape())
	}
	l.Offset += from * l.Stride[axis]
	l.Shape[axis] = (to - from + step - 1) / step
	l.Stride[axis] *= step
	return t.derive("range", l)
}

// Transpose swaps two axes.
func (t *Tensor[T]) Transpose(a, b int) (*Tensor[T], error) {
	l := t.v.layout
	if a < 0 || b < 0 || a >= l.Rank || b >= l.Rank {
		return nil, fmt.Errorf("cmdbuf: transpose: %w: axes %d and %d of shape %v", ErrShape, a, b, t.Shape())
	}
	l.Shape[a], l.Shape[b] = l.Shape[b], l.Shape[a]
	l.Stride[a], l.Stride[b] = l.Stride[b], l.Stride[a]
	return t.derive("transpose", l)
}

// Permute orders the axes anew: axis i of the result is axes[i] of t.
func (t *Tensor[T]) Permute(axes ...int) (*Tensor[T], error) {
	l := t.v.layout
	seen := 0
	for _, a := range axes {
		if a >= 0 && a < l.Rank {
			seen |= 1 << a
		}
	}
	if len(axes) != l.Rank || seen != 1<<l.Rank-1 {
		return nil, fmt.Errorf("cmdbuf: permute: %w: %v is no order of the %d axes of shape %v", ErrShape, axes, l.Rank, t.Shape())
	}
	p := l
	for i, a := range axes {
		p.Shape[i], p.Stride[i] = l.Shape[a], l.Stride[a]
	}
	return t.derive("permute", p)
}

// Broadcast repeats axes of extent 1, and adds axes in front, to reach a shape.
func (t *Tensor[T]) Broadcast(shape ...int) (*Tensor[T], error) {
	l := t.v.layout
	b := shaders.Contiguous(shape...)
	if err := b.Validate(); err != nil || len(shape) < l.Rank {
		return nil, fmt.Errorf("cmdbuf: broadcast: %w: shape %v to %v", ErrShape, t.Shape(), shape)
	}
	b.Offset, b.Stride = l.Offset, [shaders.MaxRank]int{}
	ahead := len(shape) - l.Rank
	for i := range l.Rank {
		switch l.Shape[i] {
		case shape[ahead+i]:
			b.Stride[ahead+i] = l.Stride[i]
		case 1:
		default:
			return nil, fmt.Errorf("cmdbuf: broadcast: %w: axis %d of shape %v to %v: want extent 1 or %d", ErrShape, i, t.Shape(), shape, shape[ahead+i])
		}
	}
	return t.derive("broadcast", b)
}

// Reshape gives the elements another shape without moving them. Where the strides do
// not allow that it is an error: copy first.
func (t *Tensor[T]) Reshape(shape ...int) (*Tensor[T], error) {
	to := shaders.Contiguous(shape...)
	if to.Validate() != nil || to.Len() != t.Len() {
		return nil, fmt.Errorf("cmdbuf: reshape: %w: %v has %d elements, %v wants %d", ErrShape, t.Shape(), t.Len(), shape, to.Len())
	}
	l, ok := reshape(t.v.layout, to)
	if !ok {
		return nil, fmt.Errorf("cmdbuf: reshape: %w: the strides of %v cannot express shape %v without a copy", ErrShape, t.v.layout, shape)
	}
	return t.derive("reshape", l)
}

// reshape matches groups of axes of equal product; each group of the source must be
// contiguous within itself.
func reshape(from, to shaders.Layout) (shaders.Layout, bool) {
	out := to
	out.Offset = from.Offset
	if from.Len() == 0 {
		return out, true
	}
	var src shaders.Layout // without axes of extent 1, whose strides mean nothing
	for i := range from.Rank {
		if from.Shape[i] != 1 {
			src.Shape[src.Rank], src.Stride[src.Rank] = from.Shape[i], from.Stride[i]
			src.Rank++
		}
	}
	i, j := src.Rank-1, to.Rank-1
	for j >= 0 {
		if to.Shape[j] == 1 {
			out.Stride[j] = 0
			j--
			continue
		}
		if i < 0 {
			return out, false
		}
		have, want, stride := src.Shape[i], to.Shape[j], src.Stride[i]
		out.Stride[j] = stride
		inner := stride
		for have != want {
			if have < want {
				if i == 0 || src.Stride[i-1] != src.Stride[i]*src.Shape[i] {
					return out, false
				}
				i--
				have *= src.Shape[i]
				continue
			}
			if j == 0 {
				return out, false
			}
			inner *= to.Shape[j]
			j--
			if to.Shape[j] == 1 {
				out.Stride[j] = 0
				continue
			}
			out.Stride[j] = inner
			want *= to.Shape[j]
		}
		i--
		j--
	}
	return out, i < 0
}
