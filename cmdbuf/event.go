package cmdbuf

import (
	"context"
	"fmt"

	"vkcompute/pool"
	"vkcompute/vk"
)

// Event is a point in the work of a stream that others can wait for. The zero Event is
// none.
type Event struct {
	timeline *vk.Timeline
	serial   uint64
}

// Record submits the current batch and returns the point after it.
func (s *Stream) Record() (Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.idle("record an event"); err != nil {
		return Event{}, err
	}
	if err := s.flush(); err != nil {
		return Event{}, err
	}
	return Event{s.timeline, s.timeline.Submitted()}, nil
}

// WaitFor makes everything launched from here on, on this stream, run after the event, on
// the device; the host does not wait. Tensors of the other stream can then be used in
// launches of this one. What is in the batch already is submitted first and does not
// wait.
func (s *Stream) WaitFor(e Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.idle("wait for an event"); err != nil {
		return err
	}
	if e.timeline == nil {
		return fmt.Errorf("cmdbuf: wait for an event: it was never recorded, so the wait would never end")
	}
	if e.timeline.Device() != s.dev {
		return fmt.Errorf("cmdbuf: wait for an event: it was %w; wait for it on the host", ErrForeign)
	}
	if e.timeline == s.timeline || e.serial == 0 {
		return nil // in order anyway
	}
	if err := s.flush(); err != nil {
		return err
	}
	for i := range s.batch.waits {
		if w := &s.batch.waits[i]; w.Timeline == e.timeline {
			w.Serial = max(w.Serial, e.serial)
			return nil
		}
	}
	if len(s.batch.waits) == vk.MaxWaits {
		// An empty submission takes them: what comes later in the queue is behind it.
		if _, err := s.submit(nil, 0); err != nil {
			return err
		}
	}
	if !e.timeline.Hold() {
		// Its stream was closed, so the event has happened. Without a semaphore to wait for,
		// a barrier makes visible what it wrote.
		s.batch.commands.Barrier(graphBegin, barrierTo)
		s.batch.count++
		s.hazards.clear()
		return nil
	}
	s.batch.waits = append(s.batch.waits, vk.Wait{Timeline: e.timeline, Serial: e.serial})
	return nil
}

// waited lets go of the events that the batch waits for.
func (b *batch) waited() {
	for _, w := range b.waits {
		w.Timeline.Release()
	}
	clear(b.waits)
	b.waits = b.waits[:0]
}

// Wait blocks the host until the event happened or the context ends.
func (e Event) Wait(ctx context.Context) error {
	if e.timeline == nil {
		return fmt.Errorf("cmdbuf: wait for an event: it was never recorded, so the wait would never end")
	}
	return e.timeline.Wait(ctx, e.serial)
}

// settled tells whether the events that the next submission waits for have happened: the
// host may not touch memory before that either.
func (s *Stream) settled() bool {
	for _, w := range s.batch.waits {
		if w.Timeline.Completed() < w.Serial {
			return false
		}
	}
	return true
}

// stamp marks a slice as needed until the current batch is done, whichever stream it
// comes from.
func (s *Stream) stamp(slice pool.Slice, serial uint64) error {
	if slice.Manager() == s.pools {
		return slice.Use(serial)
	}
	if err := slice.UseOn(s.timeline, serial); err != nil {
		return err
	}
	if s.lenders == nil {
		s.lenders = map[*pool.Manager]uint64{}
	}
	s.lenders[slice.Manager()] = serial
	return nil
}

// returnLent gives memory of other streams back that work up to a serial used, and that
// was released meanwhile: the lender may have been closed, or have nothing to do.
func (s *Stream) returnLent(completed uint64) {
	for m, serial := range s.lenders {
		m.Drain()
		if serial <= completed {
			delete(s.lenders, m)
		}
	}
}
