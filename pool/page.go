package pool

import (
	"vkcompute/pool/internal/tlsf"
	"vkcompute/vk"
)

// class is what the pages of a slice are used for. Slices of different
// classes never share a page: they differ in memory, or in who writes it.
type class uint8

const (
	classCommands  class = iota // device memory, written by commands
	classHost                   // device memory, written by the host
	classUpload                 // staging, written by the host
	classReadback               // staging, read by the host
	classInfo                   // info slots, written by the host
	classCount                  // how many there are
	pagesInTwoLots = 2          // coherent, non-coherent
)

func (c class) role() vk.MemoryRole {
	switch c {
	case classUpload:
		return vk.UploadMemory
	case classReadback:
		return vk.ReadbackMemory
	case classInfo:
		return vk.InfoMemory
	}
	return vk.DeviceMemory
}

// early reports whether a released range may be handed out again before its commands
// have run, because the next access is a command on the same queue and a barrier orders the two.
func (c class) early() bool { return c == classCommands }

// hostWritten reports whether the host writes the slices of the class, so that
// each needs its flush atoms to itself on non-coherent memory.
func (c class) hostWritten() bool { return c == classHost || c == classUpload || c == classInfo }

// hostTouched reports whether the host maps the slices of the class.
func (c class) hostTouched() bool { return c != classCommands }

// memory is one buffer as the pages see it. The tests of bookkeeping make
// it without a device.
type memory struct {
	buf      *vk.Buffer
	id       uint64
	size     uint64
	mapped   []byte
	coherent bool
	close    func()
}

// source makes memory.
type source interface {
	newMemory(spec vk.BufferSpec) (memory, error)
}

// device makes memory on a device.
type device struct{ dev Device }

func (d device) newMemory(spec vk.BufferSpec) (memory, error) {
	b, err := d.dev.NewBuffer(spec)
	if err != nil {
		return memory{}, err
	}
	return memory{buf: b, id: b.ID(), size: spec.Size, mapped: b.Mapped(), coherent: b.Coherent(), close: b.Close}, nil
}

// page is one buffer and what is known of it.
type page struct {
	mem   memory
	class class
	pool  *subPool
	arena *arena      // sliced pages
	area  tlsf.Region // sliced pages
	index int         // in pool.pages

	live    int    // slices alive on it
	waiting int    // released slices that wait for their serials
	stamp   uint64 // latest serial of a range that was handed back early
	bytes   uint64 // of the slices alive, as asked for
	touched bool   // since the last look at idle pages

	// Exclusive pages: usable bytes, and the list of free pages of that size.
	usable   uint64
	nextFree *page
}

// hostVisible reports whether the host may use the mapping at all. On
// non-coherent memory a page for commands is off limits: a flush of host writes
// covers whole atoms, and would put stale bytes over what the device wrote in them.
func (p *page) hostVisible() bool { return p.mem.coherent || p.class.hostTouched() }

func (p *page) empty() bool { return p.live == 0 && p.waiting == 0 }

// arena is the pages of one pool, class and coherence, cut up by one sub-allocator.
type arena struct {
	cut   *tlsf.Allocator
	align uint64
	pages []*page // by region
}

// subPool is one pool of the installed layout.
type subPool struct {
	spec     PoolSpec
	pages    []*page
	arenas   [classCount][pagesInTwoLots]*arena
	free     [classCount]map[uint64]*page // exclusive pages by size
	reserved uint64                       // bytes of pages
	claimed  uint64                       // bytes of pages being made
	orphan   bool                         // replaced; its pages go when they are empty
	warned   bool
	stats    counters
}

// room returns how many more bytes of pages the cap allows.
func (p *subPool) room() uint64 {
	if p.spec.Cap == 0 {
		return maxSize
	}
	if used := p.reserved + p.claimed; used < p.spec.Cap {
		return p.spec.Cap - used
	}
	return 0
}

func lot(coherent bool) int {
	if coherent {
		return 0
	}
	return 1
}
