package pool

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"vkcompute/vk"
)

// modelSlice is what the specification knows of a slice alive.
type modelSlice struct {
	s      Slice
	size   uint64
	class  class
	refs   [3]int // by holder
	stamp  uint64 // latest own serial, the inherited one included
	other  uint64 // latest serial of the other timeline
	id     uint64 // buffer
	lo, hi uint64 // range, padded to atoms where that matters
}

// modelBusy is a range that somebody released and the device may still use.
type modelBusy struct {
	class         class
	id            uint64
	lo, hi        uint64
	serial, other uint64
}

// machine runs a manager against the specification of retirement: which bytes
// may be handed out again, and when.
type machine struct {
	m         *Manager
	src       *fakeSource
	tl, other *fakeTimeline
	live      []*modelSlice
	busy      []modelBusy
	stale     []Slice
	serial    uint64 // of the batch being recorded
	oSerial   uint64
	pending   map[[2]uint64]bool // atoms that must be flushed, by buffer and atom
}

func (x *machine) layouts() []Layout {
	return []Layout{
		{},
		ExclusivePages(),
		{
			Pools: []PoolSpec{
				{Name: "a", Kind: Sliced, PageSize: 16 * kib, MaxSlice: 4 * kib, Cap: 64 * kib},
				{Name: "b", Kind: Exclusive, MaxSlice: 64 * kib, Cap: 128 * kib, Budget: BudgetSpill},
				{Name: "c", Kind: Sliced, PageSize: 64 * kib, MaxPageSize: 256 * kib, Budget: BudgetSpill},
			},
			Info: []PoolSpec{{Kind: Sliced, PageSize: 8 * kib, MaxSlice: 4 * kib}, {Kind: Exclusive}},
		},
		{
			Pools:   []PoolSpec{{Kind: Sliced, PageSize: 32 * kib, MaxSlice: 16 * kib, Budget: BudgetAllow}, {Kind: Exclusive}},
			Staging: []PoolSpec{{Kind: Sliced, PageSize: 16 * kib, Budget: BudgetFail}, {Kind: Exclusive, Budget: BudgetFail}},
		},
	}
}

// memories are none (one heap without end), and two kinds of device.
func (x *machine) memories(t *rapid.T) []*virtual {
	list := []*virtual{nil}
	for _, info := range []vk.DeviceInfo{discrete(300*kib, 200*kib), withWindow(256*kib, 32*kib, 300*kib)} {
		if !x.src.coherent {
			for i := range info.MemoryTypes {
				info.MemoryTypes[i].Flags &^= vk.HostCoherent
			}
		}
		v, err := newVirtual(&info)
		require.NoError(t, err)
		list = append(list, v)
	}
	return list
}

// checkBudgets compares the books of the heaps, and the bounds of the policies.
func (x *machine) checkBudgets(t *rapid.T, st Stats) {
	v := x.src.budgets
	if v == nil {
		return
	}
	passes := slices.ContainsFunc(x.m.layout.Pools, func(p PoolSpec) bool { return p.Budget == BudgetAllow }) || len(x.m.orphans) > 0
	for h, u := range v.heaps {
		own := uint64(0)
		if h < len(st.Heaps) {
			own = st.Heaps[h]
		}
		require.Equal(t, u.Used, own, "heap %d", h)
		require.LessOrEqual(t, own, u.Size)
		if !passes {
			require.LessOrEqual(t, own, u.Budget, "heap %d", h)
		}
	}
}

func (x *machine) pick(t *rapid.T) *modelSlice {
	if len(x.live) == 0 {
		t.Skip("nothing is alive")
	}
	return x.live[rapid.IntRange(0, len(x.live)-1).Draw(t, "slice")]
}

func (x *machine) alloc(t *rapid.T) {
	c := class(rapid.IntRange(0, int(classCount)-1).Draw(t, "class"))
	size := rapid.OneOf(rapid.Uint64Range(0, 600), rapid.Uint64Range(0, 8*kib), rapid.Uint64Range(0, 80*kib)).Draw(t, "size")
	s, err := x.m.alloc(size, c)
	if err != nil {
		// Only for want of memory or of a pool, and then nothing changed.
		if !errorsIsAny(err, ErrOutOfMemory, ErrTooLarge) {
			require.NoError(t, err)
		}
		return
	}
	ms := &modelSlice{s: s, size: size, class: c}
	ms.refs[User] = 1
	require.True(t, s.Valid())
	require.Equal(t, size, s.Size())
	if size == 0 && c != classInfo {
		x.live = append(x.live, ms)
		return
	}
	p := s.s.page
	ms.id, ms.lo, ms.hi = p.mem.id, s.Offset(), s.Offset()+size
	if c == classInfo {
		require.LessOrEqual(t, s.Offset()+x.m.InfoRange(size), p.mem.size)
		ms.hi = max(ms.hi, ms.lo+minInfoSlot)
	}
	require.Equal(t, c, p.class)
	require.Zero(t, ms.lo%x.m.Alignment())
	require.LessOrEqual(t, ms.hi, p.mem.size)
	if !p.mem.coherent && c.hostWritten() {
		ms.lo, ms.hi = ms.lo&^(x.m.atom-1), roundUp(ms.hi, x.m.atom)
	}
	for _, o := range x.live {
		require.False(t, o.id == ms.id && o.lo < ms.hi && ms.lo < o.hi, "handed out twice")
	}
	ms.stamp = s.LastUse()
	for _, b := range x.busy {
		if b.id != ms.id || b.lo >= ms.hi || ms.lo >= b.hi {
			continue
		}
		require.LessOrEqual(t, b.other, x.other.driver.Load(), "another queue still uses it")
		if c != classCommands {
			require.LessOrEqual(t, b.serial, x.tl.driver.Load(), "the device still uses what the host will touch")
		} else if b.serial > x.tl.driver.Load() {
			require.GreaterOrEqual(t, ms.stamp, b.serial, "the new owner does not know until when the range is busy")
		}
	}
	if c != classCommands {
		require.Zero(t, ms.stamp)
		require.True(t, s.Idle())
	}
	x.live = append(x.live, ms)
}

func (x *machine) release(t *rapid.T, ms *modelSlice, h Holder) {
	err := ms.s.ReleaseAs(h)
	if ms.refs[h] == 0 {
		require.ErrorIs(t, err, ErrNotHeld)
		return
	}
	require.NoError(t, err)
	ms.refs[h]--
	if ms.refs != [3]int{} {
		require.True(t, ms.s.Valid())
		return
	}
	require.False(t, ms.s.Valid())
	x.live = slices.DeleteFunc(x.live, func(o *modelSlice) bool { return o == ms })
	x.stale = append(x.stale, ms.s)
	if ms.hi > ms.lo {
		x.busy = append(x.busy, modelBusy{ms.class, ms.id, ms.lo, ms.hi, ms.stamp, ms.other})
	}
}

func errorsIsAny(err error, targets ...error) bool {
	for _, target := range targets {
		if x, ok := err.(interface{ Is(error) bool }); ok && x.Is(target) {
			return true
		}
	}
	return false
}

func (x *machine) check(t *rapid.T) {
	require.NoError(t, x.m.Validate())
	st := x.m.Stats()
	var bytes uint64
	graphs, caches := 0, 0
	for _, ms := range x.live {
		bytes += ms.size
		if ms.refs[Graph] > 0 {
			graphs++
		}
		if ms.refs[Cache] > 0 {
			caches++
		}
		require.True(t, ms.s.Valid())
		require.Equal(t, ms.stamp, ms.s.LastUse())
		if _, open := x.src.open[ms.id]; ms.id != 0 {
			require.True(t, open, "the page of a slice alive was returned")
		}
	}
	require.Equal(t, len(x.live), st.Total.Slices)
	require.Equal(t, bytes, st.Total.InUse)
	require.Equal(t, [2]int{graphs, caches}, [2]int{st.HeldByGraph, st.HeldByCache})
	require.Equal(t, len(x.src.open), st.Total.Pages)
	x.checkBudgets(t, st)
	x.checkMap(t, st)
	require.Equal(t, x.src.bytes, st.Total.Reserved)
	for _, b := range x.busy {
		if b.serial > x.tl.driver.Load() || b.other > x.other.driver.Load() {
			require.Contains(t, x.src.open, b.id, "the page of a busy range was returned")
		}
	}
}

func TestStateMachine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := &machine{src: newFakeSource(), tl: &fakeTimeline{}, other: &fakeTimeline{}, serial: 1, oSerial: 1, pending: map[[2]uint64]bool{}}
		x.src.coherent = rapid.Bool().Draw(t, "coherent")
		x.src.limit = rapid.SampledFrom([]uint64{0, 256 * kib, 600 * kib}).Draw(t, "limit")
		x.src.unbacked = true
		x.src.budgets = rapid.SampledFrom(x.memories(t)).Draw(t, "memory")
		limits := vk.Limits{
			MinStorageBufferAlignment: uint64(1) << rapid.IntRange(2, 8).Draw(t, "align"),
			NonCoherentAtomSize:       uint64(1) << rapid.IntRange(0, 8).Draw(t, "atom"),
			MaxStorageBufferRange:     1 << 27,
		}
		var err error
		x.m, err = newManager(x.src, limits, x.tl, Options{Layout: rapid.SampledFrom(x.layouts()).Draw(t, "layout"), IdlePeriod: 1})
		require.NoError(t, err)
		t.Repeat(map[string]func(*rapid.T){
			"":       x.check,
			"alloc":  x.alloc,
			"alloc2": x.alloc,
			"use": func(t *rapid.T) {
				ms := x.pick(t)
				require.NoError(t, ms.s.Use(x.serial))
				ms.stamp = max(ms.stamp, x.serial)
			},
			"use elsewhere": func(t *rapid.T) {
				ms := x.pick(t)
				require.NoError(t, ms.s.UseOn(x.other, x.oSerial))
				ms.other = x.oSerial
			},
			"retain": func(t *rapid.T) {
				ms, h := x.pick(t), Holder(rapid.IntRange(0, 2).Draw(t, "holder"))
				require.NoError(t, ms.s.RetainAs(h))
				ms.refs[h]++
			},
			"release":  func(t *rapid.T) { x.release(t, x.pick(t), Holder(rapid.IntRange(0, 2).Draw(t, "holder"))) },
			"release2": func(t *rapid.T) { x.release(t, x.pick(t), User) },
			"hand over": func(t *rapid.T) {
				ms := x.pick(t)
				from, to := Holder(rapid.IntRange(0, 2).Draw(t, "from")), Holder(rapid.IntRange(0, 2).Draw(t, "to"))
				if err := ms.s.HandOver(from, to); ms.refs[from] == 0 && from != to {
					require.ErrorIs(t, err, ErrNotHeld)
				} else if ms.refs[from] > 0 {
					require.NoError(t, err)
					ms.refs[from]--
					ms.refs[to]++
				}
			},
			"use after release": func(t *rapid.T) {
				if len(x.stale) == 0 {
					t.Skip("nothing was released")
				}
				s := rapid.SampledFrom(x.stale).Draw(t, "stale")
				require.False(t, s.Valid())
				require.ErrorIs(t, s.Release(), ErrReleased)
				require.ErrorIs(t, s.Use(1<<40), ErrReleased)
				require.ErrorIs(t, s.Retain(), ErrReleased)
			},
			"submit": func(*rapid.T) { x.serial++ },
			"complete": func(t *rapid.T) {
				x.tl.driver.Store(rapid.Uint64Range(x.tl.driver.Load(), x.serial-1).Draw(t, "serial"))
			},
			"complete elsewhere": func(*rapid.T) { x.other.driver.Store(x.oSerial); x.oSerial++ }, // nobody asks
			"refresh":            func(*rapid.T) { _, _ = x.tl.Refresh() },
			"refresh elsewhere":  func(*rapid.T) { _, _ = x.other.Refresh() },
			"drain":              func(*rapid.T) { x.m.Drain() },
			"cleanup":            func(*rapid.T) { x.m.Cleanup() },
			"install": func(t *rapid.T) {
				l := rapid.SampledFrom(x.layouts()).Draw(t, "layout")
				err := x.m.Install(l)
				if len(x.live) > 0 {
					require.ErrorIs(t, err, ErrInUse)
				}
				if err == nil {
					require.Empty(t, x.src.open)
				}
			},
			"install around": func(t *rapid.T) {
				err := x.m.InstallAround(rapid.SampledFrom(x.layouts()).Draw(t, "layout"))
				held := !slices.ContainsFunc(x.live, func(ms *modelSlice) bool { return ms.refs[Graph] == 0 })
				require.Equal(t, held, err == nil)
			},
			"write": func(t *rapid.T) {
				ms := x.pick(t)
				if ms.size == 0 {
					t.Skip("nothing to write")
				}
				off := rapid.Uint64Range(0, ms.size-1).Draw(t, "off")
				n := rapid.Uint64Range(1, ms.size-off).Draw(t, "n")
				err := ms.s.Written(off, n)
				switch {
				case !ms.s.s.page.mem.visible:
					require.ErrorIs(t, err, ErrNotHostWritable)
				case ms.s.Coherent():
					require.NoError(t, err)
				case !ms.class.hostWritten():
					require.ErrorIs(t, err, ErrNotHostWritable)
				default:
					require.NoError(t, err)
					at := ms.s.Offset() + off
					for a := at &^ (x.m.atom - 1); a < at+n; a += x.m.atom {
						x.pending[[2]uint64{ms.id, a}] = true
					}
				}
			},
			"flush": func(t *rapid.T) {
				x.flush(t)
			},
		})
		x.finish(t)
	})
}

// checkMap draws the pages and finds every byte of them, and every slice.
func (x *machine) checkMap(t *rapid.T, st Stats) {
	mp := x.m.Map()
	require.NoError(t, mp.Validate())
	var got, want struct {
		reserved, inUse, padding, waiting uint64
		slices, released                  int
	}
	for _, p := range mp.Pools {
		for _, pg := range p.Pages {
			got.reserved += pg.Size
			for _, r := range pg.Ranges {
				switch {
				case r.State.Alive():
					got.slices++
					got.inUse += r.Asked
					got.padding += r.Size - r.Asked
				case r.State == RangeWaiting:
					got.released++
					got.waiting += r.Size
				}
			}
		}
	}
	want.reserved, want.inUse, want.padding, want.waiting = st.Total.Reserved, st.Total.InUse, st.Total.Padding, st.Total.WaitingBytes
	want.slices, want.released = st.Total.Slices-x.m.zero.live, st.Total.Waiting
	require.Equal(t, want, got)
}

// flush takes what is pending. The fakes have no buffers to tell pages apart,
// so the pages' ranges are checked before they are converted.
func (x *machine) flush(t *rapid.T) {
	got := map[[2]uint64]bool{}
	for _, f := range x.m.flushes {
		require.Zero(t, f.lo%x.m.atom)
		for a := f.lo; a < f.hi; a += x.m.atom {
			got[[2]uint64{f.page.mem.id, a}] = true
		}
	}
	for k := range x.pending {
		if _, open := x.src.open[k[0]]; open {
			require.True(t, got[k], "a write was lost")
		}
	}
	for k := range got {
		require.True(t, x.pending[k], "a flush of atoms that nobody wrote")
	}
	ranges := x.m.PendingFlushes(nil)
	if len(ranges) > 0 {
		// Pages that go meanwhile are closed afterwards, and not before.
		closed := x.src.closed
		x.m.Cleanup()
		require.Equal(t, closed, x.src.closed, "a page was closed while it was flushed")
		x.m.FlushesDone(ranges, nil)
	}
	total := uint64(0)
	for _, r := range ranges {
		total += r.Size
	}
	require.Equal(t, uint64(len(got))*x.m.atom, total, "ranges overlap")
	clear(x.pending)
}

// finish gives everything back; nothing may remain.
func (x *machine) finish(t *rapid.T) {
	for len(x.live) > 0 {
		ms := x.live[0]
		for h := range ms.refs {
			for ms.refs[h] > 0 {
				x.release(t, ms, Holder(h))
			}
		}
	}
	x.tl.complete(x.serial)
	x.other.complete(x.oSerial)
	x.m.Cleanup()
	require.NoError(t, x.m.Validate())
	require.Empty(t, x.src.open)
	require.NoError(t, x.m.Install(Layout{}))
	require.NoError(t, x.m.Close())
}
