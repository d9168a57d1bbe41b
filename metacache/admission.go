package metacache

import (
	"fmt"
	"math/bits"
)

// sketch estimates how often keys were looked up lately, in a few bytes for
// each entry of the cache.
//
// It is the frequency filter of TinyLFU (Einziger, Friedman, Manes: "TinyLFU: A
// Highly Efficient Cache Admission Policy", ACM Transactions on Storage 13(4),
// 2017): a count-min sketch of 4-bit counters, incremented only where they are
// smallest, behind a doorkeeper, a Bloom filter that absorbs the first sight of
// a key so that keys seen once leave no mark on the counters. After about ten
// look-ups for each entry all counts halve.
//
// Two things differ from the paper. All counters and doorkeeper bits of one key
// are in one block, so that a look-up touches one or two cache lines. And the
// halving sweeps: after every few look-ups it ages one block, so that no
// look-up ever pays for all of them; each block is still aged once a period.
type sketch struct {
	blocks []block
	// A period is so many look-ups. credit grows by the number of blocks with
	// each and pays a period for each block aged.
	period, credit uint64
	sweep          uint64
}

// block holds four rows of 32 counters, and the doorkeeper's bits.
type block struct {
	counters [4][2]uint64
	door     uint64
}

const (
	// The sketch is made for at least and at most so many entries: below, its
	// samples are too few to tell keys apart; above, its memory is.
	minSketchEntries = 64
	maxSketchEntries = 1 << 20
	entriesPerBlock  = 4
	lookupsPerEntry  = 10
	maxCount         = 15
)

func newSketch(entries int) *sketch {
	n := uint64(min(max(entries, minSketchEntries), maxSketchEntries))
	blocks := uint64(1) << bits.Len64(n/entriesPerBlock-1)
	return &sketch{blocks: make([]block, blocks), period: lookupsPerEntry * n}
}

// add counts one look-up of the key with this sum.
func (s *sketch) add(sum uint64) {
	s.age()
	b := s.block(sum)
	if door := doorBits(sum); b.door&door != door {
		b.door |= door
		return
	}
	smallest := b.smallest(sum)
	if smallest == maxCount {
		return
	}
	for row := range b.counters {
		word, shift := counterAt(sum, row)
		if b.counters[row][word]>>shift&maxCount == smallest {
			b.counters[row][word] += 1 << shift
		}
	}
}

// estimate returns about how often the key was looked up lately. It is rather
// too high than too low.
func (s *sketch) estimate(sum uint64) uint64 {
	b := s.block(sum)
	n := b.smallest(sum)
	if door := doorBits(sum); b.door&door == door {
		n++
	}
	return n
}

func (s *sketch) age() {
	s.credit += uint64(len(s.blocks))
	if s.credit < s.period {
		return
	}
	s.credit -= s.period
	b := &s.blocks[s.sweep]
	s.sweep = (s.sweep + 1) % uint64(len(s.blocks))
	b.door = 0
	for row := range b.counters {
		for word := range b.counters[row] {
			b.counters[row][word] = b.counters[row][word] >> 1 & 0x7777_7777_7777_7777
		}
	}
}

// The bits of a sum are spent once each: 32 to 63 choose the block, 12 to 31
// the counters, 0 to 11 the doorkeeper's bits.

func (s *sketch) block(sum uint64) *block {
	return &s.blocks[sum>>32&uint64(len(s.blocks)-1)]
}

func doorBits(sum uint64) uint64 { return 1<<(sum&63) | 1<<(sum>>6&63) }

func counterAt(sum uint64, row int) (word, shift uint64) {
	i := sum >> (12 + 5*row) & 31
	return i / 16, i % 16 * 4
}

func (b *block) smallest(sum uint64) uint64 {
	n := uint64(maxCount)
	for row := range b.counters {
		word, shift := counterAt(sum, row)
		n = min(n, b.counters[row][word]>>shift&maxCount)
	}
	return n
}

func (s *sketch) validate() error {
	n := uint64(len(s.blocks))
	switch {
	case n == 0 || n&(n-1) != 0:
		return fmt.Errorf("sketch: want a power of two of blocks, found %d", n)
	case s.period < n:
		return fmt.Errorf("sketch: want a period of at least one look-up a block, found %d look-ups and %d blocks", s.period, n)
	case s.credit >= s.period:
		return fmt.Errorf("sketch: want credit below the period of %d, found %d", s.period, s.credit)
	case s.sweep >= n:
		return fmt.Errorf("sketch: want the next block to age below %d, found %d", n, s.sweep)
	}
	return nil
}
