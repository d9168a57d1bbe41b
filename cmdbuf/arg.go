package cmdbuf

import (
	"math"

	"vkcompute/shaders"
)

// Element is the type of a tensor's elements.
type Element interface{ float32 | int32 | uint32 }

// Arg is an argument of a launch: a *Tensor or a Scalar.
//
// The method marks the types and is never called: a call through the interface would
// make every Scalar escape to the heap, and a launch must not allocate.
type Arg interface{ isArg() }

// Scalar is a number passed to a kernel by value. Make one with Float32, Int32 or Uint32.
type Scalar struct {
	bits  uint32
	dtype shaders.DType
}

func (Scalar) isArg() {}

func (s Scalar) operand() shaders.Operand {
	return shaders.Operand{Kind: shaders.ScalarParam, DType: s.dtype, Bits: uint64(s.bits)}
}

// Float32 makes a scalar argument.
func Float32(v float32) Scalar { return Scalar{math.Float32bits(v), shaders.Float32} }

// Int32 makes a scalar argument.
func Int32(v int32) Scalar { return Scalar{uint32(v), shaders.Int32} }

// Uint32 makes a scalar argument.
func Uint32(v uint32) Scalar { return Scalar{v, shaders.Uint32} }

func dtypeOf[T Element]() shaders.DType {
	switch any(*new(T)).(type) {
	case float32:
		return shaders.Float32
	case int32:
		return shaders.Int32
	default:
		return shaders.Uint32
	}
}
