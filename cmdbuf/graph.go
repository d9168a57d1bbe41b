package cmdbuf

import (
	"fmt"

	"vkcompute/metacache"
	"vkcompute/vk"
)

// Graph is a recorded sequence of launches and transfers. It owns its command buffers and
// descriptor sets and holds a reference on every slice and pipeline they name, so that
// it can be replayed whatever else is closed. Its methods may be called from several
// goroutines.
type Graph struct {
	stream *Stream
	id     metacache.GraphID

	// Guarded by the stream's lock.
	ops      ops
	barriers int
	commands *vk.CommandPool
	segments []segment
	buffers  []vk.CommandBuffer // of the segments
	spare    []vk.CommandBuffer
	pool     *vk.DescriptorPool
	sets     []uint64
	replaced map[int32]*vk.DescriptorPool // pools of sets made anew, by operation
	rebind   map[int32]struct{}           // operations whose set is to be made anew
	dirty    []int32                      // operations whose info is to be updated
	groups   []run                        // segments that go in one submission, with MaxSubmitTime
	list     []vk.CommandBuffer           // scratch of submit
	changes  []change                     // scratch of Set
	scratch  vk.Commands
	profile  *profile // nil without Options.Profile
	arena    uint64   // bytes of temporaries
	last     uint64   // serial of the last replay
	closed   bool
}

// segment is a part of the operations with a command buffer of its own.
type segment struct {
	run
	stale bool // to be recorded before the next replay
}

// GraphStats says what a graph recorded.
type GraphStats struct {
	Launches  int
	Transfers int    // copies and fills
	Barriers  int    // between them
	Sets      int    // distinct descriptor sets
	Slices    int    // distinct slices it keeps alive, infos included
	Segments  int    // command buffers
	Arena     uint64 // bytes of temporaries, which share memory where they can
	Bytes     int    // host memory of its operations; what the driver keeps is not known
}

// build orders the operations, makes the sets and records the segments.
func (g *Graph) build(c *Capture) error {
	d := g.stream.dev
	g.replaced, g.rebind = map[int32]*vk.DescriptorPool{}, map[int32]struct{}{}
	var err error
	if c.size.Sets > 0 {
		if g.pool, err = d.NewDescriptorPool(c.size); err != nil {
			return fmt.Errorf("cmdbuf: capture: %w", err)
		}
		if g.sets, err = g.pool.Make(&c.sets, make([]uint64, 0, c.sets.Sets())); err != nil {
			return fmt.Errorf("cmdbuf: capture: %w", err)
		}
	}
	if g.commands, err = d.NewCommandPool(); err != nil {
		return fmt.Errorf("cmdbuf: capture: %w", err)
	}
	if g.stream.graphOrder == ByLevel {
		g.ops.reorder()
	}
	g.ops.clip()
	g.barriers = g.ops.order()
	if n := len(g.ops.list); g.stream.profiling && n > 0 {
		if err := g.newProfile(n); err != nil {
			return fmt.Errorf("cmdbuf: capture: %w", err)
		}
	}
	g.cut()
	g.buffers = make([]vk.CommandBuffer, len(g.segments))
	if err := g.recordStale(); err != nil {
		return fmt.Errorf("cmdbuf: capture: %w", err)
	}
	return nil
}

// cut makes segments: a launch with a named tensor is one by itself, since it is recorded
// again when the tensor changes; what lies between them is one.
func (g *Graph) cut() {
	alone := map[int32]bool{}
	for _, p := range g.ops.params {
		for _, i := range p.uses {
			alone[i] = alone[i] || p.tensor
		}
	}
	open := false
	limit := int32(len(g.ops.list))
	if g.stream.maxSubmit > 0 {
		limit = splitEvery
	}
	for i := range int32(len(g.ops.list)) {
		if !open || alone[i] || i-g.segments[len(g.segments)-1].from >= limit {
			g.segments = append(g.segments, segment{run{i, i}, true})
		}
		g.segments[len(g.segments)-1].to = i + 1
		open = !alone[i]
	}
	if len(g.segments) == 0 {
		g.segments = []segment{{stale: true}}
	}
}

// segmentOf finds the segment of an operation.
func (g *Graph) segmentOf(i int32) *segment {
	lo, hi := 0, len(g.segments)
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; g.segments[mid].from <= i {
			lo = mid
		} else {
			hi = mid
		}
	}
	return &g.segments[lo]
}

// recordStale makes sets and command buffers anew where something changed. What replays
// in flight use stays until they are done.
func (g *Graph) recordStale() error {
	for i := range g.rebind {
		if err := g.remakeSet(i); err != nil {
			return err
		}
		delete(g.rebind, i)
	}
	for n := range g.segments {
		s := &g.segments[n]
		if !s.stale {
			continue
		}
		buffer, err := g.newBuffer()
		if err != nil {
			return err
		}
		c := &g.scratch
		c.Reset()
		if n == 0 {
			c.Barrier(graphBegin, barrierTo)
			if g.profile != nil {
				c.ResetQueries(g.profile.queries, 0, uint32(2*len(g.ops.list)))
			}
		}
		var bound boundState
		for i := s.from; i < s.to; i++ {
			if g.profile != nil {
				c.Timestamp(g.profile.queries, uint32(2*i), vk.StageBottom)
			}
			g.ops.encode(c, &bound, &g.ops.list[i], g.sets)
			if g.profile != nil {
				c.Timestamp(g.profile.queries, uint32(2*i+1), vk.StageBottom)
			}
		}
		if n == len(g.segments)-1 {
			c.Barrier(barrierFrom, graphEnd)
		}
		if err := g.commands.Record(buffer, vk.Simultaneous, c); err != nil {
			g.spare = append(g.spare, buffer)
			return err
		}
		if old := g.buffers[n]; old != 0 {
			g.stream.later(g.last, func() { g.spare = append(g.spare, old) })
		}
		g.buffers[n], s.stale = buffer, false
	}
	return nil
}

func (g *Graph) newBuffer() (vk.CommandBuffer, error) {
	if n := len(g.spare); n > 0 {
		b := g.spare[n-1]
		g.spare = g.spare[:n-1]
		return b, nil
	}
	return g.commands.New()
}

// remakeSet makes the descriptor set of a changed launch, in a pool of its own.
func (g *Graph) remakeSet(i int32) error {
	o := &g.ops.list[i]
	if o.set < 0 {
		return nil
	}
	l := &g.stream.next
	l.program, l.bindings = o.program, append(l.bindings[:0], g.ops.bindingsOf(o)...)
	l.info = infoRef{}
	if o.info >= 0 {
		if err := l.refer(g.stream, g.ops.slices[o.info]); err != nil {
			return err
		}
	}
	p, err := g.stream.dev.NewDescriptorPool(vk.PoolSize{Sets: 1, Storage: o.program.storage, Dynamic: o.program.dynamic})
	if err != nil {
		return err
	}
	var program vk.SetProgram
	l.describeSet(&program)
	var set [1]uint64
	if _, err := p.Make(&program, set[:0]); err != nil {
		p.Close()
		return err
	}
	if old := g.replaced[i]; old != nil {
		g.stream.later(g.last, old.Close)
	}
	g.replaced[i], g.sets[o.set] = p, set[0]
	return nil
}

// ID names the graph in the metadata cache, unique in the process.
func (g *Graph) ID() metacache.GraphID { return g.id }

// Stats says what the graph recorded.
func (g *Graph) Stats() GraphStats {
	g.stream.mu.Lock()
	defer g.stream.mu.Unlock()
	st := GraphStats{Barriers: g.barriers, Sets: len(g.sets), Slices: len(g.ops.slices), Segments: len(g.segments), Arena: g.arena, Bytes: g.ops.bytes()}
	for i := range g.ops.list {
		if g.ops.list[i].kind == opLaunch {
			st.Launches++
		} else {
			st.Transfers++
		}
	}
	return st
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
	if err := g.recordStale(); err != nil {
		return fmt.Errorf("cmdbuf: replay: %w", err)
	}
	updated := len(g.dirty) > 0
	if updated {
		g.update(&s.batch.commands)
		s.batch.count++
	}
	serial, err := g.submit(n)
	if err != nil {
		// Several replays, or a long one, are several submissions, and those before the
		// one that failed are in flight.
		g.last = max(g.last, s.timeline.Submitted())
		if s.batch.count > 0 {
			g.last = s.serial() // the batch was not even submitted, and the update stays in it
		}
		s.behind = max(s.behind, g.last)
		return err
	}
	if updated {
		for _, i := range g.dirty {
			g.ops.list[i].dirty = false
		}
		g.dirty = g.dirty[:0]
	}
	g.last, s.behind = serial, serial
	// The barriers at the ends of the graph order it with all that came before, and all
	// that comes after with it.
	s.hazards.clear()
	s.stats.Replays += uint64(n)
	return nil
}

// Close drops the graph's pins in the metadata cache and retires the rest until its last
// replay is done. It does not wait for the device, and for a call of another goroutine at most. Closing
// twice does nothing.
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
		for _, slice := range g.ops.slices {
			s.stamp(slice, g.last)
		}
	}
	s.cache.GraphRelease(g.id)
	g.releaseSlices()
	s.later(g.last, g.destroy)
}

func (g *Graph) releaseSlices() {
	g.ops.releaseSlices()
	if g.profile != nil {
		g.profile.release(g)
	}
}

// destroy frees the device objects. No replay may be pending.
func (g *Graph) destroy() {
	if g.commands != nil {
		g.commands.Close()
	}
	if g.pool != nil {
		g.pool.Close()
	}
	for _, p := range g.replaced {
		p.Close()
	}
	if g.profile != nil && g.profile.queries != nil {
		g.profile.queries.Close()
	}
	g.ops.releasePrograms()
	g.buffers, g.spare, g.replaced = nil, nil, nil
}
