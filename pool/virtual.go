package pool

import (
	"fmt"
	"math"
	"sync"

	"vkcompute/vk"
)

// NewVirtual returns a manager of address space alone: its slices have pages and offsets, and no memory
// or buffer behind them. It plans, simulates and measures without a device.
//
// The limits, memory types and heaps are those of info; heaps are held to [vk.Heap.Budget]. Without
// memory types there is one, coherent and without end. With a nil timeline nothing is ever in flight.
func NewVirtual(info vk.DeviceInfo, tl Timeline, o Options) (*Manager, error) {
	if tl == nil {
		tl = idle{}
	}
	v, err := newVirtual(&info)
	if err != nil {
		return nil, err
	}
	return newManager(v, info.Limits, tl, o)
}

// idle is the timeline of a device that is done with everything.
type idle struct{}

func (idle) Completed() uint64        { return math.MaxUint64 }
func (idle) Refresh() (uint64, error) { return math.MaxUint64, nil }

// virtual counts memory instead of making it.
type virtual struct {
	kinds    [roles][]memoryType
	maxCount uint64

	mu     sync.Mutex
	heaps  []vk.HeapUsage
	count  uint64
	lastID uint64
}

func newVirtual(info *vk.DeviceInfo) (*virtual, error) {
	for i, t := range info.MemoryTypes {
		if t.Heap < 0 || t.Heap >= len(info.Heaps) || i >= maxTypes {
			return nil, fmt.Errorf("pool: memory type %d is of heap %d; want up to %d types of the %d heaps", i, t.Heap, maxTypes, len(info.Heaps))
		}
	}
	v := &virtual{maxCount: info.Limits.MaxMemoryAllocationCount}
	for _, h := range info.Heaps {
		v.heaps = append(v.heaps, vk.HeapUsage{Size: h.Size, Budget: h.Budget()})
	}
	for r := range v.kinds {
		v.kinds[r] = typesOf(info, vk.MemoryRole(r))
		if len(info.MemoryTypes) == 0 {
			v.kinds[r] = []memoryType{{local: true, coherent: true, visible: true}}
		}
	}
	return v, nil
}

func (v *virtual) types(role vk.MemoryRole) []memoryType { return v.kinds[role] }

func (v *virtual) usage(heap int) vk.HeapUsage {
	v.mu.Lock()
	defer v.mu.Unlock()
	if heap < 0 || heap >= len(v.heaps) {
		return vk.HeapUsage{}
	}
	return v.heaps[heap]
}

func (v *virtual) newMemory(spec vk.BufferSpec) (memory, error) {
	for _, t := range v.kinds[spec.Role] {
		if t.mask() != spec.MemoryTypes {
			continue
		}
		v.mu.Lock()
		defer v.mu.Unlock()
		if v.maxCount > 0 && v.count >= v.maxCount {
			return memory{}, &vk.LimitError{Name: "maxMemoryAllocationCount", Want: v.count + 1, Max: v.maxCount}
		}
		if t.heap < len(v.heaps) {
			h := &v.heaps[t.heap]
			budget := h.Budget
			if spec.Budget == vk.PassBudget {
				budget = h.Size
			}
			if spec.Size > budget || h.Used > budget-spec.Size {
				return memory{}, &vk.MemoryError{Want: spec.Size, InUse: h.Used, Budget: budget, Heap: t.heap}
			}
			h.Used += spec.Size
		}
		v.count++
		v.lastID++
		return memory{
			id: v.lastID, size: spec.Size, coherent: t.coherent, visible: t.visible, heap: t.heap,
			close: func() { v.free(t.heap, spec.Size) },
		}, nil
	}
	return memory{}, fmt.Errorf("pool: a %v page: %w: no memory type is fit for it", spec.Role, vk.ErrUnsupported)
}

func (v *virtual) free(heap int, size uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.count--
	if heap < len(v.heaps) {
		v.heaps[heap].Used -= size
	}
}
