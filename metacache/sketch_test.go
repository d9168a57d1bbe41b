package metacache

import (
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSketchCounts(t *testing.T) {
	s := newSketch(maxSketchEntries) // ages no block of these keys in so few look-ups
	random := rand.New(rand.NewPCG(3, 4))
	sums := make([]uint64, 100)
	for i := range sums {
		sums[i] = random.Uint64()
	}
	for n := range 10 {
		for i, sum := range sums {
			if i%10 >= n {
				s.add(sum)
			}
		}
	}
	high := 0
	for i, sum := range sums {
		want := uint64(i%10 + 1)
		got := s.estimate(sum)
		require.GreaterOrEqual(t, got, want, "no estimate is too low before its block ages")
		if got > want {
			high++
		}
	}
	assert.Less(t, high, 5, "want few collisions among 100 keys in so much room")
	require.NoError(t, s.validate())
}

func TestSketchSaturates(t *testing.T) {
	s := newSketch(1 << 12)
	for range 100 {
		s.add(7)
	}
	assert.Equal(t, uint64(maxCount+1), s.estimate(7))
	assert.Zero(t, s.estimate(7<<32))
}

func TestSketchAgesEachBlockOnceAPeriod(t *testing.T) {
	for _, entries := range []int{1, 64, 100, 4096, 5000} {
		s := newSketch(entries)
		require.NoError(t, s.validate())
		for i := range s.blocks {
			for row := range s.blocks[i].counters {
				s.blocks[i].counters[row] = [2]uint64{0x8888_8888_8888_8888, 0x8888_8888_8888_8888}
			}
			s.blocks[i].door = ^uint64(0)
		}
		for range s.period {
			s.age()
		}
		require.NoError(t, s.validate())
		for i := range s.blocks {
			for row := range s.blocks[i].counters {
				require.Equal(t, [2]uint64{0x4444_4444_4444_4444, 0x4444_4444_4444_4444}, s.blocks[i].counters[row])
			}
			require.Zero(t, s.blocks[i].door)
		}
	}
}

func TestSketchIsBounded(t *testing.T) {
	s := newSketch(maxPolicyEntries)
	assert.LessOrEqual(t, len(s.blocks)*int(unsafe.Sizeof(block{})), 32<<20)
	assert.Len(t, newSketch(1).blocks, minSketchEntries/entriesPerBlock)
}

func TestAnEntryFillsACacheLine(t *testing.T) {
	assert.Equal(t, uintptr(64), unsafe.Sizeof(entry[[2]uint64]{}))
}
