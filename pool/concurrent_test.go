package pool

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/vk"
)

// Many goroutines share a manager: allocating, stamping, releasing, draining, cleaning up and trying to
// replace the layout. Each writes its own pattern into its slices and finds it unchanged.
func TestManyGoroutines(t *testing.T) {
	src, tl := newFakeSource(), &fakeTimeline{}
	src.limit = 3 * mib
	m, err := newManager(src, fakeLimits(), tl, Options{
		IdlePeriod: 1,
		Layout: Layout{
			Pools:   []PoolSpec{{Kind: Sliced, PageSize: 64 * kib, MaxPageSize: 256 * kib}, {Kind: Exclusive}},
			Staging: []PoolSpec{{Kind: Exclusive, Cap: 512 * kib}},
			Info:    []PoolSpec{{Kind: Sliced, PageSize: 16 * kib, MaxSlice: 4 * kib}},
		},
		PageClosing: func(uint64) {},
	})
	require.NoError(t, err)
	var serial atomic.Uint64
	serial.Store(1)
	shared, err := m.Alloc(4096)
	require.NoError(t, err)

	worker := func(id int) error {
		rnd := rand.New(rand.NewPCG(uint64(id), 1))
		type owned struct {
			s    Slice
			mark byte
		}
		var live []owned
		for i := range 3000 {
			if len(live) > 20 || (len(live) > 0 && rnd.IntN(2) == 0) {
				k := rnd.IntN(len(live))
				o := live[k]
				live[k] = live[len(live)-1]
				live = live[:len(live)-1]
				for _, b := range o.s.Mapped() {
					if b != o.mark {
						return fmt.Errorf("worker %d: found %d, wrote %d", id, b, o.mark)
					}
				}
				if err := o.s.Use(serial.Load()); err != nil {
					return err
				}
				if err := o.s.Release(); err != nil {
					return err
				}
				continue
			}
			role := vk.MemoryRole(rnd.IntN(4))
			s, err := m.AllocFor(rnd.Uint64N(2000), role, Access(rnd.IntN(2)))
			if errors.Is(err, ErrOutOfMemory) {
				tl.driver.Store(serial.Add(1) - 1)
				continue
			}
			if err != nil {
				return err
			}
			o := owned{s, byte(id*31 + i)}
			for k := range s.Mapped() {
				s.Mapped()[k] = o.mark
			}
			live = append(live, o)
			if err := shared.Retain(); err != nil {
				return err
			}
			if err := errors.Join(shared.Use(serial.Load()), shared.Release()); err != nil {
				return err
			}
		}
		for _, o := range live {
			if err := o.s.Release(); err != nil {
				return err
			}
		}
		return nil
	}
	stop := make(chan struct{})
	var wg, helpers sync.WaitGroup
	for _, f := range []func() error{
		func() error { m.Drain(); tl.driver.Store(serial.Add(1) - 1); return nil },
		func() error { m.Cleanup(); return m.Validate() },
		func() error {
			if err := m.Install(SubSlices()); !errors.Is(err, ErrInUse) {
				return fmt.Errorf("install while a slice is alive: %v", err)
			}
			_ = m.Stats().String()
			m.FlushesDone(m.PendingFlushes(nil), nil)
			return nil
		},
	} {
		helpers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := f(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for id := range 6 {
		wg.Go(func() {
			if err := worker(id); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	close(stop)
	helpers.Wait()
	require.NoError(t, shared.Release())
	tl.complete(serial.Load())
	m.Cleanup()
	require.NoError(t, m.Validate())
	require.NoError(t, m.Close())
	require.Empty(t, src.open)
}
