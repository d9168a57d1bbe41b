package pool

import (
	"fmt"
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
			nc.FlushesDone(flushes, nil)
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

// BenchmarkCleanup returns pages of one size; ns/page is the same for any number of them.
func BenchmarkCleanup(b *testing.B) {
	for _, pages := range []int{1 << 8, 1 << 12, 1 << 15} {
		b.Run(fmt.Sprintf("pages=%d", pages), func(b *testing.B) {
			m, err := NewVirtual(vk.DeviceInfo{}, nil, Options{Layout: ExclusivePages()})
			require.NoError(b, err)
			slices := make([]Slice, pages)
			for b.Loop() {
				b.StopTimer()
				for i := range slices {
					if slices[i], err = m.Alloc(4096); err != nil {
						b.Fatal(err)
					}
				}
				// The first to be returned is the last in the list.
				for i := range slices {
					if err := slices[pages-1-i].Release(); err != nil {
						b.Fatal(err)
					}
				}
				b.StartTimer()
				m.Cleanup()
			}
			require.Zero(b, m.Stats().Total.Pages)
			b.ReportMetric(float64(b.Elapsed())/float64(b.N*pages), "ns/page")
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
