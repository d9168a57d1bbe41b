package cmdbuf

import (
	"fmt"

	"vkcompute/metacache"
	"vkcompute/pool"
	"vkcompute/vk"
)

// Graph is a recorded sequence of launches. It owns its command buffers and descriptor
// sets and holds a reference on every slice and pipeline they name, so that it can be
// replayed whatever else is closed. Its methods may be called from several goroutines.
type Graph struct {
	stream   *Stream
	id       metacache.GraphID
	commands *vk.CommandPool
	buffers  []vk.CommandBuffer
	sets     *vk.DescriptorPool
	slices   []pool.Slice
	programs []*program
	launches int
	barriers int

	// Guarded by the stream's lock.
	last   uint64 // serial of the last replay
	closed bool
}

// GraphStats says what a graph recorded.
type GraphStats struct {
	Launches int
	Barriers int // between its launches
	Sets     int // distinct descriptor sets
	Slices   int // distinct slices it keeps alive, infos included
}

// record makes the sets and records the command buffer of a capture.
func (g *Graph) record(c *Capture) error {
	d := g.stream.dev
	var err error
	var sets []uint64
	if c.size.Sets > 0 {
		if g.sets, err = d.NewDescriptorPool(c.size); err != nil {
			return fmt.Errorf("cmdbuf: capture: %w", err)
		}
		if sets, err = g.sets.Make(&c.sets, make([]uint64, 0, c.sets.Sets())); err != nil {
			return fmt.Errorf("cmdbuf: capture: %w", err)
		}
	}
	if g.commands, err = d.NewCommandPool(); err != nil {
		return fmt.Errorf("cmdbuf: capture: %w", err)
	}
	buffer, err := g.commands.New()
	if err != nil {
		return fmt.Errorf("cmdbuf: capture: %w", err)
	}
	var commands vk.Commands
	var bound boundState
	var l launch
	h := newHazards()
	commands.Barrier(graphBegin, barrierTo)
	for i := range c.launches {
		r := &c.launches[i]
		if h.order(&commands, c.bindings[r.first:r.first+r.count]) {
			g.barriers++
		}
		l.program, l.groups, l.info.offset, l.plan.Push = r.program, r.groups, r.offset, c.push[r.push:r.pushEnd]
		set := uint64(0)
		if r.set >= 0 {
			set = sets[r.set]
		}
		bound.encode(&commands, &l, set)
	}
	commands.Barrier(barrierFrom, graphEnd)
	if err := g.commands.Record(buffer, vk.Simultaneous, &commands); err != nil {
		return fmt.Errorf("cmdbuf: capture: %w", err)
	}
	g.buffers = []vk.CommandBuffer{buffer}
	return nil
}

// ID names the graph in the metadata cache, unique in the process.
func (g *Graph) ID() metacache.GraphID { return g.id }

// Stats says what the graph recorded.
func (g *Graph) Stats() GraphStats {
	n := 0
	if g.sets != nil {
		n = int(g.sets.Size().Sets)
	}
	return GraphStats{Launches: g.launches, Barriers: g.barriers, Sets: n, Slices: len(g.slices)}
}

// Replay submits the graph, after everything launched before; it does not wait. Its cost
// on the CPU does not depend on the number of launches, and a pending batch goes in the
// same submission. Replays may be in flight together: they run one after the other.
func (g *Graph) Replay() error { return g.ReplayN(1) }

// ReplayN submits n replays at once.
func (g *Graph) ReplayN(n int) error {
	s := g.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	if g.closed {
		return fmt.Errorf("cmdbuf: replay: graph %d: %w", g.id, ErrClosed)
	}
	if err := s.idle("replay"); err != nil {
		return err
	}
	if n < 0 {
		return fmt.Errorf("cmdbuf: replay: %d times: want 0 or more", n)
	}
	if n == 0 {
		return nil
	}
	serial, err := s.submit(g.buffers, n)
	if err != nil {
		return err
	}
	g.last, s.replay = serial, serial
	// The barriers at the ends of the graph order it with all that came before, and all
	// that comes after with it.
	s.hazards.clear()
	s.stats.Replays += uint64(n)
	return nil
}

// Close drops the graph's pins in the metadata cache and retires the rest until its last
// replay is done. It never blocks. Closing twice does nothing.
func (g *Graph) Close() error {
	s := g.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	if g.closed {
		return nil
	}
	g.close()
	s.reclaim()
	return nil
}

// close is Close with the stream's lock held.
func (g *Graph) close() {
	s := g.stream
	g.closed = true
	delete(s.graphs, g)
	// Slices learn of the replays only now; until here the graph's references kept them.
	if g.last > 0 {
		for _, slice := range g.slices {
			slice.Use(g.last)
		}
	}
	s.cache.GraphRelease(g.id)
	g.releaseSlices()
	// Graphs end in the order of their last replays, or nearly so: keep the list sorted.
	i := len(s.ended)
	for i > 0 && s.ended[i-1].last > g.last {
		i--
	}
	s.ended = append(s.ended, nil)
	copy(s.ended[i+1:], s.ended[i:])
	s.ended[i] = g
}

func (g *Graph) releaseSlices() {
	for _, slice := range g.slices {
		slice.ReleaseAs(pool.Graph)
	}
	g.slices = nil
}

// destroy frees the device objects. No replay may be pending.
func (g *Graph) destroy() {
	if g.commands != nil {
		g.commands.Close()
	}
	if g.sets != nil {
		g.sets.Close()
	}
	for _, p := range g.programs {
		p.release()
	}
	g.programs, g.buffers = nil, nil
}
