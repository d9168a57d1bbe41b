package cmdbuf_test

import (
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"vkcompute/cmdbuf"
	"vkcompute/shaders"
)

// cells are memory as an interpreter on the CPU sees it, and the tensor on the device
// that should hold the same.
type cells struct {
	id    int
	dtype shaders.DType
	words []uint32
	grid  bool // numbers of workgroups, so never large
	temp  bool // of a capture; the device's contents are undefined between replays
	on    int  // stream
	dev   handle
}

// handle is a tensor of any type.
type handle interface {
	arg() cmdbuf.Arg
	strided(l shaders.Layout) (handle, error)
	write(words []uint32) error
	writeIn(c *cmdbuf.Capture, words []uint32) error
	read() ([]uint32, error)
	place() (buffer, offset uint64)
	close() error
}

type typed[T cmdbuf.Element] struct{ t *cmdbuf.Tensor[T] }

func (h typed[T]) arg() cmdbuf.Arg { return any(h.t).(cmdbuf.Arg) }
func (h typed[T]) strided(l shaders.Layout) (handle, error) {
	v, err := h.t.Strided(l)
	return typed[T]{v}, err
}
func (h typed[T]) write(words []uint32) error { return h.t.Write(reinterpret[T](words)) }
func (h typed[T]) writeIn(c *cmdbuf.Capture, words []uint32) error {
	return cmdbuf.WriteIn(c, h.t, reinterpret[T](words))
}
func (h typed[T]) read() ([]uint32, error) {
	host, err := h.t.Read(ctx)
	return reinterpret[uint32](host), err
}
func (h typed[T]) place() (buffer, offset uint64) {
	b, offset, _, ok := h.t.Slice().Range()
	if !ok || b == nil {
		return 0, 0
	}
	return b.ID(), offset
}
func (h typed[T]) close() error { return h.t.Close() }

func newHandle(s *cmdbuf.Stream, dtype shaders.DType, n int) (handle, error) {
	if dtype == shaders.Int32 {
		t, err := cmdbuf.New[int32](s, n)
		return typed[int32]{t}, err
	}
	t, err := cmdbuf.New[uint32](s, n)
	return typed[uint32]{t}, err
}

func tempHandle(c *cmdbuf.Capture, dtype shaders.DType, n int) (handle, error) {
	if dtype == shaders.Int32 {
		t, err := cmdbuf.Temp[int32](c, n)
		return typed[int32]{t}, err
	}
	t, err := cmdbuf.Temp[uint32](c, n)
	return typed[uint32]{t}, err
}

func loadedHandle(l *cmdbuf.LoadedGraph, dtype shaders.DType, name string) (handle, error) {
	if dtype == shaders.Int32 {
		t, err := cmdbuf.TensorNamed[int32](l, name)
		return typed[int32]{t}, err
	}
	t, err := cmdbuf.TensorNamed[uint32](l, name)
	return typed[uint32]{t}, err
}

// window is a view of cells.
type window struct {
	mem    *cells
	layout shaders.Layout
}

func (w window) arg() (cmdbuf.Arg, error) {
	h, err := w.mem.dev.strided(w.layout)
	if err != nil {
		return nil, err
	}
	return h.arg(), nil
}

func (w window) String() string { return fmt.Sprintf("m%d[%v]", w.mem.id, w.layout) }

// each calls f with the index of every element of a layout, in row-major order.
func each(l shaders.Layout, f func(index []int)) {
	index := make([]int, l.Rank)
	for range l.Len() {
		f(index)
		for d := l.Rank - 1; d >= 0; d-- {
			if index[d]++; index[d] < l.Shape[d] {
				break
			}
			index[d] = 0
		}
	}
}

// cell is where a view that is broadcast to the index has its element.
func (w window) cell(index []int) int {
	at, lack := w.layout.Offset, len(index)-w.layout.Rank
	for d := range w.layout.Rank {
		if w.layout.Shape[d] != 1 {
			at += index[lack+d] * w.layout.Stride[d]
		}
	}
	return at
}

func (w window) cells() map[int]bool {
	m := map[int]bool{}
	each(w.layout, func(index []int) { m[w.cell(index)] = true })
	return m
}

// meets tells whether two windows share a cell.
func (w window) meets(v window) bool {
	if w.mem != v.mem {
		return false
	}
	other := v.cells()
	for at := range w.cells() {
		if other[at] {
			return true
		}
	}
	return false
}

// argument is one of a launch.
type argument struct {
	scalar bool
	dtype  shaders.DType
	bits   uint32
	win    window
	param  *param // whose value counts, nil for none
}

type param struct {
	name  string
	value argument
}

// now is the argument with its present value.
func (a argument) now() argument {
	if a.param != nil {
		return a.param.value
	}
	return a
}

func (a argument) bare() (cmdbuf.Arg, error) {
	switch v := a.now(); {
	case !v.scalar:
		return v.win.arg()
	case v.dtype == shaders.Int32:
		return cmdbuf.Int32(int32(v.bits)), nil
	default:
		return cmdbuf.Uint32(v.bits), nil
	}
}

func (a argument) arg() (cmdbuf.Arg, error) {
	v, err := a.bare()
	if err == nil && a.param != nil {
		v = cmdbuf.Param(a.param.name, v)
	}
	return v, err
}

func (a argument) String() string {
	name := ""
	if a.param != nil {
		name = a.param.name + "="
	}
	if v := a.now(); !v.scalar {
		return name + v.win.String()
	}
	return fmt.Sprintf("%s%d", name, int32(a.now().bits))
}

type stepKind int

const (
	launchStep stepKind = iota
	copyStep
	uploadStep
	tempStep  // a temporary begins
	closeStep // and ends
)

// step is one operation of a program.
type step struct {
	kind   stepKind
	kernel *shaders.Kernel
	args   []argument // of a launch; the output is the last
	grid   *cells     // of an indirect launch
	to     window     // of a copy or an upload
	from   window
	words  []uint32
	mem    *cells // temporary
}

func (s *step) String() string {
	switch s.kind {
	case launchStep:
		if s.grid != nil {
			return fmt.Sprintf("%s%v by m%d", s.kernel.Name, s.args, s.grid.id)
		}
		return fmt.Sprintf("%s%v", s.kernel.Name, s.args)
	case copyStep:
		return fmt.Sprintf("copy %v = %v", s.to, s.from)
	case uploadStep:
		return fmt.Sprintf("upload %v = %v", s.to, s.words)
	case tempStep:
		return fmt.Sprintf("temporary m%d", s.mem.id)
	default:
		return fmt.Sprintf("end of m%d", s.mem.id)
	}
}

func (s *step) out() window { return s.args[len(s.args)-1].now().win }

// refused tells whether the library must refuse the step: its output shares cells with
// something else it touches, and not in place.
func (s *step) refused() bool {
	switch s.kind {
	case copyStep:
		return s.to.meets(s.from)
	case launchStep:
		out := len(s.args) - 1
		w := s.out()
		for i, a := range s.args[:out] {
			v := a.now()
			if v.scalar || !w.meets(v.win) {
				continue
			}
			if !(s.kernel.InPlace(out, i) && v.win.layout == w.layout) {
				return true
			}
		}
	}
	return false
}

func (s *step) windows() (list []window) {
	switch s.kind {
	case launchStep:
		for _, a := range s.args {
			if v := a.now(); !v.scalar {
				list = append(list, v.win)
			}
		}
		if s.grid != nil {
			list = append(list, window{s.grid, shaders.Contiguous(3)})
		}
	case copyStep:
		list = append(list, s.from, s.to)
	case uploadStep:
		list = append(list, s.to)
	}
	return list
}

func (s *step) named() bool {
	return slices.ContainsFunc(s.args, func(a argument) bool { return a.param != nil })
}

// recorded tells whether a capture keeps the step: one that can never do anything is not
// an operation.
func (s *step) recorded() bool {
	switch s.kind {
	case launchStep:
		return s.named() || s.out().layout.Len() > 0
	case copyStep, uploadStep:
		return true
	default:
		return false
	}
}

// run does the step on the cells.
func (s *step) run() {
	switch s.kind {
	case copyStep:
		words := make([]uint32, 0, s.from.layout.Len())
		each(s.from.layout, func(index []int) { words = append(words, s.from.mem.words[s.from.cell(index)]) })
		s.to.put(words)
	case uploadStep:
		s.to.put(s.words)
	case launchStep:
		s.runLaunch()
	}
}

func (w window) put(words []uint32) {
	i := 0
	each(w.layout, func(index []int) {
		w.mem.words[w.cell(index)] = words[i]
		i++
	})
}

func (s *step) runLaunch() {
	if s.grid != nil && slices.Contains(s.grid.words, 0) {
		return
	}
	out := s.out()
	results := make([]uint32, 0, out.layout.Len())
	values := make([]uint32, len(s.args)-1)
	each(out.layout, func(index []int) {
		for i := range values {
			if v := s.args[i].now(); v.scalar {
				values[i] = v.bits
			} else {
				values[i] = v.win.mem.words[v.win.cell(index)]
			}
		}
		results = append(results, evaluate(s.kernel, values, len(results)))
	})
	out.put(results)
}

// evaluate is element i of a kernel's result.
func evaluate(k *shaders.Kernel, v []uint32, i int) uint32 {
	truth := func(b bool) uint32 {
		if b {
			return 1
		}
		return 0
	}
	switch k {
	case shaders.AddInt:
		return v[0] + v[1]
	case shaders.SubInt:
		return v[0] - v[1]
	case shaders.MulInt:
		return v[0] * v[1]
	case shaders.MinInt:
		return uint32(min(int32(v[0]), int32(v[1])))
	case shaders.MaxInt:
		return uint32(max(int32(v[0]), int32(v[1])))
	case shaders.EqualInt:
		return truth(v[0] == v[1])
	case shaders.LessInt:
		return truth(int32(v[0]) < int32(v[1]))
	case shaders.Where:
		if v[0] != 0 {
			return v[1]
		}
		return v[2]
	case shaders.IotaInt:
		return v[0] + uint32(i)*v[1]
	case shaders.Copy, shaders.Fill:
		return v[0]
	default:
		panic("a kernel without an interpreter: " + k.Name)
	}
}

// integerKernels are exact, whatever the device.
func integerKernels() []*shaders.Kernel {
	return []*shaders.Kernel{
		shaders.AddInt, shaders.SubInt, shaders.MulInt, shaders.MinInt, shaders.MaxInt, shaders.EqualInt, shaders.LessInt,
		shaders.Where, shaders.Copy, shaders.Fill, shaders.IotaInt,
	}
}

// launch runs the step eagerly.
func (s *step) launch(stream *cmdbuf.Stream) error {
	switch s.kind {
	case copyStep:
		to, err := s.to.arg()
		if err != nil {
			return err
		}
		from, err := s.from.arg()
		if err != nil {
			return err
		}
		return stream.Copy(to, from)
	case uploadStep:
		h, err := s.to.mem.dev.strided(s.to.layout)
		if err != nil {
			return err
		}
		return h.write(s.words)
	}
	args, err := s.deviceArgs()
	if err != nil {
		return err
	}
	if s.grid != nil {
		return stream.LaunchIndirect(s.kernel, s.grid.dev.arg().(*cmdbuf.Tensor[uint32]), args...)
	}
	return stream.Launch(s.kernel, args...)
}

func (s *step) deviceArgs() ([]cmdbuf.Arg, error) {
	args := make([]cmdbuf.Arg, len(s.args))
	for i := range args {
		var err error
		if args[i], err = s.args[i].arg(); err != nil {
			return nil, err
		}
	}
	return args, nil
}

// record records the step.
func (s *step) record(c *cmdbuf.Capture) (err error) {
	switch s.kind {
	case tempStep:
		s.mem.dev, err = tempHandle(c, s.mem.dtype, len(s.mem.words))
		return err
	case closeStep:
		return s.mem.dev.close()
	case copyStep:
		to, err := s.to.arg()
		if err != nil {
			return err
		}
		from, err := s.from.arg()
		if err != nil {
			return err
		}
		return c.Copy(to, from)
	case uploadStep:
		h, err := s.to.mem.dev.strided(s.to.layout)
		if err != nil {
			return err
		}
		return h.writeIn(c, s.words)
	}
	args, err := s.deviceArgs()
	if err != nil {
		return err
	}
	if s.grid != nil {
		return c.LaunchIndirect(s.kernel, s.grid.dev.arg().(*cmdbuf.Tensor[uint32]), args...)
	}
	return c.Launch(s.kernel, args...)
}

// writer draws steps over some memory.
type writer struct {
	mems   []*cells
	params []*param
	name   func() string // of the next parameter; nil: none
}

func drawShape(t *rapid.T) []int {
	shape := make([]int, rapid.IntRange(0, 3).Draw(t, "rank"))
	for i := range shape {
		shape[i] = rapid.SampledFrom([]int{3, 2, 2, 4, 1, 3, 5, 2, 4, 3, 0}).Draw(t, "extent")
	}
	return shape
}

// lay places a shape into n cells: axes in any order and direction, with gaps. Where the
// elements need not be distinct, some axes go nowhere.
func lay(t *rapid.T, shape []int, n int, distinct bool) (shaders.Layout, bool) {
	l := shaders.Contiguous(shape...)
	if l.Len() == 0 {
		l.Offset = rapid.IntRange(0, n).Draw(t, "offset")
		return l, true
	}
	axes := make([]int, len(shape))
	for i := range axes {
		axes[i] = i
	}
	axes = rapid.Permutation(axes).Draw(t, "axes")
	for _, loose := range []bool{rapid.Bool().Draw(t, "loose"), false} {
		step, lo, hi := 1, 0, 0
		if loose {
			step = rapid.IntRange(1, 2).Draw(t, "step")
		}
		for _, a := range axes {
			l.Stride[a] = step
			if !distinct && (step*shape[a] > n || rapid.IntRange(0, 4).Draw(t, "repeat") == 0) {
				l.Stride[a] = 0
				continue
			}
			reach := (shape[a] - 1) * step
			if rapid.IntRange(0, 3).Draw(t, "turn") == 0 {
				l.Stride[a] = -step
				lo -= reach
			} else {
				hi += reach
			}
			step *= shape[a]
			if loose {
				step += rapid.IntRange(0, 1).Draw(t, "gap")
			}
		}
		if hi-lo < n {
			l.Offset = rapid.IntRange(-lo, n-1-hi).Draw(t, "offset")
			return l, true
		}
	}
	return l, false
}

// of are the memories of a type.
func (w *writer) of(dtype shaders.DType) (list []*cells) {
	for _, m := range w.mems {
		if m.dtype == dtype && !m.grid {
			list = append(list, m)
		}
	}
	return list
}

func (w *writer) grids() (list []*cells) {
	for _, m := range w.mems {
		if m.grid {
			list = append(list, m)
		}
	}
	return list
}

// window draws a view of a shape over memory of a type.
func (w *writer) window(t *rapid.T, dtype shaders.DType, shape []int, distinct bool) (window, bool) {
	elements := shaders.Contiguous(shape...).Len()
	list := slices.DeleteFunc(w.of(dtype), func(m *cells) bool { return distinct && len(m.words) < elements })
	if len(list) == 0 {
		return window{}, false
	}
	m := rapid.SampledFrom(list).Draw(t, "memory")
	l, ok := lay(t, shape, len(m.words), distinct)
	return window{m, l}, ok
}

// input draws a view that broadcasts to a shape.
func (w *writer) input(t *rapid.T, dtype shaders.DType, shape []int) (window, bool) {
	own := slices.Clone(shape[rapid.IntRange(0, len(shape)).Draw(t, "axes fewer"):])
	for i := range own {
		if rapid.IntRange(0, 4).Draw(t, "one") == 0 {
			own[i] = 1
		}
	}
	return w.window(t, dtype, own, false)
}

// maybeName makes an argument a parameter, or the value of one that exists.
func (w *writer) maybeName(t *rapid.T, a argument) argument {
	chance := 3
	if !a.scalar {
		chance = 7
	}
	if w.name == nil || rapid.IntRange(0, chance).Draw(t, "name") != 0 || !a.scalar && a.win.mem.temp {
		return a
	}
	for _, p := range w.params {
		if a.scalar && p.value.scalar && p.value.dtype == a.dtype && rapid.Bool().Draw(t, "same name") {
			return argument{scalar: true, dtype: a.dtype, param: p}
		}
	}
	p := &param{name: w.name(), value: a}
	w.params = append(w.params, p)
	a.param = p
	return a
}

func drawWord(t *rapid.T) uint32 {
	if rapid.Bool().Draw(t, "small") {
		return uint32(rapid.IntRange(-2, 3).Draw(t, "value"))
	}
	return rapid.Uint32().Draw(t, "value")
}

// drawGroups draws an extent of an indirect launch's grid: none, or enough, with the two
// others, that every element has an invocation however few a group has.
func drawGroups(t *rapid.T) uint32 {
	return rapid.SampledFrom([]uint32{0, 4, 5}).Draw(t, "groups")
}

func drawWords(t *rapid.T, m *cells, n int) []uint32 {
	words := make([]uint32, n)
	for i := range words {
		if m.grid {
			words[i] = drawGroups(t)
		} else {
			words[i] = drawWord(t)
		}
	}
	return words
}

// draw makes a step; false if there is no room for what came up.
func (w *writer) draw(t *rapid.T) (*step, bool) {
	switch rapid.IntRange(0, 9).Draw(t, "step") {
	case 0:
		return w.drawCopy(t)
	case 1:
		return w.drawUpload(t)
	case 2:
		if g := w.grids(); len(g) > 0 { // workgroups for later
			m := rapid.SampledFrom(g).Draw(t, "grid")
			value := argument{scalar: true, dtype: m.dtype, bits: drawGroups(t)}
			return &step{kind: launchStep, kernel: shaders.Fill, args: []argument{value, {dtype: m.dtype, win: window{m, shaders.Contiguous(3)}}}}, true
		}
	}
	return w.drawLaunch(t)
}

// oneGroup is a number of elements that one workgroup of any kernel does. An indirect
// launch runs as many as its grid says, and the interpreter knows only all or nothing.
const oneGroup = 32

func (w *writer) drawLaunch(t *rapid.T) (*step, bool) {
	k := rapid.SampledFrom(integerKernels()).Draw(t, "kernel")
	s := &step{kind: launchStep, kernel: k, args: make([]argument, len(k.Params))}
	free := drawType(t)
	shape := drawShape(t)
	last := len(k.Params) - 1
	for n := range k.Params { // the output first
		i := (n + last) % len(k.Params)
		p := &k.Params[i]
		a := argument{scalar: p.Kind == shaders.ScalarParam, dtype: p.DType}
		if a.dtype == shaders.AnyDType {
			a.dtype = free
		}
		switch {
		case a.scalar:
			a.bits = drawWord(t)
		case i == last:
			var ok bool
			if a.win, ok = w.window(t, a.dtype, shape, true); !ok {
				return nil, false
			}
		case s.out().mem.dtype == a.dtype && rapid.IntRange(0, 3).Draw(t, "in place") == 0:
			a.win = s.out()
		default:
			var ok bool
			if a.win, ok = w.input(t, a.dtype, shape); !ok {
				return nil, false
			}
		}
		s.args[i] = a
	}
	for i := range s.args {
		s.args[i] = w.maybeName(t, s.args[i])
	}
	if g := w.grids(); len(g) > 0 && s.out().layout.Len() <= oneGroup && rapid.IntRange(0, 5).Draw(t, "indirect") == 0 {
		s.grid = rapid.SampledFrom(g).Draw(t, "grid")
	}
	return s, true
}

// drawDense draws a contiguous view.
func drawDense(t *rapid.T, m *cells, n int) window {
	l := shaders.Contiguous(n)
	l.Offset = rapid.IntRange(0, len(m.words)-n).Draw(t, "offset")
	return window{m, l}
}

func (w *writer) drawCopy(t *rapid.T) (*step, bool) {
	list := w.of(drawType(t))
	if len(list) == 0 {
		return nil, false
	}
	to, from := rapid.SampledFrom(list).Draw(t, "to"), rapid.SampledFrom(list).Draw(t, "from")
	n := rapid.IntRange(1, min(len(to.words), len(from.words))).Draw(t, "n")
	return &step{kind: copyStep, to: drawDense(t, to, n), from: drawDense(t, from, n)}, true
}

func (w *writer) drawUpload(t *rapid.T) (*step, bool) {
	if len(w.mems) == 0 {
		return nil, false
	}
	m := rapid.SampledFrom(w.mems).Draw(t, "to")
	n := rapid.IntRange(1, len(m.words)).Draw(t, "n")
	return &step{kind: uploadStep, to: drawDense(t, m, n), words: drawWords(t, m, n)}, true
}
