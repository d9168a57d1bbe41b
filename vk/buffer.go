package vk

import (
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"unsafe"

	vulkan "github.com/vulkan-go/vulkan"

	"vkcompute/vk/internal/abi"
)

// BufferUsage says how commands use a buffer.
type BufferUsage uint32

const (
	UsageStorage             = BufferUsage(vulkan.BufferUsageStorageBufferBit)
	UsageTransferSource      = BufferUsage(vulkan.BufferUsageTransferSrcBit)
	UsageTransferDestination = BufferUsage(vulkan.BufferUsageTransferDstBit)
	UsageIndirect            = BufferUsage(vulkan.BufferUsageIndirectBufferBit)

	usageDefault = UsageStorage | UsageTransferSource | UsageTransferDestination | UsageIndirect
	usageAddress = BufferUsage(abi.UsageDeviceAddress)
)

// Fallback says what happens when the best memory type of a role is exhausted.
type Fallback uint8

const (
	// FallbackNone fails.
	FallbackNone Fallback = iota
	// FallbackAny tries the other types fit for the role in order.
	FallbackAny
)

// BufferSpec describes a buffer.
type BufferSpec struct {
	Size     uint64 // bytes, at least 1
	Role     MemoryRole
	Usage    BufferUsage // 0: everything a compute buffer may do
	Fallback Fallback
	// MemoryTypes are the types allowed, one bit each, among those fit for the role; 0: all.
	MemoryTypes uint32
	Budget      BudgetRule
	Name        string // for debuggers and messages; may be empty
}

// Buffer is a VkBuffer with memory of its own, mapped for its whole life where the host
// can see it.
type Buffer struct {
	d          *Device
	id         uint64
	buffer     vulkan.Buffer
	memory     vulkan.DeviceMemory
	size       uint64
	allocated  uint64
	memoryType int
	mapped     []byte
	address    uint64
	closed     atomic.Bool
}

// Buffer handles are reused by drivers as soon as a buffer dies, so caches are keyed by
// a number that is not.
var bufferIDs atomic.Uint64

// NewBuffer makes a buffer. Errors: *LimitError, *MemoryError, *Error.
func (d *Device) NewBuffer(s BufferSpec) (*Buffer, error) {
	if err := d.usable("vkCreateBuffer"); err != nil {
		return nil, err
	}
	if s.Role >= roleCount {
		return nil, fmt.Errorf("vk: a buffer of role %v: want a role up to %v", s.Role, roleCount-1)
	}
	if s.Size == 0 {
		return nil, fmt.Errorf("vk: a buffer of 0 bytes: want at least 1")
	}
	if s.Budget > PassBudget {
		return nil, fmt.Errorf("vk: a buffer with budget rule %d: want HoldBudget or PassBudget", s.Budget)
	}
	what := fmt.Sprintf("a %s buffer of %d bytes", s.Role, s.Size)
	if s.Usage&^usageDefault != 0 {
		return nil, fmt.Errorf("vk: %s: usage %#x: want some of %#x", what, s.Usage, usageDefault)
	}
	if err := d.checkAllocation(s.Size, what); err != nil {
		return nil, err
	}
	usage := s.Usage
	if usage == 0 {
		usage = usageDefault
	}
	if d.info.Features.DeviceAddress {
		usage |= usageAddress
	}
	info := vulkan.BufferCreateInfo{
		SType: vulkan.StructureTypeBufferCreateInfo, Size: vulkan.DeviceSize(s.Size), Usage: vulkan.BufferUsageFlags(usage), SharingMode: vulkan.SharingModeExclusive,
	}
	defer info.Free()
	var buffer vulkan.Buffer // not a field: an object that holds Go pointers must not cross
	defer d.in.drain()
	if err := d.result(int32(vulkan.CreateBuffer(d.device, &info, nil, &buffer)), "vkCreateBuffer", "%s", what); err != nil {
		return nil, err
	}
	b := &Buffer{d: d, id: bufferIDs.Add(1), buffer: buffer, size: s.Size}
	d.born(kindBuffer)
	d.name(vulkan.ObjectTypeBuffer, bits(b.buffer), s.Name)

	var need vulkan.MemoryRequirements
	vulkan.GetBufferMemoryRequirements(d.device, b.buffer, &need)
	need.Deref()
	size, typeBits := uint64(need.Size), need.MemoryTypeBits
	need.Free()

	// The driver asks for more than the size given.
	if err := d.checkAllocation(size, what); err != nil {
		b.Close()
		return nil, err
	}
	types := d.info.TypesFor(s.Role)
	err := fmt.Errorf("vk: %s: %w: no memory type is fit for it", what, ErrUnsupported)
	for _, t := range types {
		if typeBits>>t&1 == 0 || s.MemoryTypes != 0 && s.MemoryTypes>>t&1 == 0 {
			continue
		}
		if err = b.allocate(size, t, s.Budget, what); err == nil {
			return b, nil
		}
		// A buffer is bound once for its life: no other type can follow one that was bound.
		if s.Fallback == FallbackNone || b.allocated != 0 || !errors.Is(err, ErrOutOfDeviceMemory) {
			break
		}
	}
	b.Close()
	return nil, err
}

// checkAllocation compares with the largest allocation, and with the largest slice that
// a mapping can become.
func (d *Device) checkAllocation(size uint64, what string) error {
	limit := d.info.Limits.MaxMemoryAllocationSize
	if limit == 0 {
		limit = math.MaxInt
	}
	return checkLimit("maxMemoryAllocationSize", size, min(limit, math.MaxInt), what)
}

func (b *Buffer) allocate(size uint64, memoryType int, rule BudgetRule, what string) error {
	d := b.d
	if err := d.reserve(memoryType, size, rule); err != nil {
		return err
	}
	memory, r := d.c.Alloc(size, uint32(memoryType), d.info.Features.DeviceAddress)
	d.settle(memoryType, size, r >= 0)
	if err := d.result(r, "vkAllocateMemory", "%s, memory type %d", what, memoryType); err != nil {
		return err
	}
	d.born(kindMemory)
	b.memory, b.memoryType, b.allocated = handle[vulkan.DeviceMemory](memory), memoryType, size
	err := d.result(int32(vulkan.BindBufferMemory(d.device, b.buffer, b.memory, 0)), "vkBindBufferMemory", "%s", what)
	if err == nil && b.flags()&HostVisible != 0 {
		var p unsafe.Pointer
		err = d.result(int32(vulkan.MapMemory(d.device, b.memory, 0, vulkan.DeviceSize(vulkan.WholeSize), 0, &p)), "vkMapMemory", "%s", what)
		if err == nil {
			b.mapped = unsafe.Slice((*byte)(p), b.size)
		}
	}
	if err != nil {
		return err
	}
	if d.info.Features.DeviceAddress {
		b.address = d.c.BufferAddress(bits(b.buffer))
	}
	return nil
}

func (b *Buffer) flags() MemoryFlags { return b.d.info.MemoryTypes[b.memoryType].Flags }

// Close destroys the buffer and frees its memory. No command that uses it may be
// pending. Closing twice does nothing.
func (b *Buffer) Close() {
	if b.closed.Swap(true) {
		return
	}
	vulkan.DestroyBuffer(b.d.device, b.buffer, nil)
	b.d.died(kindBuffer)
	if b.allocated != 0 {
		b.mapped = nil // freeing unmaps
		vulkan.FreeMemory(b.d.device, b.memory, nil)
		b.d.died(kindMemory)
		b.d.unreserve(b.memoryType, b.allocated)
	}
}

// ID is unique in the process and never reused, unlike the handle.
func (b *Buffer) ID() uint64 { return b.id }

// Handle is the VkBuffer.
func (b *Buffer) Handle() uint64 { return bits(b.buffer) }

// Size is the size asked for, in bytes.
func (b *Buffer) Size() uint64 { return b.size }

// Mapped is the buffer in the host's address space, or nil where the host cannot see
// it. It is not Go memory and dies with the buffer. Reads and writes race with the
// device unless a wait or a submission orders them.
func (b *Buffer) Mapped() []byte { return b.mapped }

// Coherent reports that mapped reads and writes need no flush and no invalidate.
func (b *Buffer) Coherent() bool { return b.flags()&HostCoherent != 0 }

// MemoryType is the index of the buffer's memory type.
func (b *Buffer) MemoryType() int { return b.memoryType }

// HeapIndex is the index of the heap that holds the buffer.
func (b *Buffer) HeapIndex() int { return b.d.info.MemoryTypes[b.memoryType].Heap }

// Address is the buffer's device address, or 0 where the device has none.
func (b *Buffer) Address() uint64 { return b.address }

// FlushRange is a part of a mapped buffer, in bytes.
type FlushRange struct {
	Buffer       *Buffer
	Offset, Size uint64
}

// check refuses what the driver cannot do and what would reach beyond the buffer.
func (r FlushRange) check(d *Device) error {
	b := r.Buffer
	switch {
	case b == nil || b.d != d || b.closed.Load():
		return fmt.Errorf("vk: a range to flush or invalidate: want an open buffer of this device")
	case b.mapped == nil:
		return fmt.Errorf("vk: a range of buffer %d to flush or invalidate: want a mapped buffer, the host does not see this one", b.id)
	case r.Offset > b.size || r.Size > b.size-r.Offset:
		return fmt.Errorf("vk: a range to flush or invalidate: %d bytes at %d of a buffer of %d bytes", r.Size, r.Offset, b.size)
	}
	return nil
}

// appendRange adds the triple for the C side, grown to whole atoms as Vulkan wants it.
func (r FlushRange) appendRange(dst []uint64) []uint64 {
	atom := r.Buffer.d.info.Limits.NonCoherentAtomSize
	lo, hi := atomRange(r.Offset, r.Size, atom, r.Buffer.allocated)
	return append(dst, bits(r.Buffer.memory), lo, hi-lo)
}

// atomRange grows a range to whole atoms, or to the end of an allocation that ends within one.
func atomRange(offset, size, atom, allocated uint64) (lo, hi uint64) {
	return offset / atom * atom, min((offset+size+atom-1)/atom*atom, allocated)
}

// Invalidate makes what the device wrote visible to the host through the mapped range.
// It does nothing on coherent memory. Pending host writes in the same atoms are lost.
func (d *Device) Invalidate(ranges ...FlushRange) error {
	if err := d.usable("vkInvalidateMappedMemoryRanges"); err != nil {
		return err
	}
	var flat []uint64
	for _, r := range ranges {
		if err := r.check(d); err != nil {
			return err
		}
		if r.Size != 0 && !r.Buffer.Coherent() {
			flat = r.appendRange(flat)
		}
	}
	if len(flat) == 0 {
		return nil
	}
	return d.result(d.c.Invalidate(flat), "vkInvalidateMappedMemoryRanges", "%d ranges", len(ranges))
}
