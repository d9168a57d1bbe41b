package vk_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/internal/shim"
	"vkcompute/internal/testenv"
	"vkcompute/internal/vktest"
	"vkcompute/shaders"
	"vkcompute/vk"
)

func TestOpen(t *testing.T) {
	d := vktest.Open(t)
	info := d.Info()
	require.NotEmpty(t, d.Why())
	require.NotEmpty(t, info.Name)
	require.GreaterOrEqual(t, info.API.String(), "1.2")
	require.False(t, d.Lost())
	require.Empty(t, d.Messages())
	require.NotNil(t, d.Logger())
	l := d.Limits()
	for name, v := range map[string]uint64{
		"storage buffer range": l.MaxStorageBufferRange, "push constants": l.MaxPushConstantsSize, "allocations": l.MaxMemoryAllocationCount,
		"allocation": l.MaxMemoryAllocationSize, "storage buffers": l.MaxStorageBuffers, "dynamic ones": l.MaxDynamicStorageBuffers,
		"shared memory": l.MaxSharedMemory, "invocations": l.MaxWorkgroupInvocations,
		"alignment": l.MinStorageBufferAlignment, "atom": l.NonCoherentAtomSize,
		"subgroup": uint64(l.SubgroupSize),
	} {
		require.NotZero(t, v, name)
	}
	// What Vulkan guarantees of every device; an emulated one may have less on purpose.
	if testenv.Require(t).Profile != shim.Tiny {
		require.GreaterOrEqual(t, l.MaxStorageBufferRange, uint64(1<<27))
		require.GreaterOrEqual(t, l.MaxMemoryAllocationSize, uint64(1<<30))
	}
	require.GreaterOrEqual(t, l.MaxPushConstantsSize, uint64(128))
	require.GreaterOrEqual(t, l.MaxStorageBuffers, uint64(4))
	require.LessOrEqual(t, l.MinStorageBufferAlignment, uint64(256))
	for axis := range 3 {
		require.GreaterOrEqual(t, l.MaxWorkgroupCount[axis], uint32(65535))
		require.NotZero(t, l.MaxWorkgroupSize[axis])
	}
}

func TestCPUDeviceIsSaid(t *testing.T) {
	o := vktest.Options(t)
	list, err := vk.Devices()
	require.NoError(t, err)
	t.Setenv(vk.DeviceVariable, "")
	best, _, err := vk.Choose(list, "")
	require.NoError(t, err)
	if best.Type != vk.CPU {
		t.Skip("there is a GPU")
	}
	r := &records{}
	o.Logger = slog.New(r)
	d, err := vk.Open(o)
	require.NoError(t, err)
	require.Contains(t, d.Why(), "runs on the CPU")
	require.NoError(t, d.Close())
	logged := r.take("vk: no GPU can be used, computing on the CPU")
	require.Len(t, logged, 1)
	require.Equal(t, d.Info().Name, attribute(logged[0], "device").String())

	o.Device = "cpu" // asked for
	d, err = vk.Open(o)
	require.NoError(t, err)
	require.NoError(t, d.Close())
	require.Empty(t, r.take("vk: no GPU can be used, computing on the CPU"))
}

// closer is an object of a device.
type closer interface{ Close() }

// makers makes each kind of object, and names it as Alive does.
func makers(d *vk.Device) map[string]func() (closer, error) {
	m := map[string]func() (closer, error){
		"1 buffers, 1 memory allocations":                           func() (closer, error) { return d.NewBuffer(vk.BufferSpec{Size: 4}) },
		"1 pipelines, 1 pipeline layouts, 1 descriptor set layouts": func() (closer, error) { return d.NewPipeline(kernelSpec(shaders.Nop)) },
		"1 descriptor pools":                                        func() (closer, error) { return d.NewDescriptorPool(vk.PoolSize{Sets: 1, Storage: 1}) },
		"1 command pools":                                           func() (closer, error) { return d.NewCommandPool() },
		"1 timelines":                                               func() (closer, error) { return d.NewTimeline() },
	}
	if d.Limits().TimestampBits != 0 {
		m["1 query pools"] = func() (closer, error) { return d.NewQueryPool(1) }
	}
	return m
}

func TestCloseRefusesWhileObjectsLive(t *testing.T) {
	d := vktest.Open(t)
	for names, make := range makers(d) {
		o, err := make()
		require.NoError(t, err)
		require.Equal(t, names, d.Alive())
		err = d.Close()
		require.ErrorIs(t, err, vk.ErrObjectsAlive)
		require.ErrorContains(t, err, names)
		require.ErrorContains(t, err, d.Info().Name)
		require.NoError(t, d.WaitIdle(), "nothing has changed")
		o.Close()
		o.Close()
		require.Empty(t, d.Alive())
	}
	for kind, n := range d.Created() {
		require.LessOrEqual(t, n, uint64(1), kind)
	}
}

func TestUseAfterClose(t *testing.T) {
	d, err := vk.Open(vktest.Options(t))
	require.NoError(t, err)
	pool, err := d.NewCommandPool()
	require.NoError(t, err)
	b, err := pool.New()
	require.NoError(t, err)
	sets, err := d.NewDescriptorPool(vk.PoolSize{Sets: 1, Storage: 1})
	require.NoError(t, err)
	timeline, err := d.NewTimeline()
	require.NoError(t, err)
	serial, err := d.Submit(&vk.Submission{}, timeline)
	require.NoError(t, err)
	require.NoError(t, timeline.Wait(context.Background(), serial))
	buffer, err := d.NewBuffer(vk.BufferSpec{Size: 4})
	require.NoError(t, err)

	// Of closed objects of an open device.
	for _, c := range []closer{pool, sets, timeline, buffer} {
		c.Close()
	}
	_, err = pool.New()
	require.ErrorIs(t, err, vk.ErrClosed)
	require.ErrorIs(t, pool.Record(b, vk.OneTime, &vk.Commands{}), vk.ErrClosed)
	_, err = sets.Make(&vk.SetProgram{}, nil)
	require.ErrorIs(t, err, vk.ErrClosed)
	sets.Free([]uint64{1, 2})
	require.NoError(t, timeline.Wait(context.Background(), serial), "it is done")

	// Of a closed device.
	make := makers(d)
	require.NoError(t, d.Close())
	require.NoError(t, d.Close(), "closing twice")
	for names, make := range make {
		_, err := make()
		require.ErrorIs(t, err, vk.ErrClosed, names)
	}
	_, submit := d.Submit(&vk.Submission{}, timeline)
	_, allocate := pool.New()
	_, set := sets.Make(&vk.SetProgram{}, nil)
	for _, err := range []error{submit, allocate, set, d.WaitIdle(), d.Invalidate(), pool.Record(b, vk.OneTime, &vk.Commands{}), d.Lend(func(vk.Raw) error { return nil })} {
		require.ErrorIs(t, err, vk.ErrClosed)
	}
	require.Empty(t, d.Messages())
	require.Empty(t, d.HeapUsages())
	require.Empty(t, d.Alive())
	require.NotEmpty(t, d.Info().Name)
	d.Crossings()
	d.Created()
	for _, c := range []closer{pool, sets, timeline, buffer} {
		c.Close()
	}
}

// Devices of one process know nothing of each other.
func TestTwoDevices(t *testing.T) {
	one, other := newLab(t), newLab(t)
	data := [2][]byte{}
	for i, l := range []*lab{one, other} {
		from, to := l.buffer(vk.BufferSpec{Size: 1024, Role: vk.UploadMemory}), l.buffer(vk.BufferSpec{Size: 1024, Role: vk.ReadbackMemory})
		for n := range from.Mapped() {
			from.Mapped()[n] = byte(n * (i + 3))
		}
		var c vk.Commands
		c.Copy(from.Handle(), 0, to.Handle(), 0, 1024)
		c.Barrier(transferWrite, hostRead)
		l.run(&c, whole(from))
		require.NoError(t, l.d.Invalidate(whole(to)))
		require.Equal(t, from.Mapped(), to.Mapped())
		data[i] = to.Mapped()
	}
	require.NotEqual(t, data[0], data[1])
	require.Equal(t, one.timeline.Submitted(), other.timeline.Submitted())
	require.Equal(t, one.d.HeapUsages(), other.d.HeapUsages())

	third, err := vk.Open(vktest.Options(t))
	require.NoError(t, err)
	require.NoError(t, third.Close())
	require.NoError(t, one.d.WaitIdle(), "closing one leaves the others")
}

func TestOpenFromSeveralGoroutines(t *testing.T) {
	o := vktest.Options(t)
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		wg.Go(func() {
			d, err := vk.Open(o)
			if err != nil {
				errs[i] = err
				return
			}
			_, err = vk.Devices()
			errs[i] = errors.Join(err, d.Close())
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
}

// Goroutines make, use and close objects of one device.
func TestTwoGoroutinesOnOneDevice(t *testing.T) {
	d := vktest.Open(t)
	var wg sync.WaitGroup
	for g := range 3 {
		wg.Go(func() {
			for round := range 6 {
				if err := copyOnce(d, byte(10*g+round)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	require.Empty(t, d.Alive())
}

func copyOnce(d *vk.Device, seed byte) (err error) {
	fail := func(e error) bool { err = errors.Join(err, e); return e != nil }
	from, e := d.NewBuffer(vk.BufferSpec{Size: 4096, Role: vk.UploadMemory})
	if fail(e) {
		return
	}
	defer from.Close()
	to, e := d.NewBuffer(vk.BufferSpec{Size: 4096, Role: vk.ReadbackMemory})
	if fail(e) {
		return
	}
	defer to.Close()
	p, e := d.NewPipeline(kernelSpec(shaders.Nop))
	if fail(e) {
		return
	}
	defer p.Close()
	pool, e := d.NewCommandPool()
	if fail(e) {
		return
	}
	defer pool.Close()
	timeline, e := d.NewTimeline()
	if fail(e) {
		return
	}
	defer timeline.Close()
	b, e := pool.New()
	if fail(e) {
		return
	}
	for i := range from.Mapped() {
		from.Mapped()[i] = byte(i) ^ seed
	}
	var c vk.Commands
	c.Copy(from.Handle(), 0, to.Handle(), 0, 4096)
	c.Barrier(transferWrite, hostRead)
	serial, e := d.Submit(&vk.Submission{Record: b, Commands: &c, Buffers: []vk.CommandBuffer{b}, Flushes: []vk.FlushRange{whole(from)}}, timeline)
	if fail(e) || fail(timeline.Wait(context.Background(), serial)) || fail(d.Invalidate(whole(to))) {
		return
	}
	for i, v := range to.Mapped() {
		if v != byte(i)^seed {
			return errors.New("a copy went wrong")
		}
	}
	return nil
}
