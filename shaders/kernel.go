package shaders

import (
	"fmt"
	"sync/atomic"
)

// Access says what a shader does with a binding. Barriers are planned from it.
type Access uint8

const (
	Read      Access = 1
	Write     Access = 2
	ReadWrite        = Read | Write
)

func (a Access) String() string {
	switch a {
	case 0:
		return "none"
	case Read:
		return "read"
	case Write:
		return "write"
	case ReadWrite:
		return "read-write"
	default:
		return fmt.Sprintf("access(%d)", uint8(a))
	}
}

// ParamKind tells tensors from scalars.
type ParamKind uint8

const (
	TensorParam ParamKind = iota
	ScalarParam
)

func (k ParamKind) String() string {
	switch k {
	case TensorParam:
		return "tensor"
	case ScalarParam:
		return "scalar"
	default:
		return fmt.Sprintf("kind(%d)", uint8(k))
	}
}

// Param describes one parameter of a kernel. Access and Binding belong to
// tensors; a scalar travels in the info words.
type Param struct {
	Name    string
	Kind    ParamKind
	DType   DType // AnyDType: Float32, Int32 or Uint32, the same for all such parameters
	Access  Access
	Binding uint32
}

// Operand is what a launch gives for one parameter. A tensor sets Layout; a
// scalar sets Kind to ScalarParam and Bits to its 32-bit pattern.
type Operand struct {
	Layout
	DType DType
	Kind  ParamKind
	Bits  uint64
	Type  *Type // of a Composite element: its Go type, from TypeOf
}

// Env is what a plan depends on besides the operands.
type Env struct {
	WorkgroupSize [3]uint32 // as specialised for this pipeline: the second result of Kernel.Spec
	Tuning        Tuning
}

// Plan is one launch worked out: the words of the info buffer and the grid. Its
// slices are reused, so a warm Plan allocates nothing.
type Plan struct {
	Info   []uint64
	Groups [3]uint64 // any of them 0: nothing to do
	Push   []byte
}

// Reset empties the plan and keeps its memory.
func (p *Plan) Reset() {
	p.Info, p.Push, p.Groups = p.Info[:0], p.Push[:0], [3]uint64{}
}

// Planner works out a launch. The operands have been checked against the
// parameters (count, kind, element type, each layout by itself, no output that
// overlaps itself); the planner checks how they go together, appends to the
// reset plan and sets its grid.
type Planner func(env Env, ops []Operand, p *Plan) error

// SpecConst is the value of one specialisation constant.
type SpecConst struct {
	ID    uint32
	Value uint32
}

// MaxWorkgroup is what a device allows one workgroup. SharedBytes of 0 means the
// 16 KiB that every Vulkan device has.
type MaxWorkgroup struct {
	Invocations uint32
	Size        [3]uint32
	SharedBytes uint32
	// Tuning lets a kernel choose another way to work, which shows in the workgroup
	// size. Env should carry the same.
	Tuning Tuning
}

// GridMode says whether a grid may be folded.
type GridMode uint8

const (
	// ExactGrid: the shader reads gl_WorkGroupID axis by axis.
	ExactGrid GridMode = iota
	// FoldedGrid: the planner gives groups in x only, and the shader linearises
	// gl_WorkGroupID with gl_NumWorkGroups and ignores groups beyond its last
	// element, so x may be folded into y and z. The folded grid must hold fewer
	// than twice the groups asked for.
	FoldedGrid
)

// Kernel is an entry point of a module with its parameters and its planner.
// It is immutable and may be shared by any number of goroutines.
type Kernel struct {
	Name   string
	Module *Module // nil only when Err is not nil
	Entry  string
	Params []Param

	err     error
	plan    Planner
	grid    GridMode
	inPlace func(out, in int) bool
	spec    func(MaxWorkgroup) ([]SpecConst, [3]uint32)
	fixed   [3]uint32 // workgroup size when spec is nil
	// Of each parameter of Composite elements: what its binding holds, and the Go type
	// that was found to fit last, so that a launch need not compare again.
	contents []Contents
	fitting  []atomic.Pointer[Type]
}

// Err tells why a built-in kernel is unusable (its embedded SPIR-V is damaged),
// nil otherwise. Plan returns the same error.
func (k *Kernel) Err() error {
	if k == nil {
		return fmt.Errorf("%w: nil kernel", ErrKernelSpec)
	}
	return k.err
}

// Foldable reports whether groups beyond the device's limit in x may be folded
// into y and z. See FoldedGrid.
func (k *Kernel) Foldable() bool { return k.grid == FoldedGrid }

// InPlace reports whether parameter out may be the same memory as parameter in,
// with an identical layout. Both are indices into Params.
func (k *Kernel) InPlace(out, in int) bool {
	if k.inPlace == nil || out < 0 || in < 0 || out >= len(k.Params) || in >= len(k.Params) {
		return false
	}
	return k.inPlace(out, in)
}

// Spec chooses the specialisation constants for a device and tells the
// resulting workgroup size, which the caller checks against the same limits
// when the size is fixed in the module.
func (k *Kernel) Spec(limits MaxWorkgroup) ([]SpecConst, [3]uint32) {
	if k.spec == nil {
		return nil, k.fixed
	}
	return k.spec(limits)
}

// Plan checks the operands and fills p. On an error p is empty.
func (k *Kernel) Plan(env Env, ops []Operand, p *Plan) error {
	p.Reset()
	if err := k.Err(); err != nil {
		return err
	}
	if err := k.check(env, ops); err != nil {
		return err
	}
	if err := k.plan(env, ops, p); err != nil {
		p.Reset()
		// A planner knows the operand; which kernel it plans for, the kernel knows.
		if oe, ok := err.(*OperandError); ok && oe.Kernel == "" {
			oe.Kernel = k.Name
			if oe.Index >= 0 && oe.Index < len(k.Params) {
				oe.Param = k.Params[oe.Index].Name
			}
		}
		return err
	}
	return nil
}

func (k *Kernel) check(env Env, ops []Operand) error {
	for _, s := range env.WorkgroupSize {
		if s == 0 {
			return &OperandError{Kernel: k.Name, Index: -1, Problem: BadGrid,
				Want: "a workgroup size as Spec gave it", Found: fmt.Sprint(env.WorkgroupSize)}
		}
	}
	if len(ops) != len(k.Params) {
		return &OperandError{Kernel: k.Name, Index: -1, Problem: BadCount,
			Want: fmt.Sprintf("%d %v", len(k.Params), k.names()), Found: fmt.Sprint(len(ops))}
	}
	shared := AnyDType
	for i := range ops {
		op, par := &ops[i], &k.Params[i]
		if op.Kind != par.Kind {
			return k.bad(i, BadKind, par.Kind.String(), op.Kind.String())
		}
		want := par.DType
		if want == AnyDType {
			want = shared
			shared = op.DType
			if op.DType.Size() != 4 {
				return k.bad(i, BadDType, "float32, int32 or uint32", op.typeName())
			}
		}
		if want == Composite {
			if err := k.fits(i, op); err != nil {
				return err
			}
		} else if op.DType.Size() == 0 || want != AnyDType && op.DType != want {
			return k.bad(i, BadDType, want.String(), op.typeName())
		}
		if par.Kind == ScalarParam {
			if op.Bits>>32 != 0 {
				return k.bad(i, BadKind, "a 32-bit pattern", fmt.Sprintf("%#x", op.Bits))
			}
			continue
		}
		if err := op.validate(); err != nil {
			return k.bad(i, BadLayout, "one a shader can index", err.Error())
		}
		if par.Access&Write != 0 && op.selfOverlaps() {
			return k.bad(i, BadOverlap, "an output whose elements are distinct", op.Layout.String())
		}
	}
	return nil
}

// fits compares the element of an operand with what its binding holds.
func (k *Kernel) fits(i int, op *Operand) error {
	t := op.Type
	if op.DType != Composite || op.Kind != TensorParam {
		return k.bad(i, BadDType, k.contents[i].String(), op.typeName())
	}
	if t != nil && k.fitting[i].Load() == t {
		return nil
	}
	if err := k.contents[i].fits(t); err != nil {
		e := k.bad(i, BadDType, k.contents[i].String(), op.typeName()).(*OperandError)
		e.Err = err
		return e
	}
	k.fitting[i].Store(t)
	return nil
}

// typeName is the element type for a message.
func (o *Operand) typeName() string {
	if o.DType == Composite {
		return o.Type.String()
	}
	return o.DType.String()
}

// Contents is what the binding of a tensor parameter holds, of those that take Composite
// elements; the zero Contents for the others.
func (k *Kernel) Contents(param int) Contents {
	if param < 0 || param >= len(k.contents) {
		return Contents{}
	}
	return k.contents[param]
}

func (k *Kernel) names() []string {
	names := make([]string, len(k.Params))
	for i := range k.Params {
		names[i] = k.Params[i].Name
	}
	return names
}

func (k *Kernel) bad(i int, what Problem, want, found string) error {
	return &OperandError{Kernel: k.Name, Index: i, Param: k.Params[i].Name, Problem: what, Want: want, Found: found}
}

// KernelSpec describes a kernel to NewKernel.
type KernelSpec struct {
	Name   string
	Module *Module
	Entry  string  // "" means "main"
	Params []Param // an Access of 0 is filled from the module
	Plan   Planner

	Grid    GridMode
	InPlace func(out, in int) bool                      // nil: never
	Spec    func(MaxWorkgroup) ([]SpecConst, [3]uint32) // nil: the module's own workgroup size
}
