package shaders

import (
	"fmt"
	"reflect"
	"strconv"
)

// TypeKind is the kind of a Type.
type TypeKind uint8

const (
	ScalarType TypeKind = iota + 1
	VectorType
	MatrixType
	ArrayType
	StructType
)

// Number tells the three kinds of number apart. A Type's Size is its width.
type Number uint8

const (
	Float Number = iota + 1
	Signed
	Unsigned
)

// Type is how one value lies in memory: of a Go type as the compiler laid it out, or of
// a shader's type as its module says. It is immutable.
type Type struct {
	Kind   TypeKind
	Number Number  // of a scalar
	Size   int     // bytes; of a shader's struct without padding at its end
	Len    int     // components of a vector, columns of a matrix, elements of an array; 0 for as many as there are
	Stride int     // bytes from one of these to the next
	Elem   *Type   // what they are; the rows of a matrix that lies in memory by rows
	Fields []Field // of a struct
	Name   string  // of a struct, where it is known
	// Go is the Go type, nil for a shader's.
	Go reflect.Type

	of *Type // of what Contents.Element returned: the shader's own
}

// Field is a member of a struct.
type Field struct {
	Name   string // empty where the module does not say
	Offset int    // bytes from the start of the struct
	Type   *Type
}

// DType is the element type that stands for t, Composite unless there is one of its own.
func (t *Type) DType() DType {
	switch {
	case t.Kind != ScalarType:
		return Composite
	case t.Number == Float && t.Size == 4:
		return Float32
	case t.Number == Signed && t.Size == 4:
		return Int32
	case t.Number == Unsigned && t.Size == 4:
		return Uint32
	case t.Number == Float && t.Size == 8:
		return Float64
	case t.Number == Float && t.Size == 2:
		return Float16
	}
	return Composite
}

// String names a Go type as Go does and a shader's as GLSL does.
func (t *Type) String() string {
	if t == nil {
		return "unknown"
	}
	if t.Go != nil {
		return t.Go.String()
	}
	switch t.Kind {
	case ScalarType:
		return t.scalar()
	case VectorType:
		return prefix(t.Elem) + "vec" + strconv.Itoa(t.Len)
	case MatrixType:
		return fmt.Sprintf("%smat of %d × %v", prefix(t.Elem.Elem), t.Len, t.Elem)
	case ArrayType:
		if t.Len == 0 {
			return t.Elem.String() + "[]"
		}
		return fmt.Sprintf("%v[%d]", t.Elem, t.Len)
	case StructType:
		if t.Name != "" {
			return t.Name
		}
		return fmt.Sprintf("struct of %d members", len(t.Fields))
	default:
		return "unknown"
	}
}

func (t *Type) scalar() string {
	bits := strconv.Itoa(8 * t.Size)
	switch {
	case t.Number == Float && t.Size == 4:
		return "float"
	case t.Number == Float && t.Size == 8:
		return "double"
	case t.Number == Float:
		return "float" + bits + "_t"
	case t.Number == Signed && t.Size == 4:
		return "int"
	case t.Number == Signed:
		return "int" + bits + "_t"
	case t.Size == 4:
		return "uint"
	default:
		return "uint" + bits + "_t"
	}
}

// prefix is what GLSL puts before vec and mat.
func prefix(t *Type) string {
	if t == nil || t.Kind != ScalarType {
		return ""
	}
	switch {
	case t.Number == Float && t.Size == 4:
		return ""
	case t.Number == Float && t.Size == 8:
		return "d"
	case t.Number == Float:
		return "f" + strconv.Itoa(8*t.Size)
	case t.Number == Signed && t.Size == 4:
		return "i"
	case t.Number == Signed:
		return "i" + strconv.Itoa(8*t.Size)
	case t.Size == 4:
		return "u"
	default:
		return "u" + strconv.Itoa(8*t.Size)
	}
}

// Contents is what a storage buffer of a module holds.
type Contents struct {
	// Form says how; the zero Form is one that nothing more is known of, such as a count
	// followed by an array.
	Form   Form
	Elem   *Type // of each element of Elements, or the whole of Whole
	Stride int   // bytes from one element to the next
}

// String says what the buffer holds, such as "elements like struct { … }".
func (c Contents) String() string {
	switch c.Form {
	case Elements:
		return "elements: " + describe(c.Elem)
	case Whole:
		return "one " + describe(c.Elem)
	default:
		return "contents that are not known"
	}
}

// Element is the type of an element with its size up to the next one. It fits the
// contents, as a Go type does that lies in memory in the same way.
func (c Contents) Element() *Type {
	if c.Elem == nil {
		return nil
	}
	t := *c.Elem
	t.Size, t.of = max(t.Size, c.Stride), c.Elem
	return &t
}

// Form is the form of a buffer's contents.
type Form uint8

const (
	OtherForm Form = iota
	// Elements: an array as long as the buffer, and nothing else.
	Elements
	// Whole: one value of fixed size.
	Whole
)

// TypeError tells which Go type, or which field of one, a shader cannot work on, and what
// to do. It matches ErrType.
type TypeError struct {
	Type  string // the Go type
	Field string // such as Velocity or Joints[].Angle; empty: the type itself
	Want  string
	Found string
	Do    string
}

func (e *TypeError) Error() string {
	s := e.Type
	if e.Field != "" {
		s += ": field " + e.Field
	}
	s += ": want " + e.Want + ", found " + e.Found
	if e.Do != "" {
		s += "; " + e.Do
	}
	return s
}

// Is matches ErrType.
func (e *TypeError) Is(target error) bool { return target == ErrType }
