package suite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"

	"vkcompute/internal/bench"
	"vkcompute/pool"
	"vkcompute/vk"
)

const poolName = "pool"

// liveSlices are how many slices are alive beside the one that comes and goes.
var liveSlices = [...]int{64, 1024, 16384}

// holes is how many free ranges the page has on which requests fail.
const holes = 2048

// Pool measures the allocator by itself: one slice of many is released and one
// allocated, and a request that no hole of a page is large enough for. It needs no
// device: what is measured is the bookkeeping, not the driver's memory. If picture is
// not nil, the pages are drawn there.
func Pool(ctx context.Context, o Options, picture func(func(io.Writer) error) error) ([]bench.Result, error) {
	var groups []bench.Group
	var drawn *pool.Manager
	var managers []*pool.Manager
	for _, live := range liveSlices {
		o.say(fmt.Sprintf("allocating %d slices", live), 0)
		m, run, err := cycle(live)
		if err != nil {
			return nil, fmt.Errorf("pool: %w", err)
		}
		managers = append(managers, m)
		if live == 1024 {
			drawn = m
		}
		groups = append(groups, one(fmt.Sprintf("cycle/live=%d", live), run))
	}
	m, succeed, refuse, err := perforated()
	if err != nil {
		return nil, fmt.Errorf("pool: %w", err)
	}
	managers = append(managers, m)
	groups = append(groups, bench.Group{Cases: []bench.Case{
		{Name: fmt.Sprintf("succeed/holes=%d", holes), Run: succeed},
		{Name: fmt.Sprintf("fail/holes=%d", holes), Run: refuse}}})
	samples, err := o.measure(ctx, groups)
	if err != nil {
		return nil, fmt.Errorf("pool: %w", err)
	}
	for _, m := range managers {
		if err := m.Validate(); err != nil {
			return nil, fmt.Errorf("pool: after measuring: %w: %w", ErrWrong, err)
		}
	}
	var list []bench.Result
	at := 0
	for _, g := range groups {
		for _, c := range g.Cases {
			list = append(list, bench.NewResult(poolName, c.Name, "wall", "ns/op", samples[at], 1))
			at++
		}
	}
	last := len(list) - 1
	list[last].Against("succeed", list[last-1])
	list[last].Note = "makes its error, which succeeding does not"
	if picture != nil {
		err = picture(drawn.WriteSVG)
	}
	return list, err
}

// virtual is a manager with one pool of one page.
func virtual(page uint64) (*pool.Manager, error) {
	info := vk.DeviceInfo{Limits: vk.Limits{MinStorageBufferAlignment: 256, MaxStorageBufferRange: 1 << 32, MaxMemoryAllocationSize: 1 << 32, NonCoherentAtomSize: 1}}
	return pool.NewVirtual(info, nil, pool.Options{Layout: pool.Layout{Pools: []pool.PoolSpec{{Name: "measured", Kind: pool.Sliced, PageSize: page, Cap: page}}}})
}

// cycle keeps so many slices of 64 to 4096 bytes alive and replaces one after the other
// in random order.
func cycle(live int) (*pool.Manager, func(int) error, error) {
	m, err := virtual(uint64(live) * 8192)
	if err != nil {
		return nil, nil, err
	}
	random := rand.New(rand.NewPCG(1, 2))
	var sizes [1 << 16]uint64
	var order [1 << 16]uint32
	for i := range sizes {
		sizes[i] = 64 + random.Uint64N(4096-64+1)
		order[i] = uint32(random.IntN(live))
	}
	slices := make([]pool.Slice, live)
	for i := range slices {
		if slices[i], err = m.Alloc(sizes[i]); err != nil {
			return nil, nil, err
		}
	}
	i := 0
	return m, func(n int) error {
		for ; n > 0; n-- {
			k := order[i&(len(order)-1)]
			if err := slices[k].Release(); err != nil {
				return err
			}
			var err error
			if slices[k], err = m.Alloc(sizes[i&(len(sizes)-1)]); err != nil {
				return err
			}
			i++
		}
		return nil
	}, nil
}

// perforated is a full page in which every other slice was released. A request that
// fits a hole succeeds, and one of twice the size fails.
func perforated() (m *pool.Manager, succeed, refuse func(int) error, err error) {
	const size = 4096
	if m, err = virtual(2 * holes * size); err != nil {
		return nil, nil, nil, err
	}
	slices := make([]pool.Slice, 2*holes)
	for i := range slices {
		if slices[i], err = m.Alloc(size); err != nil {
			return nil, nil, nil, err
		}
	}
	for i := 0; i < len(slices); i += 2 {
		if err = slices[i].Release(); err != nil {
			return nil, nil, nil, err
		}
	}
	succeed = func(n int) error {
		for ; n > 0; n-- {
			s, err := m.Alloc(size)
			if err != nil {
				return err
			}
			if err := s.Release(); err != nil {
				return err
			}
		}
		return nil
	}
	refuse = func(n int) error {
		for ; n > 0; n-- {
			if _, err := m.Alloc(2 * size); !errors.Is(err, pool.ErrOutOfMemory) {
				return fmt.Errorf("a request larger than every hole: want %w, found %v", pool.ErrOutOfMemory, err)
			}
		}
		return nil
	}
	return m, succeed, refuse, nil
}
