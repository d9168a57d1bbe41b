package cmdbuf

import (
	"context"
	"fmt"
	"slices"
	"time"

	"vkcompute/shaders"
	"vkcompute/vk"
)

// batch is the work collected since the last submission, and the command buffers that
// batches are recorded into.
type batch struct {
	commands vk.Commands
	count    int  // launches and transfers in it
	stamped  bool // slices carry its serial
	waits    []vk.Wait
	bound    boundState

	pool       *vk.CommandPool
	free       []vk.CommandBuffer
	pending    []pendingBuffer // ascending by serial
	buffers    int             // in all
	submission vk.Submission
	reclaimed  uint64 // progress at the last reclaim
}

type pendingBuffer struct {
	buffer vk.CommandBuffer
	serial uint64
}

// boundState is what a command buffer has bound, so that nothing is bound twice.
type boundState struct {
	program *program
	set     uint64
	offset  uint32
}

// serial is the one the current batch will have: only the stream submits on its timeline.
func (s *Stream) serial() uint64 { return s.timeline.Submitted() + 1 }

// bind binds what is not bound yet.
func (b *boundState) bind(c *vk.Commands, p *program, set uint64, offset uint32) {
	if b.program != p {
		c.BindPipeline(p.pipeline)
		// Another layout may disturb the set.
		*b = boundState{program: p}
	}
	if p.set && (b.set != set || b.offset != offset) {
		if p.info {
			c.BindSet(p.pipeline, set, offset)
		} else {
			c.BindStaticSet(p.pipeline, set)
		}
		b.set, b.offset = set, offset
	}
}

// next notes the accesses of the next command and tells whether it needs a barrier
// before it, which then orders it with all that came before.
func (h *hazards) next(list []binding) (barrier bool) {
	for i := range list {
		b := &list[i]
		if lo, hi, access := b.touches(); h.conflict(b.bufferID, lo, hi, access) {
			h.clear()
			barrier = true
			break
		}
	}
	for i := range list {
		b := &list[i]
		lo, hi, access := b.touches()
		h.note(b.bufferID, lo, hi, access)
	}
	return barrier
}

// order emits the barrier that the accesses of the next command call for.
func (s *Stream) order(list ...binding) {
	if s.hazards.next(list) {
		s.batch.commands.Barrier(barrierFrom, barrierTo)
		s.stats.Barriers++
	}
}

// enqueue adds a prepared launch to the batch.
func (s *Stream) enqueue(l *launch) error {
	s.forgetPages()
	serial := s.serial()
	if err := s.lookupInfo(l, s.cache); err != nil {
		return err
	}
	defer l.dropInfo()
	s.batch.stamped = true
	if l.info.slice.Valid() {
		if err := l.info.slice.Use(serial); err != nil {
			return fmt.Errorf("cmdbuf: launch %s: info buffer: %w", l.program.kernel.Name, err)
		}
	}
	var set uint64
	if l.program.set {
		var err error
		if set, err = s.sets.get(l, serial, s.caching); err != nil {
			return err
		}
	}
	for i := range l.bindings {
		if b := &l.bindings[i]; b.slice.Valid() {
			if err := s.stamp(b.slice, serial); err != nil {
				return argumentError(l.program.kernel, int(b.param), err)
			}
		}
	}
	if l.indirect.buffer != 0 {
		if err := s.stamp(l.indirect.slice, serial); err != nil {
			return fmt.Errorf("cmdbuf: indirect launch %s: grid: %w", l.program.kernel.Name, err)
		}
		s.accesses = append(append(s.accesses[:0], l.bindings...), l.indirect)
		s.order(s.accesses...)
	} else {
		s.order(l.bindings...)
	}
	if err := s.beginSpan(); err != nil {
		return err
	}
	c := &s.batch.commands
	s.batch.bound.bind(c, l.program, set, l.info.offset)
	if push := l.push(); len(push) > 0 {
		c.Push(l.program.pipeline, push)
	}
	if l.indirect.buffer != 0 {
		c.DispatchIndirect(l.indirect.buffer, l.indirect.offset)
	} else {
		c.Dispatch(l.groups[0], l.groups[1], l.groups[2])
	}
	s.endSpan(l.program.kernel.Name)
	s.stats.Launches++
	return s.added()
}

// added counts a command and submits a batch that is full.
func (s *Stream) added() error {
	s.batch.count++
	if s.batch.count >= s.batchLimit {
		return s.flush()
	}
	return nil
}

// flush submits the batch.
func (s *Stream) flush() error {
	if s.batch.count == 0 {
		if s.batch.stamped {
			// By a command that failed on its way into the batch: nobody shall wait for it.
			s.timeline.Skip()
			s.batch.stamped = false
		}
		return nil
	}
	_, err := s.submit(nil, 0)
	return err
}

// submit sends the batch and then, n times, the command buffers of a graph, as one
// submission in one crossing. If it fails the batch is dropped: its serial completes,
// and slices it used can be used again.
func (s *Stream) submit(graph []vk.CommandBuffer, n int) (uint64, error) {
	b := &s.batch
	sub := &b.submission
	sub.Record, sub.Commands, sub.Buffers = 0, nil, sub.Buffers[:0]
	if b.count > 0 {
		buffer, err := s.takeBuffer()
		if err != nil {
			return 0, err // the batch stays
		}
		b.commands.Barrier(barrierFrom, hostReads)
		sub.Record, sub.Commands = buffer, &b.commands
		sub.Buffers = append(sub.Buffers, buffer)
	}
	for range n {
		sub.Buffers = append(sub.Buffers, graph...)
	}
	sub.Waits = append(sub.Waits[:0], b.waits...)
	sub.Flushes = s.pools.PendingFlushes(sub.Flushes[:0])
	// Ask for progress when the next batch has no command buffer, or after a while.
	sub.Poll = len(b.free) == 0 || s.timeline.Submitted()-s.timeline.Completed() > 64

	want := s.serial()
	serial, err := s.dev.Submit(sub, s.timeline)
	if s.timeline.Submitted() < want {
		// Refused before it got a serial, which slices are stamped with already.
		serial = s.timeline.Skip()
	}
	if sub.Record != 0 {
		b.pending = append(b.pending, pendingBuffer{sub.Record, serial})
	}
	s.endTimes(serial, err)
	count := b.count
	b.commands.Reset()
	b.count, b.stamped, b.bound = 0, false, boundState{}
	s.pools.FlushesDone(sub.Flushes, err)
	if err != nil {
		// The barriers of the dropped commands are gone with them, and those at the end of a
		// graph with its last part: what comes next begins with one.
		b.commands.Barrier(graphBegin, barrierTo)
		s.hazards.clear()
		return serial, fmt.Errorf("cmdbuf: submitting a batch of %d commands, which are dropped: %w", count, err)
	}
	if len(b.waits) > 0 {
		// What other streams did before these events is now behind this serial, and no slice
		// of this stream knows.
		s.behind = max(s.behind, serial)
	}
	b.waited()
	s.stats.Submissions++
	if s.timeline.Completed() != b.reclaimed {
		s.reclaim()
	}
	return serial, nil
}

// maxBuffers bounds the batches in flight; beyond it a submission waits for the oldest.
const maxBuffers = 64

// stuck is how long that wait may take before the device is said not to progress.
const stuck = time.Minute

// takeBuffer returns a command buffer that is not pending.
func (s *Stream) takeBuffer() (vk.CommandBuffer, error) {
	b := &s.batch
	if len(b.free) == 0 && len(b.pending) > 0 && b.pending[0].serial <= s.timeline.Completed() {
		s.reclaim()
	}
	if len(b.free) == 0 && b.buffers >= maxBuffers {
		if _, err := s.timeline.Refresh(); err != nil {
			return 0, fmt.Errorf("cmdbuf: submitting a batch: %w", err)
		}
		if oldest := b.pending[0].serial; oldest > s.timeline.Completed() {
			ctx, cancel := context.WithTimeout(context.Background(), stuck)
			defer cancel()
			if err := s.timeline.Wait(ctx, oldest); err != nil {
				return 0, fmt.Errorf("cmdbuf: submitting a batch: the device makes no progress: %w", err)
			}
		}
		s.reclaim()
	}
	if n := len(b.free); n > 0 {
		buffer := b.free[n-1]
		b.free = b.free[:n-1]
		return buffer, nil
	}
	buffer, err := b.pool.New()
	if err != nil {
		return 0, fmt.Errorf("cmdbuf: submitting a batch: %w", err)
	}
	b.buffers++
	return buffer, nil
}

// garbage is something to be freed once a serial completed.
type garbage struct {
	serial uint64
	free   func()
}

// later frees something when the serial has completed; 0: at the next occasion.
func (s *Stream) later(serial uint64, free func()) {
	s.garbage = append(s.garbage, garbage{serial, free})
}

// reclaim gives back what completed batches and replays used.
func (s *Stream) reclaim() {
	completed := s.timeline.Completed()
	b := &s.batch
	n := 0
	for n < len(b.pending) && b.pending[n].serial <= completed {
		b.free = append(b.free, b.pending[n].buffer)
		n++
	}
	b.pending = slices.Delete(b.pending, 0, n)
	s.sets.reclaim(completed)
	kept := s.garbage[:0]
	for _, g := range s.garbage {
		if g.serial > completed {
			kept = append(kept, g)
		} else {
			g.free()
		}
	}
	clear(s.garbage[len(kept):])
	s.garbage = kept
	s.pools.Drain()
	s.returnLent(completed)
	s.forgetPages()
	b.reclaimed = completed
}

// fill stamps, orders and records a fill of part of a slice.
func (s *Stream) fill(to transferEnd, size uint64, value uint32) error {
	s.batch.stamped = true
	if err := s.stamp(to.slice, s.serial()); err != nil {
		return err
	}
	b := to.binding(size, shaders.Write)
	s.order(b)
	s.batch.commands.Fill(b.buffer, b.offset, b.size, value)
	s.stats.Transfers++
	return s.added()
}

// transfer stamps, orders and records a copy between slices.
func (s *Stream) transfer(source, destination transferEnd, size uint64) error {
	serial := s.serial()
	s.batch.stamped = true
	for _, e := range []transferEnd{source, destination} {
		if err := s.stamp(e.slice, serial); err != nil {
			return err
		}
	}
	from, to := source.binding(size, shaders.Read), destination.binding(size, shaders.Write)
	s.order(from, to)
	s.batch.commands.Copy(from.buffer, from.offset, to.buffer, to.offset, size)
	s.stats.Transfers++
	return s.added()
}
