package cmdbuf

import (
	"context"
	"fmt"
	"unsafe"

	"vkcompute/pool"
	"vkcompute/shaders"
	"vkcompute/vk"
)

// transferEnd is one side of a copy: bytes of a slice from an offset on.
type transferEnd struct {
	slice  pool.Slice
	offset uint64
}

func (e transferEnd) binding(size uint64, access shaders.Access) binding {
	buffer, at, _, _ := e.slice.Range()
	return binding{slice: e.slice, buffer: buffer.Handle(), bufferID: buffer.ID(), offset: at + e.offset, size: size, access: access, param: -1}
}

// maxStaging bounds the staging memory of one copy; larger transfers go in pieces.
const maxStaging = 16 << 20

// reached is the part of the slice, in bytes, that a view touches.
func (v *view) reached() (offset, size uint64) {
	lo, hi := v.layout.Bounds()
	return uint64(lo) * v.element.size, uint64(hi-lo+1) * v.element.size
}

// contiguous tells whether row-major order is memory order.
func contiguous(l shaders.Layout) bool {
	expect := 1
	for i := l.Rank - 1; i >= 0; i-- {
		if l.Shape[i] != 1 && l.Stride[i] != expect {
			return false
		}
		expect *= l.Shape[i]
	}
	return true
}

// walk calls f for each element in row-major order with its index from the least one
// the layout touches.
func walk(l shaders.Layout, f func(i, at int)) {
	lo, _ := l.Bounds()
	n := l.Len()
	var index [shaders.MaxRank]int
	at := l.Offset - lo
	for i := range n {
		f(i, at)
		for d := l.Rank - 1; d >= 0; d-- {
			index[d]++
			at += l.Stride[d]
			if index[d] < l.Shape[d] {
				break
			}
			at -= l.Stride[d] * l.Shape[d]
			index[d] = 0
		}
	}
}

func words(b []byte) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/wordSize)
}

// ripe tells whether the host may read the slice now: all that comes before in the
// order of the stream is done. Other streams are in that order with what this one waited
// for and no further.
func (s *Stream) ripe(v *view) bool {
	return max(v.slice.LastUse(), s.behind) <= s.timeline.Completed() && s.settled()
}

// untouched tells whether the host may write the slice now: no command of any stream that
// was recorded or submitted, and no graph that may be replayed, is still to use it.
func (s *Stream) untouched(v *view) bool { return v.slice.Idle() && s.ripe(v) }

// write puts host's elements into the view, in call order.
func (s *Stream) write(v *view, host []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writeLocked(v, host)
}

func (s *Stream) writeLocked(v *view, host []byte) error {
	if err := s.idle("write"); err != nil {
		return err
	}
	if !v.alive() {
		return fmt.Errorf("cmdbuf: write: tensor: %w", ErrClosed)
	}
	if len(host) == 0 {
		return nil
	}
	dense := contiguous(v.layout)
	if !dense && overlap1(v.layout) {
		return fmt.Errorf("cmdbuf: write: %w: several elements of %v are the same memory", ErrShape, v.layout)
	}
	offset, size := v.reached()
	if mapped := v.slice.Mapped(); mapped != nil && s.untouched(v) {
		scatter(v, mapped[offset:offset+size], host, dense)
		return v.slice.Written(offset, size)
	}
	if dense {
		for len(host) > 0 {
			n := min(uint64(len(host)), maxStaging)
			if err := s.upload(transferEnd{v.slice, offset}, n, func(staging []byte) { copy(staging, host) }); err != nil {
				return err
			}
			offset += n
			host = host[n:]
		}
		return nil
	}
	// The gaps between the elements belong to others: each run is copied by itself.
	return s.uploadRuns(v, host)
}

func scatter(v *view, to, host []byte, dense bool) {
	if dense {
		copy(to, host)
		return
	}
	if n := int(v.element.size); n != wordSize {
		walk(v.layout, func(i, at int) { copy(to[at*n:][:n], host[i*n:]) })
		return
	}
	dst, src := words(to), words(host)
	walk(v.layout, func(i, at int) { dst[at] = src[i] })
}

// overlap1 tells whether a layout names an element twice.
func overlap1(l shaders.Layout) bool {
	lo, hi := l.Bounds()
	if l.Len() > hi-lo+1 {
		return true
	}
	for i := range l.Rank {
		if l.Shape[i] > 1 && l.Stride[i] == 0 {
			return true
		}
	}
	seen := make([]uint64, (hi-lo)/64+1)
	twice := false
	walk(l, func(_, at int) {
		bit := uint64(1) << (at % 64)
		twice = twice || seen[at/64]&bit != 0
		seen[at/64] |= bit
	})
	return twice
}

// upload writes staging memory and records its copy.
func (s *Stream) upload(to transferEnd, size uint64, fill func([]byte)) error {
	staging, err := s.pools.AllocRole(size, vk.UploadMemory)
	if err != nil {
		return fmt.Errorf("cmdbuf: write: staging memory: %w", err)
	}
	defer staging.Release()
	fill(staging.Mapped())
	if err := staging.Written(0, size); err != nil {
		return fmt.Errorf("cmdbuf: write: %w", err)
	}
	if err := s.transfer(transferEnd{staging, 0}, to, size); err != nil {
		return fmt.Errorf("cmdbuf: write: %w", err)
	}
	return nil
}

// uploadRuns uploads a view with gaps, one copy for each run of adjacent elements.
func (s *Stream) uploadRuns(v *view, host []byte) error {
	lo, _ := v.layout.Bounds()
	from, to, length := 0, -1, 0
	var err error
	put := func() {
		if length > 0 && err == nil {
			n := v.element.size
			err = s.upload(transferEnd{v.slice, uint64(lo+to) * n}, uint64(length)*n,
				func(staging []byte) { copy(staging, host[uint64(from)*n:]) })
		}
	}
	walk(v.layout, func(i, at int) {
		if length > 0 && at == to+length {
			length++
			return
		}
		put()
		from, to, length = i, at, 1
	})
	put()
	return err
}

// read copies the view's elements to host once everything launched before is done.
func (s *Stream) read(ctx context.Context, v *view, host []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.readLocked(ctx, v, host)
}

func (s *Stream) readLocked(ctx context.Context, v *view, host []byte) error {
	if err := s.readable(v); err != nil {
		return err
	}
	if len(host) == 0 {
		return nil
	}
	if v.slice.Mapped() != nil {
		if err := s.ripen(ctx, v); err != nil {
			return err
		}
		offset, size := v.reached()
		return gather(v, v.slice, offset, size, 0, host)
	}
	staging, serial, err := s.copyOut(v)
	defer releaseAll(staging)
	if err != nil {
		return err
	}
	if err := s.wait(ctx, serial); err != nil {
		return err
	}
	return s.gatherAll(v, staging, host)
}

func releaseAll(list []pool.Slice) {
	for _, p := range list {
		p.Release()
	}
}

// copyOut submits copies of what the view reaches to memory the host can see, all in one
// go, so that they are of one moment. The slices are the caller's, also on an error.
func (s *Stream) copyOut(v *view) (staging []pool.Slice, serial uint64, err error) {
	offset, size := v.reached()
	piece := v.piece()
	for at := uint64(0); at < size; at += piece {
		n := min(size-at, piece)
		p, err := s.pools.AllocRole(n, vk.ReadbackMemory)
		if err != nil {
			return staging, 0, fmt.Errorf("cmdbuf: read: staging memory: %w", err)
		}
		staging = append(staging, p)
		if err := s.transfer(transferEnd{v.slice, offset + at}, transferEnd{p, 0}, n); err != nil {
			return staging, 0, fmt.Errorf("cmdbuf: read: %w", err)
		}
	}
	if err := s.flush(); err != nil {
		return staging, 0, fmt.Errorf("cmdbuf: read: %w", err)
	}
	return staging, s.timeline.Submitted(), nil
}

// piece is the size of the pieces of a view's copy: whole elements.
func (v *view) piece() uint64 { return max(maxStaging/v.element.size, 1) * v.element.size }

// gatherAll takes the elements out of what copyOut filled, once it is done.
func (s *Stream) gatherAll(v *view, staging []pool.Slice, host []byte) error {
	if s.dev.Lost() { // what memory holds is no result
		return fmt.Errorf("cmdbuf: read: %w", vk.ErrDeviceLost)
	}
	for i, p := range staging {
		_, size := v.reached()
		first := uint64(i) * v.piece()
		if err := gather(v, p, 0, min(p.Size(), size-first), first, host); err != nil {
			return err
		}
	}
	return nil
}

// readAsync is read that returns at once. The elements are those of the moment of the
// call, whatever is launched before they arrive.
func (s *Stream) readAsync(ctx context.Context, v *view, host []byte) <-chan error {
	done := make(chan error, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.readable(v)
	if err != nil || len(host) == 0 {
		done <- err
		return done
	}
	staging, serial, err := s.copyOut(v)
	if err != nil {
		releaseAll(staging)
		done <- err
		return done
	}
	shape := *v // the tensor may be closed meanwhile
	s.reads.Go(func() {
		defer releaseAll(staging)
		if err := s.timeline.Wait(ctx, serial); err != nil {
			done <- fmt.Errorf("cmdbuf: read: %w", err)
			return
		}
		done <- s.gatherAll(&shape, staging, host)
	})
	return done
}

// ripen waits until the host may read the view's memory. The lock is given up while it
// waits, so it looks again afterwards.
func (s *Stream) ripen(ctx context.Context, v *view) error {
	for {
		if err := s.readable(v); err != nil {
			return err
		}
		if s.ripe(v) {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("cmdbuf: read: %w", err)
		}
		if err := s.flush(); err != nil {
			return fmt.Errorf("cmdbuf: read: %w", err)
		}
		if err := s.wait(ctx, max(v.slice.LastUse(), s.behind)); err != nil {
			return err
		}
		if err := s.settle(ctx); err != nil {
			return err
		}
	}
}

// visible makes what the device wrote visible through the mapping.
func (s *Stream) visible(slice pool.Slice, offset, size uint64) error {
	r, needed, err := slice.InvalidateRange(offset, size)
	if err == nil && needed {
		err = s.dev.Invalidate(r)
	}
	if err != nil {
		return fmt.Errorf("cmdbuf: read: %w", err)
	}
	return nil
}

func (s *Stream) readable(v *view) error {
	if err := s.idle("read"); err != nil {
		return err
	}
	if !v.alive() {
		return fmt.Errorf("cmdbuf: read: tensor: %w", ErrClosed)
	}
	return nil
}

// wait waits for a serial without the lock.
func (s *Stream) wait(ctx context.Context, serial uint64) error {
	s.mu.Unlock()
	err := s.timeline.Wait(ctx, serial)
	s.mu.Lock()
	if err != nil {
		return fmt.Errorf("cmdbuf: read: %w", err)
	}
	if !s.closed {
		s.reclaim()
	}
	return nil
}

// settle waits without the lock for the events that the next submission waits for.
func (s *Stream) settle(ctx context.Context) error {
	for _, w := range append([]vk.Wait(nil), s.batch.waits...) {
		s.mu.Unlock()
		err := w.Timeline.Wait(ctx, w.Serial)
		s.mu.Lock()
		if err != nil {
			return fmt.Errorf("cmdbuf: read: %w", err)
		}
	}
	return nil
}

// gather takes the view's elements out of size mapped bytes of a slice at offset, which
// hold the bytes from 'first' on of what the view reaches.
func gather(v *view, from pool.Slice, offset, size, first uint64, host []byte) error {
	if err := v.stream.visible(from, offset, size); err != nil {
		return err
	}
	mapped := from.Mapped()[offset : offset+size]
	if contiguous(v.layout) {
		copy(host[first:], mapped)
		return nil
	}
	if n := int(v.element.size); n != wordSize {
		skip, have := int(first)/n, len(mapped)/n
		walk(v.layout, func(i, at int) {
			if at >= skip && at-skip < have {
				copy(host[i*n:][:n], mapped[(at-skip)*n:])
			}
		})
		return nil
	}
	src, dst, skip := words(mapped), words(host), int(first/wordSize)
	walk(v.layout, func(i, at int) {
		if at >= skip && at-skip < len(src) {
			dst[i] = src[at-skip]
		}
	})
	return nil
}
