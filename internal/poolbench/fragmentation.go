package poolbench

import (
	"fmt"
	"slices"
	"strings"

	"vkcompute/internal/poolbench/alloctrace"
	"vkcompute/internal/poolbench/packing"
	"vkcompute/pool"
	"vkcompute/vk"
)

// Waste is how much memory a pool took for a trace, in bytes, of one role or of all.
type Waste struct {
	Role     string
	Live     uint64 // the most that was alive at a time, aligned: no allocator needs less
	Packed   uint64 // the best placement found offline, by somebody who knows the future
	Span     uint64 // the most that pages in use spanned at a time, each up to its last byte in use
	Reserved uint64 // the most that pages took at a time
	Pages    int    // made
}

// Fragmentation is what Span is above Packed, as a part of it.
func (w Waste) Fragmentation() float64 { return ratio(w.Span, w.Packed) }

// Overhead is what Reserved is above Packed, as a part of it.
func (w Waste) Overhead() float64 { return ratio(w.Reserved, w.Packed) }

func ratio(n, of uint64) float64 {
	if of == 0 {
		return 0
	}
	return float64(n)/float64(of) - 1
}

// Report is the waste by role, and in all.
type Report struct {
	Roles []Waste
	Total Waste
	// Apart is the sum of what is packed by role. It is what Total.Reserved can come near to: memory of one role is of
	// no use for another, and each needs its most at another time. Total.Packed has them share.
	Apart uint64
}

// Overhead is what Total.Reserved is above Apart, as a part of it.
func (r Report) Overhead() float64 { return ratio(r.Total.Reserved, r.Apart) }

func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-10s %12s %12s %12s %9s %12s %9s %6s\n", "role", "live", "packed", "span", "", "reserved", "", "pages")
	for _, w := range slices.Concat(r.Roles, []Waste{r.Total}) {
		fmt.Fprintf(&b, "%-10s %12d %12d %12d %+8.2f%% %12d %+8.2f%% %6d\n",
			w.Role, w.Live, w.Packed, w.Span, 100*w.Fragmentation(), w.Reserved, 100*w.Overhead(), w.Pages)
	}
	fmt.Fprintf(&b, "%-10s %25d %35d %+8.2f%%\n", "apart", r.Apart, r.Total.Reserved, 100*r.Overhead())
	return b.String()
}

// Fragmentation plays a trace on a layout and compares the memory that it took with the best placement
// of the same allocations. The total is compared with a placement that mixes roles, which a pool must not.
func Fragmentation(t *alloctrace.Trace, l pool.Layout, info vk.DeviceInfo) (Report, error) {
	var p alloctrace.Player
	m, err := pool.NewVirtual(info, &p.Timeline, pool.Options{Layout: l, IdlePeriod: -1})
	if err != nil {
		return Report{}, err
	}
	g := newGauge(t, m)
	p.After = g.after
	if err := p.Play(t, m); err != nil {
		return Report{}, err
	}
	var r Report
	r.Total.Role = "total"
	var all []packing.Item
	for role := vk.DeviceMemory; role <= vk.InfoMemory; role++ {
		w := Waste{Role: role.String(), Span: g.most[role], Reserved: g.reserved[role], Pages: g.pages[role]}
		items := Items(t, role, m)
		w.Live = packing.Bound(items)
		w.Packed = packing.Best(items).Span
		r.Roles = append(r.Roles, w)
		all = append(all, items...)
		r.Apart += w.Packed
		r.Total.Pages += w.Pages
	}
	r.Total.Reserved = g.reservedPeak
	r.Total.Live, r.Total.Packed, r.Total.Span = packing.Bound(all), packing.Best(all).Span, g.peak
	if err := p.Release(); err != nil {
		return Report{}, err
	}
	return r, m.Close()
}

// Items returns the allocations of one role, with sizes aligned as the pool must.
func Items(t *alloctrace.Trace, role vk.MemoryRole, m *pool.Manager) []packing.Item {
	var items []packing.Item
	for _, l := range t.Lives() {
		if l.Role == role {
			items = append(items, packing.Item{Size: aligned(l.Size, m), Begin: l.Begin, End: l.End})
		}
	}
	return items
}

func aligned(size uint64, m *pool.Manager) uint64 {
	a := m.Alignment()
	return (size + a - 1) / a * a
}
