package shaders

import "strconv"

// DType is the type of one tensor element or scalar.
type DType uint8

// The zero DType is meaningful in a Param only: any 32-bit type, the same one
// for every such parameter of a launch.
const (
	AnyDType DType = iota
	Float32
	Int32
	Uint32
)

// Size is the size of one element in bytes, 0 for AnyDType and unknown values.
func (d DType) Size() int {
	switch d {
	case Float32, Int32, Uint32:
		return 4
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
	default:
		return "dtype(" + strconv.Itoa(int(d)) + ")"
	}
}
