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

	base   uint64 // serial 0 of the trace
	latest uint64 // serial in use
	live   map[uint32]pool.Slice
}

// Play plays the trace from its beginning. What it leaves alive is released by [Player.Release].
func (p *Player) Play(t *Trace, m *pool.Manager) error {
	p.live = make(map[uint32]pool.Slice)
	p.base = max(p.Timeline.Completed(), p.latest)
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
		err = p.retire(s, p.base+e.Serial)
	case Done:
		p.Timeline.done.Store(p.base + e.Serial)
		m.Drain()
	}
	return s, err
}

func (p *Player) retire(s pool.Slice, serial uint64) error {
	p.latest = max(p.latest, serial)
	if err := s.Use(serial); err != nil {
		return err
	}
	return s.Release()
}

// Release releases what the trace left alive, and has all work run.
func (p *Player) Release() error {
	for id, s := range p.live {
		if err := p.retire(s, p.latest); err != nil {
			return err
		}
		delete(p.live, id)
	}
	p.Timeline.done.Store(max(p.latest, p.Timeline.Completed()))
	return nil
}
