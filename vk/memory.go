package vk

import (
	"fmt"
	"slices"
	"sync"
)

// MemoryRole says what a buffer is for; each role has an order of memory types.
type MemoryRole uint8

const (
	// DeviceMemory is for what kernels work on: device-local.
	DeviceMemory MemoryRole = iota
	// UploadMemory is written by the host and read once by the device: host-visible,
	// coherent if possible, not in device-local memory, which may be scarce.
	UploadMemory
	// ReadbackMemory is written by the device and read by the host: host-visible and cached.
	ReadbackMemory
	// InfoMemory is small, written by the host once and read by many launches:
	// host-visible, and device-local where such memory exists.
	InfoMemory
	roleCount
)

func (r MemoryRole) String() string {
	if r >= roleCount {
		return fmt.Sprintf("MemoryRole(%d)", uint8(r))
	}
	return [...]string{"device", "upload", "read-back", "info"}[r]
}

// score orders the memory types of a role, the least first; negative: unfit.
func (r MemoryRole) score(f MemoryFlags) int {
	without := func(bit MemoryFlags, penalty int) int {
		if f&bit == 0 {
			return penalty
		}
		return 0
	}
	with := func(bit MemoryFlags, penalty int) int { return penalty - without(bit, penalty) }
	if r != DeviceMemory && f&HostVisible == 0 {
		return -1
	}
	switch r {
	case DeviceMemory:
		// Memory that the host sees too is spared for those who need that.
		return without(DeviceLocal, 8) + with(HostVisible, 1)
	case UploadMemory:
		return with(DeviceLocal, 4) + without(HostCoherent, 2) + with(HostCached, 1)
	case ReadbackMemory:
		return without(HostCached, 4) + with(DeviceLocal, 2) + without(HostCoherent, 1)
	case InfoMemory:
		return without(DeviceLocal, 4) + without(HostCoherent, 2) + with(HostCached, 1)
	}
	return -1
}

// knownFlags are the properties the library understands. A type with any other (lazily
// allocated, protected, device-coherent, foreign) is not for ordinary buffers.
const knownFlags = DeviceLocal | HostVisible | HostCoherent | HostCached

// TypesFor returns the indices of the memory types fit for a role, best first.
func (i *DeviceInfo) TypesFor(role MemoryRole) []int {
	var list []int
	for n, t := range i.MemoryTypes {
		if t.Flags&^knownFlags == 0 && t.Flags != 0 && role.score(t.Flags) >= 0 {
			list = append(list, n)
		}
	}
	slices.SortStableFunc(list, func(a, b int) int {
		return role.score(i.MemoryTypes[a].Flags) - role.score(i.MemoryTypes[b].Flags)
	})
	return list
}

// BudgetRule says whether a buffer may pass the budget of its heap.
type BudgetRule uint8

const (
	// HoldBudget refuses what would pass the budget.
	HoldBudget BudgetRule = iota
	// PassBudget refuses only what would pass the size of the heap.
	PassBudget
)

// Without VK_EXT_memory_budget nobody says how much of a heap others use.
const budgetPercent = 80

// Budget is what may be used of the heap when the driver tells no budget.
func (h Heap) Budget() uint64 {
	return h.Size/100*budgetPercent + h.Size%100*budgetPercent/100
}

// memoryAccount counts what was allocated through the device, since drivers differ in
// what they do when a heap or the number of allocations is overdrawn.
type memoryAccount struct {
	mu     sync.Mutex
	used   []uint64 // bytes by heap, those the driver is being asked for included
	asked  []uint64 // bytes by heap that the driver is being asked for
	count  uint64
	budget []uint64 // bytes by heap, without the extension
}

func (a *memoryAccount) init(d *Device) {
	a.used = make([]uint64, len(d.info.Heaps))
	a.asked = make([]uint64, len(d.info.Heaps))
	a.budget = make([]uint64, len(d.info.Heaps))
	for i, h := range d.info.Heaps {
		a.budget[i] = h.Budget()
	}
}

// HeapUsage is what is known of a heap, in bytes.
type HeapUsage struct {
	Size   uint64 // of the heap
	Used   uint64 // allocated through this device
	Budget uint64 // what this device may have in all, at most Size
}

// HeapUsages reads use and budget of each heap; with VK_EXT_memory_budget the budget is
// the driver's word of this moment. A closed device has none.
func (d *Device) HeapUsages() []HeapUsage {
	if d.closed.Load() {
		return nil
	}
	d.memory.mu.Lock()
	defer d.memory.mu.Unlock()
	list, _ := d.heapUsages()
	return list
}

// heapUsages also returns what the whole process uses of each heap, where the driver
// tells: the budget is for all of that, and other devices and libraries share it.
func (d *Device) heapUsages() (list []HeapUsage, process [16]uint64) {
	list = make([]HeapUsage, len(d.info.Heaps))
	for i, h := range d.info.Heaps {
		list[i] = HeapUsage{Size: h.Size, Used: d.memory.used[i], Budget: d.memory.budget[i]}
	}
	if d.info.Features.MemoryBudget {
		var budget [16]uint64
		budget, process = d.in.c.Budget(d.info.physical)
		for i := range list {
			// Drivers were seen to report more than the heap holds; 0 says nothing.
			if budget[i] != 0 {
				list[i].Budget = min(budget[i], list[i].Size)
			}
		}
	}
	return list, process
}

// reserve books an allocation before the driver is asked for it; settle follows with
// the driver's answer.
func (d *Device) reserve(memoryType int, size uint64, rule BudgetRule) error {
	a := &d.memory
	heap := d.info.MemoryTypes[memoryType].Heap
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.count >= d.info.Limits.MaxMemoryAllocationCount {
		return fmt.Errorf("%w: %w", ErrOutOfDeviceMemory, checkLimit("maxMemoryAllocationCount", a.count+1, d.info.Limits.MaxMemoryAllocationCount, "allocating device memory"))
	}
	list, process := d.heapUsages()
	budget := list[heap].Budget
	if rule == PassBudget {
		budget = list[heap].Size
	}
	// The driver may not count yet what other goroutines are asking it for. Counting that
	// twice for a moment refuses too much; not counting it would pass the budget.
	used := max(list[heap].Used, process[heap]+a.asked[heap])
	if size > budget || used > budget-size {
		return &MemoryError{Want: size, InUse: used, Budget: budget, Heap: heap}
	}
	a.count++
	a.used[heap] += size
	a.asked[heap] += size
	return nil
}

// settle notes that the driver answered: it allocated what was booked, or did not.
func (d *Device) settle(memoryType int, size uint64, allocated bool) {
	a := &d.memory
	heap := d.info.MemoryTypes[memoryType].Heap
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked[heap] -= size
	if !allocated {
		a.release(heap, size)
	}
}

// unreserve takes an allocation out of the books.
func (d *Device) unreserve(memoryType int, size uint64) {
	d.memory.mu.Lock()
	defer d.memory.mu.Unlock()
	d.memory.release(d.info.MemoryTypes[memoryType].Heap, size)
}

func (a *memoryAccount) release(heap int, size uint64) {
	a.count--
	a.used[heap] -= size
}
