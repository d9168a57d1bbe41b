package vk

import (
	"encoding/hex"
	"fmt"
	"slices"

	vulkan "github.com/vulkan-go/vulkan"

	"vkcompute/vk/internal/abi"
)

// DeviceType is the kind of hardware behind a device.
type DeviceType int

const (
	OtherDevice DeviceType = iota
	IntegratedGPU
	DiscreteGPU
	VirtualGPU
	CPU
)

func (t DeviceType) String() string {
	if t < OtherDevice || t > CPU {
		t = OtherDevice
	}
	return [...]string{"other", "integrated", "discrete", "virtual", "cpu"}[t]
}

// Version is a Vulkan version number.
type Version uint32

func (v Version) String() string {
	return fmt.Sprintf("%d.%d.%d", v>>22&0x7f, v>>12&0x3ff, v&0xfff)
}

// UUID identifies a physical device across processes and reboots.
type UUID [16]byte

func (u UUID) String() string {
	s := hex.EncodeToString(u[:])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

// DeviceInfo is what is known of a physical device before it is opened.
type DeviceInfo struct {
	Index      int // position in the list of Devices, a selector for Options.Device
	Name       string
	Type       DeviceType
	API        Version
	Driver     string // name and version as the driver gives them
	DriverRaw  uint32 // the driver's own version number, encoded as it likes
	VendorID   uint32
	UUID       UUID
	DriverUUID UUID
	CacheUUID  UUID // names the format of pipeline caches

	Limits      Limits
	Features    Features
	MemoryTypes []MemoryType
	Heaps       []Heap
	Families    []QueueFamily

	// Refused says why the library does not run on the device; empty if it does.
	Refused string

	physical   uint64
	deviceID   uint32 // the vendor's number of the model
	extensions []string
}

// Limits are those the library depends on. What a call could exceed is checked before the
// driver sees it. Sizes and ranges are in bytes.
type Limits struct {
	MaxStorageBufferRange     uint64 // of one binding
	MaxPushConstantsSize      uint64
	MaxMemoryAllocationCount  uint64
	MaxMemoryAllocationSize   uint64
	MaxStorageBuffers         uint64 // in one descriptor set and stage, the dynamic ones included
	MaxDynamicStorageBuffers  uint64 // in one descriptor set
	MaxSharedMemory           uint64
	MaxWorkgroupInvocations   uint64
	MaxWorkgroupSize          [3]uint32
	MaxWorkgroupCount         [3]uint32
	MinStorageBufferAlignment uint64 // of the offset of a binding
	NonCoherentAtomSize       uint64
	SubgroupSize              uint32  // for whoever writes shaders: no call is checked against it
	TimestampPeriod           float32 // nanoseconds a tick
	TimestampBits             uint32  // valid bits on the queue family used; 0: no timestamps
}

// Features are optional: the library has a path without each of them.
type Features struct {
	Float64, Float16, Int64, Int16, Int8 bool // arithmetic in shaders
	Storage16, Storage8                  bool // 16- and 8-bit values in storage buffers
	Subgroups                            SubgroupOps
	DeviceAddress                        bool // buffer device addresses
	RobustAccess, RobustAccess2          bool
	HostQueryReset                       bool
	MemoryBudget                         bool
	CreationFeedback                     bool // the driver tells whether a pipeline was found in the cache
}

// MemoryFlags are the properties of a memory type.
type MemoryFlags uint32

const (
	DeviceLocal  = MemoryFlags(vulkan.MemoryPropertyDeviceLocalBit)
	HostVisible  = MemoryFlags(vulkan.MemoryPropertyHostVisibleBit)
	HostCoherent = MemoryFlags(vulkan.MemoryPropertyHostCoherentBit)
	HostCached   = MemoryFlags(vulkan.MemoryPropertyHostCachedBit)
)

func (f MemoryFlags) String() string {
	s := ""
	for _, n := range []struct {
		bit  MemoryFlags
		name string
	}{{DeviceLocal, "device-local"}, {HostVisible, "host-visible"}, {HostCoherent, "coherent"}, {HostCached, "cached"}} {
		if f&n.bit != 0 {
			if s != "" {
				s += " "
			}
			s += n.name
		}
	}
	if s == "" {
		return "none"
	}
	return s
}

// MemoryType is a kind of memory of a heap.
type MemoryType struct {
	Flags MemoryFlags
	Heap  int
}

// Heap is a physical memory.
type Heap struct {
	Size        uint64 // bytes
	DeviceLocal bool
}

// QueueFamily is a group of equal queues.
type QueueFamily struct {
	Compute, Graphics, Transfer bool
	Count                       int
	TimestampBits               uint32
}

// computeFamily is the queue family to use: one that does compute and no graphics if
// there is one, since a desktop's watchdog and compositor live on the graphics queue.
func (i *DeviceInfo) computeFamily() int {
	best := -1
	for n, f := range i.Families {
		if f.Compute && f.Count > 0 && (best < 0 || i.Families[best].Graphics && !f.Graphics) {
			best = n
		}
	}
	return best
}

func newInfo(index int, physical uint64, p *abi.Physical, extensions []string) DeviceInfo {
	driver := p.DriverName
	if p.DriverInfo != "" {
		driver += " " + p.DriverInfo
	}
	if driver == "" {
		driver = Version(p.DriverVersion).String()
	}
	i := DeviceInfo{
		Index: index, Name: p.Name, Type: DeviceType(p.Type), API: Version(p.APIVersion), Driver: driver, DriverRaw: p.DriverVersion,
		VendorID: p.Vendor, UUID: p.UUID, DriverUUID: p.DriverUUID, CacheUUID: p.PipelineCacheUUID,
		physical: physical, deviceID: p.Device, extensions: extensions,
		Limits: Limits{
			MaxStorageBufferRange: uint64(p.MaxStorageBufferRange), MaxPushConstantsSize: uint64(p.MaxPushConstants),
			MaxMemoryAllocationCount: uint64(p.MaxAllocations), MaxMemoryAllocationSize: p.MaxMemoryAllocation,
			MaxStorageBuffers:         uint64(min(p.MaxStorageBuffersPerSet, p.MaxStorageBuffersPerStage, p.MaxResourcesPerStage)),
			MaxDynamicStorageBuffers:  uint64(p.MaxDynamicStorageBuffers),
			MaxSharedMemory:           uint64(p.MaxSharedMemory),
			MaxWorkgroupInvocations:   uint64(p.MaxInvocations),
			MaxWorkgroupSize:          p.MaxGroupSize,
			MaxWorkgroupCount:         p.MaxGroupCount,
			MinStorageBufferAlignment: max(p.StorageOffsetAlignment, 1),
			NonCoherentAtomSize:       max(p.NonCoherentAtomSize, 1),
			SubgroupSize:              p.Subgroup,
			TimestampPeriod:           p.TimestampPeriod,
		},
		Features: Features{
			Float64: p.Float64, Float16: p.Float16, Int64: p.Int64, Int16: p.Int16, Int8: p.Int8,
			Storage16: p.Storage16, Storage8: p.Storage8, Subgroups: subgroupOps(p.SubgroupOperations, p.SubgroupStages), DeviceAddress: p.BufferDeviceAddress,
			RobustAccess: p.RobustBufferAccess, RobustAccess2: p.RobustBufferAccess2, HostQueryReset: p.HostQueryReset,
			MemoryBudget: slices.Contains(extensions, memoryBudget), CreationFeedback: slices.Contains(extensions, creationFeedback),
		},
	}
	for _, t := range p.MemoryTypes {
		i.MemoryTypes = append(i.MemoryTypes, MemoryType{MemoryFlags(t.Flags), int(t.Heap)})
	}
	for _, h := range p.MemoryHeaps {
		i.Heaps = append(i.Heaps, Heap{h.Size, h.Flags&uint32(vulkan.MemoryHeapDeviceLocalBit) != 0})
	}
	for _, f := range p.QueueFamilies {
		compute, graphics := f.Flags&uint32(vulkan.QueueComputeBit) != 0, f.Flags&uint32(vulkan.QueueGraphicsBit) != 0
		i.Families = append(i.Families, QueueFamily{
			Compute: compute, Graphics: graphics,
			Transfer: compute || graphics || f.Flags&uint32(vulkan.QueueTransferBit) != 0, // implied by the other two
			Count:    int(f.Count), TimestampBits: f.TimestampBits,
		})
	}
	family := i.computeFamily()
	if family >= 0 {
		i.Limits.TimestampBits = i.Families[family].TimestampBits
	}
	switch {
	case uint32(i.API)&0x1fffffff < baseline: // without the variant in the top bits
		i.Refused = fmt.Sprintf("it has Vulkan %v, 1.2 is needed", i.API)
	case !p.TimelineSemaphore:
		i.Refused = "it has no timeline semaphores, which Vulkan 1.2 requires"
	case family < 0:
		i.Refused = "it has no queue that computes"
	case i.Limits.MaxDynamicStorageBuffers < 1:
		i.Refused = "it binds no storage buffer with a dynamic offset"
	}
	return i
}

// devices lists what the instance sees.
func (in *instance) devices() ([]DeviceInfo, error) {
	physicals, r := in.c.Physicals()
	if r < 0 {
		e := &Error{Call: "vkEnumeratePhysicalDevices", Result: r}
		if vulkan.Result(r) == vulkan.ErrorInitializationFailed || vulkan.Result(r) == vulkan.ErrorIncompatibleDriver {
			return nil, noDriver(e)
		}
		return nil, e
	}
	var list []DeviceInfo
	for _, physical := range physicals {
		extensions, r := in.c.PhysicalExtensions(physical)
		if r < 0 {
			return nil, &Error{Call: "vkEnumerateDeviceExtensionProperties", Result: r}
		}
		list = append(list, newInfo(0, physical, in.c.Query(physical, slices.Contains(extensions, robustness2)), extensions))
	}
	return fold(list), nil
}

// fold leaves each device once: a GPU can be reached through two drivers, which may give it
// different names, or be listed twice by one. The first that can be used stays. Drivers
// exist that give every device the same UUID, so the hardware must be the same too.
func fold(list []DeviceInfo) []DeviceInfo {
	var once []DeviceInfo
	for _, d := range list {
		i := slices.IndexFunc(once, func(o DeviceInfo) bool {
			return d.UUID != UUID{} && o.UUID == d.UUID && o.VendorID == d.VendorID && o.deviceID == d.deviceID
		})
		switch {
		case i < 0:
			once = append(once, d)
		case once[i].Refused != "" && d.Refused == "":
			once[i] = d
		}
	}
	for i := range once {
		once[i].Index = i
	}
	return once
}

// Devices lists the physical devices in the driver's order, those the library refuses
// included.
func Devices() ([]DeviceInfo, error) {
	in, err := newInstance(ValidationOff, PrintsIgnored, nil)
	if err != nil {
		return nil, err
	}
	defer in.close()
	return in.devices()
}
