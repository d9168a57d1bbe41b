package shaders

import (
	"fmt"
	"slices"
	"sync/atomic"
)

// InfoBinding is the binding of the info words, in set 0.
const InfoBinding = 0

// NewKernel checks a spec against its module and makes a kernel of it. Errors
// match ErrKernelSpec.
func NewKernel(spec KernelSpec) (*Kernel, error) {
	fail := func(format string, args ...any) (*Kernel, error) {
		return nil, fmt.Errorf("shaders: kernel %q: %w: "+format, append([]any{spec.Name, ErrKernelSpec}, args...)...)
	}
	m := spec.Module
	if m == nil {
		return fail("want a module, found nil: Load it first")
	}
	if spec.Plan == nil {
		return fail("want a planner, found nil")
	}
	if spec.Entry == "" {
		spec.Entry = "main"
	}
	ei := slices.IndexFunc(m.Entries, func(e EntryPoint) bool { return e.Name == spec.Entry })
	if ei < 0 {
		names := make([]string, len(m.Entries))
		for i, e := range m.Entries {
			names[i] = e.Name
		}
		return fail("want entry point %q, the module has %q", spec.Entry, names)
	}
	params := slices.Clone(spec.Params)
	var contents []Contents
	used := map[uint32]string{InfoBinding: "info"}
	for i := range params {
		p := &params[i]
		if p.Kind == ScalarParam {
			if s := p.DType.Size(); s != 4 && p.DType != AnyDType {
				return fail("parameter %d (%s) is a scalar of type %v: want 32 bits; pass others in a tensor", i, p.Name, p.DType)
			}
			p.Access, p.Binding = 0, 0
			continue
		}
		if other, taken := used[p.Binding]; taken {
			return fail("parameter %d (%s) has binding %d, which belongs to %s", i, p.Name, p.Binding, other)
		}
		used[p.Binding] = p.Name
		bi := slices.IndexFunc(m.Bindings, func(b BindingInfo) bool { return b.Set == 0 && b.Binding == p.Binding })
		if bi < 0 {
			return fail("parameter %d (%s) wants binding %d of set 0, which the module does not have", i, p.Name, p.Binding)
		}
		b := m.Bindings[bi]
		if b.Access == 0 {
			return fail("binding %d of parameter %d (%s) may be neither read nor written", p.Binding, i, p.Name)
		}
		if p.Access == 0 {
			p.Access = b.Access
		}
		if p.DType == Composite {
			if b.Contents.Form == OtherForm {
				return fail("parameter %d (%s) takes elements of its binding's type, and binding %d holds several things or none that is known: want one array, or one struct of fixed size", i, p.Name, p.Binding)
			}
			if contents == nil {
				contents = make([]Contents, len(params))
			}
			contents[i] = b.Contents
		}
		// Less than the shader may do would let the barrier planner miss a hazard.
		if b.Access&^p.Access != 0 {
			return fail("parameter %d (%s) is declared %v, its binding %d is %v: decorate it readonly or writeonly in the shader", i, p.Name, p.Access, p.Binding, b.Access)
		}
	}
	for _, b := range m.Bindings {
		switch {
		case b.Set != 0:
			return fail("binding %d lies in set %d: want set 0", b.Binding, b.Set)
		case b.Kind != StorageBuffer || b.Count != 1:
			return fail("binding %d is %d × %v: want one storage buffer", b.Binding, b.Count, b.Kind)
		case b.Binding == InfoBinding && b.Access != Read:
			return fail("binding 0 holds the info words and is %v: declare it readonly", b.Access)
		}
		if _, ok := used[b.Binding]; !ok {
			return fail("binding %d (%s) of the module belongs to no parameter", b.Binding, b.Name)
		}
	}
	return &Kernel{
		Name: spec.Name, Module: m, Entry: spec.Entry, Params: params,
		plan: spec.Plan, grid: spec.Grid, inPlace: spec.InPlace, spec: spec.Spec,
		fixed: m.Entries[ei].LocalSize, contents: contents, fitting: make([]atomic.Pointer[Type], len(contents)),
	}, nil
}
