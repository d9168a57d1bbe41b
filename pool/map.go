package pool

import (
	"cmp"
	"fmt"
	"slices"

	"vkcompute/vk"
)

// RangeState says what a range of a page is doing.
type RangeState uint8

const (
	// RangeFree can be handed out.
	RangeFree RangeState = iota
	// RangeBusy is free for commands of the same queue, and still in use by earlier ones.
	RangeBusy
	// RangeWaiting was released and waits for its serials.
	RangeWaiting
	// RangeUser is a slice alive that neither graph nor cache holds.
	RangeUser
	// RangeGraph is a slice alive that a graph holds.
	RangeGraph
	// RangeCache is a slice alive that a metadata cache holds and no graph.
	RangeCache
	// RangeTail is the end of an info page, which descriptors may cover and no slot uses.
	RangeTail
	rangeStates = int(iota)
)

func (s RangeState) String() string {
	if int(s) >= rangeStates {
		return fmt.Sprintf("RangeState(%d)", uint8(s))
	}
	return [...]string{"free", "free, still busy", "waiting", "in use", "held by a graph", "held by the cache", "tail"}[s]
}

// Alive reports whether the range is a slice that somebody refers to.
func (s RangeState) Alive() bool { return s == RangeUser || s == RangeGraph || s == RangeCache }

// MapRange is a range of a page. Sizes and offsets are bytes.
type MapRange struct {
	Offset uint64
	Size   uint64
	Asked  uint64 // by the slice that lies there; the rest is padding
	State  RangeState
}

// MapPage is a page. Its ranges cover it from end to end.
type MapPage struct {
	ID       uint64 // as [Slice.Page]
	Size     uint64
	Role     vk.MemoryRole
	Next     Access
	Coherent bool
	Spilled  bool // not in the memory that is best for the role
	Heap     int
	Ranges   []MapRange
}

// MapPool is a pool with its pages.
type MapPool struct {
	Name     string
	Kind     Kind
	Replaced bool
	Pages    []MapPage
}

// Map is a picture of a manager's pages at one moment, pools without pages left out.
type Map struct {
	Pools []MapPool
	Stats Stats
	Heaps []vk.HeapUsage // of the device, by index; those of no known size are zero
}

// Map takes the picture. It looks at every slice under the lock.
func (m *Manager) Map() Map {
	var out Map
	m.mu.Lock()
	bySlot := make(map[*page][]*slot)
	m.eachSlot(func(sl *slot) { bySlot[sl.page] = append(bySlot[sl.page], sl) })
	m.eachPool(func(p *subPool) {
		if len(p.pages) == 0 {
			return
		}
		mp := MapPool{Name: p.spec.Name, Kind: p.spec.Kind, Replaced: p.orphan, Pages: make([]MapPage, len(p.pages))}
		for i, pg := range p.pages {
			mp.Pages[i] = m.mapPage(pg, bySlot[pg])
		}
		slices.SortFunc(mp.Pages, func(a, b MapPage) int { return cmp.Compare(a.ID, b.ID) })
		out.Pools = append(out.Pools, mp)
	})
	out.Stats = m.stats()
	m.mu.Unlock()
	for h := range out.Stats.Heaps {
		out.Heaps = append(out.Heaps, m.src.usage(h))
	}
	return out
}

func (m *Manager) mapPage(pg *page, on []*slot) MapPage {
	out := MapPage{
		ID: pg.mem.id, Size: pg.mem.size, Role: pg.class.role(), Coherent: pg.mem.coherent,
		Spilled: pg.lot&spilledTo != 0, Heap: pg.mem.heap,
	}
	if pg.class.hostTouched() {
		out.Next = NextHost
	}
	byOffset := make(map[uint64]*slot, len(on))
	for _, sl := range on {
		byOffset[sl.off] = sl
	}
	add := func(off, size, stamp uint64, used bool) {
		r := MapRange{Offset: off, Size: size}
		sl := byOffset[off]
		switch {
		case !used && stamp > m.wheel.drained:
			r.State = RangeBusy
		case !used || sl == nil:
			r.State = RangeFree
		case sl.refs == 0:
			r.State, r.Asked = RangeWaiting, sl.size
		case sl.holds.graphs() > 0:
			r.State, r.Asked = RangeGraph, sl.size
		case sl.holds.caches() > 0:
			r.State, r.Asked = RangeCache, sl.size
		default:
			r.State, r.Asked = RangeUser, sl.size
		}
		out.Ranges = append(out.Ranges, r)
	}
	end := uint64(0)
	if pg.arena == nil {
		add(0, pg.usable, pg.stamp, !pg.empty())
		end = pg.usable
	} else {
		pg.arena.cut.Walk(pg.area, func(off, size uint64, used bool, stamp uint64) bool {
			add(off, size, stamp, used)
			end = off + size
			return true
		})
	}
	if end < pg.mem.size {
		out.Ranges = append(out.Ranges, MapRange{Offset: end, Size: pg.mem.size - end, State: RangeTail})
	}
	return out
}

// Validate says whether the picture is complete: ranges that follow one another from the beginning of
// each page to its end.
func (p Map) Validate() error {
	for _, pool := range p.Pools {
		for _, pg := range pool.Pages {
			end := uint64(0)
			for _, r := range pg.Ranges {
				if r.Offset != end || r.Size == 0 || r.Asked > r.Size {
					return fmt.Errorf("pool: map of %q, page %d: range of %d bytes at %d for %d, want it at %d", pool.Name, pg.ID, r.Size, r.Offset, r.Asked, end)
				}
				end += r.Size
			}
			if end != pg.Size {
				return fmt.Errorf("pool: map of %q, page %d: ranges end at %d of %d", pool.Name, pg.ID, end, pg.Size)
			}
		}
	}
	return nil
}
