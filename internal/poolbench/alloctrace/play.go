package alloctrace

import (
	"fmt"
	"sync/atomic"

	"vkcompute/pool"
)

// Timeline is that of a device on which work has run when the trace says so. The zero
// Timeline has run nothing.
type Timeline struct{ done atomic.Uint64 }

// Completed implements pool.Timeline.
func (t *Timeline) Completed() uint64 { return t.done.Load() }

// Refresh implements pool.Timeline.
func (t *Timeline) Refresh() (uint64, error) { return t.done.Load(), nil }

// Player plays a trace on a pool. Create the pool with the player's timeline: the zero
// Player is ready.
type Player struct {
	Timeline Timeline
	// After, if set, is called after each event, with the slice that it made or is about
	// to release.
	After func(i int, s pool.Slice) error

	serial uint64
	live   map[uint32]pool.Slice
}

// Play plays the trace from its beginning. What it leaves alive is released by [Player.Release].
func (p *Player) Play(t *Trace, m *pool.Manager) error {
	p.live = make(map[uint32]pool.Slice)
	p.serial = p.Timeline.Completed() + 1 // of the batch being recorded
	for i, e := range t.Events {
		s, err := p.event(e, m)
		if err == nil && p.After != nil {
			err = p.After(i, s)
		}
		if err != nil {
			return fmt.Errorf("alloctrace: event %d: %w", i, err)
		}
	}
	return nil
}

func (p *Player) event(e Event, m *pool.Manager) (s pool.Slice, err error) {
	switch e.Kind {
	case Alloc:
		if s, err = m.AllocRole(e.Size, e.Role); err == nil {
			p.live[e.ID] = s
		}
	case Free:
		s = p.live[e.ID]
		delete(p.live, e.ID)
		err = p.retire(s)
	case Submit:
		p.serial++
	case Wait:
		p.Timeline.done.Store(p.serial - 1)
		m.Drain()
	}
	return s, err
}

func (p *Player) retire(s pool.Slice) error {
	if err := s.Use(p.serial); err != nil {
		return err
	}
	return s.Release()
}

// Release releases what the trace left alive, and has all work run.
func (p *Player) Release() error {
	for id, s := range p.live {
		if err := p.retire(s); err != nil {
			return err
		}
		delete(p.live, id)
	}
	p.Timeline.done.Store(p.serial)
	p.serial++
	return nil
}
