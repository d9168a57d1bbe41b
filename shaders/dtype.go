package shaders

import "strconv"

// DType is the type of one tensor element or scalar.
type DType uint8

// The zero DType is meaningful in a Param only: any of Float32, Int32 and Uint32, the
// same one for every such parameter of a launch.
const (
	AnyDType DType = iota
	Float32
	Int32
	Uint32
	Float64
	Float16
	// Composite is every other element: a vector, a struct, an integer of another width.
	// Operand.Type says what it is.
	Composite
)

// Size is the size of one element in bytes, 0 for AnyDType, Composite and unknown values.
func (d DType) Size() int {
	switch d {
	case Float16:
		return 2
	case Float32, Int32, Uint32:
		return 4
	case Float64:
		return 8
	default:
		return 0
	}
}

func (d DType) String() string {
	switch d {
	case AnyDType:
		return "any"
	case Float32:
		return "float32"
	case Int32:
		return "int32"
	case Uint32:
		return "uint32"
	case Float64:
		return "float64"
	case Float16:
		return "float16"
	case Composite:
		return "composite"
	default:
		return "dtype(" + strconv.Itoa(int(d)) + ")"
	}
}
