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

// Submit flushes, records and submits, and signals the timeline with its next serial,
// which is returned. The serial counts as completed if the submission fails.
func (d *Device) Submit(s *Submission, t *Timeline) (uint64, error) {
	if err := d.usable("vkQueueSubmit"); err != nil {
		return 0, err
	}
	s.flushes, s.waits = s.flushes[:0], s.waits[:0]
	for _, f := range s.Flushes {
		if f.Size != 0 && !f.Buffer.Coherent() {
			s.flushes = f.appendRange(s.flushes)
		}
	}
	for _, w := range s.Waits {
		if submitted := w.Timeline.Submitted(); w.Serial > submitted {
			return 0, fmt.Errorf("vk: a submission waits for serial %d of a timeline that has submitted %d: submit that work first", w.Serial, submitted)
		}
		s.waits = append(s.waits, bits(w.Timeline.semaphore), w.Serial)
	}
	var words []uint64
	if s.Record != 0 {
		words = s.Commands.words
	}
	// One lock for the queue, and for the order of serials on it.
	d.queueMu.Lock()
	t.mu.Lock()
	t.submitted++
	serial := t.submitted
	t.mu.Unlock()
	c := abi.Submission{Queue: d.queue, Record: uint64(s.Record), Signal: bits(t.semaphore), Value: serial}
	if s.Poll {
		c.Poll = 1
	}
	r := d.c.Submit(&c, words, commandBufferBits(s.Buffers), s.flushes, s.waits)
	d.queueMu.Unlock()
	d.in.drain()
	if r >= 0 {
		_, err := t.advance(c.Completed)
		return serial, err
	}
	t.fail(serial)
	call := "vkQueueSubmit"
	switch c.Stage {
	case abi.StageRecord:
		call = "recording a command buffer"
	case abi.StageFlush:
		call = "vkFlushMappedMemoryRanges"
	}
	return serial, d.result(r, call, "serial %d, %d command buffers, word %d", serial, len(s.Buffers), c.At)
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
