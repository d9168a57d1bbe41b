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

// Capture records launches and transfers for a graph. It is valid inside the function
// given to Stream.Capture and nowhere else.
type Capture struct {
	stream *Stream
	ctx    context.Context
	token  *metacache.Capture[pool.Slice]
	err    error // the first one, which dooms the capture
	over   bool

	ops   ops
	index indexes
	sets  vk.SetProgram
	size  vk.PoolSize // what the sets need
	named []int32     // parameter of each argument of the launch at hand, -1 for none
	plain []Arg       // its arguments without names
	arena arena
}

// Capture runs f, which launches through its Capture what a replay shall do, and makes a
// graph of it. Nothing is executed. Meanwhile the stream's own methods answer
// ErrCapturing; no lock is held while f runs.
//
// Every info the launches touch is pinned in the metadata cache to the graph. If f or
// anything in it fails, or the context ends, there is no graph, the pins are dropped,
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
	s.capture = &Capture{stream: s, ctx: ctx, token: token, index: newIndexes()}
	return s.capture, nil
}

// step runs one call of a capture: its first error is what Stream.Capture will return,
// whether f passes it on or not.
func (c *Capture) step(f func() error) error {
	s := c.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.over {
		return fmt.Errorf("cmdbuf: %w", ErrCaptureOver)
	}
	if c.err == nil {
		if err := c.ctx.Err(); err != nil {
			c.err = fmt.Errorf("cmdbuf: capture: %w", err)
		} else {
			c.err = f()
		}
	}
	return c.err
}

// Launch checks a launch, as Stream.Launch does, and records it. Arguments may be named
// with Param.
func (c *Capture) Launch(k *shaders.Kernel, args ...Arg) error {
	return c.step(func() error { return c.launch(k, nil, args) })
}

// LaunchIndirect is Launch with a grid that the device reads when the launch runs: three
// elements of a tensor, the numbers of workgroups. They are not checked against the
// device's limits; the kernel sees at most the elements its arguments have.
func (c *Capture) LaunchIndirect(k *shaders.Kernel, grid *Tensor[uint32], args ...Arg) error {
	return c.step(func() error {
		b, err := c.stream.grid(k, grid)
		if err != nil {
			return err
		}
		return c.launch(k, &b, args)
	})
}

// resolve takes the names off the arguments.
func (c *Capture) resolve(k *shaders.Kernel, args []Arg) (any bool, err error) {
	c.named, c.plain = c.named[:0], c.plain[:0]
	for i, a := range args {
		n, ok := a.(Named)
		if !ok {
			c.named, c.plain = append(c.named, -1), append(c.plain, a)
			continue
		}
		p, err := c.ops.name(&c.index, n)
		if err != nil {
			if k == nil {
				return false, err
			}
			return false, argumentError(k, i, err)
		}
		any = true
		c.named, c.plain = append(c.named, p), append(c.plain, n.value)
	}
	return any, nil
}

func (c *Capture) launch(k *shaders.Kernel, grid *binding, args []Arg) error {
	s := c.stream
	private, err := c.resolve(k, args)
	if err != nil {
		return err
	}
	if grid != nil {
		s.next.grid = *grid
	}
	l, err := s.prepare(k, c.plain)
	s.next.grid = binding{}
	if err != nil || l.empty() && !private {
		return err
	}
	o := op{kind: opLaunch, program: l.program, groups: l.groups, info: -1, set: -1, private: private, indirect: grid != nil}
	if private {
		err = c.privateInfo(l, &o)
	} else {
		err = s.lookupInfo(l, c.token)
	}
	if err != nil {
		return err
	}
	if l.info.slice.Valid() {
		if o.info, err = c.ops.hold(&c.index, l.info.slice); err != nil {
			return fmt.Errorf("cmdbuf: launch %s: info buffer: %w", k.Name, err)
		}
		o.offset = l.info.offset
		if !l.info.kept {
			l.info.slice.Release() // the graph has a reference of its own now
		}
	}
	if err := c.addOperands(k, l, &o); err != nil {
		return err
	}
	c.ops.use(&c.index, l.program)
	c.standIn(l)
	o.accesses = c.ops.access(l.bindings...)
	if grid != nil {
		if _, err := c.ops.hold(&c.index, grid.slice); err != nil {
			return fmt.Errorf("cmdbuf: indirect launch %s: grid: %w", k.Name, err)
		}
		o.accesses.to = c.ops.access(l.indirect).to
	}
	o.push.from = int32(len(c.ops.push))
	c.ops.push = append(c.ops.push, l.push()...)
	for len(c.ops.push) < int(o.push.from)+l.program.pushSize {
		c.ops.push = append(c.ops.push, 0) // of a launch that has nothing to do yet
	}
	o.push.to = int32(len(c.ops.push))
	if l.program.set {
		o.set = c.addSet(l, private)
	}
	c.ops.add(o, c.named)
	return nil
}

// standIn gives the bindings of named tensors that are empty now a buffer that only the
// parameter has: once Set gives it bytes, the launches it stands in conflict there, and
// the barriers between them are recorded already.
func (c *Capture) standIn(l *launch) {
	for i := range l.bindings {
		b := &l.bindings[i]
		if n := c.named[b.param]; n >= 0 && !b.slice.Valid() {
			b.bufferID = 1<<63 | uint64(n)
			b.access = l.program.kernel.Params[b.param].Access
		}
	}
}

// add appends an operation and notes which parameters stand in it.
func (o *ops) add(p op, named []int32) {
	i := int32(len(o.list))
	o.list = append(o.list, p)
	for _, n := range named {
		if n < 0 {
			continue
		}
		q := o.params[n]
		if len(q.uses) == 0 || q.uses[len(q.uses)-1] != i {
			q.uses = append(q.uses, i)
		}
	}
}

// privateInfo makes an info for one launch, with room for what a change may need.
func (c *Capture) privateInfo(l *launch, o *op) error {
	l.info = infoRef{}
	if !l.program.info {
		return nil
	}
	o.words = append([]uint64(nil), l.plan.Info...)
	const room = 64 // words: eight tensors of rank seven
	padded := append(append(make([]uint64, 0, max(room, len(o.words))), o.words...), make([]uint64, max(0, room-len(o.words)))...)
	slice, err := c.stream.newInfo(l.program, padded)
	if err != nil {
		return fmt.Errorf("cmdbuf: launch %s: info buffer: %w", l.program.kernel.Name, err)
	}
	return l.refer(c.stream, slice)
}

// addOperands keeps the arguments, for whoever looks at the graph or changes it.
func (c *Capture) addOperands(k *shaders.Kernel, l *launch, o *op) error {
	o.args.from = int32(len(c.ops.operands))
	for i := range l.operands {
		x := &l.operands[i]
		r := operandRef{kind: x.Kind, dtype: x.DType, bits: uint32(x.Bits), named: c.named[i]}
		if x.Kind == shaders.TensorParam {
			if n := c.named[i]; n >= 0 {
				r.slice, r.layout = c.ops.params[n].slice, c.ops.params[n].layout
			} else {
				v := viewOf(c.plain[i])
				var err error
				if r.slice, err = c.ops.hold(&c.index, v.slice); err != nil {
					return argumentError(k, i, err)
				}
				r.layout = c.ops.layout(&c.index, v.layout)
			}
			if x.Type != nil {
				r.bits = c.ops.typ(x.Type)
			}
		}
		c.ops.operands = append(c.ops.operands, r)
	}
	o.args.to = int32(len(c.ops.operands))
	return nil
}

// addSet finds or adds the descriptor set of a launch. One with parameters has a set of
// its own, which can be replaced.
func (c *Capture) addSet(l *launch, private bool) int32 {
	key := keyString(l.setKey())
	if i, ok := c.index.sets[key]; ok && !private {
		return i
	}
	i := int32(c.sets.Sets())
	l.describeSet(&c.sets)
	c.size.Sets++
	c.size.Storage += l.program.storage
	c.size.Dynamic += l.program.dynamic
	if !private {
		c.index.sets[strings.Clone(key)] = i
	}
	return i
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
	g := &Graph{stream: s, id: metacache.GraphID(graphIDs.Add(1)), ops: c.ops, arena: c.arena.size}
	defer c.arena.release()
	if err == nil {
		err = g.build(c)
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
