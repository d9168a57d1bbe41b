package pool

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"vkcompute/vk"
)

// fakeSource makes memory without a device, so that bookkeeping can be tested
// with exhaustion, non-coherence and thousands of pages at will.
type fakeSource struct {
	mu         sync.Mutex
	nextID     uint64
	open       map[uint64]uint64 // size by ID
	closed     int
	bytes      uint64
	limit      uint64 // of bytes open at a time; 0: none
	maxOpen    int    // of buffers open at a time; 0: none
	coherent   bool
	invisible  bool     // device memory is not mapped
	unbacked   bool     // no mapping at all, so that sizes cost nothing
	budgets    *virtual // heaps and memory types, if any
	calls      int
	asked      []string // type and size of each call
	beforeMake func()
	err        error
}

func newFakeSource() *fakeSource { return &fakeSource{open: map[uint64]uint64{}, coherent: true} }

func (f *fakeSource) newMemory(spec vk.BufferSpec) (memory, error) {
	if f.beforeMake != nil {
		f.beforeMake()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	f.asked = append(f.asked, fmt.Sprintf("%b:%d", spec.MemoryTypes, spec.Size/kib))
	if f.err != nil {
		return memory{}, f.err
	}
	if f.limit > 0 && f.bytes+spec.Size > f.limit {
		return memory{}, fmt.Errorf("fake: %d bytes: %w", spec.Size, vk.ErrOutOfDeviceMemory)
	}
	if f.maxOpen > 0 && len(f.open) >= f.maxOpen {
		return memory{}, &vk.LimitError{Name: "maxMemoryAllocationCount", Want: uint64(len(f.open) + 1), Max: uint64(f.maxOpen)}
	}
	booked := memory{coherent: f.coherent, visible: spec.Role != vk.DeviceMemory || !f.invisible, close: func() {}}
	if f.budgets != nil {
		var err error
		if booked, err = f.budgets.newMemory(spec); err != nil {
			return memory{}, err
		}
	}
	f.nextID++
	id := f.nextID
	f.open[id] = spec.Size
	f.bytes += spec.Size
	mem := memory{id: id, size: spec.Size, coherent: booked.coherent, visible: booked.visible, heap: booked.heap}
	if !f.unbacked && booked.visible {
		mem.mapped = make([]byte, spec.Size)
	}
	mem.close = func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if _, ok := f.open[id]; !ok {
			panic("fake: closed twice")
		}
		delete(f.open, id)
		f.bytes -= spec.Size
		f.closed++
		booked.close()
	}
	return mem, nil
}

// fakeTimeline completes serials when a test says so. The driver may know of
// more than was asked for.
type fakeTimeline struct {
	known, driver atomic.Uint64
	err           error
	refreshes     atomic.Int64
	onRefresh     func()
}

func (t *fakeTimeline) Completed() uint64 { return t.known.Load() }

func (t *fakeTimeline) Refresh() (uint64, error) {
	t.refreshes.Add(1)
	if f := t.onRefresh; f != nil {
		t.onRefresh = nil
		f()
	}
	if t.err != nil {
		return 0, t.err
	}
	t.known.Store(max(t.known.Load(), t.driver.Load()))
	return t.known.Load(), nil
}

func (t *fakeTimeline) complete(serial uint64) {
	t.driver.Store(serial)
	t.known.Store(serial)
}

var errFake = errors.New("fake: broken")

func fakeLimits() vk.Limits {
	return vk.Limits{MinStorageBufferAlignment: 256, NonCoherentAtomSize: 64, MaxStorageBufferRange: 1 << 27, MaxMemoryAllocationCount: 4096}
}

func newFake(t testing.TB, o Options) (*Manager, *fakeSource, *fakeTimeline) {
	t.Helper()
	src, tl := newFakeSource(), &fakeTimeline{}
	m, err := newManager(src, fakeLimits(), tl, o)
	if err != nil {
		t.Fatal(err)
	}
	return m, src, tl
}

// types are those of a CPU driver when the fake was told of none.
func (f *fakeSource) types(role vk.MemoryRole) []memoryType {
	if f.budgets != nil {
		return f.budgets.types(role)
	}
	return []memoryType{{index: 0, local: true, coherent: f.coherent, visible: true}}
}

func (f *fakeSource) usage(heap int) vk.HeapUsage {
	if f.budgets != nil {
		return f.budgets.usage(heap)
	}
	return vk.HeapUsage{}
}

// The memory of three kinds of device. Type 0 is of the device alone where there is
// such memory; sizes are so that a heap's budget is the number given.
func discrete(device, host uint64) vk.DeviceInfo {
	return vk.DeviceInfo{
		Limits:      fakeLimits(),
		Heaps:       []vk.Heap{{Size: device * 5 / 4, DeviceLocal: true}, {Size: host * 5 / 4}},
		MemoryTypes: []vk.MemoryType{{Flags: vk.DeviceLocal, Heap: 0}, {Flags: vk.HostVisible | vk.HostCoherent, Heap: 1}},
	}
}

func withWindow(device, window, host uint64) vk.DeviceInfo {
	info := discrete(device, host)
	info.Heaps = append(info.Heaps, vk.Heap{Size: window * 5 / 4, DeviceLocal: true})
	info.MemoryTypes = append(info.MemoryTypes, vk.MemoryType{Flags: vk.DeviceLocal | vk.HostVisible | vk.HostCoherent, Heap: 2})
	return info
}

func newBudgeted(t testing.TB, info vk.DeviceInfo, o Options) (*Manager, *fakeSource, *fakeTimeline) {
	t.Helper()
	src, tl := newFakeSource(), &fakeTimeline{}
	var err error
	if src.budgets, err = newVirtual(&info); err != nil {
		t.Fatal(err)
	}
	m, err := newManager(src, info.Limits, tl, o)
	if err != nil {
		t.Fatal(err)
	}
	return m, src, tl
}
