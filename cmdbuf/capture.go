package cmdbuf

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"vkcompute/metacache"
	"vkcompute/pool"
	"vkcompute/shaders"
	"vkcompute/vk"
)

// Capture records launches for a graph. It is valid inside the function given to
// Stream.Capture and nowhere else.
type Capture struct {
	stream *Stream
	ctx    context.Context
	token  *metacache.Capture[pool.Slice]
	err    error // the first one, which dooms the capture
	over   bool

	launches []recorded
	bindings []binding // of all launches, one after the other
	push     []byte
	sets     vk.SetProgram
	setIndex map[string]int // by key
	size     vk.PoolSize    // what the sets need
	programs map[*program]struct{}
	held     map[pool.Slice]struct{} // each with a reference of the graph's
	order    []pool.Slice            // held, in the order of first use
}

// recorded is a launch of a capture.
type recorded struct {
	program       *program
	first, count  int // bindings
	push, pushEnd int
	set           int // index, -1 for none
	offset        uint32
	groups        [3]uint32
}

// Capture runs f, which launches through its Capture what a replay shall do, and makes a
// graph of it. Nothing is executed. Meanwhile the stream's own methods answer
// ErrCapturing; no lock is held while f runs.
//
// Every info the launches touch is pinned in the metadata cache to the graph. If f or
// any launch in it fails, or the context ends, there is no graph, the pins are dropped,
// and the first error is returned.
func (s *Stream) Capture(ctx context.Context, f func(*Capture) error) (*Graph, error) {
	c, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	finished := false
	defer func() {
		if !finished { // f panicked
			c.end(errors.New("cmdbuf: capture: its function panicked"))
		}
	}()
	err = f(c)
	finished = true
	return c.end(err)
}

func (s *Stream) begin(ctx context.Context) (*Capture, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.idle("capture"); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("cmdbuf: capture: %w", err)
	}
	token, err := s.cache.Begin()
	if err != nil {
		return nil, fmt.Errorf("cmdbuf: capture: %w", err)
	}
	s.capture = &Capture{stream: s, ctx: ctx, token: token, setIndex: map[string]int{}, programs: map[*program]struct{}{}, held: map[pool.Slice]struct{}{}}
	return s.capture, nil
}

// Launch checks a launch, as Stream.Launch does, and records it. Its first error is what
// Stream.Capture will return, whether f passes it on or not.
func (c *Capture) Launch(k *shaders.Kernel, args ...Arg) error {
	s := c.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.over {
		return fmt.Errorf("cmdbuf: launch: %w", ErrCaptureOver)
	}
	if c.err != nil {
		return c.err
	}
	c.err = c.launch(k, args)
	return c.err
}

func (c *Capture) launch(k *shaders.Kernel, args []Arg) error {
	s := c.stream
	if err := c.ctx.Err(); err != nil {
		return fmt.Errorf("cmdbuf: capture: %w", err)
	}
	l, err := s.prepare(k, args)
	if err != nil || l.empty() {
		return err
	}
	if err := s.lookupInfo(l, c.token); err != nil {
		return err
	}
	if l.info.slice.Valid() {
		if err := c.hold(l.info.slice); err != nil {
			return fmt.Errorf("cmdbuf: launch %s: info buffer: %w", k.Name, err)
		}
	}
	for i := range l.bindings {
		if b := &l.bindings[i]; b.slice.Valid() {
			if err := c.hold(b.slice); err != nil {
				return argumentError(k, b.param, err)
			}
		}
	}
	if _, ok := c.programs[l.program]; !ok {
		l.program.retain()
		c.programs[l.program] = struct{}{}
	}
	r := recorded{program: l.program, first: len(c.bindings), count: len(l.bindings), push: len(c.push), set: -1, offset: l.info.offset, groups: l.groups}
	c.bindings = append(c.bindings, l.bindings...)
	c.push = append(c.push, l.plan.Push...)
	r.pushEnd = len(c.push)
	if l.program.set {
		key := keyString(l.setKey())
		index, ok := c.setIndex[key]
		if !ok {
			index = c.sets.Sets()
			l.describeSet(&c.sets)
			c.setIndex[strings.Clone(key)] = index
			c.size.Sets++
			c.size.Storage += l.program.storage
			c.size.Dynamic += l.program.dynamic
		}
		r.set = index
	}
	c.launches = append(c.launches, r)
	return nil
}

// hold takes the graph's reference on a slice, once.
func (c *Capture) hold(slice pool.Slice) error {
	if _, ok := c.held[slice]; ok {
		return nil
	}
	if err := slice.RetainAs(pool.Graph); err != nil {
		return err
	}
	c.held[slice] = struct{}{}
	c.order = append(c.order, slice)
	return nil
}

var graphIDs atomic.Uint64

// end makes the graph, or gives up all that was recorded.
func (c *Capture) end(err error) (*Graph, error) {
	s := c.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	c.over = true
	s.capture = nil
	if c.err != nil {
		err = c.err
	}
	if err == nil && c.ctx.Err() != nil {
		err = fmt.Errorf("cmdbuf: capture: %w", c.ctx.Err())
	}
	g := &Graph{stream: s, id: metacache.GraphID(graphIDs.Add(1)), slices: c.order, launches: len(c.launches)}
	for p := range c.programs {
		g.programs = append(g.programs, p)
	}
	if err == nil {
		err = g.record(c)
	}
	if err == nil {
		err = c.token.Commit(g.id)
	}
	if err != nil {
		err = errors.Join(err, c.token.Discard())
		g.releaseSlices()
		g.destroy()
		return nil, err
	}
	s.graphs[g] = struct{}{}
	return g, nil
}
