package probe

/*
#cgo CFLAGS: -std=gnu11 -O2 -I${SRCDIR}/../../../../vk/internal/abi
#include <stdlib.h>
#include "probe.h"
*/
import "C"

import (
	"unsafe"

	"vkcompute/vk"
)

// Probe calls the functions of a device. Results are those of Vulkan.
type Probe struct{ c C.probe }

// New makes a probe from what vk.Device.Lend lends.
func New(r vk.Raw) *Probe {
	p := &Probe{}
	p.c.get = r.GetInstanceProcAddr
	p.c.instance = object(r.Instance)
	p.c.device = object(r.Device)
	return p
}

// object reinterprets the bits of a handle, which need not be an address.
func object(handle uint64) (o C.VcObject) {
	*(*uintptr)(unsafe.Pointer(&o)) = uintptr(handle)
	return o
}

func cstring(s string) (*C.char, func()) {
	p := C.CString(s)
	return p, func() { C.free(unsafe.Pointer(p)) }
}

// Allocate allocates device memory.
func (p *Probe) Allocate(size uint64, memoryType int) (uint64, int32) {
	var out C.uint64_t
	r := C.pr_allocate(&p.c, C.uint64_t(size), C.uint32_t(memoryType), &out)
	return uint64(out), int32(r)
}

// Map maps a part of an allocation.
func (p *Probe) Map(memory, offset, size uint64) ([]byte, int32) {
	var at unsafe.Pointer
	r := C.pr_map(&p.c, C.uint64_t(memory), C.uint64_t(offset), C.uint64_t(size), &at)
	if r < 0 {
		return nil, int32(r)
	}
	return unsafe.Slice((*byte)(at), size), int32(r)
}

// Unmap unmaps an allocation.
func (p *Probe) Unmap(memory uint64) { C.pr_unmap(&p.c, C.uint64_t(memory)) }

// Flush flushes a range of a mapped allocation.
func (p *Probe) Flush(memory, offset, size uint64) int32 {
	return p.move("vkFlushMappedMemoryRanges", memory, offset, size)
}

// Invalidate invalidates a range of a mapped allocation.
func (p *Probe) Invalidate(memory, offset, size uint64) int32 {
	return p.move("vkInvalidateMappedMemoryRanges", memory, offset, size)
}

func (p *Probe) move(function string, memory, offset, size uint64) int32 {
	name, free := cstring(function)
	defer free()
	return int32(C.pr_move(&p.c, name, C.uint64_t(memory), C.uint64_t(offset), C.uint64_t(size)))
}

// Destroy calls a function that destroys an object of the device, such as vkDestroyBuffer.
func (p *Probe) Destroy(function string, handle uint64) {
	name, free := cstring(function)
	defer free()
	C.pr_destroy(&p.c, name, C.uint64_t(handle))
}

// SetLayout makes a layout with so many bindings of each kind.
func (p *Probe) SetLayout(storage, dynamic int) (uint64, int32) {
	var out C.uint64_t
	r := C.pr_set_layout(&p.c, C.uint32_t(storage), C.uint32_t(dynamic), &out)
	return uint64(out), int32(r)
}

// PipelineLayout makes a layout of one set, or none, and bytes of push constants.
func (p *Probe) PipelineLayout(setLayout uint64, push int) (uint64, int32) {
	var out C.uint64_t
	r := C.pr_pipeline_layout(&p.c, C.uint64_t(setLayout), C.uint32_t(push), &out)
	return uint64(out), int32(r)
}

// Pipeline makes a shader module and a pipeline of it; constants are pairs of ID and value.
func (p *Probe) Pipeline(words []uint32, entry string, layout uint64, constants ...uint32) (module, pipeline uint64, result int32) {
	var m, out C.uint64_t
	if r := C.pr_shader(&p.c, (*C.uint32_t)(unsafe.Pointer(unsafe.SliceData(words))), C.size_t(len(words)), &m); r < 0 {
		return 0, 0, int32(r)
	}
	name, free := cstring(entry)
	defer free()
	r := C.pr_pipeline(&p.c, m, name, C.uint64_t(layout), (*C.uint32_t)(unsafe.Pointer(unsafe.SliceData(constants))), C.uint32_t(len(constants)/2), &out)
	return uint64(m), uint64(out), int32(r)
}

// Timestamp makes a query pool and records a timestamp into a command buffer.
func (p *Probe) Timestamp(commandBuffer uint64) (pool uint64, result int32) {
	var out C.uint64_t
	r := C.pr_timestamp(&p.c, C.uint64_t(commandBuffer), &out)
	return uint64(out), int32(r)
}

// NoFeature asks CreateDevice for none but timeline semaphores.
const NoFeature = ^uint32(0)

// BufferDeviceAddress is the number of that feature among those of Vulkan 1.2.
const BufferDeviceAddress uint32 = C.VC_FEATURE12_BUFFER_DEVICE_ADDRESS

// CreateDevice makes and destroys another device, the first there is, with a feature and an extension, if given.
func (p *Probe) CreateDevice(feature uint32, extension string) int32 {
	var name *C.char
	if extension != "" {
		var free func()
		name, free = cstring(extension)
		defer free()
	}
	return int32(C.pr_create_device(&p.c, C.uint32_t(feature), name))
}
