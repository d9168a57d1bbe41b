package poolbench

import (
	"fmt"
	"math/rand/v2"

	"vkcompute/pool"
	"vkcompute/vk"
)

// Sizes of the slices in a cycle, and the alignment they get.
const (
	leastSize = 64
	mostSize  = 4096
	alignment = 256
)

// draws is how many random numbers are made beforehand, a power of two.
const draws = 1 << 16

// Lives are the numbers of live slices that are measured.
func Lives() []int { return []int{64, 1024, 16384} }

// Cycle releases one slice of many, picked at random, and allocates another in its place: 64 to 4096
// bytes at alignment 256, all in one page. Create it with [NewCycle].
type Cycle struct {
	m     *pool.Manager
	live  []pool.Slice
	sizes []uint64
	order []uint32
	at    uint32
}

// virtualPool is a manager of such pools, without memory.
func virtualPool(pools ...pool.PoolSpec) (*pool.Manager, error) {
	return pool.NewVirtual(vk.DeviceInfo{Limits: vk.Limits{MinStorageBufferAlignment: alignment}}, nil, pool.Options{
		IdlePeriod: -1, Layout: pool.Layout{Pools: pools},
	})
}

// NewCycle returns a cycle with that many live slices.
func NewCycle(live int) (*Cycle, error) {
	if live < 1 || live > 1<<24 {
		return nil, fmt.Errorf("poolbench: %d live slices; want 1 to %d", live, 1<<24)
	}
	m, err := virtualPool(pool.PoolSpec{Name: "one page", PageSize: uint64(live) * 2 * mostSize})
	if err != nil {
		return nil, err
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	c := &Cycle{m: m, live: make([]pool.Slice, live), sizes: make([]uint64, draws), order: make([]uint32, draws)}
	for i := range draws {
		c.sizes[i] = leastSize + rnd.Uint64N(mostSize-leastSize+1)
		c.order[i] = uint32(rnd.IntN(live))
	}
	for i := range c.live {
		if c.live[i], err = m.Alloc(c.sizes[i%draws]); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Run does n cycles.
func (c *Cycle) Run(n int) error {
	for range n {
		k := c.order[c.at%draws]
		if err := c.live[k].Release(); err != nil {
			return err
		}
		var err error
		if c.live[k], err = c.m.Alloc(c.sizes[c.at%draws]); err != nil {
			return err
		}
		c.at++
	}
	return nil
}

// Map is a picture of the page.
func (c *Cycle) Map() pool.Map { return c.m.Map() }

// Close checks the pool and releases everything.
func (c *Cycle) Close() error {
	if err := c.m.Validate(); err != nil {
		return err
	}
	st := c.m.Stats().Total
	if st.Pages != 1 || st.Slices != len(c.live) {
		return fmt.Errorf("%w: %d slices on %d pages, want %d on one", ErrNotMeasured, st.Slices, st.Pages, len(c.live))
	}
	for _, s := range c.live {
		if err := s.Release(); err != nil {
			return err
		}
	}
	return c.m.Close()
}
