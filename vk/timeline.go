package vk

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	vulkan "github.com/vulkan-go/vulkan"
)

// Timeline orders the submissions of one stream: each gets the next serial, starting
// with 1, and the device's progress is the largest serial that completed. It is backed
// by a timeline semaphore. Its methods may be called from several goroutines.
type Timeline struct {
	d         *Device
	semaphore vulkan.Semaphore
	closed    atomic.Bool

	// Under the queue's lock.
	awaited bool   // by a submission, at any time
	waiters []Wait // the last submission of each other timeline that waits for this one
	holders int    // who will submit such a wait
	gone    bool   // destroyed

	using sync.RWMutex // read-locked by who asks the semaphore, which may be any goroutine

	mu        sync.Mutex
	submitted uint64   // serial of the last submission, failed ones included
	completed uint64   // last known progress
	reached   uint64   // last value read from the semaphore; those above it up to completed failed
	failed    []uint64 // serials that will never be signalled, ascending, not yet passed
}

// NewTimeline makes a timeline at serial 0.
func (d *Device) NewTimeline() (*Timeline, error) {
	if err := d.usable("vkCreateSemaphore"); err != nil {
		return nil, err
	}
	s, r := d.c.Timeline(0)
	if err := d.result(r, "vkCreateSemaphore", "a timeline"); err != nil {
		return nil, err
	}
	d.born(kindTimeline)
	return &Timeline{d: d, semaphore: handle[vulkan.Semaphore](s)}, nil
}

// Close ends the timeline; no submission that signals it may be pending. Its semaphore is
// destroyed once no submission that waits for it is pending and nobody holds it: by this
// call or by that which closes a later timeline of the device.
func (t *Timeline) Close() {
	if t.closed.Swap(true) {
		return
	}
	d := t.d
	d.queueMu.Lock()
	defer d.queueMu.Unlock()
	d.closing = append(d.closing, t)
	d.closing = slices.DeleteFunc(d.closing, (*Timeline).destroy)
}

// Hold keeps the semaphore from being destroyed until Release, though the timeline be
// closed: for a wait that will be submitted later. It returns false if it is destroyed
// already.
func (t *Timeline) Hold() bool {
	t.d.queueMu.Lock()
	defer t.d.queueMu.Unlock()
	if t.gone {
		return false
	}
	t.holders++
	return true
}

// Release undoes one Hold.
func (t *Timeline) Release() {
	t.d.queueMu.Lock()
	defer t.d.queueMu.Unlock()
	t.holders--
}

// Device is the one the timeline was made on.
func (t *Timeline) Device() *Device { return t.d }

func (t *Timeline) destroyed() bool {
	t.d.queueMu.Lock()
	defer t.d.queueMu.Unlock()
	return t.gone
}

// destroy destroys the semaphore unless somebody needs it. The queue's lock is held.
func (t *Timeline) destroy() bool {
	if t.holders > 0 || !t.unawaited() {
		return false
	}
	if t.awaited && t.d.touchesLate() {
		vulkan.DeviceWaitIdle(t.d.device) // whatever it says, there is nothing better to do
	}
	t.using.Lock() // a wait inside the driver ends soon: see waitSlice
	vulkan.DestroySemaphore(t.d.device, t.semaphore, nil)
	t.gone = true
	t.using.Unlock()
	t.d.died(kindTimeline)
	return true
}

// destroyTimelines destroys what was closed and could not be destroyed yet, once the
// device is idle.
func (d *Device) destroyTimelines() {
	d.queueMu.Lock()
	defer d.queueMu.Unlock()
	if len(d.closing) == 0 {
		return
	}
	vulkan.DeviceWaitIdle(d.device) // on a lost device nothing is pending either
	d.closing = slices.DeleteFunc(d.closing, func(t *Timeline) bool {
		t.waiters = nil
		return t.destroy()
	})
}

// await notes that a submission waits for this timeline. The queue's lock is held.
func (t *Timeline) await(by *Timeline, serial uint64) {
	t.awaited = true
	for i := range t.waiters {
		if w := &t.waiters[i]; w.Timeline == by {
			w.Serial = serial
			return
		}
	}
	t.unawaited()
	t.waiters = append(t.waiters, Wait{by, serial})
}

// unawaited drops the waiters that are done and tells whether that was all of them.
func (t *Timeline) unawaited() bool {
	t.waiters = slices.DeleteFunc(t.waiters, func(w Wait) bool { return w.Timeline.Completed() >= w.Serial })
	return len(t.waiters) == 0
}

// touchesLate tells of drivers whose queue thread looks at what a submission waited for
// once more after the host has seen that submission complete, so that destroying it then
// ends the process. Mesa's software driver does, in 22.3 at least. Its queue is in order:
// when all is idle the thread is past it.
func (d *Device) touchesLate() bool { return strings.HasPrefix(d.info.Driver, "llvmpipe") }

// Submitted is the serial of the last submission.
func (t *Timeline) Submitted() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.submitted
}

// Completed is the progress known without asking the driver. On a lost device nothing
// runs any more, so everything has completed, if not well.
func (t *Timeline) Completed() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.d.lost.Load() {
		return t.submitted
	}
	return t.completed
}

// Skip takes the next serial without work. It completes with the one before: for a
// serial that was promised to somebody and will not be submitted.
func (t *Timeline) Skip() uint64 {
	t.d.queueMu.Lock()
	defer t.d.queueMu.Unlock()
	serial := t.next()
	t.fail(serial)
	return serial
}

// Refresh asks the driver for the progress. On a closed timeline it is what is known.
func (t *Timeline) Refresh() (uint64, error) {
	t.using.RLock()
	defer t.using.RUnlock()
	if t.closed.Load() {
		return t.Completed(), nil
	}
	if err := t.d.usable("vkGetSemaphoreCounterValue"); err != nil {
		return t.Completed(), err
	}
	v, r := t.d.c.TimelineValue(bits(t.semaphore))
	if err := t.d.result(r, "vkGetSemaphoreCounterValue", ""); err != nil {
		return t.Completed(), err
	}
	return t.advance(v)
}

// advance notes a value read from the semaphore. A lost device may report any value,
// 2^64-1 on some, so one that was never submitted is an error.
func (t *Timeline) advance(v uint64) (uint64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if v > t.submitted {
		t.d.lost.Store(true)
		return t.completed, &Error{Call: "vkGetSemaphoreCounterValue", Result: int32(vulkan.ErrorDeviceLost), Detail: fmt.Sprintf("value %d, submitted %d", v, t.submitted)}
	}
	t.reached = max(t.reached, v)
	t.completed = max(t.completed, v)
	t.skipFailed()
	return t.completed, nil
}

// skipFailed passes serials that nobody will signal once all before them completed.
func (t *Timeline) skipFailed() {
	for len(t.failed) > 0 && t.failed[0] <= t.completed+1 {
		t.completed = max(t.completed, t.failed[0])
		t.failed = t.failed[1:]
	}
}

// next gives out a serial. The caller holds the queue's lock.
func (t *Timeline) next() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.submitted++
	return t.submitted
}

// fail notes that a submission failed: its serial completes with the one before it.
// The caller holds the queue's lock, so that failures are noted in order.
func (t *Timeline) fail(serial uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failed = append(t.failed, serial)
	t.skipFailed()
}

// target is the value to wait for on the semaphore so that serial has completed.
func (t *Timeline) target(serial uint64) (value uint64, done bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if serial > t.submitted {
		return 0, false, fmt.Errorf("vk: waiting for serial %d: the last one submitted is %d, so the wait would never end", serial, t.submitted)
	}
	value = t.passed(serial)
	return value, value <= t.completed, nil
}

// passed is the last serial up to the one given that did not fail, or 0.
func (t *Timeline) passed(serial uint64) uint64 {
	for slices.Contains(t.failed, serial) {
		serial--
	}
	return serial
}

// signalled is the value of the semaphore that stands for a serial submitted before, 0
// if the initial one does. A failed serial is signalled by nobody, and completed all the
// same with the one before it.
func (t *Timeline) signalled(serial uint64) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if serial = t.passed(serial); serial <= t.completed {
		return min(serial, t.reached)
	}
	return serial
}

// waitSlice bounds one wait inside the driver, so that a queue that never signals keeps
// no thread for ever and a cancelled context is noticed.
const waitSlice = 20 * time.Millisecond

// Wait blocks until serial has completed, the context is done or the device is lost.
// A cancelled wait leaves the work pending. A serial never submitted is an error.
func (t *Timeline) Wait(ctx context.Context, serial uint64) error {
	for {
		value, done, err := t.target(serial)
		if err != nil || done {
			return err
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("vk: waiting for serial %d: %w; the work is still pending", serial, err)
		}
		if err := t.d.usable("vkWaitSemaphores"); err != nil {
			return err
		}
		slice := waitSlice
		if deadline, ok := ctx.Deadline(); ok {
			slice = max(min(slice, time.Until(deadline)), 0)
		}
		t.using.RLock()
		if t.closed.Load() {
			t.using.RUnlock()
			return fmt.Errorf("vk: vkWaitSemaphores: the timeline is %w", ErrClosed)
		}
		r := t.d.c.TimelineWait(bits(t.semaphore), value, uint64(slice))
		t.using.RUnlock()
		t.d.in.drain()
		if r < 0 {
			return t.d.result(r, "vkWaitSemaphores", "serial %d", serial)
		}
		if vulkan.Result(r) == vulkan.Success {
			if _, err := t.advance(value); err != nil {
				return err
			}
		}
	}
}
