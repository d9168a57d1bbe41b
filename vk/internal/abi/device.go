package abi

// #include "abi.h"
import "C"

import (
	"sync/atomic"
	"unsafe"
)

// Enable is a set of device features.
type Enable uint32

const (
	EnableRobust         Enable = C.VC_ENABLE_ROBUST
	EnableRobust2        Enable = C.VC_ENABLE_ROBUST2
	EnableFloat64        Enable = C.VC_ENABLE_FLOAT64
	EnableInt64          Enable = C.VC_ENABLE_INT64
	EnableInt16          Enable = C.VC_ENABLE_INT16
	EnableStorage16      Enable = C.VC_ENABLE_STORAGE16
	EnableStorage8       Enable = C.VC_ENABLE_STORAGE8
	EnableFloat16        Enable = C.VC_ENABLE_FLOAT16
	EnableInt8           Enable = C.VC_ENABLE_INT8
	EnableAddress        Enable = C.VC_ENABLE_ADDRESS
	EnableHostQueryReset Enable = C.VC_ENABLE_HOST_QUERY_RESET
)

// Device is a VkDevice with its function table, in C memory.
type Device struct {
	c         *C.vc_device
	crossings atomic.Uint64
}

// NewDevice makes a device with queues of one family. missing names a function that the
// driver lacks, when that is why it failed.
func (in *Instance) NewDevice(physical uint64, family, queues uint32, extensions []string, enable Enable) (d *Device, missing string, result int32) {
	list := flat(extensions)
	var out *C.vc_device
	var lacks *C.char
	r := C.vc_device_new(in.c, C.uint64_t(physical), C.uint32_t(family), C.uint32_t(queues), cstring(list), C.uint32_t(len(extensions)), C.uint32_t(enable), &out, &lacks)
	if lacks != nil {
		missing = C.GoString(lacks)
	}
	if r < 0 {
		return nil, missing, int32(r)
	}
	return &Device{c: out}, "", success
}

// Handle is the VkDevice.
func (d *Device) Handle() uint64 { return uint64(uintptr(d.c.handle)) }

// Free frees the function table. The VkDevice must have been destroyed.
func (d *Device) Free() { C.vc_device_free(d.c) }

// Crossings counts the calls into C made through this device by the functions of a
// launch's path: descriptor sets, recording, submission, flush and invalidate, waits.
func (d *Device) Crossings() uint64 { return d.crossings.Load() }

// Name gives an object a name that tools show. It does nothing without debug utils.
func (d *Device) Name(kind int32, handle uint64, name string) int32 {
	s := flat([]string{name})
	return int32(C.vc_name(d.c, C.int32_t(kind), C.uint64_t(handle), cstring(s)))
}

// Alloc allocates device memory of a type, with device addresses if address says so.
func (d *Device) Alloc(size uint64, memoryType uint32, address bool) (memory uint64, result int32) {
	var out C.uint64_t
	r := C.vc_memory_alloc(d.c, C.uint64_t(size), C.uint32_t(memoryType), flag(address), &out)
	return uint64(out), int32(r)
}

// BufferAddress is the device address of a buffer made for it.
func (d *Device) BufferAddress(buffer uint64) uint64 {
	return uint64(C.vc_buffer_address(d.c, C.uint64_t(buffer)))
}

// ShaderModule makes a module from SPIR-V words.
func (d *Device) ShaderModule(words []uint32) (module uint64, result int32) {
	var out C.uint64_t
	r := C.vc_shader_module(d.c, u32(words), C.size_t(len(words)), &out)
	return uint64(out), int32(r)
}

// SetLayout makes a descriptor set layout: one descriptor per binding number, kinds are
// VkDescriptorType values.
func (d *Device) SetLayout(numbers, kinds []uint32) (layout uint64, result int32) {
	var out C.uint64_t
	r := C.vc_set_layout(d.c, u32(numbers), u32(kinds), C.uint32_t(len(numbers)), &out)
	return uint64(out), int32(r)
}

// PipelineLayout makes a layout of one set and pushSize bytes of push constants.
func (d *Device) PipelineLayout(setLayout uint64, pushSize uint32) (layout uint64, result int32) {
	var out C.uint64_t
	r := C.vc_pipeline_layout(d.c, C.uint64_t(setLayout), C.uint32_t(pushSize), &out)
	return uint64(out), int32(r)
}

// PipelineCache makes a cache that begins with what an earlier one held; data may be empty.
func (d *Device) PipelineCache(data []byte) (cache uint64, result int32) {
	var out C.uint64_t
	r := C.vc_pipeline_cache(d.c, unsafe.Pointer(unsafe.SliceData(data)), C.size_t(len(data)), &out)
	return uint64(out), int32(r)
}

// Cached is what a driver says of a pipeline and the cache it was given.
type Cached uint32

const (
	CacheUnknown Cached = C.VC_CACHE_UNKNOWN
	CacheMiss    Cached = C.VC_CACHE_MISS
	CacheHit     Cached = C.VC_CACHE_HIT
)

// ComputePipeline compiles. spec holds pairs of constant ID and 32-bit value. cached, nil
// without VK_EXT_pipeline_creation_feedback, receives what became of the cache.
func (d *Device) ComputePipeline(cache, module uint64, entry string, layout uint64, spec []uint32, cached *Cached) (pipeline uint64, result int32) {
	var out C.uint64_t
	name := flat([]string{entry})
	r := C.vc_compute_pipeline(d.c, C.uint64_t(cache), C.uint64_t(module), cstring(name), C.uint64_t(layout), u32(spec), C.uint32_t(len(spec)/2),
		(*C.uint32_t)(unsafe.Pointer(cached)), &out)
	return uint64(out), int32(r)
}

// Timeline makes a timeline semaphore.
func (d *Device) Timeline(initial uint64) (semaphore uint64, result int32) {
	var out C.uint64_t
	r := C.vc_timeline(d.c, C.uint64_t(initial), &out)
	return uint64(out), int32(r)
}

// TimelineValue reads a timeline semaphore.
func (d *Device) TimelineValue(semaphore uint64) (value uint64, result int32) {
	var out C.uint64_t
	d.crossings.Add(1)
	r := C.vc_timeline_value(d.c, C.uint64_t(semaphore), &out)
	return uint64(out), int32(r)
}

// TimelineWait blocks the calling thread until the semaphore reaches value or the timeout passes.
func (d *Device) TimelineWait(semaphore, value, timeoutNS uint64) int32 {
	d.crossings.Add(1)
	return int32(C.vc_timeline_wait(d.c, C.uint64_t(semaphore), C.uint64_t(value), C.uint64_t(timeoutNS)))
}

// QueryResults reads timestamps that are available; it does not wait.
func (d *Device) QueryResults(pool uint64, first uint32, out []uint64) int32 {
	return int32(C.vc_query_results(d.c, C.uint64_t(pool), C.uint32_t(first), C.uint32_t(len(out)), u64(out)))
}

// DescriptorPool makes a pool for sets holding in all the given numbers of descriptors.
func (d *Device) DescriptorPool(sets, storage, dynamic, flags uint32) (pool uint64, result int32) {
	var out C.uint64_t
	r := C.vc_descriptor_pool(d.c, C.uint32_t(sets), C.uint32_t(storage), C.uint32_t(dynamic), C.uint32_t(flags), &out)
	return uint64(out), int32(r)
}

// DescriptorSets allocates and writes the sets a descriptor program describes (abi.h):
// out receives the handles and must hold one per set. made counts those that exist
// when it returns, also on failure.
func (d *Device) DescriptorSets(pool uint64, program, out []uint64) (made int, result int32) {
	var n C.uint32_t
	d.crossings.Add(1)
	r := C.vc_descriptor_sets(d.c, C.uint64_t(pool), u64(program), C.size_t(len(program)), u64(out), C.uint32_t(len(out)), &n)
	return int(n), int32(r)
}

// FreeDescriptorSets frees sets of a pool made for freeing single sets.
func (d *Device) FreeDescriptorSets(pool uint64, sets []uint64) int32 {
	if len(sets) == 0 {
		return success
	}
	d.crossings.Add(1)
	return int32(C.vc_descriptor_sets_free(d.c, C.uint64_t(pool), u64(sets), C.uint32_t(len(sets))))
}

// Record records a command stream. at is the index of the word at fault for BadStream.
func (d *Device) Record(commandBuffer uint64, flags uint32, words []uint64) (at uint64, result int32) {
	var where C.uint64_t
	d.crossings.Add(1)
	r := C.vc_record(d.c, C.uint64_t(commandBuffer), C.uint32_t(flags), u64(words), C.size_t(len(words)), &where)
	return uint64(where), int32(r)
}

// Stage is the part of a submission that failed.
type Stage uint32

const (
	StageRecord Stage = C.VC_STAGE_RECORD
	StageFlush  Stage = C.VC_STAGE_FLUSH
	StageSubmit Stage = C.VC_STAGE_SUBMIT
)

// Submission is one crossing: record a one-time stream, flush mapped ranges, submit.
// Its memory layout is that of vc_submission.
type Submission struct {
	Queue  uint64
	Record uint64 // command buffer to record Words into first, or 0
	Signal uint64 // timeline semaphore
	Value  uint64

	Completed uint64 // out, with Poll: value of the timeline after the submission
	At        uint64 // out: word at fault for BadStream
	Stage     Stage  // out: what failed
	Poll      uint32 // 1: read the timeline's value
}

// The C side reads a Submission in place.
var _ [unsafe.Sizeof(C.vc_submission{})]byte = [unsafe.Sizeof(Submission{})]byte{}

// Submit carries out a submission. Flushes are triples memory, offset, size; waits are
// pairs timeline, value. The caller holds the queue's lock.
func (d *Device) Submit(s *Submission, words, commandBuffers, flushes, waits []uint64) int32 {
	d.crossings.Add(1)
	return int32(C.vc_submit(d.c, (*C.vc_submission)(unsafe.Pointer(s)), u64(words), C.size_t(len(words)),
		u64(commandBuffers), C.uint32_t(len(commandBuffers)), u64(flushes), C.uint32_t(len(flushes)/3), u64(waits), C.uint32_t(len(waits)/2)))
}

// Flush makes host writes to non-coherent mapped memory available: triples memory, offset, size.
func (d *Device) Flush(ranges []uint64) int32 {
	d.crossings.Add(1)
	return int32(C.vc_flush(d.c, u64(ranges), C.uint32_t(len(ranges)/3)))
}

// Invalidate makes device writes to non-coherent mapped memory visible to the host.
func (d *Device) Invalidate(ranges []uint64) int32 {
	d.crossings.Add(1)
	return int32(C.vc_invalidate(d.c, u64(ranges), C.uint32_t(len(ranges)/3)))
}
