package vk_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"vkcompute/internal/shim"
	"vkcompute/internal/vktest"
	"vkcompute/vk"
)

// A timeline without a device, against a model that keeps the fate of every serial.
func TestTimelineBooks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tl := vk.FakeTimeline()
		type fate int
		const (
			pending fate = iota
			done
			failed
		)
		fates := []fate{done} // serial 0
		value := uint64(0)    // of the semaphore
		completed := func() uint64 {
			n := 0
			for n+1 < len(fates) && fates[n+1] != pending {
				n++
			}
			return uint64(n)
		}
		seen := uint64(0) // what the timeline may know: progress read, and failures told
		t.Repeat(map[string]func(*rapid.T){
			"submit": func(t *rapid.T) {
				require.Equal(t, uint64(len(fates)), tl.Next())
				fates = append(fates, pending)
			},
			"fail": func(t *rapid.T) {
				serial := tl.Next()
				fates = append(fates, failed)
				tl.Fail(serial)
				if seen == serial-1 {
					seen = serial // known at once
				}
			},
			"skip": func(t *rapid.T) {
				serial := tl.Skip()
				require.Equal(t, uint64(len(fates)), serial)
				fates = append(fates, failed)
				if seen == serial-1 {
					seen = serial
				}
			},
			"progress": func(t *rapid.T) {
				for i := int(value) + 1; i < len(fates); i++ {
					if fates[i] == pending {
						fates[i], value = done, uint64(i)
						break
					}
				}
			},
			"read": func(t *rapid.T) {
				got, err := tl.Advance(value)
				require.NoError(t, err)
				require.Equal(t, completed(), got, "a failed serial completes with the one before it")
				seen = got
			},
			"": func(t *rapid.T) {
				require.Equal(t, uint64(len(fates)-1), tl.Submitted())
				require.LessOrEqual(t, tl.Completed(), completed(), "nothing is called complete that is not")
				require.GreaterOrEqual(t, tl.Completed(), seen)
				for serial := range uint64(len(fates)) {
					target, known, err := tl.Target(serial)
					require.NoError(t, err)
					require.Equal(t, serial <= tl.Completed() || known, known)
					if known {
						require.LessOrEqual(t, serial, completed())
					} else {
						// The driver will signal what is waited for, and only then is all before it done.
						require.NotEqual(t, failed, fates[target])
						require.LessOrEqual(t, target, serial)
						for i := target + 1; i <= serial; i++ {
							require.Equal(t, failed, fates[i])
						}
					}
					// A wait on the device is for a value that was reached or will be.
					signal := tl.Signalled(serial)
					require.LessOrEqual(t, signal, serial)
					require.True(t, signal <= value || fates[signal] == pending, "%d of %v", signal, fates)
					for i := signal + 1; i <= serial; i++ {
						require.NotEqual(t, pending, fates[i], "a wait for %d, as %d, passes over pending work", serial, signal)
					}
				}
				_, _, err := tl.Target(uint64(len(fates)))
				require.ErrorContains(t, err, "never end")
			},
		})
	})
}

// A lost device may report any value.
func TestTimelineValueNobodySubmitted(t *testing.T) {
	tl := vk.FakeTimeline()
	tl.Next()
	_, err := tl.Advance(1<<64 - 1)
	require.ErrorIs(t, err, vk.ErrDeviceLost)
	require.Equal(t, uint64(1), tl.Completed(), "nothing runs any more")
}

func TestSerials(t *testing.T) {
	l := newLab(t)
	require.Zero(t, l.timeline.Submitted())
	require.NoError(t, l.timeline.Wait(context.Background(), 0), "nothing was before the first")
	err := l.timeline.Wait(context.Background(), 1)
	require.ErrorContains(t, err, "serial 1")
	require.ErrorContains(t, err, "never end")
	for want := uint64(1); want <= 5; want++ {
		require.Equal(t, want, l.submit(&vk.Commands{}))
		require.Equal(t, want, l.timeline.Submitted())
	}
	l.wait(3)
	require.GreaterOrEqual(t, l.timeline.Completed(), uint64(3))
	l.wait(5)
	require.Equal(t, uint64(5), l.timeline.Completed())
	got, err := l.timeline.Refresh()
	require.NoError(t, err)
	require.Equal(t, uint64(5), got)
	require.Error(t, l.timeline.Wait(context.Background(), 6))

	// Poll learns the progress with the submission.
	l.run(&vk.Commands{})
	b := l.commandBuffer()
	serial, err := l.d.Submit(&vk.Submission{Record: b, Commands: &vk.Commands{}, Buffers: []vk.CommandBuffer{b}, Poll: true}, l.timeline)
	require.NoError(t, err)
	require.GreaterOrEqual(t, l.timeline.Completed(), serial-1)
	l.wait(serial)
}

func TestCancelledWaitLeavesWorkPending(t *testing.T) {
	d, driver := vktest.OpenProfile(t, shim.Plain)
	l := labOn(t, d)
	driver.Hang()
	serial := l.submit(&vk.Commands{})
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	err := l.timeline.Wait(cancelled, serial)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "pending")

	short, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	require.ErrorIs(t, l.timeline.Wait(short, serial), context.DeadlineExceeded)
	driver.Release()
	l.wait(serial)
	require.NoError(t, l.timeline.Wait(cancelled, serial), "what is complete needs no waiting")
}

// badStream fails while it is recorded, after a serial was given out.
func badStream() *vk.Commands {
	c := &vk.Commands{}
	c.Append(0xff)
	return c
}

func TestFailedSubmissionCompletes(t *testing.T) {
	d, driver := vktest.OpenProfile(t, shim.Plain)
	l := labOn(t, d)
	driver.Hang()
	slow := l.submit(&vk.Commands{})
	for n := range uint64(3) {
		b := l.commandBuffer()
		serial, err := l.d.Submit(&vk.Submission{Record: b, Commands: badStream(), Buffers: []vk.CommandBuffer{b}}, l.timeline)
		var e *vk.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, vk.BadStream, e.Result)
		require.ErrorContains(t, err, "recording")
		require.Equal(t, slow+1+n, serial)
	}
	require.Less(t, l.timeline.Completed(), slow)
	driver.Release()
	l.wait(slow + 3) // completes with the work before it
	require.Equal(t, slow+3, l.timeline.Completed())
	later := l.submit(&vk.Commands{})
	require.Equal(t, slow+4, later)
	l.wait(later)
	require.False(t, l.d.Lost())

	// The first of all.
	other, err := l.d.NewTimeline()
	require.NoError(t, err)
	defer other.Close()
	b := l.commandBuffer()
	serial, err := l.d.Submit(&vk.Submission{Record: b, Commands: badStream(), Buffers: []vk.CommandBuffer{b}}, other)
	require.Error(t, err)
	require.NoError(t, other.Wait(context.Background(), serial))

	// Work that waits on the device for a serial that failed is not held up for ever.
	b = l.commandBuffer()
	serial, err = l.d.Submit(&vk.Submission{Record: b, Commands: &vk.Commands{}, Buffers: []vk.CommandBuffer{b},
		Waits: []vk.Wait{{Timeline: other, Serial: 1}, {Timeline: l.timeline, Serial: slow + 3}}}, l.timeline)
	require.NoError(t, err)
	limited, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	require.NoError(t, l.timeline.Wait(limited, serial))
}

func TestSubmissionRefusals(t *testing.T) {
	l, other := newLab(t), newLab(t)
	b := l.commandBuffer()
	mapped := l.buffer(vk.BufferSpec{Size: 64, Role: vk.UploadMemory})
	closed, err := l.d.NewTimeline()
	require.NoError(t, err)
	closed.Close()
	many := make([]vk.Wait, vk.MaxWaits+1)
	for i := range many {
		many[i].Timeline = l.timeline
	}
	for name, c := range map[string]struct {
		s    vk.Submission
		to   *vk.Timeline
		want string
	}{
		"no timeline":               {vk.Submission{}, nil, "want a timeline"},
		"another device's":          {vk.Submission{}, other.timeline, "want a timeline of this device"},
		"a closed one":              {vk.Submission{}, closed, "closed already"},
		"nothing to record":         {vk.Submission{Record: b}, l.timeline, "want Commands"},
		"no command buffer":         {vk.Submission{Buffers: []vk.CommandBuffer{b, 0}}, l.timeline, "command buffer 1 of 2 is none"},
		"a range beyond":            {vk.Submission{Flushes: []vk.FlushRange{{Buffer: mapped, Offset: 60, Size: 8}}}, l.timeline, "8 bytes at 60 of a buffer of 64"},
		"a wait for nothing":        {vk.Submission{Waits: []vk.Wait{{}}}, l.timeline, "want one of this device"},
		"a wait for another device": {vk.Submission{Waits: []vk.Wait{{Timeline: other.timeline}}}, l.timeline, "of this device"},
		"a wait for a closed one":   {vk.Submission{Waits: []vk.Wait{{Timeline: closed}}}, l.timeline, "hold it"},
		"a wait for the future":     {vk.Submission{Waits: []vk.Wait{{Timeline: l.timeline, Serial: 1}}}, l.timeline, "serial 1 of a timeline that has submitted 0"},
		"too many waits":            {vk.Submission{Waits: many}, l.timeline, "timelines waited for: want 65, the device allows 64"},
	} {
		t.Run(name, func(t *testing.T) {
			before := l.d.Crossings()
			serial, err := l.d.Submit(&c.s, c.to)
			require.ErrorContains(t, err, c.want)
			require.Zero(t, serial)
			require.Equal(t, before, l.d.Crossings())
			require.Zero(t, l.timeline.Submitted())
		})
	}
	got, err := closed.Refresh()
	require.NoError(t, err)
	require.Zero(t, got)
	closed.Close()
}

// One stream's work waits on the device for another's.
func TestSubmissionWaits(t *testing.T) {
	d := vktest.Open(t)
	first, second := labOn(t, d), labOn(t, d)
	from, via := first.buffer(vk.BufferSpec{Size: 1 << 16, Role: vk.UploadMemory}), first.buffer(vk.BufferSpec{Size: 1 << 16})
	to := first.buffer(vk.BufferSpec{Size: 1 << 16, Role: vk.ReadbackMemory})
	for round := range byte(5) {
		for i := range from.Mapped() {
			from.Mapped()[i] = byte(i) + round
		}
		var c vk.Commands
		c.Barrier(transfers, transfers)
		c.Copy(from.Handle(), 0, via.Handle(), 0, from.Size())
		serial := first.submit(&c, whole(from))
		c.Reset()
		c.Copy(via.Handle(), 0, to.Handle(), 0, to.Size())
		c.Barrier(transferWrite, hostRead)
		b := second.commandBuffer()
		last, err := d.Submit(&vk.Submission{Record: b, Commands: &c, Buffers: []vk.CommandBuffer{b}, Waits: []vk.Wait{{Timeline: first.timeline, Serial: serial}}}, second.timeline)
		require.NoError(t, err)
		second.wait(last)
		require.NoError(t, d.Invalidate(whole(to)))
		require.Equal(t, from.Mapped(), to.Mapped())
	}
	first.wait(first.timeline.Submitted())
}

// What was waited for may be closed as soon as the host has seen the waiting submission
// complete; a driver that still looked at it would end the process.
func TestAwaitedTimelinesCloseAtOnce(t *testing.T) {
	d := vktest.Open(t)
	for range 300 {
		first, err := d.NewTimeline()
		require.NoError(t, err)
		second, err := d.NewTimeline()
		require.NoError(t, err)
		serial, err := d.Submit(&vk.Submission{}, first)
		require.NoError(t, err)
		serial, err = d.Submit(&vk.Submission{Waits: []vk.Wait{{Timeline: first, Serial: serial}}}, second)
		require.NoError(t, err)
		require.NoError(t, second.Wait(context.Background(), serial))
		first.Close()
		second.Close()
	}
}

// Goroutines submit to one timeline, each from a pool of its own, and some of the
// submissions fail: each serial is given once, all complete, waits return.
func TestConcurrentSubmitters(t *testing.T) {
	l := newLab(t)
	const goroutines, each = 4, 40
	serials := make([][]uint64, goroutines)
	var wg sync.WaitGroup
	for g := range goroutines {
		pool, err := l.d.NewCommandPool()
		require.NoError(t, err)
		t.Cleanup(pool.Close)
		own, err := l.d.NewTimeline()
		require.NoError(t, err)
		t.Cleanup(own.Close)
		wg.Go(func() {
			b, err := pool.New()
			if err != nil {
				t.Error(err)
				return
			}
			s := vk.Submission{Record: b, Buffers: []vk.CommandBuffer{b}, Poll: g%2 == 0}
			for n := range each {
				if n%9 == 0 {
					skipped := own.Skip()
					if err := own.Wait(context.Background(), skipped); err != nil {
						t.Error(err)
					}
				}
				bad := (n+g)%5 == 0
				if s.Commands = &(vk.Commands{}); bad {
					s.Commands = badStream()
				}
				s.Waits = append(s.Waits[:0], vk.Wait{Timeline: l.timeline, Serial: l.timeline.Submitted()}, vk.Wait{Timeline: own, Serial: own.Submitted()})
				on := l.timeline
				if n%7 == 3 {
					on = own
				}
				serial, err := l.d.Submit(&s, on)
				if (err != nil) != bad || serial == 0 {
					t.Errorf("serial %d: %v", serial, err)
					return
				}
				if on == l.timeline {
					serials[g] = append(serials[g], serial)
				}
				if err := on.Wait(context.Background(), serial); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	all := slices.Sorted(slices.Values(slices.Concat(serials...)))
	for i, serial := range all {
		require.Equal(t, uint64(i+1), serial)
	}
	for g := range serials {
		require.True(t, slices.IsSorted(serials[g]))
	}
	require.Equal(t, uint64(len(all)), l.timeline.Completed())
}

func TestLostDeviceFailsFast(t *testing.T) {
	d, err := vk.Open(vktest.Options(t))
	require.NoError(t, err)
	timeline, err := d.NewTimeline()
	require.NoError(t, err)
	serial, err := d.Submit(&vk.Submission{}, timeline)
	require.NoError(t, err)
	require.NoError(t, d.WaitIdle())
	d.SetLost()
	require.True(t, d.Lost())
	_, submit := d.Submit(&vk.Submission{}, timeline)
	_, buffer := d.NewBuffer(vk.BufferSpec{Size: 4})
	_, refresh := timeline.Refresh()
	for _, err := range []error{submit, buffer, refresh, d.WaitIdle(), timeline.Wait(context.Background(), serial)} {
		require.ErrorIs(t, err, vk.ErrDeviceLost)
		var e *vk.Error
		require.True(t, errors.As(err, &e))
		require.NotEmpty(t, e.Call)
	}
	timeline.Close()
	require.NoError(t, d.Close())
	again, err := vk.Open(vktest.Options(t))
	require.NoError(t, err, "a new device needs no new process")
	require.False(t, again.Lost())
	require.NoError(t, again.Close())
}

// A launch path that allocates would show up as garbage collections between launches.
func TestSubmitDoesNotAllocate(t *testing.T) {
	d, err := vk.Open(vk.Options{})
	vktest.Options(t) // skips without a driver
	require.NoError(t, err)
	l := labOn(t, d)
	t.Cleanup(func() { require.NoError(t, d.WaitIdle()) })
	target := l.buffer(vk.BufferSpec{Size: 64, Role: vk.UploadMemory})
	b := l.commandBuffer()
	var c vk.Commands
	s := vk.Submission{Record: b, Commands: &c, Buffers: []vk.CommandBuffer{b}, Flushes: []vk.FlushRange{whole(target)}, Waits: []vk.Wait{{Timeline: l.timeline}}}
	ctx := context.Background()
	launch := func() {
		c.Reset()
		for range 8 {
			c.Fill(target.Handle(), 0, 64, 1)
			c.Barrier(transfers, transfers)
		}
		s.Waits[0].Serial = l.timeline.Submitted()
		serial, err := d.Submit(&s, l.timeline)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.timeline.Wait(ctx, serial); err != nil {
			t.Fatal(err)
		}
	}
	require.Zero(t, testing.AllocsPerRun(50, launch))
}

// A timeline that is closed while a submission of another one waits for it lives until
// that is done, and as long as somebody holds it.
func TestClosedTimelinesOutliveWhoWaits(t *testing.T) {
	d, driver := vktest.OpenProfile(t, shim.Plain)
	l := labOn(t, d)
	semaphores := func() (n uint64) {
		for _, c := range driver.Objects() {
			if c.Kind == "semaphores" {
				n = c.Created - c.Destroyed
			}
		}
		return n
	}
	newTimeline := func() *vk.Timeline {
		tl, err := d.NewTimeline()
		require.NoError(t, err)
		return tl
	}
	submit := func(to *vk.Timeline, waits ...vk.Wait) uint64 {
		serial, err := d.Submit(&vk.Submission{Waits: waits}, to)
		require.NoError(t, err)
		return serial
	}
	a, held := newTimeline(), newTimeline()
	serial := submit(a)
	require.NoError(t, a.Wait(context.Background(), serial))
	require.True(t, held.Hold())
	alive := semaphores()
	driver.Hang()
	waiting := submit(l.timeline, vk.Wait{Timeline: a, Serial: serial})
	a.Close()
	a.Close()
	held.Close()
	require.Equal(t, alive, semaphores(), "one is waited for, the other held")
	_, err := d.Submit(&vk.Submission{}, a)
	require.ErrorIs(t, err, vk.ErrClosed)
	driver.Release()
	l.wait(waiting)
	waiting = submit(l.timeline, vk.Wait{Timeline: held, Serial: 0}) // a wait that was planned before
	l.wait(waiting)
	held.Release()
	newTimeline().Close()
	require.Equal(t, alive-2, semaphores())
	require.False(t, a.Hold())
	_, err = d.Submit(&vk.Submission{Waits: []vk.Wait{{Timeline: a, Serial: serial}}}, l.timeline)
	require.ErrorIs(t, err, vk.ErrClosed)
	done, err := a.Refresh()
	require.NoError(t, err)
	require.Equal(t, serial, done)

	// What nobody waited for on the host goes with the device at the latest.
	b := newTimeline()
	submit(l.timeline, vk.Wait{Timeline: b, Serial: submit(b)})
	b.Close()
	require.NoError(t, d.WaitIdle())
}
