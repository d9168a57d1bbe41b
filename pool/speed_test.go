package pool

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vkcompute/vk"
)

func TestWarmCallsDoNotAllocate(t *testing.T) {
	if recordsStacks {
		t.Skip("recording stacks allocates")
	}
	m, _, tl := newFake(t, Options{})
	nc, nctl := newNonCoherent(t, 16, 64)
	must := func(err error) {
		if err != nil {
			t.Error(err)
		}
	}
	serial := uint64(0)
	flushes := make([]vk.FlushRange, 0, 8)
	for name, f := range map[string]func(){
		"device": func() {
			s, err := m.Alloc(1000)
			must(err)
			must(s.Use(serial))
			must(s.Retain())
			must(s.Release())
			must(s.Release())
		},
		"exclusive": func() {
			s, err := m.Alloc(64 * mib)
			must(err)
			must(s.Release())
		},
		"info": func() {
			serial++
			s, err := m.AllocInfo(200)
			must(err)
			must(s.Written(0, 200))
			must(s.HandOver(User, Cache))
			must(s.Use(serial))
			must(s.ReleaseAs(Cache))
			tl.complete(serial)
			m.Drain()
		},
		"non-coherent info": func() {
			serial++
			s, err := nc.AllocInfo(200)
			must(err)
			must(s.Written(0, 200))
			must(s.Use(serial))
			must(s.Release())
			flushes = nc.PendingFlushes(flushes[:0])
			nctl.complete(serial)
			nc.Drain()
		},
		"accessors": func() {
			s, err := m.AllocInfo(16)
			must(err)
			_, _, _, ok := s.Range()
			if !ok || s.Mapped() == nil || !s.Idle() || m.Check(s) != nil {
				t.Error("not alive")
			}
			must(s.Release())
		},
	} {
		f()
		assert.Zero(t, testing.AllocsPerRun(200, f), name)
	}
	require.NotEmpty(t, flushes)
}

// BenchmarkCycle frees and allocates one slice of many: 64 to 4096 bytes at
// alignment 256, in random order.
func BenchmarkCycle(b *testing.B) {
	for _, live := range []int{64, 1024, 16384} {
		b.Run(fmt.Sprintf("live=%d", live), func(b *testing.B) {
			m, src, _ := newFake(b, Options{Layout: Layout{Pools: []PoolSpec{{Kind: Sliced, PageSize: uint64(live) * 8192}}}})
			src.unbacked = true
			rnd := rand.New(rand.NewPCG(1, 2))
			var sizes [1 << 16]uint64
			var order [1 << 16]uint32
			for i := range sizes {
				sizes[i] = 64 + rnd.Uint64N(4096-64+1)
				order[i] = uint32(rnd.IntN(live))
			}
			slices := make([]Slice, live)
			for i := range slices {
				var err error
				if slices[i], err = m.Alloc(sizes[i]); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				k := order[i&(len(order)-1)]
				if err := slices[k].Release(); err != nil {
					b.Fatal(err)
				}
				var err error
				if slices[k], err = m.Alloc(sizes[i&(len(sizes)-1)]); err != nil {
					b.Fatal(err)
				}
				i++
			}
			if len(src.open) != 1 {
				b.Fatalf("%d pages: not what is to be measured", len(src.open))
			}
		})
	}
}

// BenchmarkInfo is the life of one info slot: allocated, stamped, released, waited for.
func BenchmarkInfo(b *testing.B) {
	m, _, tl := newFake(b, Options{})
	serial := uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		s, err := m.AllocInfo(96)
		if err != nil {
			b.Fatal(err)
		}
		if serial%256 == 0 {
			tl.complete(serial)
			m.Drain()
		}
		serial++
		if s.Use(serial) != nil || s.Release() != nil {
			b.Fatal("not alive")
		}
	}
}

func BenchmarkUse(b *testing.B) {
	m, _, _ := newFake(b, Options{})
	s, err := m.Alloc(1000)
	if err != nil {
		b.Fatal(err)
	}
	serial := uint64(0)
	for b.Loop() {
		serial++
		if s.Use(serial) != nil {
			b.Fatal("not alive")
		}
	}
}
