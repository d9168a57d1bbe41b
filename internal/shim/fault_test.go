package shim_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vkcompute/internal/shim"
	"vkcompute/internal/vktest"
	"vkcompute/vk"
)

func TestTheChosenCallFails(t *testing.T) {
	driver := newDriver(t, shim.Plain)
	require.NoError(t, driver.Fail("vkCreateInstance", 2, shim.ErrorOutOfHostMemory))
	d, err := driver.Open(vk.Options{})
	require.NoError(t, err, "the first is not to fail")
	_, err = driver.Devices()
	require.ErrorIs(t, err, vk.ErrOutOfHostMemory)
	_, err = driver.Devices()
	require.NoError(t, err, "it fails once")

	require.NoError(t, driver.Fail("vkAllocateMemory", 3, shim.ErrorOutOfDeviceMemory))
	for call := 1; call <= 4; call++ {
		b, err := d.NewBuffer(vk.BufferSpec{Size: 64})
		if call == 3 {
			require.ErrorIs(t, err, vk.ErrOutOfDeviceMemory)
			continue
		}
		require.NoError(t, err)
		b.Close()
	}
	require.Zero(t, driver.Planned())
	require.NoError(t, driver.Fail(shim.AnyFunction, 2, shim.ErrorUnknown))
	require.NoError(t, driver.Fail("vkQueueSubmit", 1, shim.ErrorDeviceLost))
	require.Equal(t, 2, driver.Planned())
	_, err = d.NewBuffer(vk.BufferSpec{Size: 64})
	var e *vk.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, shim.ErrorUnknown, e.Result)
	require.Equal(t, "vkAllocateMemory", e.Call)
	driver.Unplan()
	require.Zero(t, driver.Planned())

	calls := map[string]int{}
	for _, c := range driver.Calls() {
		calls[c.Function] = c.Count
	}
	require.Equal(t, 3, calls["vkCreateInstance"])
	require.Equal(t, 5, calls["vkAllocateMemory"])
	require.NotContains(t, calls, "vkQueueSubmit")

	require.ErrorIs(t, driver.Fail("vkCmdDispatch", 1, shim.ErrorUnknown), shim.ErrUnknown)
	require.Error(t, driver.Fail("vkQueueSubmit", 0, shim.ErrorUnknown))
	for range 16 {
		require.NoError(t, driver.Fail("vkQueueSubmit", 1, shim.ErrorUnknown))
	}
	require.Error(t, driver.Fail("vkQueueSubmit", 1, shim.ErrorUnknown))
	require.NoError(t, d.Close())
	require.NoError(t, driver.Close())
}

// fills is a device with a command buffer that fills a buffer.
type fills struct {
	d        *vk.Device
	pool     *vk.CommandPool
	timeline *vk.Timeline
	buffer   *vk.Buffer
}

func newFills(t *testing.T, d *vk.Device) *fills {
	f := &fills{d: d}
	var err error
	f.pool, err = d.NewCommandPool()
	require.NoError(t, err)
	f.timeline, err = d.NewTimeline()
	require.NoError(t, err)
	f.buffer, err = d.NewBuffer(vk.BufferSpec{Size: 64, Role: vk.ReadbackMemory})
	require.NoError(t, err)
	return f
}

func (f *fills) submit(v uint32) (uint64, error) {
	var c vk.Commands
	all := vk.Scope{Stages: vk.StageTransfer | vk.StageHost, Access: vk.AccessTransferWrite | vk.AccessHostRead}
	c.Barrier(all, all)
	c.Fill(f.buffer.Handle(), 0, 64, v)
	c.Barrier(all, all)
	b, err := f.pool.New()
	if err != nil {
		return 0, err
	}
	return f.d.Submit(&vk.Submission{Record: b, Commands: &c, Buffers: []vk.CommandBuffer{b}}, f.timeline)
}

func (f *fills) close() {
	f.buffer.Close()
	f.pool.Close()
	f.timeline.Close()
}

func TestALostDeviceStaysLost(t *testing.T) {
	d, driver := vktest.OpenProfile(t, shim.Plain)
	other := vktest.OpenOn(t, driver)
	f := newFills(t, d)
	defer f.close()
	serial, err := f.submit(1)
	require.NoError(t, err)
	require.NoError(t, driver.Fail("vkWaitSemaphores", 1, shim.ErrorDeviceLost))
	require.ErrorIs(t, f.timeline.Wait(context.Background(), serial), vk.ErrDeviceLost)
	require.True(t, d.Lost())
	_, err = f.submit(2)
	require.ErrorIs(t, err, vk.ErrDeviceLost)
	_, err = d.NewBuffer(vk.BufferSpec{Size: 4})
	require.ErrorIs(t, err, vk.ErrDeviceLost)

	g := newFills(t, other)
	defer g.close()
	serial, err = g.submit(3)
	require.NoError(t, err, "another device of the driver goes on")
	require.NoError(t, g.timeline.Wait(context.Background(), serial))
}

func TestAHungQueueRunsNothingUntilReleased(t *testing.T) {
	d, driver := vktest.OpenProfile(t, shim.Plain)
	f := newFills(t, d)
	defer f.close()
	clear(f.buffer.Mapped())
	serial, err := f.submit(1)
	require.NoError(t, err)
	require.NoError(t, f.timeline.Wait(context.Background(), serial))
	driver.Hang()
	serial, err = f.submit(2)
	require.NoError(t, err)
	_, err = f.submit(3)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, f.timeline.Wait(ctx, serial), context.DeadlineExceeded)
	require.EqualValues(t, 1, f.buffer.Mapped()[0])
	driver.Release()
	require.NoError(t, f.timeline.Wait(context.Background(), serial+1))
	require.EqualValues(t, 3, f.buffer.Mapped()[0])
	serial, err = f.submit(4)
	require.NoError(t, err)
	require.NoError(t, f.timeline.Wait(context.Background(), serial))
}

// What is destroyed while a hung queue still has it shows when the queue goes on.
func TestUseAfterATimeoutIsSeen(t *testing.T) {
	driver := newDriver(t, shim.Plain)
	d, err := driver.Open(vk.Options{})
	require.NoError(t, err)
	f := newFills(t, d)
	driver.Hang()
	driver.Watchdog(20 * time.Millisecond)
	_, err = f.submit(1)
	require.NoError(t, err)
	require.ErrorIs(t, d.WaitIdle(), vk.ErrDeviceLost, "the watchdog ends it")
	require.True(t, d.Lost())
	driver.Release()
	f.close()
	require.NoError(t, d.Close())
	require.NoError(t, driver.Close())

	driver = newDriver(t, shim.Plain)
	d, err = driver.Open(vk.Options{})
	require.NoError(t, err)
	f = newFills(t, d)
	driver.Hang()
	_, err = f.submit(1)
	require.NoError(t, err)
	f.close()
	driver.Watchdog(0)
	require.NoError(t, d.Close(), "the wait finds the device lost, which closes all the same")
	require.NoError(t, driver.Close())
}
