package abi

// #include "abi.h"
import "C"

import "unsafe"

// Physical is what is known of a physical device. Structures that exist since Vulkan
// 1.2 are zero on an older device.
type Physical struct {
	APIVersion, DriverVersion, Vendor, Device, Type uint32
	Name, DriverName, DriverInfo                    string
	DriverID                                        uint32
	UUID, DriverUUID, PipelineCacheUUID             [16]byte
	Subgroup, SubgroupStages, SubgroupOperations    uint32
	MaxMemoryAllocation                             uint64

	MaxStorageBufferRange, MaxPushConstants, MaxAllocations                       uint32
	MaxStorageBuffersPerStage, MaxStorageBuffersPerSet, MaxDynamicStorageBuffers  uint32
	MaxResourcesPerStage, MaxSharedMemory, MaxInvocations                         uint32
	MaxGroupCount, MaxGroupSize                                                   [3]uint32
	StorageOffsetAlignment, NonCoherentAtomSize                                   uint64
	TimestampPeriod                                                               float32
	MemoryTypes                                                                   []MemoryType
	MemoryHeaps                                                                   []MemoryHeap
	QueueFamilies                                                                 []QueueFamily
	RobustBufferAccess, RobustBufferAccess2, Float64, Int64, Int16, Float16, Int8 bool
	Storage16, Storage8, TimelineSemaphore, BufferDeviceAddress, HostQueryReset   bool
}

// MemoryType and MemoryHeap are the driver's, flags as in Vulkan.
type (
	MemoryType struct{ Flags, Heap uint32 }
	MemoryHeap struct {
		Size  uint64
		Flags uint32
	}
	QueueFamily struct{ Flags, Count, TimestampBits uint32 }
)

// Physicals lists the physical devices.
func (in *Instance) Physicals() ([]uint64, int32) {
	for n := 16; ; n *= 2 {
		list := make([]uint64, n)
		count := C.uint32_t(n)
		r := int32(C.vc_physical_list(in.c, u64(list), &count))
		if r == incomplete && n < 1024 {
			continue
		}
		if r < 0 {
			return nil, r
		}
		return list[:count], success
	}
}

// PhysicalExtensions lists the device extensions.
func (in *Instance) PhysicalExtensions(physical uint64) ([]string, int32) {
	return names(func(out *C.char, size C.size_t, count *C.uint32_t) C.VcResult {
		return C.vc_physical_extensions(in.c, C.uint64_t(physical), out, size, count)
	})
}

func bytes16(p [16]C.uint8_t) [16]byte { return *(*[16]byte)(unsafe.Pointer(&p)) }

// Query reads properties, features, memory and queues. robustness2 says that the device
// has VK_EXT_robustness2, without which its feature structure must not be passed.
func (in *Instance) Query(physical uint64, robustness2 bool) *Physical {
	var c C.vc_physical
	C.vc_physical_query(in.c, C.uint64_t(physical), C.VcBool(flag(robustness2)), &c)
	l := &c.base.limits
	triple := func(v [3]C.uint32_t) [3]uint32 { return [3]uint32{uint32(v[0]), uint32(v[1]), uint32(v[2])} }
	p := &Physical{
		APIVersion: uint32(c.base.apiVersion), DriverVersion: uint32(c.base.driverVersion),
		Vendor: uint32(c.base.vendorID), Device: uint32(c.base.deviceID), Type: uint32(c.base.deviceType),
		Name:       chars(&c.base.deviceName[0], len(c.base.deviceName)),
		DriverName: chars(&c.v12.driverName[0], len(c.v12.driverName)),
		DriverInfo: chars(&c.v12.driverInfo[0], len(c.v12.driverInfo)),
		DriverID:   uint32(c.v12.driverID),
		UUID:       bytes16(c.v11.deviceUUID), DriverUUID: bytes16(c.v11.driverUUID), PipelineCacheUUID: bytes16(c.base.pipelineCacheUUID),
		Subgroup: uint32(c.v11.subgroupSize), SubgroupStages: uint32(c.v11.subgroupSupportedStages), SubgroupOperations: uint32(c.v11.subgroupSupportedOperations),
		MaxMemoryAllocation: uint64(c.v11.maxMemoryAllocationSize),

		MaxStorageBufferRange: uint32(l.maxStorageBufferRange), MaxPushConstants: uint32(l.maxPushConstantsSize),
		MaxAllocations: uint32(l.maxMemoryAllocationCount), MaxStorageBuffersPerStage: uint32(l.maxPerStageDescriptorStorageBuffers),
		MaxStorageBuffersPerSet:  uint32(l.maxDescriptorSetStorageBuffers),
		MaxDynamicStorageBuffers: uint32(l.maxDescriptorSetStorageBuffersDynamic),
		MaxResourcesPerStage:     uint32(l.maxPerStageResources),
		MaxSharedMemory:          uint32(l.maxComputeSharedMemorySize), MaxInvocations: uint32(l.maxComputeWorkGroupInvocations),
		MaxGroupCount: triple(l.maxComputeWorkGroupCount), MaxGroupSize: triple(l.maxComputeWorkGroupSize),
		StorageOffsetAlignment: uint64(l.minStorageBufferOffsetAlignment), NonCoherentAtomSize: uint64(l.nonCoherentAtomSize),
		TimestampPeriod: float32(l.timestampPeriod),

		RobustBufferAccess: c.robust_buffer_access != 0, RobustBufferAccess2: c.robust_buffer_access2 != 0,
		Float64: c.float64 != 0, Int64: c.int64 != 0, Int16: c.int16 != 0, Float16: c.float16 != 0, Int8: c.int8 != 0,
		Storage16: c.storage_16bit != 0, Storage8: c.storage_8bit != 0, TimelineSemaphore: c.timeline_semaphore != 0,
		BufferDeviceAddress: c.buffer_device_address != 0, HostQueryReset: c.host_query_reset != 0,
	}
	for _, t := range c.memory.memoryTypes[:c.memory.memoryTypeCount] {
		p.MemoryTypes = append(p.MemoryTypes, MemoryType{uint32(t.propertyFlags), uint32(t.heapIndex)})
	}
	for _, h := range c.memory.memoryHeaps[:c.memory.memoryHeapCount] {
		p.MemoryHeaps = append(p.MemoryHeaps, MemoryHeap{uint64(h.size), uint32(h.flags)})
	}
	for _, f := range c.families[:c.family_count] {
		p.QueueFamilies = append(p.QueueFamilies, QueueFamily{uint32(f.queueFlags), uint32(f.queueCount), uint32(f.timestampValidBits)})
	}
	return p
}

// Budget reads VK_EXT_memory_budget, which the device must have: bytes per heap.
func (in *Instance) Budget(physical uint64) (budget, usage [16]uint64) {
	C.vc_physical_budget(in.c, C.uint64_t(physical), u64(budget[:]), u64(usage[:]))
	return
}
