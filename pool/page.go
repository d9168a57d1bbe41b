package pool

import (
	"vkcompute/pool/internal/tlsf"
	"vkcompute/vk"
)

// class is what the pages of a slice are used for. Slices of different
// classes never share a page: they differ in memory, or in who writes it.
type class uint8

const (
	classCommands class = iota // device memory, written by commands
	classHost                  // device memory, written by the host
	classUpload                // staging, written by the host
	classReadback              // staging, read by the host
	classInfo                  // info slots, written by the host
	classCount                 // how many there are
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

// page is one buffer and what is known of it.
type page struct {
	mem   memory
	class class
	lot   lot
	pool  *subPool
	arena *arena      // sliced pages
	area  tlsf.Region // sliced pages
	index int         // in pool.pages

	live    int    // slices alive on it
	waiting int    // released slices that wait for their serials
	stamp   uint64 // latest serial of a range that was handed back early
	bytes   uint64 // of the slices alive, as asked for
	touched bool   // since the last look at idle pages

	// Exclusive pages: usable bytes, and the list of free pages of that size, linked both ways.
	usable   uint64
	nextFree *page
	prevFree *page
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
	arenas   [classCount][lotCount]*arena
	free     [classCount][lotCount]map[uint64]*page // exclusive pages by size
	reserved uint64                                 // bytes of pages
	byClass  [classCount]uint64                     // bytes of pages by class
	claimed  uint64                                 // bytes of pages being made
	orphan   bool                                   // replaced; its pages go when they are empty
	warned   bool                                   // that it is full
	warnedOf bool                                   // the memory it spilled to
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

// lot is what the pages of one pool and class may still differ in. Slices come from the first
// lot that has room: memory that was spilled to is used when the better is full.
type lot uint8

const (
	incoherent lot = 1 << iota
	spilledTo
	lotCount = 4
)

func lotOf(coherent, spilled bool) (l lot) {
	if !coherent {
		l |= incoherent
	}
	if spilled {
		l |= spilledTo
	}
	return l
}
