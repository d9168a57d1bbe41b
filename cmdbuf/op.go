package cmdbuf

import (
	"slices"
	"unsafe"

	"vkcompute/pool"
	"vkcompute/shaders"
	"vkcompute/vk"
)

// opKind is what a recorded command does.
type opKind uint8

const (
	opLaunch opKind = iota
	opCopy          // the first access to the second
	opFill          // the value into the access
)

func (k opKind) String() string { return [...]string{"launch", "copy", "fill"}[k] }

// op is a command of a graph, in a form that can be looked at, ordered, recorded (again)
// and saved. Its lists lie in the graph's arrays, one after the other.
type op struct {
	kind     opKind
	barrier  bool // one goes before it
	indirect bool // the last access holds the grid
	private  bool // the info belongs to this launch alone: it has named parameters
	dirty    bool // the words of its private info are not on the device yet
	program  *program
	args     run // operands
	accesses run // bindings
	push     run // bytes
	groups   [3]uint32
	info     int32    // index of the info's slice, -1 for none
	offset   uint32   // dynamic offset of the info
	set      int32    // index of the descriptor set, -1 for none
	words    []uint64 // of a private info
	value    uint32   // of a fill
}

// run is a part of an array: from up to, not including, to.
type run struct{ from, to int32 }

// operandRef is an argument of a recorded launch: a tensor by its slice and layout, or a
// scalar by its bits. Graphs have many with few different layouts.
type operandRef struct {
	kind   shaders.ParamKind
	dtype  shaders.DType
	slice  int32  // index
	layout int32  // index; from the start of the slice
	bits   uint32 // of a tensor of Composite elements: index of their type
	named  int32  // index of the parameter whose bits count, -1 for none
}

// ops are the commands of a graph with what they refer to.
type ops struct {
	list     []op
	operands []operandRef
	types    []*shaders.Type // of Composite elements
	accesses []binding
	push     []byte
	layouts  []shaders.Layout
	slices   []pool.Slice // each with a reference of the graph's
	programs []*program   // likewise
	params   []*parameter
}

// indexes find what ops holds already; a capture needs them, a graph does not.
type indexes struct {
	layouts  map[shaders.Layout]int32
	slices   map[pool.Slice]int32
	programs map[*program]struct{}
	params   map[string]int32
	sets     map[string]int32 // by key
}

func newIndexes() indexes {
	return indexes{map[shaders.Layout]int32{}, map[pool.Slice]int32{}, map[*program]struct{}{}, map[string]int32{}, map[string]int32{}}
}

// hold takes the graph's reference on a slice, once, and returns its index.
func (o *ops) hold(x *indexes, slice pool.Slice) (int32, error) {
	if i, ok := x.slices[slice]; ok {
		return i, nil
	}
	if err := slice.RetainAs(pool.Graph); err != nil {
		return 0, err
	}
	i := int32(len(o.slices))
	o.slices = append(o.slices, slice)
	x.slices[slice] = i
	return i, nil
}

func (o *ops) layout(x *indexes, l shaders.Layout) int32 {
	i, ok := x.layouts[l]
	if !ok {
		i = int32(len(o.layouts))
		o.layouts = append(o.layouts, l)
		x.layouts[l] = i
	}
	return i
}

func (o *ops) use(x *indexes, p *program) {
	if _, ok := x.programs[p]; !ok {
		p.retain()
		x.programs[p] = struct{}{}
		o.programs = append(o.programs, p)
	}
}

// access appends the ranges an operation reads and writes.
func (o *ops) access(list ...binding) run {
	from := int32(len(o.accesses))
	o.accesses = append(o.accesses, list...)
	return run{from, int32(len(o.accesses))}
}

// accessesOf are the ranges an operation reads and writes.
func (o *ops) accessesOf(p *op) []binding { return o.accesses[p.accesses.from:p.accesses.to] }

// bindingsOf are those of its accesses that the descriptor set names.
func (o *ops) bindingsOf(p *op) []binding {
	list := o.accessesOf(p)
	if p.indirect {
		list = list[:len(list)-1]
	}
	return list
}

// order decides where barriers go, for the order the list has.
func (o *ops) order() (barriers int) {
	h := newHazards()
	for i := range o.list {
		p := &o.list[i]
		if p.barrier = h.next(o.accessesOf(p)); p.barrier {
			barriers++
		}
	}
	return barriers
}

// encode appends one operation.
func (o *ops) encode(c *vk.Commands, bound *boundState, p *op, sets []uint64) {
	if p.barrier {
		c.Barrier(barrierFrom, barrierTo)
	}
	a := o.accessesOf(p)
	switch p.kind {
	case opCopy:
		c.Copy(a[0].buffer, a[0].offset, a[1].buffer, a[1].offset, a[0].size)
		return
	case opFill:
		c.Fill(a[0].buffer, a[0].offset, a[0].size, p.value)
		return
	}
	if noGroups(p.groups) {
		return
	}
	set := uint64(0)
	if p.set >= 0 {
		set = sets[p.set]
	}
	bound.bind(c, p.program, set, p.offset)
	if p.push.to > p.push.from {
		c.Push(p.program.pipeline, o.push[p.push.from:p.push.to])
	}
	if p.indirect {
		grid := &a[len(a)-1]
		c.DispatchIndirect(grid.buffer, grid.offset)
	} else {
		c.Dispatch(p.groups[0], p.groups[1], p.groups[2])
	}
}

// bytes is the memory of the lists.
func (o *ops) bytes() int {
	return cap(o.list)*int(unsafe.Sizeof(op{})) + cap(o.operands)*int(unsafe.Sizeof(operandRef{})) +
		cap(o.accesses)*int(unsafe.Sizeof(binding{})) + cap(o.push) + cap(o.layouts)*int(unsafe.Sizeof(shaders.Layout{})) +
		cap(o.slices)*int(unsafe.Sizeof(pool.Slice{}))
}

// clip gives back what the lists grew ahead.
func (o *ops) clip() {
	o.list, o.operands, o.accesses = slices.Clone(o.list), slices.Clone(o.operands), slices.Clone(o.accesses)
	o.push, o.layouts = slices.Clone(o.push), slices.Clone(o.layouts)
}

// name is what the operation is called in messages.
func (p *op) name() string {
	if p.kind == opLaunch {
		return p.program.kernel.Name
	}
	return p.kind.String()
}

// releaseSlices gives back the references on slices.
func (o *ops) releaseSlices() {
	for _, s := range o.slices {
		s.ReleaseAs(pool.Graph)
	}
	o.slices = nil
}

// releasePrograms gives back the pipelines, which no replay may still use.
func (o *ops) releasePrograms() {
	for _, p := range o.programs {
		p.release()
	}
	o.programs = nil
}

// typ is the index of a type. Graphs have few.
func (o *ops) typ(t *shaders.Type) uint32 {
	i := slices.Index(o.types, t)
	if i < 0 {
		i = len(o.types)
		o.types = append(o.types, t)
	}
	return uint32(i)
}

// element is that of a tensor argument.
func (o *ops) element(r operandRef) element {
	if r.dtype != shaders.Composite {
		return number(r.dtype)
	}
	t := o.types[r.bits]
	return element{dtype: r.dtype, size: uint64(t.Size), typ: t}
}
