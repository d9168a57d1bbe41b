package cmdbuf

import (
	"context"
	"fmt"

	"vkcompute/vk"
)

// Batches of a profiling stream take times too: each has a query pool, which is read when
// the batch is done.
const (
	profiledBatches  = 64   // that keep their times
	profiledLaunches = 1024 // of a batch
)

// batchProfile is the times of one batch.
type batchProfile struct {
	queries *vk.QueryPool
	names   []string
	serial  uint64 // of the batch, 0 while it is not submitted
}

// beginSpan notes the start of a launch in the current batch.
func (s *Stream) beginSpan() error {
	if !s.profiling {
		return nil
	}
	if s.times == nil {
		if len(s.timed) >= profiledBatches {
			s.times = s.timed[0]
			s.timed = append(s.timed[:0], s.timed[1:]...)
			s.times.names = s.times.names[:0]
			if s.times.serial > s.timeline.Completed() {
				// Still to be written: leave it and make another.
				s.later(s.times.serial, s.times.queries.Close)
				s.times = nil
			}
		}
		if s.times == nil {
			q, err := s.dev.NewQueryPool(2 * profiledLaunches)
			if err != nil {
				return fmt.Errorf("cmdbuf: profile: %w", err)
			}
			s.times = &batchProfile{queries: q}
		}
		s.times.serial = 0
		s.batch.commands.ResetQueries(s.times.queries, 0, 2*profiledLaunches)
	}
	if n := len(s.times.names); n < profiledLaunches {
		s.batch.commands.Timestamp(s.times.queries, uint32(2*n), vk.StageBottom)
	}
	return nil
}

// endSpan notes the end of one.
func (s *Stream) endSpan(name string) {
	if t := s.times; t != nil && len(t.names) < profiledLaunches {
		s.batch.commands.Timestamp(t.queries, uint32(2*len(t.names)+1), vk.StageBottom)
		t.names = append(t.names, name)
	}
}

// endTimes closes the times of a batch that was submitted under a serial.
func (s *Stream) endTimes(serial uint64, err error) {
	if s.times == nil {
		return
	}
	if err != nil {
		s.times.names = s.times.names[:0] // never run
	}
	s.times.serial = serial
	s.timed = append(s.timed, s.times)
	s.times = nil
}

// Profile submits the current batch, waits, and returns the times of the launches of the
// last batches, oldest first, at most 64 batches and the first 1024 launches of each;
// starts count from the first span. The stream must have been made with Options.Profile.
// Replays have their own: see Graph.Profile.
func (s *Stream) Profile(ctx context.Context) ([]Span, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.idle("profile"); err != nil {
		return nil, err
	}
	if !s.profiling {
		return nil, errNotProfiling
	}
	if err := s.flush(); err != nil {
		return nil, err
	}
	if err := s.wait(ctx, s.timeline.Submitted()); err != nil {
		return nil, err
	}
	var list []Span
	limits := s.dev.Limits()
	first, any := uint64(0), false
	for _, t := range s.timed {
		if len(t.names) == 0 || t.serial > s.timeline.Completed() {
			continue
		}
		ticks := make([]uint64, 2*len(t.names))
		if err := t.queries.Ticks(0, ticks); err != nil {
			return nil, fmt.Errorf("cmdbuf: profile: %w", err)
		}
		if !any {
			first, any = ticks[0], true
		}
		for i, name := range t.names {
			list = append(list, Span{Operation: i, Name: name, Replay: t.serial,
				Start: limits.Elapsed(first, ticks[2*i]), Duration: limits.Elapsed(ticks[2*i], ticks[2*i+1])})
		}
	}
	return list, nil
}

// closeTimes destroys the query pools. Nothing is pending.
func (s *Stream) closeTimes() {
	if s.times != nil {
		s.times.queries.Close()
	}
	for _, t := range s.timed {
		t.queries.Close()
	}
	s.times, s.timed = nil, nil
}
