package shaders

import (
	"encoding/binary"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strings"
)

// LoadFS is Load of a file, for instance of an embed.FS.
func LoadFS(fsys fs.FS, name string) (*Module, error) {
	code, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, fmt.Errorf("shaders: reading SPIR-V: %w", err)
	}
	m, err := Load(code)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return m, nil
}

// LoadKernel makes a kernel of SPIR-V as Elementwise does.
func LoadKernel(name string, code []byte, params ...Param) (*Kernel, error) {
	m, err := Load(code)
	if err != nil {
		return nil, fmt.Errorf("shaders: kernel %q: %w", name, err)
	}
	return Elementwise(name, m, params...)
}

// LoadKernelFS is LoadKernel of a file, for instance of an embed.FS. The kernel is named
// for the file, without folder and extension.
func LoadKernelFS(fsys fs.FS, file string, params ...Param) (*Kernel, error) {
	m, err := LoadFS(fsys, file)
	if err != nil {
		return nil, err
	}
	base := path.Base(file)
	return Elementwise(strings.TrimSuffix(base, path.Ext(base)), m, params...)
}

// Elementwise makes a kernel of a shader that works on element i of every tensor
// in invocation i, without a planner: the shortest way to run one's own shader.
//
// Its tensors have one shape and are contiguous. The entry point is main, or the
// only one there is. Without params, every storage buffer but binding 0 is a tensor,
// in the order of the bindings, whose elements are those of the shader's array: a
// launch compares a Go struct with the shader's member by member (see TypeOf). A buffer
// that is one struct of fixed size is a tensor of one element, whatever the shape of
// the others; of what the module does not tell, any 32-bit type will do. Otherwise
// params say the names, types and order, and which scalars there are; a tensor of
// AnyDType is as without params where its elements are not of 32 bits.
//
// Where the shader has push constants, these are its scalars: numbers of 32 bits, which
// without params come after the tensors, in the order of the block.
//
// Where the shader has binding 0, it finds there, as `uint info[]`, the scalars in
// order unless they are push constants, the number of elements, and the number of the
// first element in each binding, tensor by tensor; see the package's conventions. Where it has none it
// must stop at the length of its buffers, and tensors must begin where an aligned
// binding can: views that do not are an error.
//
// The grid is cut into groups of the module's own workgroup size, in x alone. A device
// takes maxComputeWorkGroupCount[0] of them, of which 65535 is the least: 4.19 million
// elements with a workgroup of 64. A launch of more is an error; use larger groups, or
// launch parts of the tensors.
func Elementwise(name string, m *Module, params ...Param) (*Kernel, error) {
	fail := func(format string, args ...any) (*Kernel, error) {
		return nil, fmt.Errorf("shaders: kernel %q: %w: "+format, append([]any{name, ErrKernelSpec}, args...)...)
	}
	if m == nil {
		return fail("want a module, found nil: Load it first")
	}
	entry := "main"
	if len(m.Entries) == 1 {
		entry = m.Entries[0].Name
	}
	info := false
	derive := len(params) == 0
	for i, b := range m.Bindings {
		if b.Set == 0 && b.Binding == InfoBinding {
			info = true
			continue
		}
		if derive {
			n := b.Name
			if n == "" {
				n = fmt.Sprintf("binding%d", b.Binding)
			}
			if slices.ContainsFunc(params, func(p Param) bool { return p.Name == n }) {
				n = fmt.Sprintf("%s%d", n, i)
			}
			params = append(params, Param{Name: n, DType: b.Contents.dtype(), Binding: b.Binding})
		}
	}
	params = slices.Clone(params)
	pushed := m.PushSize > 0
	if pushed {
		scalars, err := pushScalars(m.Push, m.PushSize)
		if err != nil {
			return fail("%w", err)
		}
		if derive {
			params = append(params, scalars...)
		}
		given := params[:0:0]
		for _, p := range params {
			if p.Kind == ScalarParam {
				given = append(given, p)
			}
		}
		if len(given) != len(scalars) {
			return fail("want %d scalars, as many as the shader has push constants, found %d", len(scalars), len(given))
		}
		for i := range given {
			if want := scalars[i].DType; given[i].DType != want && given[i].DType != AnyDType {
				return fail("scalar %s is %v, and push constant %d (%s) %v", given[i].Name, given[i].DType, i, scalars[i].Name, want)
			}
		}
	}
	whole := make([]bool, len(params))
	tensors := 0
	for i := range params {
		p := &params[i]
		if p.Kind == ScalarParam {
			if !info && !pushed {
				return fail("scalar %s has no way into the shader: declare a push constant, or the info words at binding 0", p.Name)
			}
			continue
		}
		bi := slices.IndexFunc(m.Bindings, func(b BindingInfo) bool { return b.Set == 0 && b.Binding == p.Binding })
		if bi < 0 {
			continue // NewKernel says so
		}
		c := m.Bindings[bi].Contents
		if p.DType == AnyDType && c.Form != OtherForm && c.dtype().Size() != 4 {
			p.DType = c.dtype()
		}
		if size := p.DType.Size(); size != 0 && c.Form == Elements && size != c.Stride {
			return fail("parameter %d (%s) is a tensor of %v, and binding %d holds elements of %d bytes, %v: want %v", i, p.Name, p.DType, p.Binding, c.Stride, c.Elem, describe(c.Elem))
		}
		if whole[i] = c.Form == Whole && p.DType == Composite; !whole[i] {
			tensors++
		}
	}
	if tensors == 0 {
		return fail("want a tensor with an element for each invocation at least, the module has none")
	}
	k, err := NewKernel(KernelSpec{Name: name, Module: m, Entry: entry, Params: params, Plan: elementwisePlan(info, pushed, whole),
		// Invocation i touches element i alone.
		InPlace: func(int, int) bool { return true },
	})
	if err != nil {
		return nil, err
	}
	if size := k.fixed; size[1] != 1 || size[2] != 1 {
		return fail("want a workgroup size in x alone, found %v", size)
	}
	return k, nil
}

// dtype is the element type of a parameter that takes what the buffer holds.
func (c *Contents) dtype() DType {
	switch c.Form {
	case Elements:
		if t := c.Elem.DType(); t.Size() == c.Stride {
			return t
		}
		return Composite
	case Whole:
		return Composite
	default:
		return AnyDType
	}
}

// pushScalars are the parameters that a block of push constants stands for.
func pushScalars(block *Type, size int) ([]Param, error) {
	if block == nil || block.Kind != StructType || size != 4*len(block.Fields) {
		return nil, fmt.Errorf("want push constants that are numbers of 32 bits, one after the other, found %v of %d bytes", block, size)
	}
	var list []Param
	for i, f := range block.Fields {
		if f.Type == nil || f.Offset != 4*i || f.Type.DType().Size() != 4 {
			return nil, fmt.Errorf("want push constants that are numbers of 32 bits, one after the other, found %s at byte %d", goName(f.Type), f.Offset)
		}
		name := f.Name
		if name == "" {
			name = fmt.Sprintf("constant%d", i)
		}
		list = append(list, Param{Name: name, Kind: ScalarParam, DType: f.Type.DType()})
	}
	return list, nil
}

// elementwisePlan plans for tensors of one shape, but for those that are whole.
func elementwisePlan(info, pushed bool, whole []bool) Planner {
	return func(env Env, ops []Operand, p *Plan) error {
		first := 0
		for ops[first].Kind != TensorParam || whole[first] {
			first++
		}
		shape := &ops[first].Layout
		w := NewInfo(p)
		for i := range ops {
			switch {
			case ops[i].Kind != ScalarParam:
			case pushed:
				p.Push = binary.NativeEndian.AppendUint32(p.Push, uint32(ops[i].Bits))
			default:
				w.Put(uint32(ops[i].Bits))
			}
		}
		total := shape.len()
		w.Put(uint32(total))
		for i := range ops {
			l := &ops[i].Layout
			if ops[i].Kind == ScalarParam {
				continue
			}
			if whole[i] {
				if l.len() != 1 || l.Offset != 0 {
					return &OperandError{Index: i, Problem: BadLayout, Want: "one element at an aligned beginning, as the shader's buffer is one struct", Found: l.String()}
				}
				w.Put(0)
				continue
			}
			if !sameShape(l, shape) {
				return shapeError(i, shapeOf(shape), l)
			}
			if !l.contiguous() {
				return &OperandError{Index: i, Problem: BadLayout, Want: "contiguous elements: copy it first", Found: l.String()}
			}
			if !info && l.Offset != 0 && total > 0 {
				return &OperandError{Index: i, Problem: BadLayout, Want: "an aligned beginning, as the shader reads no info words", Found: l.String()}
			}
			w.Put(uint32(l.Offset))
		}
		w.Done()
		if total > 0 {
			line(p, total, int(env.WorkgroupSize[0]))
		}
		return nil
	}
}

// contiguous reports whether the elements lie in row-major order without gaps.
func (l *Layout) contiguous() bool {
	step := 1
	for d := l.Rank - 1; d >= 0; d-- {
		if l.Shape[d] != 1 && l.Stride[d] != step {
			return l.len() == 0
		}
		step *= l.Shape[d]
	}
	return true
}

// InfoWriter writes the info words of a plan, for planners of one's own. The words
// end up in the plan at Done.
type InfoWriter struct {
	plan *Plan
	w    infoWriter
}

// NewInfo begins the words of a plan anew.
func NewInfo(p *Plan) InfoWriter {
	return InfoWriter{plan: p, w: infoWriter{words: p.Info[:0]}}
}

// Put appends a word.
func (w *InfoWriter) Put(v uint32) { w.w.put(v) }

// Int appends an int32, or an index that fits a word in two's complement.
func (w *InfoWriter) Int(v int) { w.w.put(uint32(v)) }

// Float appends the bits of a float32.
func (w *InfoWriter) Float(v float32) { w.w.put(math.Float32bits(v)) }

// View appends a view of a layout as it is, 2 + 2·rank words: rank, offset, shape,
// strides.
func (w *InfoWriter) View(l Layout) {
	if l.Rank < 0 || l.Rank > MaxRank {
		l.Rank = 0 // Plan refuses such a layout before a planner sees it
	}
	var n nest
	n.lead(&l)
	w.w.view(&n, 0)
}

// Done hands the words to the plan.
func (w *InfoWriter) Done() { w.plan.Info = w.w.words }
