package shim_test

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/internal/shim"
	"vkcompute/internal/shim/internal/probe"
	"vkcompute/internal/vktest"
	"vkcompute/shaders"
	"vkcompute/vk"
)

// ask calls the device directly.
func ask(t *testing.T, d *vk.Device, f func(p *probe.Probe)) {
	t.Helper()
	require.NoError(t, d.Lend(func(r vk.Raw) error {
		f(probe.New(r))
		return nil
	}))
}

// violated takes the violations and wants exactly these, by a part of each.
func violated(t *testing.T, driver *shim.Driver, parts ...string) {
	t.Helper()
	found := driver.Violations()
	require.Len(t, found, len(parts), "%q", found)
	for i, part := range parts {
		require.Contains(t, found[i], part)
	}
}

// typeWith is the first memory type with exactly these flags.
func typeWith(t *testing.T, d *vk.Device, flags shim.MemoryFlags) int {
	t.Helper()
	i := slices.IndexFunc(d.Info().MemoryTypes, func(m vk.MemoryType) bool { return uint32(m.Flags) == uint32(flags) })
	require.GreaterOrEqual(t, i, 0)
	return i
}

func TestDeviceMemoryCannotBeMapped(t *testing.T) {
	for _, name := range []string{shim.DiscreteGPU, shim.Rebar256, shim.Tiny, shim.Budget} {
		d, driver := vktest.OpenProfile(t, name)
		ask(t, d, func(p *probe.Probe) {
			m, r := p.Allocate(4096, typeWith(t, d, shim.DeviceLocal))
			require.Zero(t, r)
			_, r = p.Map(m, 0, 4096)
			require.Equal(t, shim.ErrorMemoryMapFailed, r)
			violated(t, driver, "vkMapMemory: memory that the host cannot see")
			p.Destroy("vkFreeMemory", m)

			m, r = p.Allocate(4096, typeWith(t, d, shim.HostVisible|shim.HostCoherent))
			require.Zero(t, r)
			b, r := p.Map(m, 1024, 1024)
			require.Zero(t, r)
			clear(b)
			_, r = p.Map(m, 0, 4096)
			require.Equal(t, shim.ErrorMemoryMapFailed, r)
			p.Unmap(m)
			_, r = p.Map(m, 4000, 100)
			require.Equal(t, shim.ErrorMemoryMapFailed, r)
			p.Unmap(m)
			violated(t, driver, "mapped already", "more than was allocated", "vkUnmapMemory: memory that is not mapped")
			p.Destroy("vkFreeMemory", m)
		})
	}
}

func TestHeapsHoldNoMoreThanTheySay(t *testing.T) {
	d, driver := vktest.OpenProfile(t, shim.Tiny)
	other := vktest.OpenOn(t, driver)
	host := typeWith(t, d, shim.HostVisible|shim.HostCoherent)
	const half = 16 << 20 // of the heap of 32 MiB
	ask(t, d, func(p *probe.Probe) {
		_, r := p.Allocate(48<<20, host)
		require.Equal(t, shim.ErrorOutOfDeviceMemory, r)
		violated(t, driver, "the device allows 33554432") // no driver allows more than it says
		first, r := p.Allocate(half, host)
		require.Zero(t, r)
		_, r = p.Allocate(half+4096, host)
		require.Equal(t, shim.ErrorOutOfDeviceMemory, r)
		ask(t, other, func(p *probe.Probe) {
			_, r = p.Allocate(half+4096, host)
			require.Equal(t, shim.ErrorOutOfDeviceMemory, r, "one memory for all devices")
		})
		second, r := p.Allocate(half, host)
		require.Zero(t, r)
		p.Destroy("vkFreeMemory", first)
		p.Destroy("vkFreeMemory", second)
		first, r = p.Allocate(half+4096, host)
		require.Zero(t, r)
		p.Destroy("vkFreeMemory", first)
		_, r = p.Allocate(4096, 17)
		require.Equal(t, shim.ErrorOutOfDeviceMemory, r)
		violated(t, driver, "memory type 17 of 3")
	})
}

func TestAllocationsAreCounted(t *testing.T) {
	profile, err := shim.ProfileNamed(shim.Tiny)
	require.NoError(t, err)
	profile.MaxAllocations = 5
	require.NoError(t, shim.Install())
	driver, err := shim.NewProfile(profile)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, driver.Close()) })
	d := vktest.OpenOn(t, driver)
	ask(t, d, func(p *probe.Probe) {
		var held []uint64
		for range 5 {
			m, r := p.Allocate(4096, 0)
			require.Zero(t, r)
			held = append(held, m)
		}
		_, r := p.Allocate(4096, 0)
		require.Equal(t, shim.ErrorTooManyObjects, r)
		violated(t, driver, "allocation 6, the device allows 5")
		for _, m := range held {
			p.Destroy("vkFreeMemory", m)
		}
	})
	// The library asks for no more than there may be.
	var held []*vk.Buffer
	for range 5 {
		b, err := d.NewBuffer(vk.BufferSpec{Size: 256})
		require.NoError(t, err)
		held = append(held, b)
	}
	_, err = d.NewBuffer(vk.BufferSpec{Size: 256})
	var limit *vk.LimitError
	require.ErrorAs(t, err, &limit)
	require.Equal(t, "maxMemoryAllocationCount", limit.Name)
	for _, b := range held {
		b.Close()
	}
	violated(t, driver)
}

// Bytes that were not flushed do not reach the device, and what the host reads without
// an invalidate is not what the device wrote.
func TestMemoryThatIsNotCoherentIsACopy(t *testing.T) {
	d, driver := vktest.OpenProfile(t, shim.NonCoherent)
	buffer := func(role vk.MemoryRole) *vk.Buffer {
		b, err := d.NewBuffer(vk.BufferSpec{Size: 1024, Role: role})
		require.NoError(t, err)
		t.Cleanup(b.Close)
		require.False(t, b.Coherent())
		return b
	}
	up, down := buffer(vk.UploadMemory), buffer(vk.ReadbackMemory)
	timeline, err := d.NewTimeline()
	require.NoError(t, err)
	t.Cleanup(timeline.Close)
	pool, err := d.NewCommandPool()
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	run := func(flushes ...vk.FlushRange) {
		var c vk.Commands
		all := vk.Scope{Stages: vk.StageTransfer | vk.StageHost, Access: vk.AccessTransferRead | vk.AccessTransferWrite | vk.AccessHostRead | vk.AccessHostWrite}
		c.Barrier(all, all)
		c.Copy(up.Handle(), 0, down.Handle(), 0, 1024)
		c.Barrier(all, all)
		b, err := pool.New()
		require.NoError(t, err)
		serial, err := d.Submit(&vk.Submission{Record: b, Commands: &c, Buffers: []vk.CommandBuffer{b}, Flushes: flushes}, timeline)
		require.NoError(t, err)
		require.NoError(t, timeline.Wait(context.Background(), serial))
	}
	whole := func(b *vk.Buffer) vk.FlushRange { return vk.FlushRange{Buffer: b, Size: 1024} }
	fill := func(v byte) {
		for i := range up.Mapped() {
			up.Mapped()[i] = v
		}
	}
	repeat := func(v byte) []byte { return bytes.Repeat([]byte{v}, 1024) }

	fill(1)
	run(whole(up))
	require.Equal(t, repeat(0xcb), down.Mapped(), "not invalidated")
	require.NoError(t, d.Invalidate(whole(down)))
	require.Equal(t, repeat(1), down.Mapped())

	fill(2) // not flushed
	run()
	require.NoError(t, d.Invalidate(whole(down)))
	require.Equal(t, repeat(1), down.Mapped(), "not flushed")

	run(vk.FlushRange{Buffer: up, Offset: 300, Size: 1}) // the atom from 256 on
	require.NoError(t, d.Invalidate(whole(down)))
	require.Equal(t, slices.Concat(repeat(1)[:256], repeat(2)[:256], repeat(1)[:512]), down.Mapped(), "whole atoms")

	fill(3)
	require.NoError(t, d.Invalidate(whole(up)))
	require.NotEqual(t, repeat(3), up.Mapped(), "an invalidate drops what was not flushed")
	violated(t, driver)
}

func TestAtomsAreEnforced(t *testing.T) {
	d, driver := vktest.OpenProfile(t, shim.NonCoherent)
	require.EqualValues(t, 256, d.Limits().NonCoherentAtomSize)
	ask(t, d, func(p *probe.Probe) {
		m, r := p.Allocate(1000, 0) // ends within an atom
		require.Zero(t, r)
		require.Negative(t, p.Flush(m, 0, 256))
		violated(t, driver, "not mapped")
		_, r = p.Map(m, 0, 1000)
		require.Zero(t, r)
		for _, f := range []func(m, offset, size uint64) int32{p.Flush, p.Invalidate} {
			require.Zero(t, f(m, 256, 512))
			require.Zero(t, f(m, 512, 488))
			require.Zero(t, f(m, 0, ^uint64(0)))
			violated(t, driver)
		}
		// The validation layer beneath would add its word where the call reached it.
		require.Negative(t, p.Flush(m, 100, 256))
		require.Negative(t, p.Flush(m, 0, 100))
		require.Negative(t, p.Flush(m, 512, 1024))
		violated(t, driver, "whole atoms of 256", "whole atoms of 256", "outside the 1000 bytes mapped")
		p.Destroy("vkFreeMemory", m)
	})
}

func TestLimitsOfShadersAreEnforced(t *testing.T) {
	d, driver := vktest.OpenProfile(t, shim.Tiny)
	ask(t, d, func(p *probe.Probe) {
		var made []func()
		layout := func(storage, dynamic, push int) uint64 {
			set, r := p.SetLayout(storage, dynamic)
			require.Zero(t, r)
			l, r := p.PipelineLayout(set, push)
			require.Zero(t, r)
			made = append(made, func() { p.Destroy("vkDestroyPipelineLayout", l); p.Destroy("vkDestroyDescriptorSetLayout", set) })
			return l
		}
		layout(7, 1, 128)
		violated(t, driver)
		layout(8, 1, 0)
		violated(t, driver, "9 storage buffers, the device allows 8 a stage", "9 storage buffers, the device allows 8 a stage")
		layout(0, 2, 0)
		violated(t, driver, "2 dynamic storage buffers, the device allows 1")

		three := layout(3, 1, 0)
		compile := func(k *shaders.Kernel, limits shaders.MaxWorkgroup) {
			constants, _ := k.Spec(limits)
			var flat []uint32
			for _, c := range constants {
				flat = append(flat, c.ID, c.Value)
			}
			module, pipeline, r := p.Pipeline(k.Module.Words, k.Entry, three, flat...)
			require.Zero(t, r)
			p.Destroy("vkDestroyPipeline", pipeline)
			p.Destroy("vkDestroyShaderModule", module)
		}
		within := shaders.MaxWorkgroup{Invocations: 128, Size: [3]uint32{128, 128, 64}, SharedBytes: 16 << 10}
		compile(shaders.Add, within)
		compile(shaders.MatMul, within)
		violated(t, driver)
		beyond := shaders.MaxWorkgroup{Invocations: 256, Size: [3]uint32{256, 256, 64}, SharedBytes: 32 << 10}
		compile(shaders.Add, beyond)
		violated(t, driver, "workgroup of 256 on axis 0, the device allows 128", "256 invocations, the device allows 128")
		compile(shaders.MatMul, beyond)
		violated(t, driver, "256 invocations, the device allows 128")
		for _, f := range made {
			f()
		}
	})
	violated(t, driver)
}

func TestSharedMemoryIsMeasured(t *testing.T) {
	profile := shim.Profile{Name: "small", MaxSharedMemory: 100}
	require.NoError(t, shim.Install())
	driver, err := shim.NewProfile(profile)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, driver.Close()) })
	d := vktest.OpenOn(t, driver)
	constants, workgroup := shaders.MatMul.Spec(shaders.MaxWorkgroup{Invocations: 128, Size: [3]uint32{128, 128, 64}, SharedBytes: 16 << 10})
	spec := vk.PipelineSpec{Code: shaders.MatMul.Module.Words, Entry: shaders.MatMul.Entry, Workgroup: workgroup}
	for _, c := range constants {
		spec.Constants = append(spec.Constants, vk.SpecConstant{ID: c.ID, Value: c.Value})
	}
	for _, b := range shaders.MatMul.Module.Bindings {
		spec.Bindings = append(spec.Bindings, vk.Binding{Number: b.Binding, Kind: vk.StorageBuffer})
	}
	p, err := d.NewPipeline(spec) // which is told of no shared memory
	require.NoError(t, err)
	p.Close()
	violated(t, driver, "bytes of shared memory, the device allows 100")
}

// What the library leaves to its callers, of descriptors and commands.
func TestLimitsOfCommandsAreEnforced(t *testing.T) {
	d, driver := vktest.OpenProfile(t, shim.Tiny)
	constants, workgroup := shaders.Add.Spec(shaders.MaxWorkgroup{Invocations: 128, Size: [3]uint32{128, 128, 64}})
	spec := vk.PipelineSpec{Code: shaders.Add.Module.Words, Entry: shaders.Add.Entry, Workgroup: workgroup, PushSize: 128, Bindings: []vk.Binding{
		{Number: 0, Kind: vk.StorageBufferDynamic}, {Number: 1, Kind: vk.StorageBuffer}, {Number: 2, Kind: vk.StorageBuffer}, {Number: 3, Kind: vk.StorageBuffer},
	}}
	for _, c := range constants {
		spec.Constants = append(spec.Constants, vk.SpecConstant{ID: c.ID, Value: c.Value})
	}
	pipeline, err := d.NewPipeline(spec)
	require.NoError(t, err)
	t.Cleanup(pipeline.Close)
	b, err := d.NewBuffer(vk.BufferSpec{Size: 128 << 10})
	require.NoError(t, err)
	t.Cleanup(b.Close)
	pool, err := d.NewDescriptorPool(vk.PoolSize{Sets: 4, Storage: 6, Dynamic: 4})
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	var program vk.SetProgram
	describe := func(offset, size uint64) {
		program.Set(pipeline)
		program.Write(0, vk.StorageBufferDynamic, b.Handle(), 0, 256)
		program.Write(1, vk.StorageBuffer, b.Handle(), offset, size)
		program.Write(2, vk.StorageBuffer, b.Handle(), 0, 64<<10)
		program.Write(3, vk.StorageBuffer, b.Handle(), 0, 4)
	}
	describe(256, 64<<10)
	sets, err := pool.Make(&program, nil)
	require.NoError(t, err)
	violated(t, driver)
	program.Reset()
	describe(64, 128<<10-64) // the driver's alignment may be 64 or less, and its range has no end
	more, err := pool.Make(&program, nil)
	require.NoError(t, err)
	violated(t, driver, "131008 bytes in binding 1, the device allows 65536", "binding 1 begins at 64, the device wants multiples of 256")

	// Six storage buffers are used up; the driver would go on.
	program.Reset()
	describe(0, 4)
	_, err = pool.Make(&program, nil)
	var e *vk.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, shim.ErrorOutOfPoolMemory, e.Result)
	violated(t, driver, "the pool has left 2, 0 and 2")
	pool.Free(more)
	more, err = pool.Make(&program, nil)
	require.NoError(t, err, "there is room again")
	pool.Free(more)
	_ = d.Messages() // the layer has something to say about the bad writes
	violated(t, driver)

	commands, err := d.NewCommandPool()
	require.NoError(t, err)
	t.Cleanup(commands.Close)
	cb, err := commands.New()
	require.NoError(t, err)
	var c vk.Commands
	c.BindPipeline(pipeline)
	c.BindSet(pipeline, sets[0], 256)
	c.Dispatch(65535, 1, 1)
	require.NoError(t, commands.Record(cb, vk.OneTime, &c))
	violated(t, driver)
	c.Reset()
	c.BindPipeline(pipeline)
	c.BindSet(pipeline, sets[0], 64)
	c.Dispatch(65536, 1, 70000)
	require.NoError(t, commands.Record(cb, vk.OneTime, &c))
	violated(t, driver, "dynamic offset 64, the device wants multiples of 256", "65536, 1, 70000 workgroups")
	_ = d.Messages()
}

func TestBareHasNothingOptional(t *testing.T) {
	d, driver := vktest.OpenProfile(t, shim.Bare)
	pool, err := d.NewCommandPool()
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	cb, err := pool.New()
	require.NoError(t, err)
	_, err = d.NewQueryPool(1)
	require.ErrorIs(t, err, vk.ErrUnsupported)
	ask(t, d, func(p *probe.Probe) {
		require.Zero(t, p.CreateDevice(probe.NoFeature, ""))
		require.EqualValues(t, -8, p.CreateDevice(probe.BufferDeviceAddress, ""))
		require.EqualValues(t, -7, p.CreateDevice(probe.NoFeature, "VK_EXT_memory_budget"))
		violated(t, driver)
		queries, r := p.Timestamp(uint64(cb))
		require.Zero(t, r)
		violated(t, driver, "the queue has no timestamps")
		p.Destroy("vkDestroyQueryPool", queries)
	})
}

func TestBudgetsShrinkAndAreKept(t *testing.T) {
	d, driver := vktest.OpenProfile(t, shim.Budget)
	first := d.HeapUsages()
	require.Less(t, first[0].Budget, first[0].Size)
	require.Equal(t, first[1].Size, first[1].Budget, "a budget beyond its heap is cut to it")
	for range 10 {
		next := d.HeapUsages()
		require.Less(t, next[0].Budget, first[0].Budget)
		first = next
	}
	driver.SetBudget(0, 1<<20)
	b, err := d.NewBuffer(vk.BufferSpec{Size: 1 << 19})
	require.NoError(t, err)
	_, err = d.NewBuffer(vk.BufferSpec{Size: 1<<19 + 4096})
	var memory *vk.MemoryError
	require.ErrorAs(t, err, &memory)
	require.EqualValues(t, 1<<20, memory.Budget)
	driver.SetBudget(0, 1<<18) // below what is used
	_, err = d.NewBuffer(vk.BufferSpec{Size: 4})
	require.ErrorAs(t, err, &memory)
	b.Close()
	b, err = d.NewBuffer(vk.BufferSpec{Size: 4})
	require.NoError(t, err)
	b.Close()
}
