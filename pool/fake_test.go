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
	invisible  bool // device memory is not mapped
	unbacked   bool // no mapping at all, so that sizes cost nothing
	calls      int
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
	if f.err != nil {
		return memory{}, f.err
	}
	if f.limit > 0 && f.bytes+spec.Size > f.limit {
		return memory{}, fmt.Errorf("fake: %d bytes: %w", spec.Size, vk.ErrOutOfDeviceMemory)
	}
	if f.maxOpen > 0 && len(f.open) >= f.maxOpen {
		return memory{}, &vk.LimitError{Name: "maxMemoryAllocationCount", Want: uint64(len(f.open) + 1), Max: uint64(f.maxOpen)}
	}
	f.nextID++
	id := f.nextID
	f.open[id] = spec.Size
	f.bytes += spec.Size
	mem := memory{id: id, size: spec.Size, coherent: f.coherent}
	if !f.unbacked && (spec.Role != vk.DeviceMemory || !f.invisible) {
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
