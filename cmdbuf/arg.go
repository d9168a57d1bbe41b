package cmdbuf

import (
	"fmt"
	"math"
	"reflect"

	"vkcompute/shaders"
)

// Element is the type of a tensor's elements: float32, int32, uint32, float64,
// shaders.Half, and any array or struct of numbers that shaders.TypeOf accepts, such as
// [4]float32 or a struct that lies in memory as the shader's does. Go cannot say that of a
// type, so New, Upload and Temp look, and refuse others with a *shaders.TypeError.
type Element any

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

// element is what a view knows of its elements.
type element struct {
	dtype shaders.DType
	size  uint64        // bytes of one
	typ   *shaders.Type // of Composite ones
}

// number is an element that is a number.
func number(d shaders.DType) element { return element{dtype: d, size: uint64(d.Size())} }

// elementOf looks at a type of elements. The stream remembers those it has looked at; its
// lock is held.
func elementOf[T Element](s *Stream) (element, error) {
	switch any((*T)(nil)).(type) {
	case *float32:
		return number(shaders.Float32), nil
	case *int32:
		return number(shaders.Int32), nil
	case *uint32:
		return number(shaders.Uint32), nil
	case *float64:
		return number(shaders.Float64), nil
	case *shaders.Half:
		return number(shaders.Float16), nil
	}
	return s.element(reflect.TypeFor[T]())
}

func (s *Stream) element(t reflect.Type) (element, error) {
	if e, ok := s.elements[t]; ok {
		return e, nil
	}
	typ, err := shaders.TypeOf(t)
	if err != nil {
		return element{}, fmt.Errorf("tensor of %v: %w", t, err)
	}
	e := element{dtype: typ.DType(), size: uint64(typ.Size), typ: typ}
	if e.dtype != shaders.Composite {
		e.typ = nil // a number by another name
	}
	s.elements[t] = e
	return e, nil
}
