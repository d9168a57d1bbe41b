package shaders

import "fmt"

// Module is a SPIR-V module and what it tells about itself. It is immutable.
type Module struct {
	Words        []uint32 // in the host's byte order
	Entries      []EntryPoint
	Bindings     []BindingInfo // sorted by set, then binding
	Constants    []SpecInfo    // sorted by ID
	Push         *Type         // the push constant block; nil if there is none or it is not known
	PushSize     int           // bytes of the push constant block, 0 if there is none
	SharedBytes  int           // workgroup memory by default specialisation, as far as array lengths can be evaluated
	Capabilities []Capability
	Extensions   []string
}

// EntryPoint is one compute entry point.
type EntryPoint struct {
	Name string
	// LocalSize is the workgroup size before specialisation.
	LocalSize [3]uint32
	// LocalSizeSpec holds, per axis, 1 + the ID of the specialisation constant
	// that sets it, or 0 when the size is fixed.
	LocalSizeSpec [3]uint32
}

// BindingKind is the kind of descriptor a binding needs.
type BindingKind uint8

const (
	OtherBinding BindingKind = iota // images, samplers: nothing here uses them
	StorageBuffer
	UniformBuffer
)

func (k BindingKind) String() string {
	switch k {
	case OtherBinding:
		return "other"
	case StorageBuffer:
		return "storage buffer"
	case UniformBuffer:
		return "uniform buffer"
	default:
		return fmt.Sprintf("binding kind(%d)", uint8(k))
	}
}

// BindingInfo is one resource variable. Name is empty when the module carries
// no debug names, which optimised ones do not.
type BindingInfo struct {
	Set, Binding uint32
	Kind         BindingKind
	Access       Access
	Name         string
	Count        uint32   // descriptors: 1, the length of an array, or 0 for an unsized array
	Contents     Contents // of a storage buffer
}

// SpecInfo is one scalar specialisation constant.
type SpecInfo struct {
	ID      uint32
	Name    string
	Default uint32 // low word of the default; 0 or 1 for booleans
}
