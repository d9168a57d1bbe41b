package vk_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/internal/vktest"
	"vkcompute/shaders"
	"vkcompute/vk"
)

// kernelSpec is the pipeline of a built-in kernel, small enough for every device.
func kernelSpec(k *shaders.Kernel) vk.PipelineSpec {
	constants, workgroup := k.Spec(shaders.MaxWorkgroup{Invocations: 128, Size: [3]uint32{128, 128, 64}, SharedBytes: 16384})
	spec := vk.PipelineSpec{Code: k.Module.Words, Entry: k.Entry, Workgroup: workgroup, Name: k.Name}
	for _, b := range k.Module.Bindings {
		kind := vk.StorageBuffer
		if b.Binding == shaders.InfoBinding {
			kind = vk.StorageBufferDynamic
		}
		spec.Bindings = append(spec.Bindings, vk.Binding{Number: b.Binding, Kind: kind})
	}
	for _, c := range constants {
		spec.Constants = append(spec.Constants, vk.SpecConstant{ID: c.ID, Value: c.Value})
	}
	return spec
}

// lab is a device with what it takes to run transfers.
type lab struct {
	t        testing.TB
	d        *vk.Device
	pool     *vk.CommandPool
	timeline *vk.Timeline
}

func newLab(t testing.TB) *lab { return labOn(t, vktest.Open(t)) }

func labOn(t testing.TB, d *vk.Device) *lab {
	l := &lab{t: t, d: d}
	var err error
	l.pool, err = d.NewCommandPool()
	require.NoError(t, err)
	t.Cleanup(l.pool.Close)
	l.timeline, err = d.NewTimeline()
	require.NoError(t, err)
	t.Cleanup(l.timeline.Close)
	return l
}

func (l *lab) buffer(s vk.BufferSpec) *vk.Buffer {
	l.t.Helper()
	b, err := l.d.NewBuffer(s)
	require.NoError(l.t, err)
	l.t.Cleanup(b.Close)
	return b
}

func (l *lab) commandBuffer() vk.CommandBuffer {
	l.t.Helper()
	b, err := l.pool.New()
	require.NoError(l.t, err)
	return b
}

// submit records and submits, and returns the serial.
func (l *lab) submit(c *vk.Commands, flushes ...vk.FlushRange) uint64 {
	l.t.Helper()
	b := l.commandBuffer()
	serial, err := l.d.Submit(&vk.Submission{Record: b, Commands: c, Buffers: []vk.CommandBuffer{b}, Flushes: flushes}, l.timeline)
	require.NoError(l.t, err)
	return serial
}

func (l *lab) wait(serial uint64) {
	l.t.Helper()
	require.NoError(l.t, l.timeline.Wait(context.Background(), serial))
}

// run submits and waits.
func (l *lab) run(c *vk.Commands, flushes ...vk.FlushRange) {
	l.t.Helper()
	l.wait(l.submit(c, flushes...))
}

var (
	transferWrite = vk.Scope{Stages: vk.StageTransfer, Access: vk.AccessTransferWrite}
	transfers     = vk.Scope{Stages: vk.StageTransfer, Access: vk.AccessTransferRead | vk.AccessTransferWrite}
	hostRead      = vk.Scope{Stages: vk.StageHost, Access: vk.AccessHostRead}
)

func whole(b *vk.Buffer) vk.FlushRange { return vk.FlushRange{Buffer: b, Size: b.Size()} }
