package vk

import (
	"fmt"

	vulkan "github.com/vulkan-go/vulkan"

	"vkcompute/vk/internal/abi"
)

// Wait is a point of another timeline that a submission waits for on the device.
type Wait struct {
	Timeline *Timeline
	Serial   uint64
}

// MaxWaits is how many timelines one submission may wait for.
const MaxWaits = abi.MaxWaits

// Submission is work handed to the queue in one crossing. It may be reused: its slices
// and scratch memory are kept.
type Submission struct {
	// Record, if not 0, is recorded from Commands for one use first; it does not run
	// unless it is in Buffers too.
	Record   CommandBuffer
	Commands *Commands
	Buffers  []CommandBuffer // run in order
	Flushes  []FlushRange    // host writes to make visible to the device
	Waits    []Wait
	// Poll also reads the timeline's progress, in the same crossing. What the host has
	// seen complete it is synchronised with, so polling hides a forgotten barrier between
	// submissions from the validation layer: do it when progress is needed, not always.
	Poll bool

	flushes, waits []uint64
}

// check refuses, before anything happens, what cannot be submitted.
func (s *Submission) check(d *Device, t *Timeline) error {
	const call = "vk: a submission"
	switch {
	case t == nil || t.d != d:
		return fmt.Errorf(call + ": want a timeline of this device to signal")
	case t.closed.Load():
		return fmt.Errorf(call+": its timeline is %w", ErrClosed)
	case s.Record != 0 && s.Commands == nil:
		return fmt.Errorf(call + ": want Commands to record, found none")
	}
	if s.Record != 0 {
		if err := s.Commands.check(); err != nil {
			return err
		}
	}
	for i, b := range s.Buffers {
		if b == 0 {
			return fmt.Errorf(call+": command buffer %d of %d is none: want one that CommandPool.New returned", i, len(s.Buffers))
		}
	}
	for _, f := range s.Flushes {
		if err := f.check(d); err != nil {
			return err
		}
	}
	if err := checkLimit("timelines waited for", uint64(len(s.Waits)), MaxWaits, "a submission"); err != nil {
		return err
	}
	for _, w := range s.Waits {
		if w.Timeline == nil || w.Timeline.d != d {
			return fmt.Errorf(call + " waits for a timeline: want one of this device")
		}
		if w.Timeline.destroyed() {
			return fmt.Errorf(call+" waits for serial %d of a timeline that is %w: hold it until the wait is submitted", w.Serial, ErrClosed)
		}
		if submitted := w.Timeline.Submitted(); w.Serial > submitted {
			return fmt.Errorf(call+" waits for serial %d of a timeline that has submitted %d: submit that work first", w.Serial, submitted)
		}
	}
	return nil
}

// Submit flushes, records and submits, and signals the timeline with its next serial,
// which is returned. The serial counts as completed if the driver fails the submission;
// no serial is used, and 0 returned, where it was refused before.
func (d *Device) Submit(s *Submission, t *Timeline) (uint64, error) {
	if err := d.usable("vkQueueSubmit"); err != nil {
		return 0, err
	}
	if err := s.check(d, t); err != nil {
		return 0, err
	}
	s.flushes, s.waits = s.flushes[:0], s.waits[:0]
	for _, f := range s.Flushes {
		if f.Size != 0 && !f.Buffer.Coherent() {
			s.flushes = f.appendRange(s.flushes)
		}
	}
	var words []uint64
	if s.Record != 0 {
		words = s.Commands.words
	}
	c := abi.Submission{Queue: d.queue, Record: uint64(s.Record), Signal: bits(t.semaphore)}
	if s.Poll {
		c.Poll = 1
	}
	serial, r := d.submit(s, t, &c, words)
	d.in.drain()
	if r >= 0 {
		_, err := t.advance(c.Completed)
		return serial, err
	}
	call := "vkQueueSubmit"
	switch c.Stage {
	case abi.StageRecord:
		call = callRecord
	case abi.StageFlush:
		call = "vkFlushMappedMemoryRanges"
	}
	return serial, d.result(r, call, "serial %d, %d command buffers, word %d", serial, len(s.Buffers), c.At)
}

// submit holds the queue's lock over everything that serials and failures depend on:
// they are given and noted in the order of the queue, and no submission can wait on the
// device for a serial that another goroutine is about to fail, which would be for ever.
func (d *Device) submit(s *Submission, t *Timeline, c *abi.Submission, words []uint64) (serial uint64, r int32) {
	d.queueMu.Lock()
	defer d.queueMu.Unlock()
	serial = t.next()
	c.Value = serial
	for _, w := range s.Waits {
		if w.Timeline.gone {
			continue // since it was checked, so it is done
		}
		if value := w.Timeline.signalled(w.Serial); value != 0 {
			w.Timeline.await(t, serial)
			s.waits = append(s.waits, bits(w.Timeline.semaphore), value)
		}
	}
	if r = d.c.Submit(c, words, commandBufferBits(s.Buffers), s.flushes, s.waits); r < 0 {
		t.fail(serial)
	}
	return serial, r
}

// WaitIdle blocks until the queue has nothing to do. It has no deadline: use
// Timeline.Wait where the device may hang.
func (d *Device) WaitIdle() error {
	if err := d.usable("vkDeviceWaitIdle"); err != nil {
		return err
	}
	d.queueMu.Lock()
	defer d.queueMu.Unlock()
	err := d.result(int32(vulkan.DeviceWaitIdle(d.device)), "vkDeviceWaitIdle", "")
	d.in.drain()
	return err
}
