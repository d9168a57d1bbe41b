package pool

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"vkcompute/vk"
)

// Demand is some slices of one kind that are alive together.
type Demand struct {
	Size  uint64
	Role  vk.MemoryRole
	Next  Access
	Count int // 0 is 1
}

// Validate says whether the demand makes sense.
func (d Demand) Validate() error {
	if d.Count < 0 || int(d.Role) >= roles || d.Next > NextHost {
		return fmt.Errorf("pool: demand of %d slices, %v, %v; want a number, a role and an access", d.Count, d.Role, d.Next)
	}
	return nil
}

// HeapNeed is what the pages take of one heap. Sizes are bytes.
type HeapNeed struct {
	Heap     int    `json:"heap"`
	Reserved uint64 `json:"reserved"`
	Budget   uint64 `json:"budget"` // 0 when there is no bound
}

// Report is what a layout would need.
type Report struct {
	Stats Stats      `json:"stats"`
	Heaps []HeapNeed `json:"heaps"`
}

// String returns the statistics and a line for each heap.
func (r Report) String() string {
	var b strings.Builder
	b.WriteString(r.Stats.String())
	for _, h := range r.Heaps {
		fmt.Fprintf(&b, "heap %d: %d bytes reserved", h.Heap, h.Reserved)
		if h.Budget > 0 {
			fmt.Fprintf(&b, " of a budget of %d (%.0f %%)", h.Budget, float64(h.Reserved)/float64(h.Budget)*100)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// DryRun reports what a layout would need on a device for slices that are alive together, allocated in
// this order, without a device. If they do not fit, the report says how far they came and the
// error is that of the allocation that failed. The cost is that of the allocations.
func DryRun(l Layout, info vk.DeviceInfo, demands []Demand) (Report, error) {
	v, err := newVirtual(&info)
	if err != nil {
		return Report{}, err
	}
	return dryRun(l, v, info.Limits, demands)
}

// DryRun reports what another layout would need on this device for the slices alive now,
// the larger first. Nothing changes. Memory that others use counts against the budget.
func (m *Manager) DryRun(l Layout) (Report, error) {
	demands, own := m.alive()
	v := &virtual{maxCount: m.limits.MaxMemoryAllocationCount}
	for r := range v.kinds {
		v.kinds[r] = m.kinds[r].all
		for _, t := range v.kinds[r] {
			for len(v.heaps) <= t.heap {
				h := m.src.usage(len(v.heaps))
				mine := uint64(0)
				if len(own) > len(v.heaps) {
					mine = own[len(v.heaps)]
				}
				others := h.Used - min(h.Used, mine)
				if h.Size == 0 {
					h.Size, h.Budget = maxSize, maxSize
				}
				v.heaps = append(v.heaps, vk.HeapUsage{Size: h.Size - min(h.Size, others), Budget: h.Budget - min(h.Budget, others)})
			}
		}
	}
	return dryRun(l, v, m.limits, demands)
}

// alive lists the slices alive, and the bytes of their pages by heap.
func (m *Manager) alive() (demands []Demand, byHeap []uint64) {
	m.mu.Lock()
	m.eachSlot(func(sl *slot) {
		if sl.refs == 0 {
			return
		}
		d := Demand{Size: sl.size, Role: sl.page.class.role()}
		if sl.page.class == classHost {
			d.Next = NextHost
		}
		demands = append(demands, d)
	})
	byHeap = slices.Clone(m.byHeap)
	m.mu.Unlock()
	slices.SortFunc(demands, func(a, b Demand) int {
		return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Next, b.Next), cmp.Compare(b.Size, a.Size))
	})
	return demands, byHeap
}

// eachSlot calls f for each slot that is alive or waits, and for those of zero-size slices.
func (m *Manager) eachSlot(f func(*slot)) {
	for _, chunk := range m.chunks {
		for i := range chunk {
			if sl := &chunk[i]; sl.refs > 0 || sl.page != m.zero {
				f(sl)
			}
		}
	}
}

func dryRun(l Layout, v *virtual, limits vk.Limits, demands []Demand) (Report, error) {
	m, err := newManager(v, limits, idle{}, Options{Layout: l})
	if err != nil {
		return Report{}, err
	}
	for i, d := range demands {
		if err = d.Validate(); err != nil {
			break
		}
		for range max(d.Count, 1) {
			if _, err = m.AllocFor(d.Size, d.Role, d.Next); err != nil {
				break
			}
		}
		if err != nil {
			err = fmt.Errorf("pool: dry run, demand %d of %d: %w", i+1, len(demands), err)
			break
		}
	}
	r := Report{Stats: m.Stats()}
	for h, n := range r.Stats.Heaps {
		need := HeapNeed{Heap: h, Reserved: n}
		if b := v.usage(h).Budget; b < maxSize {
			need.Budget = b
		}
		r.Heaps = append(r.Heaps, need)
	}
	return r, err
}
