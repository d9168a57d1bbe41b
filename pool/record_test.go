package pool_test

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vkcompute/pool"
	"vkcompute/vk"
)

// clock is a timeline that a test moves.
type clock struct{ done atomic.Uint64 }

func (c *clock) Completed() uint64        { return c.done.Load() }
func (c *clock) Refresh() (uint64, error) { return c.done.Load(), nil }

func TestRecordNotesWhatHappensInOrder(t *testing.T) {
	var tl clock
	m, err := pool.NewVirtual(vk.DeviceInfo{}, &tl, pool.Options{})
	require.NoError(t, err)
	early, err := m.Alloc(10)
	require.NoError(t, err)
	stop := m.Record()
	a, err := m.Alloc(100)
	require.NoError(t, err)
	b, err := m.AllocFor(200, vk.DeviceMemory, pool.NextHost)
	require.NoError(t, err)
	late := m.Record()
	require.NoError(t, a.Retain())
	require.NoError(t, a.Release()) // not the last
	require.NoError(t, early.Release())
	require.NoError(t, b.Use(7))
	require.NoError(t, b.Release())
	require.Error(t, b.Release())
	tl.done.Store(7)
	m.Drain()
	c, err := m.AllocInfo(30)
	require.NoError(t, err)
	require.NoError(t, a.Release())
	assert.Equal(t, []pool.Event{
		{Kind: pool.EventDone},
		{Kind: pool.EventAlloc, ID: 1, Size: 100},
		{Kind: pool.EventAlloc, ID: 2, Size: 200, Next: pool.NextHost},
		{Kind: pool.EventRelease, ID: 2, Serial: 7},
		{Kind: pool.EventDone, Serial: 7},
		{Kind: pool.EventAlloc, ID: 3, Size: 30, Role: vk.InfoMemory},
		{Kind: pool.EventRelease, ID: 1},
	}, stop())
	require.NoError(t, c.Release())
	assert.Equal(t, []pool.Event{
		{Kind: pool.EventDone},
		{Kind: pool.EventDone, Serial: 7},
		{Kind: pool.EventAlloc, ID: 1, Size: 30, Role: vk.InfoMemory},
		{Kind: pool.EventRelease, ID: 1},
	}, late(), "another that began later")
	require.NoError(t, m.Close())
}

// What is alive according to the events is what is alive.
func TestRecordedEventsAddUp(t *testing.T) {
	var tl clock
	m, err := pool.NewVirtual(vk.DeviceInfo{}, &tl, pool.Options{})
	require.NoError(t, err)
	stop := m.Record()
	rnd := rand.New(rand.NewPCG(1, 2))
	var live []pool.Slice
	for i := range uint64(2000) {
		if len(live) > 0 && rnd.IntN(2) == 0 {
			k := rnd.IntN(len(live))
			require.NoError(t, live[k].Use(i))
			require.NoError(t, live[k].Release())
			live[k] = live[len(live)-1]
			live = live[:len(live)-1]
		} else {
			s, err := m.AllocRole(rnd.Uint64N(1<<16), vk.MemoryRole(rnd.IntN(4)))
			require.NoError(t, err)
			live = append(live, s)
		}
		if i%50 == 0 {
			tl.done.Store(i / 2)
			m.Drain()
		}
	}
	alive, bytes, done := map[uint64]uint64{}, uint64(0), uint64(0)
	for _, e := range stop() {
		switch e.Kind {
		case pool.EventAlloc:
			require.NotContains(t, alive, e.ID)
			alive[e.ID] = e.Size
			bytes += e.Size
		case pool.EventRelease:
			require.Contains(t, alive, e.ID)
			bytes -= alive[e.ID]
			delete(alive, e.ID)
		case pool.EventDone:
			require.GreaterOrEqual(t, e.Serial, done)
			done = e.Serial
		}
	}
	require.Len(t, alive, len(live))
	require.Equal(t, m.Stats().Total.InUse, bytes)
	require.NotZero(t, done)
	for _, s := range live {
		require.NoError(t, s.Release())
	}
	tl.done.Store(1 << 20)
	require.NoError(t, m.Close())
}
