package shim

/*
#include "shim.h"
*/
import "C"

import (
	"fmt"
	"slices"
)

// Profile describes an emulated device. A zero field leaves what the driver has; a limit
// is presented as the tighter of the two.
type Profile struct {
	Name string
	Doc  string

	Type Type
	API  uint32 // at most; as Vulkan encodes versions
	Hide Hide

	MaxStorageBufferRange, MaxPushConstants, MaxAllocations                      uint32
	MaxStorageBuffersPerStage, MaxStorageBuffersPerSet, MaxDynamicStorageBuffers uint32
	MaxSharedMemory, MaxInvocations                                              uint32
	MaxGroupCount, MaxGroupSize                                                  [3]uint32
	MinStorageBufferAlignment, NonCoherentAtomSize, MaxAllocationSize            uint64
	Memory                                                                       []MemoryType
	Heaps                                                                        []Heap // sizes in bytes, at most those of the driver
	BudgetStep                                                                   uint64 // bytes by which budgets shrink at each query
}

// Type is what the device says it is.
type Type uint32

const (
	SameType   Type = iota // as the driver's
	Integrated             // numbers as in Vulkan
	Discrete
)

// Hide is a set of what the device does without.
type Hide uint32

const (
	HideFeatures   Hide = C.SH_HIDE_FEATURES   // all that Vulkan 1.2 leaves optional, operations of subgroups included
	HideExtensions Hide = C.SH_HIDE_EXTENSIONS // of instance and device
	HideTimestamps Hide = C.SH_HIDE_TIMESTAMPS
)

// MemoryFlags are the properties of a memory type, with the values of Vulkan.
type MemoryFlags uint32

const (
	DeviceLocal MemoryFlags = 1 << iota
	HostVisible
	HostCoherent
	HostCached
)

// MemoryType is a type of memory and its heap.
type MemoryType struct {
	Flags MemoryFlags
	Heap  uint32
}

// Heap is a memory. With a Budget it has VK_EXT_memory_budget, which starts there and
// shrinks to BudgetLeast.
type Heap struct {
	Size                uint64
	DeviceLocal         bool
	Budget, BudgetLeast uint64
}

const (
	mib = 1 << 20
	gib = 1 << 30
)

// Names of the profiles.
const (
	Plain       = "plain"
	DiscreteGPU = "discrete"
	Rebar256    = "rebar-256"
	NonCoherent = "noncoherent"
	Tiny        = "tiny"
	Budget      = "budget"
	Bare        = "bare"
)

// hostTypes are the usual two types of host memory, in a heap.
func hostTypes(heap uint32) []MemoryType {
	return []MemoryType{{HostVisible | HostCoherent, heap}, {HostVisible | HostCoherent | HostCached, heap}}
}

// Profiles lists the profiles.
func Profiles() []Profile {
	return []Profile{
		{Name: Plain, Doc: "the driver as it is, with its objects counted and its limits enforced"},
		{
			Name: DiscreteGPU, Doc: "device-local memory that cannot be mapped, and a heap for the host", Type: Discrete,
			MinStorageBufferAlignment: 32, NonCoherentAtomSize: 64, MaxAllocations: 4096, MaxDynamicStorageBuffers: 16,
			Memory: append([]MemoryType{{DeviceLocal, 0}}, hostTypes(1)...),
			Heaps:  []Heap{{Size: 4 * gib, DeviceLocal: true}, {Size: 4 * gib}},
		},
		{
			Name: Rebar256, Doc: "256 MiB of the device-local memory can be mapped", Type: Discrete,
			MinStorageBufferAlignment: 16, NonCoherentAtomSize: 64, MaxAllocations: 4096, MaxDynamicStorageBuffers: 8,
			Memory: append(append([]MemoryType{{DeviceLocal, 0}}, hostTypes(1)...), MemoryType{DeviceLocal | HostVisible | HostCoherent, 2}),
			Heaps:  []Heap{{Size: 4 * gib, DeviceLocal: true}, {Size: 4 * gib}, {Size: 256 * mib, DeviceLocal: true}},
		},
		{
			// Vulkan promises one coherent type. It is left out, so that nothing can hide in it.
			Name: NonCoherent, Doc: "mapped memory is a copy that only flush and invalidate move", Type: Integrated,
			MinStorageBufferAlignment: 64, NonCoherentAtomSize: 256, MaxAllocations: 4096, MaxDynamicStorageBuffers: 8,
			Memory: []MemoryType{{DeviceLocal | HostVisible | HostCached, 0}, {HostVisible | HostCached, 1}},
			Heaps:  []Heap{{Size: 2 * gib, DeviceLocal: true}, {Size: 2 * gib}},
		},
		{
			Name: Tiny, Doc: "the least of everything, some of it less than Vulkan grants", Type: Integrated,
			MaxStorageBufferRange: 64 << 10, MaxPushConstants: 128, MaxAllocations: 4096,
			MaxStorageBuffersPerStage: 8, MaxStorageBuffersPerSet: 24, MaxDynamicStorageBuffers: 1,
			MaxSharedMemory: 16 << 10, MaxInvocations: 128, MaxGroupCount: [3]uint32{65535, 65535, 65535}, MaxGroupSize: [3]uint32{128, 128, 64},
			MinStorageBufferAlignment: 256, NonCoherentAtomSize: 256, MaxAllocationSize: 32 * mib,
			Memory: append([]MemoryType{{DeviceLocal, 0}}, hostTypes(1)...),
			Heaps:  []Heap{{Size: 64 * mib, DeviceLocal: true}, {Size: 32 * mib}},
		},
		{
			Name: Budget, Doc: "a memory budget that shrinks, and one larger than its heap", Type: Discrete,
			MinStorageBufferAlignment: 16, NonCoherentAtomSize: 64, MaxAllocations: 4096,
			Memory: append([]MemoryType{{DeviceLocal, 0}}, hostTypes(1)...),
			Heaps: []Heap{
				{Size: gib, DeviceLocal: true, Budget: 768 * mib, BudgetLeast: 256 * mib},
				{Size: gib, Budget: 3 * gib, BudgetLeast: 3 * gib},
			},
			BudgetStep: mib,
		},
		{
			Name: Bare, Doc: "Vulkan 1.2 without anything optional: no extensions, features, device addresses or timestamps",
			API: 1<<22 | 2<<12, Hide: HideFeatures | HideExtensions | HideTimestamps,
		},
	}
}

// ProfileNamed returns a profile by its name.
func ProfileNamed(name string) (Profile, error) {
	list := Profiles()
	i := slices.IndexFunc(list, func(p Profile) bool { return p.Name == name })
	if i < 0 {
		names := make([]string, len(list))
		for i, p := range list {
			names[i] = p.Name
		}
		return Profile{}, fmt.Errorf("shim: profile %q: %w; there are %q", name, ErrUnknown, names)
	}
	return list[i], nil
}

// Validate reports what cannot be emulated.
func (p *Profile) Validate() error {
	if len(p.Memory) > C.SH_MAX_TYPES || len(p.Heaps) > C.SH_MAX_HEAPS {
		return fmt.Errorf("shim: profile %q: %d memory types and %d heaps: want at most %d and %d", p.Name, len(p.Memory), len(p.Heaps), C.SH_MAX_TYPES, C.SH_MAX_HEAPS)
	}
	for i, t := range p.Memory {
		if int(t.Heap) >= len(p.Heaps) {
			return fmt.Errorf("shim: profile %q: memory type %d is of heap %d: there are %d", p.Name, i, t.Heap, len(p.Heaps))
		}
		if t.Flags&(HostCoherent|HostCached) != 0 && t.Flags&HostVisible == 0 {
			return fmt.Errorf("shim: profile %q: memory type %d is coherent or cached without being visible to the host", p.Name, i)
		}
	}
	for _, a := range []uint64{p.MinStorageBufferAlignment, p.NonCoherentAtomSize} {
		if a&(a-1) != 0 {
			return fmt.Errorf("shim: profile %q: an alignment of %d: want a power of two", p.Name, a)
		}
	}
	return nil
}

// c is the profile for the C side, without its name.
func (p *Profile) c() C.sh_profile {
	u := func(v uint32) C.uint32_t { return C.uint32_t(v) }
	c := C.sh_profile{
		flags: u(uint32(p.Hide)), api_version: u(p.API), device_type: u(uint32(p.Type)),
		max_storage_range: u(p.MaxStorageBufferRange), max_push: u(p.MaxPushConstants), max_allocations: u(p.MaxAllocations),
		max_storage_per_stage: u(p.MaxStorageBuffersPerStage), max_storage_per_set: u(p.MaxStorageBuffersPerSet), max_dynamic: u(p.MaxDynamicStorageBuffers),
		max_shared: u(p.MaxSharedMemory), max_invocations: u(p.MaxInvocations),
		alignment: C.uint64_t(p.MinStorageBufferAlignment), atom: C.uint64_t(p.NonCoherentAtomSize), max_allocation_size: C.uint64_t(p.MaxAllocationSize),
		type_count: u(uint32(len(p.Memory))), heap_count: u(uint32(len(p.Heaps))), budget_step: C.uint64_t(p.BudgetStep),
	}
	if p.Type != SameType {
		c.has_type = 1
	}
	for i := range 3 {
		c.max_count[i], c.max_size[i] = u(p.MaxGroupCount[i]), u(p.MaxGroupSize[i])
	}
	for i, t := range p.Memory {
		c.types[i] = C.VcMemoryType{propertyFlags: u(uint32(t.Flags)), heapIndex: u(t.Heap)}
	}
	for i, h := range p.Heaps {
		c.heaps[i].size = C.VcSize(h.Size)
		if h.DeviceLocal {
			c.heaps[i].flags = 1
		}
		c.budget[i], c.budget_least[i] = C.uint64_t(h.Budget), C.uint64_t(h.BudgetLeast)
		if h.Budget != 0 {
			c.flags |= C.SH_BUDGET
		}
	}
	return c
}
