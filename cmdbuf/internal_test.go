package cmdbuf

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"vkcompute/shaders"
)

// byteSet is the obvious model of spans.
type byteSet [64]bool

func (s *byteSet) add(lo, hi uint64) {
	for i := lo; i < hi; i++ {
		s[i] = true
	}
}

func (s *byteSet) overlap(lo, hi uint64) bool { return slices.Contains(s[lo:hi], true) }

func TestSpansAreASetOfBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var model byteSet
		var s spans
		for range rapid.IntRange(1, 40).Draw(t, "n") {
			lo := rapid.Uint64Range(0, 62).Draw(t, "lo")
			hi := rapid.Uint64Range(lo+1, 63).Draw(t, "hi")
			if got, want := s.overlap(lo, hi), model.overlap(lo, hi); got != want {
				t.Fatalf("%v overlaps [%d,%d): %v, want %v", s, lo, hi, got, want)
			}
			if rapid.Bool().Draw(t, "add") {
				s.add(lo, hi)
				model.add(lo, hi)
			}
			if err := s.Validate(); err != nil {
				t.Fatal(err)
			}
			n := uint64(0)
			for _, x := range s {
				n += x.hi - x.lo
			}
			count := uint64(0)
			for _, b := range model {
				if b {
					count++
				}
			}
			if n != count {
				t.Fatalf("%v has %d bytes, want %d", s, n, count)
			}
		}
	})
}

// A barrier is emitted exactly when an access conflicts with one since the last barrier.
func TestHazardsAgainstAModel(t *testing.T) {
	type access struct {
		buffer, lo, hi uint64
		access         shaders.Access
	}
	rapid.Check(t, func(t *rapid.T) {
		h := newHazards()
		var since []access
		for range rapid.IntRange(1, 60).Draw(t, "n") {
			a := access{
				buffer: rapid.Uint64Range(1, 3).Draw(t, "buffer"),
				lo:     rapid.Uint64Range(0, 30).Draw(t, "lo"),
				access: rapid.SampledFrom([]shaders.Access{shaders.Read, shaders.Write, shaders.ReadWrite}).Draw(t, "access"),
			}
			a.hi = rapid.Uint64Range(a.lo+1, 32).Draw(t, "hi")
			want := slices.ContainsFunc(since, func(b access) bool {
				return a.buffer == b.buffer && a.lo < b.hi && b.lo < a.hi && (a.access|b.access)&shaders.Write != 0
			})
			if got := h.conflict(a.buffer, a.lo, a.hi, a.access); got != want {
				t.Fatalf("%+v after %+v: conflict %v, want %v", a, since, got, want)
			}
			if want {
				h.clear()
				since = nil
			}
			h.note(a.buffer, a.lo, a.hi, a.access)
			since = append(since, a)
			if rapid.IntRange(0, 9).Draw(t, "forget") == 0 {
				h.forget(a.buffer)
				since = slices.DeleteFunc(since, func(b access) bool { return b.buffer == a.buffer })
			}
			if err := h.Validate(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func drawLayout(t *rapid.T, label string) shaders.Layout {
	l := shaders.Layout{Rank: rapid.IntRange(0, 3).Draw(t, label+" rank"), Offset: rapid.IntRange(20, 40).Draw(t, label+" offset")}
	for i := range l.Rank {
		l.Shape[i] = rapid.IntRange(0, 4).Draw(t, label+" extent")
		l.Stride[i] = rapid.IntRange(-6, 6).Draw(t, label+" stride")
	}
	return l
}

// elements are the indices a layout touches, by walking it.
func elements(l shaders.Layout) map[int]int {
	m := map[int]int{}
	lo, _ := l.Bounds()
	if l.Len() > 0 {
		walk(l, func(_, at int) { m[lo+at]++ })
	}
	return m
}

func TestOverlapIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawLayout(t, "a"), drawLayout(t, "b")
		want := false
		other := elements(b)
		for at := range elements(a) {
			want = want || other[at] > 0
		}
		if got := overlap(a, b); got != want {
			t.Fatalf("%v and %v: %v, want %v", a, b, got, want)
		}
		twice := false
		for _, n := range elements(a) {
			twice = twice || n > 1
		}
		if a.Len() > 0 {
			if got := overlap1(a); got != twice {
				t.Fatalf("%v with itself: %v, want %v", a, got, twice)
			}
		}
	})
}

// A reshaped layout names the same elements in the same order.
func TestReshapeKeepsTheOrder(t *testing.T) {
	order := func(l shaders.Layout) (list []int) {
		lo, _ := l.Bounds()
		if l.Len() > 0 {
			walk(l, func(_, at int) { list = append(list, lo+at) })
		}
		return list
	}
	rapid.Check(t, func(t *rapid.T) {
		from := drawLayout(t, "from")
		n := from.Len()
		var shape []int
		for n > 1 && rapid.Bool().Draw(t, "split") {
			d := rapid.IntRange(1, n).Draw(t, "extent")
			for n%d != 0 {
				d--
			}
			shape = append(shape, d)
			n /= d
		}
		shape = append(shape, n)
		if len(shape) > shaders.MaxRank {
			return
		}
		to, ok := reshape(from, shaders.Contiguous(shape...))
		if !ok {
			if contiguous(from) {
				t.Fatalf("%v to %v was refused", from, shape)
			}
			return
		}
		if got, want := order(to), order(from); !slices.Equal(got, want) {
			t.Fatalf("%v to %v: %v, want %v", from, to, got, want)
		}
	})
}
