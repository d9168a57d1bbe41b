package poolbench

import (
	"vkcompute/internal/poolbench/alloctrace"
	"vkcompute/pool"
	"vkcompute/vk"
)

// gauge follows how far the pages in use reach.
type gauge struct {
	trace *alloctrace.Trace
	m     *pool.Manager
	lives []alloctrace.Life
	next  int           // life that the next allocation begins
	ends  map[int][]int // lives by the event that ends them
	where []spot        // by life

	reach       [4]map[uint64]*extent // by role and page
	now         [4]uint64
	most        [4]uint64
	total, peak uint64 // of all roles
	pages       [4]int // made

	reserved     [4]uint64 // the most that pages took at a time
	reservedNow  uint64
	reservedPeak uint64 // of all roles
}

type spot struct{ page, end uint64 }

// extent is what is alive on one page.
type extent struct {
	alive map[int]struct{} // lives
	end   uint64
}

func newGauge(t *alloctrace.Trace, m *pool.Manager) *gauge {
	g := &gauge{trace: t, m: m, lives: t.Lives(), ends: make(map[int][]int)}
	for i, l := range g.lives {
		g.ends[l.End] = append(g.ends[l.End], i)
	}
	g.where = make([]spot, len(g.lives))
	for r := range g.reach {
		g.reach[r] = make(map[uint64]*extent)
	}
	return g
}

// after is called after each event.
func (g *gauge) after(i int, s pool.Slice) error {
	for _, k := range g.ends[i] {
		g.leave(k)
	}
	if e := g.trace.Events[i]; e.Kind == alloctrace.Alloc {
		g.enter(g.next, s, aligned(e.Size, g.m))
		g.next++
		g.reserve()
	}
	return nil
}

// reserve looks at what the pages take. A page that replaces others is made after those are gone, so that no moment in
// between had more.
func (g *gauge) reserve() {
	now := g.m.Stats().Total
	if now.Reserved == g.reservedNow && now.PeakReserved == g.reservedPeak {
		return
	}
	g.reservedNow, g.reservedPeak = now.Reserved, now.PeakReserved
	var sum [4]uint64
	for _, p := range g.m.Map().Pools {
		for _, pg := range p.Pages {
			sum[pg.Role] += pg.Size
		}
	}
	for r := range sum {
		g.reserved[r] = max(g.reserved[r], sum[r])
	}
}

func (g *gauge) enter(k int, s pool.Slice, size uint64) {
	role, page := g.lives[k].Role, s.Page()
	if page == 0 {
		return // it has no bytes
	}
	x := g.reach[role][page]
	if x == nil {
		x = &extent{alive: make(map[int]struct{})}
		g.reach[role][page] = x
		g.pages[role]++
	}
	g.where[k] = spot{page, s.Offset() + size}
	x.alive[k] = struct{}{}
	g.move(role, x, max(x.end, s.Offset()+size))
}

func (g *gauge) leave(k int) {
	role := g.lives[k].Role
	x := g.reach[role][g.where[k].page]
	if x == nil {
		return
	}
	delete(x.alive, k)
	if g.where[k].end < x.end {
		return
	}
	end := uint64(0)
	for o := range x.alive {
		end = max(end, g.where[o].end)
	}
	g.move(role, x, end)
}

func (g *gauge) move(role vk.MemoryRole, x *extent, end uint64) {
	g.now[role] += end - x.end
	g.total += end - x.end
	x.end = end
	g.most[role] = max(g.most[role], g.now[role])
	g.peak = max(g.peak, g.total)
}
