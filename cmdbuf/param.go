package cmdbuf

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"vkcompute/pool"
	"vkcompute/shaders"
	"vkcompute/vk"
)

// Named is an argument of a captured launch that can be given another value between
// replays, by Graph.Set. One name may stand in several launches. Make one with Param.
type Named struct {
	name  string
	value Arg
}

func (Named) isArg() {}

// Param names an argument of a launch in a capture: a Scalar, or a tensor.
func Param(name string, value Arg) Named { return Named{name, value} }

// parameter is a name, its value, and the launches it stands in. A tensor has entries of
// its own in the graph's slices and layouts, which its arguments refer to.
type parameter struct {
	name   string
	tensor bool
	dtype  shaders.DType
	typ    *shaders.Type // of a tensor of Composite elements
	slice  int32
	layout int32
	bits   uint32
	uses   []int32 // operations, ascending
}

// viewOf is the view of a tensor argument, nil for anything else and for the zero Tensor.
func viewOf(a Arg) *view {
	switch t := a.(type) {
	case *Tensor[float32]:
		if t.made() {
			return &t.v
		}
	case *Tensor[int32]:
		if t.made() {
			return &t.v
		}
	case *Tensor[uint32]:
		if t.made() {
			return &t.v
		}
	case *Tensor[float64]:
		if t.made() {
			return &t.v
		}
	case *Tensor[shaders.Half]:
		if t.made() {
			return &t.v
		}
	case Scalar, Named, nil:
	default:
		return viewOfOther(a)
	}
	return nil
}

// name registers a named argument. The same name must have the same value everywhere.
func (o *ops) name(x *indexes, n Named) (int32, error) {
	if n.name == "" {
		return 0, errors.New("a parameter without a name")
	}
	v := viewOf(n.value)
	scalar, isScalar := n.value.(Scalar)
	if v == nil && !isScalar {
		return 0, fmt.Errorf("parameter %q: %w", n.name, errNilArgument)
	}
	if i, ok := x.params[n.name]; ok {
		p := o.params[i]
		if p.tensor != (v != nil) || v != nil && (o.slices[p.slice] != v.slice || o.layouts[p.layout] != v.layout || p.dtype != v.dtype || p.typ != v.typ) ||
			isScalar && (p.bits != scalar.bits || p.dtype != scalar.dtype) {
			return 0, fmt.Errorf("parameter %q has another value in an earlier launch: give it one, or two names", n.name)
		}
		return i, nil
	}
	p := &parameter{name: n.name, tensor: v != nil, dtype: scalar.dtype, bits: scalar.bits}
	if v != nil {
		if err := v.slice.RetainAs(pool.Graph); err != nil {
			return 0, err
		}
		p.dtype, p.typ, p.slice, p.layout = v.dtype, v.typ, int32(len(o.slices)), int32(len(o.layouts))
		o.slices = append(o.slices, v.slice)
		o.layouts = append(o.layouts, v.layout)
	}
	i := int32(len(o.params))
	o.params = append(o.params, p)
	x.params[n.name] = i
	return i, nil
}

// Set gives a named parameter another value for the replays that follow; those in flight
// keep what they were submitted with. The launches it stands in are worked out and
// checked anew, and nothing changes on an error.
//
// What changes in an info travels with the next replay, as a small update in the same
// submission. A tensor, a grid or push constants that change make the segment of their
// launch be recorded again then; launches with a named tensor are segments of their own.
// A tensor may not share memory that either writes with anything else in the graph,
// whose barriers were planned without it. The graph keeps it alive.
func (g *Graph) Set(name string, value Arg) error {
	s := g.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	err := g.set(name, value)
	if err != nil {
		return fmt.Errorf("cmdbuf: set %q: %w", name, err)
	}
	return nil
}

func (g *Graph) set(name string, value Arg) error {
	if g.closed {
		return fmt.Errorf("graph %d: %w", g.id, ErrClosed)
	}
	if err := g.stream.idle("set"); err != nil {
		return err
	}
	i := slices.IndexFunc(g.ops.params, func(p *parameter) bool { return p.name == name })
	if i < 0 {
		return fmt.Errorf("the graph has no such parameter; it has %s", g.parameterNames())
	}
	p := g.ops.params[i]
	old := *p
	if !p.tensor {
		scalar, ok := value.(Scalar)
		if !ok || scalar.dtype != p.dtype {
			return fmt.Errorf("want a scalar of type %v", p.dtype)
		}
		p.bits = scalar.bits
		if err := g.replan(p); err != nil {
			*p = old
			return err
		}
		return nil
	}
	v := viewOf(value)
	if v == nil || !(&element{dtype: p.dtype, typ: p.typ}).sameElement(v) {
		return fmt.Errorf("want a tensor of type %v", element{dtype: p.dtype, typ: p.typ})
	}
	if v.stream.dev != g.stream.dev {
		return ErrForeign
	}
	if err := v.slice.RetainAs(pool.Graph); err != nil {
		return fmt.Errorf("tensor: %w: %w", ErrClosed, err)
	}
	slice, layout := g.ops.slices[p.slice], g.ops.layouts[p.layout]
	g.ops.slices[p.slice], g.ops.layouts[p.layout] = v.slice, v.layout
	err := g.checkTensor(p, v)
	if err == nil {
		err = g.replan(p)
	}
	if err != nil {
		g.ops.slices[p.slice], g.ops.layouts[p.layout] = slice, layout
		v.slice.ReleaseAs(pool.Graph)
		return err
	}
	g.drop(slice)
	return nil
}

// drop gives back a slice that replays in flight may still use.
func (g *Graph) drop(slice pool.Slice) {
	if g.last > 0 {
		g.stream.stamp(slice, g.last)
	}
	slice.ReleaseAs(pool.Graph)
}

func (g *Graph) parameterNames() string {
	if len(g.ops.params) == 0 {
		return "none"
	}
	var names []string
	for _, p := range g.ops.params {
		names = append(names, fmt.Sprintf("%q", p.name))
	}
	return strings.Join(names, ", ")
}

// checkTensor refuses a tensor that shares bytes with what other arguments of the graph
// use, if either is written.
func (g *Graph) checkTensor(p *parameter, v *view) error {
	written := false
	for _, i := range p.uses {
		o := &g.ops.list[i]
		for n, r := range g.ops.operands[o.args.from:o.args.to] {
			if r.kind == shaders.TensorParam && r.slice == p.slice {
				written = written || o.program.kernel.Params[n].Access&shaders.Write != 0
			}
		}
	}
	for i := range g.ops.list {
		o := &g.ops.list[i]
		for _, b := range g.ops.accessesOf(o) {
			if lo, hi, _ := b.touches(); b.bufferID != v.bufferID || lo >= v.offset+v.size || v.offset >= hi {
				continue
			}
			if own := b.param >= 0 && o.kind == opLaunch && g.ops.operands[o.args.from+b.param].slice == p.slice; own {
				continue
			}
			if _, _, access := b.touches(); written || access&shaders.Write != 0 {
				return fmt.Errorf("%w: operation %d (%s) uses the same memory, and was recorded without a barrier for that", ErrOverlap, i, o.name())
			}
		}
	}
	return nil
}

// change is a launch worked out with a new value.
type change struct {
	op       int32
	words    []uint64
	push     []byte
	bindings []binding
	groups   [3]uint32
	slot     pool.Slice // a larger info, where the old one was outgrown
}

// load puts a recorded launch into the stream's scratch, as prepare would.
func (g *Graph) load(o *op) (*launch, error) {
	s := g.stream
	l := &s.next
	l.program, l.indirect, l.set = o.program, binding{}, nil
	l.operands, l.bindings = l.operands[:0], l.bindings[:0]
	if o.indirect {
		l.indirect = g.ops.accesses[o.accesses.to-1]
	}
	for i, r := range g.ops.operands[o.args.from:o.args.to] {
		if r.kind == shaders.ScalarParam {
			x := Scalar{r.bits, r.dtype}
			if r.named >= 0 {
				x.bits = g.ops.params[r.named].bits
			}
			l.operands = append(l.operands, x.operand())
			continue
		}
		v := view{stream: s, slice: g.ops.slices[r.slice], element: g.ops.element(r), layout: g.ops.layouts[r.layout]}
		if err := v.bind(); err != nil {
			return nil, err
		}
		if err := s.addTensor(l, i, &v); err != nil {
			return nil, err
		}
	}
	return l, s.finish(l)
}

// replan works out every launch the parameter stands in, and changes the graph when all
// of them are right.
func (g *Graph) replan(p *parameter) (err error) {
	s := g.stream
	list := g.changes[:0]
	defer func() {
		if err != nil {
			for _, c := range list {
				if c.slot.Valid() {
					c.slot.Release()
				}
			}
		}
		g.changes = list[:0]
	}()
	for n, i := range p.uses {
		o := &g.ops.list[i]
		l, err := g.load(o)
		if err != nil {
			return err
		}
		if n < cap(list) {
			list = list[:n+1]
		} else {
			list = append(list, change{})
		}
		c := &list[n]
		c.op, c.groups, c.slot = i, l.groups, pool.Slice{}
		c.words, c.bindings = append(c.words[:0], l.plan.Info...), append(c.bindings[:0], l.bindings...)
		if o.info >= 0 {
			slot := g.ops.slices[o.info]
			if uint64(len(c.words))*8 > slot.Size() {
				if c.slot, err = s.newInfo(o.program, c.words); err != nil {
					return err
				}
				slot = c.slot
			}
			if err = l.refer(s, slot); err != nil {
				return err
			}
		}
		c.push = append(c.push[:0], l.push()...)
	}
	for i := range list {
		g.change(p, &list[i])
	}
	return nil
}

// change makes a launch what was worked out.
func (g *Graph) change(p *parameter, c *change) {
	o := &g.ops.list[c.op]
	again := p.tensor
	if c.slot.Valid() {
		c.slot.HandOver(pool.User, pool.Graph)
		g.drop(g.ops.slices[o.info])
		g.ops.slices[o.info] = c.slot
		o.offset, again = uint32(c.slot.Offset()), true
	}
	// A launch with nothing to do has no words; the old ones do no harm.
	if o.info >= 0 && len(c.words) > 0 && !slices.Equal(o.words, c.words) {
		o.words = append(o.words[:0], c.words...)
		if !o.dirty {
			o.dirty = true
			g.dirty = append(g.dirty, c.op)
		}
	}
	// An indirect launch has its grid elsewhere, and these say only whether it runs at all.
	if o.groups != c.groups && (!o.indirect || noGroups(o.groups) != noGroups(c.groups)) {
		again = true
	}
	o.groups = c.groups
	if push := g.ops.push[o.push.from:o.push.to]; len(c.push) == len(push) && !slices.Equal(push, c.push) {
		copy(push, c.push)
		again = true
	}
	if p.tensor || c.slot.Valid() {
		copy(g.ops.accessesOf(o), c.bindings)
		g.rebind[c.op] = struct{}{}
	}
	if again {
		g.segmentOf(c.op).stale = true
	}
}

// update appends to the batch what brings changed infos to the device. It is behind the
// replays that read the old ones by the barriers at their ends, behind an update that
// could not be submitted by the barrier here, and before the next replay by that at its
// beginning.
func (g *Graph) update(c *vk.Commands) {
	c.Barrier(graphBegin, barrierTo)
	for _, i := range g.dirty {
		o := &g.ops.list[i]
		slot := g.ops.slices[o.info]
		buffer, offset, _, _ := slot.Range()
		c.Update(buffer.Handle(), offset, unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(o.words))), len(o.words)*8))
	}
}
