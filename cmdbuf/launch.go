package cmdbuf

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"vkcompute/metacache"
	"vkcompute/pool"
	"vkcompute/shaders"
	"vkcompute/vk"
)

// binding is a range of a buffer that a command reads or writes.
type binding struct {
	slice        pool.Slice // the zero Slice for the stand-in of an empty tensor
	buffer       uint64     // handle
	bufferID     uint64
	address      uint64 // of the first byte
	offset, size uint64
	number       uint32 // of the descriptor
	param        int32  // index of the argument
	reach        uint64 // of an untrusted kernel: it may do anything to this many bytes of the buffer, from its start
	access       shaders.Access
}

// launch is a launch that was checked and worked out, and not recorded yet. The stream
// reuses one.
type launch struct {
	program  *program
	operands []shaders.Operand // tensors as their bindings show them
	bindings []binding         // what the descriptor set names
	grid     binding           // given to prepare: where the device reads the grid
	indirect binding           // likewise, of the launch worked out; no buffer: from groups
	plan     shaders.Plan
	groups   [3]uint32
	info     infoRef
	pushed   []byte     // scratch of push
	key      []uint64   // of the descriptor set
	set      *cachedSet // the last one
}

// empty tells that there is nothing to do: the grid that the arguments call for has no
// groups. Such a launch has no info either, so it must not run even if the device reads
// its grid from a buffer.
func (l *launch) empty() bool { return noGroups(l.groups) }

func noGroups(g [3]uint32) bool { return g[0] == 0 || g[1] == 0 || g[2] == 0 }

// prepare checks a launch and works it out into s.next, short of the info, without
// changing anything else. Every error a caller can cause comes from here.
func (s *Stream) prepare(k *shaders.Kernel, args []Arg) (*launch, error) {
	p, err := s.program(k)
	if err != nil {
		return nil, err
	}
	l := &s.next
	l.program, l.indirect, l.set = p, l.grid, nil
	l.operands, l.bindings = l.operands[:0], l.bindings[:0]
	for i, arg := range args {
		// No method of arg may be called: see Arg.
		if scalar, ok := arg.(Scalar); ok {
			l.operands = append(l.operands, scalar.operand())
			continue
		}
		v := viewOf(arg)
		if v == nil {
			if _, named := arg.(Named); named {
				return nil, argumentError(k, i, errNamedOutside)
			}
			return nil, argumentError(k, i, errNilArgument)
		}
		if err := s.addTensor(l, i, v); err != nil {
			return nil, err
		}
	}
	return l, s.finish(l)
}

// finish works out a launch whose operands and bindings are there.
func (s *Stream) finish(l *launch) error {
	k := l.program.kernel
	if err := k.Plan(l.program.env, l.operands, &l.plan); err != nil {
		return fmt.Errorf("cmdbuf: launch: %w", err)
	}
	if err := s.fold(l); err != nil {
		return err
	}
	if l.empty() {
		return nil
	}
	if len(l.plan.Push) != k.Module.PushSize {
		return fmt.Errorf("cmdbuf: launch %s: the plan has %d bytes of push constants, the shader %d", k.Name, len(l.plan.Push), k.Module.PushSize)
	}
	for i := range l.bindings {
		b := &l.bindings[i]
		if b.size > s.limits.MaxStorageBufferRange {
			return argumentError(k, int(b.param), &vk.LimitError{Name: "maxStorageBufferRange", Want: b.size, Max: s.limits.MaxStorageBufferRange, What: "binding a tensor; use views of parts of it"})
		}
		if b.access&shaders.Write != 0 {
			if err := l.checkOverlap(i); err != nil {
				return err
			}
		}
	}
	return l.checkAlone()
}

// addTensor appends operand i and, if the kernel has such a parameter, its binding. What
// is wrong with the operand as such is left to the kernel's plan to say.
func (s *Stream) addTensor(l *launch, i int, v *view) error {
	k := l.program.kernel
	if v.stream.dev != s.dev {
		return argumentError(k, i, fmt.Errorf("it was %w: copy it over through the host", ErrForeign))
	}
	if !v.alive() {
		return argumentError(k, i, fmt.Errorf("tensor: %w", ErrClosed))
	}
	l.operands = append(l.operands, shaders.Operand{Layout: v.bound, DType: v.dtype, Type: v.typ})
	if i >= len(k.Params) || k.Params[i].Kind != shaders.TensorParam {
		return nil
	}
	b := v.binding(k.Params[i].Access)
	if v.size == 0 {
		// Every binding of a set must name a buffer, and the kernel touches none of it.
		b = binding{buffer: s.dummy.Handle(), bufferID: s.dummy.ID(), address: s.dummy.Address(), size: s.dummy.Size(), access: shaders.Read}
	}
	b.number, b.param = k.Params[i].Binding, int32(i)
	l.bindings = append(l.bindings, b)
	return nil
}

// binding is the range of the buffer that a descriptor of the view covers.
func (v *view) binding(access shaders.Access) binding {
	return binding{slice: v.slice, buffer: v.buffer, bufferID: v.bufferID, address: v.address, offset: v.offset, size: v.size, access: access}
}

// grid checks where an indirect launch reads its grid.
func (s *Stream) grid(k *shaders.Kernel, t *Tensor[uint32]) (binding, error) {
	if k == nil || !t.made() {
		return binding{}, fmt.Errorf("cmdbuf: indirect launch: want a kernel and a tensor with the grid, found nil")
	}
	v := &t.v
	switch {
	case v.stream.dev != s.dev:
		return binding{}, fmt.Errorf("cmdbuf: indirect launch %s: the grid was %w", k.Name, ErrForeign)
	case !v.slice.Valid():
		return binding{}, fmt.Errorf("cmdbuf: indirect launch %s: grid: %w", k.Name, ErrClosed)
	case v.layout.Len() != 3 || !contiguous(v.layout):
		return binding{}, fmt.Errorf("cmdbuf: indirect launch %s: grid: %w: want 3 adjacent elements, found %v", k.Name, ErrShape, v.layout)
	}
	offset, size := v.reached()
	b := v.binding(shaders.Read)
	b.offset, b.size, b.param = v.slice.Offset()+offset, size, -1
	return b, nil
}

// fold brings the grid within the device's limits.
func (s *Stream) fold(l *launch) error {
	g, limit := l.plan.Groups, s.limits.MaxWorkgroupCount
	if g[0] > uint64(limit[0]) && l.program.kernel.Foldable() && g[1] <= 1 && g[2] <= 1 {
		n := g[0]
		// Spread evenly, so that few groups find nothing to do.
		rows := (n + uint64(limit[0]) - 1) / uint64(limit[0])
		planes := uint64(1)
		if rows > uint64(limit[1]) {
			planes = (rows + uint64(limit[1]) - 1) / uint64(limit[1])
			rows = (rows + planes - 1) / planes
		}
		g = [3]uint64{(n + rows*planes - 1) / (rows * planes), rows, planes}
	}
	for axis := range g {
		if g[axis] > uint64(limit[axis]) {
			return &vk.LimitError{Name: fmt.Sprintf("maxComputeWorkGroupCount[%d]", axis), Want: g[axis], Max: uint64(limit[axis]), What: "launch " + l.program.kernel.Name}
		}
		l.groups[axis] = uint32(g[axis])
	}
	return nil
}

// checkOverlap refuses an output that shares elements with another tensor of the launch:
// which of the two a group sees would be chance. In place is fine where the kernel says
// so and the layouts are the same.
func (l *launch) checkOverlap(out int) error {
	k := l.program.kernel
	a := &l.bindings[out]
	for i := range l.bindings {
		b := &l.bindings[i]
		if i == out || a.bufferID != b.bufferID || a.offset >= b.offset+b.size || b.offset >= a.offset+a.size {
			continue
		}
		if a.slice != b.slice {
			continue // the bytes of different slices are apart; only roundings meet
		}
		p, q := &l.operands[a.param], &l.operands[b.param]
		x, y := p.Layout, q.Layout
		// Elements of two sizes in one memory are possible in a graph from a file alone, and
		// bytes that meet are enough to refuse those.
		same := operandSize(p) == operandSize(q)
		if same && a.offset == b.offset && x == y && k.InPlace(int(a.param), int(b.param)) {
			continue
		}
		if same {
			// Both as seen from one point: bindings of one memory are whole elements apart.
			from := min(a.offset, b.offset)
			x.Offset += int((a.offset - from) / operandSize(p))
			y.Offset += int((b.offset - from) / operandSize(q))
		}
		if !same || overlap(x, y) {
			return argumentError(k, int(a.param), fmt.Errorf("%w: %s (argument %d) shares elements with it; write to a tensor of its own", ErrOverlap, k.Params[b.param].Name, b.param))
		}
	}
	return nil
}

func operandSize(o *shaders.Operand) uint64 {
	if o.Type != nil {
		return uint64(o.Type.Size)
	}
	return uint64(o.DType.Size())
}

// infoRef is the info of a launch: where its words lie.
type infoRef struct {
	slice    pool.Slice
	buffer   uint64
	bufferID uint64
	address  uint64
	offset   uint32 // dynamic offset
	size     uint64 // bytes a descriptor covers from the offset on
	kept     bool   // the cache holds the reference; else the launch does
}

// infoCache is what launches look their infos up in: the cache, or a capture of it.
type infoCache interface {
	Lookup(words []uint64) (pool.Slice, bool, metacache.Miss[pool.Slice])
}

// lookupInfo finds or makes the info buffer of a launch. It is written by the host at
// once: words that a recorded command had yet to write would be read unwritten by
// another launch that hits the entry first.
func (s *Stream) lookupInfo(l *launch, cache infoCache) error {
	l.info = infoRef{}
	if !l.program.info {
		return nil
	}
	if l.program.ownInfo {
		slice, err := s.newInfo(l.program, l.plan.Info)
		if err != nil {
			return fmt.Errorf("cmdbuf: launch %s: info buffer: %w", l.program.kernel.Name, err)
		}
		return l.refer(s, slice)
	}
	slice, hit, miss := cache.Lookup(l.plan.Info)
	l.info.kept = true
	if !hit {
		var err error
		if slice, err = s.newInfo(l.program, l.plan.Info); err != nil {
			return fmt.Errorf("cmdbuf: launch %s: info buffer: %w", l.program.kernel.Name, err)
		}
		if miss.Wanted() {
			if err := slice.HandOver(pool.User, pool.Cache); err != nil {
				return fmt.Errorf("cmdbuf: launch %s: info buffer: %w", l.program.kernel.Name, err)
			}
			kept, err := miss.Store(slice)
			if err != nil {
				slice.ReleaseAs(pool.Cache)
				return fmt.Errorf("cmdbuf: launch %s: %w", l.program.kernel.Name, err)
			}
			slice = kept
		} else {
			l.info.kept = false
		}
	}
	return l.refer(s, slice)
}

// refer makes a slice the info of a launch.
func (l *launch) refer(s *Stream, slice pool.Slice) error {
	buffer, offset, size, ok := slice.Range()
	if !ok {
		return fmt.Errorf("cmdbuf: launch %s: info buffer: %w", l.program.kernel.Name, pool.ErrReleased)
	}
	l.info.slice, l.info.buffer, l.info.bufferID = slice, buffer.Handle(), buffer.ID()
	l.info.offset, l.info.size, l.info.address = uint32(offset), s.pools.InfoRange(size), buffer.Address()+offset
	return nil
}

// push is the launch's push constants: its own, and the addresses of its buffers if they
// go that way.
func (l *launch) push() []byte {
	p := l.program
	if p.address == nil {
		return l.plan.Push
	}
	l.pushed = append(l.pushed[:0], l.plan.Push...)
	for len(l.pushed) < p.pushSize {
		l.pushed = append(l.pushed, 0)
	}
	for _, a := range p.address {
		address := l.info.address
		if a.Binding != shaders.InfoBinding || !p.info {
			for i := range l.bindings {
				if l.bindings[i].number == a.Binding {
					address = l.bindings[i].address
				}
			}
		}
		binary.NativeEndian.PutUint64(l.pushed[a.Offset:], address)
	}
	return l.pushed
}

// dropInfo gives back the reference of an info that no cache keeps, once it is stamped.
func (l *launch) dropInfo() {
	if !l.info.kept && l.info.slice.Valid() {
		l.info.slice.Release()
	}
}

// newInfo allocates a slot of the info pool and writes the words.
func (s *Stream) newInfo(p *program, words []uint64) (slice pool.Slice, err error) {
	size := uint64(len(words)) * 8
	if p.ownInfo {
		slice, err = s.ownInfo(p, size)
	} else {
		slice, err = s.pools.AllocInfo(size)
	}
	if err != nil {
		return slice, err
	}
	copy(slice.Mapped(), unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), size))
	if err := slice.Written(0, size); err != nil {
		slice.Release()
		return pool.Slice{}, err
	}
	return slice, nil
}

// setKey is what a descriptor set depends on: the layout and the buffers bound, with the
// info's page but not its place in it.
func (l *launch) setKey() []uint64 {
	k := append(l.key[:0], l.program.id, l.info.bufferID, l.info.size)
	for i := range l.bindings {
		b := &l.bindings[i]
		k = append(k, b.bufferID, b.offset, b.size)
	}
	l.key = k
	return k
}

// describeSet appends the set to a program.
func (l *launch) describeSet(p *vk.SetProgram) {
	p.Set(l.program.pipeline)
	if l.program.info {
		p.Write(shaders.InfoBinding, vk.StorageBufferDynamic, l.info.buffer, 0, l.info.size)
	}
	for i := range l.bindings {
		b := &l.bindings[i]
		p.Write(b.number, vk.StorageBuffer, b.buffer, b.offset, b.size)
	}
}
