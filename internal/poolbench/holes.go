package poolbench

import (
	"errors"
	"fmt"

	"vkcompute/pool"
)

// ErrNotMeasured reports a pool that did something else than what was to be measured.
var ErrNotMeasured = errors.New("poolbench: not what was to be measured")

// Request says what is asked of a page full of holes.
type Request uint8

const (
	// Fits asks for what a hole holds.
	Fits Request = iota
	// FitsNowhere asks for a little more than any hole holds, so that the slice comes
	// from another page after all holes were passed over. What it takes longer than FitsBehind is the
	// request that fails on the page of holes.
	FitsNowhere
	// FitsBehind is the control: the same slice from the same other page, but the page of holes is never asked,
	// because its pool takes no slices so large.
	FitsBehind
	// Refused asks for what no page holds where there can be no other page. Most of what it takes is not the page's: the
	// timeline is asked for what has completed, the page is tried again, and an error is made that says what there is.
	Refused
	requests
)

// Holes is a request to a page of holes, met and given back, or refused. Create it with [NewHoles].
type Holes struct {
	m    *pool.Manager
	live []pool.Slice
	what Request
}

const holeSize = 1024

// NewHoles returns a request to a page with that many holes. Behind it is a page with room, except for Refused.
func NewHoles(holes int, what Request) (*Holes, error) {
	if holes < 1 || holes > 1<<20 || what >= requests {
		return nil, fmt.Errorf("poolbench: request %d on %d holes; want a request and 1 to %d", what, holes, 1<<20)
	}
	page := uint64(holes) * 2 * holeSize
	specs := []pool.PoolSpec{{Name: "holes", PageSize: page, Cap: page}, {Name: "room", PageSize: page}}
	switch what {
	case FitsBehind:
		specs[0].MaxSlice = holeSize
	case Refused:
		specs = specs[:1]
	}
	m, err := virtualPool(specs...)
	if err != nil {
		return nil, err
	}
	h := &Holes{m: m, what: what}
	var gone []pool.Slice
	for i := range 2 * holes {
		s, err := m.Alloc(holeSize)
		if err != nil {
			return nil, err
		}
		if i%2 == 0 {
			h.live = append(h.live, s)
		} else {
			gone = append(gone, s)
		}
	}
	for _, s := range gone {
		if err := s.Release(); err != nil {
			return nil, err
		}
	}
	return h, h.Run(1) // makes the page with room
}

// Run makes the request n times.
func (h *Holes) Run(n int) error {
	if h.what == Refused {
		return h.refused(n)
	}
	size := uint64(holeSize)
	if h.what != Fits {
		size++
	}
	for range n {
		s, err := h.m.Alloc(size)
		if err != nil {
			return err
		}
		if err := s.Release(); err != nil {
			return err
		}
	}
	return nil
}

func (h *Holes) refused(n int) error {
	for range n {
		if _, err := h.m.Alloc(holeSize + 1); !errors.Is(err, pool.ErrOutOfMemory) {
			return fmt.Errorf("%w: a slice larger than every hole: want %w, found %v", ErrNotMeasured, pool.ErrOutOfMemory, err)
		}
	}
	return nil
}

// Close checks the pool and releases everything.
func (h *Holes) Close() error {
	if err := h.m.Validate(); err != nil {
		return err
	}
	st := h.m.Stats()
	want := 1
	if h.what == FitsNowhere || h.what == FitsBehind {
		want = 2
	}
	if st.Total.Pages != want || st.Pools[0].Pages != 1 || st.Pools[0].Slices != len(h.live) {
		return fmt.Errorf("%w: %d pages, %d of them with holes between %d slices; want %d, 1, %d",
			ErrNotMeasured, st.Total.Pages, st.Pools[0].Pages, st.Pools[0].Slices, want, len(h.live))
	}
	for _, s := range h.live {
		if err := s.Release(); err != nil {
			return err
		}
	}
	return h.m.Close()
}
