package shaders

import (
	"fmt"
	"reflect"
	"strings"
)

// TypeOf tells how a Go type lies in memory, or in a *TypeError why a shader cannot work
// on it. Elements are numbers of a fixed width, Half, arrays and structs of these. What Go
// alone understands (pointers, strings, slices, maps, interfaces), what has another size
// in a shader (bool) and what depends on the machine (int, uint, uintptr) are refused.
//
// A field called _ is padding.
func TypeOf(t reflect.Type) (*Type, error) {
	if t == nil {
		return nil, &TypeError{Type: "nil", Want: "a type", Found: "none"}
	}
	return goType(t, t, "")
}

var halfType = reflect.TypeFor[Half]()

func goType(t, root reflect.Type, path string) (*Type, error) {
	number := func(n Number) (*Type, error) {
		return &Type{Kind: ScalarType, Number: n, Size: int(t.Size()), Go: t}, nil
	}
	refuse := func(do string) (*Type, error) {
		return nil, &TypeError{Type: root.String(), Field: path, Want: "numbers of a fixed width, and arrays and structs of them", Found: t.String(), Do: do}
	}
	switch t.Kind() {
	case reflect.Float32, reflect.Float64:
		return number(Float)
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return number(Signed)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if t == halfType {
			return number(Float)
		}
		return number(Unsigned)
	case reflect.Int:
		return refuse("its size is the machine's: use int32")
	case reflect.Uint, reflect.Uintptr:
		return refuse("its size is the machine's: use uint32")
	case reflect.Bool:
		return refuse("shaders keep no bool in memory: use uint32, 0 or 1")
	case reflect.Complex64, reflect.Complex128:
		return refuse("use an array of two floats")
	case reflect.Array:
		if t.Len() == 0 {
			return refuse("an array without elements has no counterpart: leave it out")
		}
		e, err := goType(t.Elem(), root, path+"[]")
		if err != nil {
			return nil, err
		}
		return &Type{Kind: ArrayType, Size: int(t.Size()), Len: t.Len(), Stride: e.Size, Elem: e, Go: t}, nil
	case reflect.Struct:
		s := &Type{Kind: StructType, Size: int(t.Size()), Name: t.Name(), Go: t}
		for i := range t.NumField() {
			f := t.Field(i)
			inner := join(path, f.Name)
			// Padding too: a device that wrote into a pointer there would break the program.
			ft, err := goType(f.Type, root, inner)
			if err != nil {
				return nil, err
			}
			if f.Name != "_" {
				s.Fields = append(s.Fields, Field{Name: f.Name, Offset: int(f.Offset), Type: ft})
			}
		}
		if len(s.Fields) == 0 {
			return refuse("a struct without fields has no counterpart")
		}
		return s, nil
	default:
		return refuse("it holds an address of this process, which no shader can follow: keep an index")
	}
}

// fits compares a Go type with what a buffer holds. An error is a *TypeError.
func (c *Contents) fits(g *Type) error {
	if g != nil && g.of != nil && g.of == c.Elem {
		return nil
	}
	if g == nil || g.Go == nil {
		return &TypeError{Type: g.String(), Want: "a Go type", Found: "none"}
	}
	m := match{root: g.Go.String()}
	switch c.Form {
	case Elements:
		if err := m.value(g, c.Elem, ""); err != nil {
			return err
		}
		// Elements lie one after the other in Go, so their size is the stride.
		if g.Size != c.Stride {
			return m.stride(g, c.Elem, c.Stride, "")
		}
		return nil
	case Whole:
		err := m.value(g, c.Elem, "")
		if err != nil && len(c.Elem.Fields) == 1 && c.Elem.Fields[0].Offset == 0 {
			// The block around a single value is a form of the language alone.
			if m.value(g, c.Elem.Fields[0].Type, "") == nil {
				err = nil
			}
		}
		if err == nil && g.Size < c.Elem.Size {
			return m.stride(g, c.Elem, c.Elem.Size, "")
		}
		return err
	default:
		return &TypeError{Type: m.root, Want: "a buffer that is one array, or one struct of fixed size", Found: "one with several members or none that is known",
			Do: "declare `buffer B { T x[]; }`, or a parameter of 32-bit elements that the shader takes apart"}
	}
}

// match compares a Go type with a shader's.
type match struct{ root string }

func (m match) fail(path, want, found, do string) error {
	return &TypeError{Type: m.root, Field: path, Want: want, Found: found, Do: do}
}

func (m match) value(g, s *Type, path string) error {
	if s == nil {
		return m.fail(path, "a type that can be compared", "one of the shader's that has no counterpart", "")
	}
	// A single value with padding around it is that value.
	if g.Kind == StructType && s.Kind != StructType && len(g.Fields) == 1 && g.Fields[0].Offset == 0 {
		return m.value(g.Fields[0].Type, s, join(path, g.Fields[0].Name))
	}
	switch s.Kind {
	case ScalarType:
		if g.Kind == ScalarType && g.Number == s.Number && g.Size == s.Size {
			return nil
		}
		return m.fail(path, goName(s), g.String(), "")
	case VectorType:
		// A vector of three takes the place of four in an array; then the fourth is padding.
		if g.Kind == ArrayType && (g.Len == s.Len || s.Len == 3 && g.Len == 4) && m.value(g.Elem, s.Elem, path) == nil {
			return nil
		}
		return m.fail(path, goName(s), g.String(), "")
	case MatrixType:
		if g.Kind != ArrayType || g.Len != s.Len {
			return m.fail(path, goName(s), g.String(), "")
		}
		if err := m.value(g.Elem, s.Elem, path+"[]"); err != nil {
			return err
		}
		if g.Stride != s.Stride {
			return m.stride(g.Elem, s.Elem, s.Stride, path+"[]")
		}
		return nil
	case ArrayType:
		if g.Kind != ArrayType || g.Len != s.Len {
			return m.fail(path, goName(s), g.String(), "")
		}
		if err := m.value(g.Elem, s.Elem, path+"[]"); err != nil {
			return err
		}
		if g.Stride != s.Stride && s.Len > 1 {
			return m.stride(g.Elem, s.Elem, s.Stride, path+"[]")
		}
		return nil
	case StructType:
		return m.fields(g, s, path)
	default:
		return m.fail(path, "a known type", s.String(), "")
	}
}

// stride reports elements that lie closer together, or further apart, than the shader's.
func (m match) stride(g, s *Type, want int, path string) error {
	do := fmt.Sprintf("add a field _ [%d]byte at its end", want-g.Size)
	switch {
	case g.Size > want:
		do = fmt.Sprintf("take %d bytes out of its end", g.Size-want)
	case g.Kind == ArrayType && s.Kind == VectorType && want == 4*s.Elem.Size:
		do = fmt.Sprintf("use [4]%v, whose last is padding", g.Elem)
	case g.Kind != StructType:
		do = fmt.Sprintf("use struct { V %v; _ [%d]byte }", g, want-g.Size)
	}
	return m.fail(path, fmt.Sprintf("elements %d bytes apart, as the shader's %v are", want, s), fmt.Sprintf("%v of %d bytes", g, g.Size), do)
}

func (m match) fields(g, s *Type, path string) error {
	if g.Kind != StructType {
		if len(s.Fields) == 1 && s.Fields[0].Offset == 0 && m.value(g, s.Fields[0].Type, path) == nil {
			return nil
		}
		return m.fail(path, "a struct like "+describe(s), g.String(), "")
	}
	for i := range s.Fields {
		want := &s.Fields[i]
		if i >= len(g.Fields) {
			return m.fail(path, fmt.Sprintf("%d fields, the next one %v at byte %d", len(s.Fields), goName(want.Type), want.Offset),
				fmt.Sprintf("%d", len(g.Fields)), fmt.Sprintf("add a field for member %s, or declare padding in the shader too", memberName(want, i)))
		}
		f := &g.Fields[i]
		inner := join(path, f.Name)
		if other := misplaced(g, s, i); other != "" {
			return m.fail(inner, "the shader's member "+want.Name+" at byte "+fmt.Sprint(want.Offset), "a field of another name, while "+other+" has that one",
				"put the fields in the order of the shader's members")
		}
		if f.Offset != want.Offset {
			do := fmt.Sprintf("put a field _ [%d]byte before it", want.Offset-f.Offset)
			if f.Offset > want.Offset {
				do = fmt.Sprintf("take %d bytes out before it", f.Offset-want.Offset)
			}
			return m.fail(inner, fmt.Sprintf("byte %d, where the shader has %v", want.Offset, member(want, i)), fmt.Sprintf("byte %d", f.Offset), do)
		}
		if err := m.value(f.Type, want.Type, inner); err != nil {
			return err
		}
	}
	if len(g.Fields) > len(s.Fields) {
		f := &g.Fields[len(s.Fields)]
		return m.fail(f.Name, fmt.Sprintf("%d fields, as the shader's %v has", len(s.Fields), s), fmt.Sprint(len(g.Fields)), "call it _ if it is padding")
	}
	return nil
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// misplaced names the Go field that goes by the name of member i, when field i goes by
// that of another member: two fields of one type that changed places show in nothing else.
func misplaced(g, s *Type, i int) string {
	want, have := s.Fields[i].Name, g.Fields[i].Name
	if want == "" || strings.EqualFold(want, have) {
		return ""
	}
	known := false
	for j := range s.Fields {
		known = known || strings.EqualFold(s.Fields[j].Name, have)
	}
	for j := range g.Fields {
		if known && strings.EqualFold(g.Fields[j].Name, want) {
			return g.Fields[j].Name
		}
	}
	return ""
}

func member(f *Field, i int) string { return goName(f.Type) + " " + memberName(f, i) }

func memberName(f *Field, i int) string {
	if f.Name == "" {
		return fmt.Sprintf("%d", i)
	}
	return f.Name
}

// describe lists the members of a struct, the first ones of a long one, and names any
// other type.
func describe(s *Type) string {
	if s == nil || s.Kind != StructType {
		return goName(s)
	}
	var b strings.Builder
	b.WriteString("struct {")
	for i := range s.Fields {
		if i == 8 {
			b.WriteString(" …")
			break
		}
		fmt.Fprintf(&b, " %s %s;", memberName(&s.Fields[i], i), goName(s.Fields[i].Type))
	}
	return b.String() + " }"
}

// goName is the Go type to use for a shader's, with what the shader calls it.
func goName(s *Type) string {
	if s == nil {
		return "unknown"
	}
	switch s.Kind {
	case ScalarType:
		return scalarName(s)
	case VectorType:
		return fmt.Sprintf("[%d]%s for %v", s.Len, scalarName(s.Elem), s)
	case MatrixType:
		n := s.Elem.Len
		if s.Stride > n*s.Elem.Elem.Size {
			n = s.Stride / s.Elem.Elem.Size
		}
		return fmt.Sprintf("[%d][%d]%s for %v", s.Len, n, scalarName(s.Elem.Elem), s)
	case ArrayType:
		return fmt.Sprintf("an array of %d for %v", s.Len, s)
	default:
		return "a struct for " + s.String()
	}
}

func scalarName(s *Type) string {
	if s == nil || s.Kind != ScalarType {
		return "unknown"
	}
	switch s.Number {
	case Float:
		if s.Size == 2 {
			return "shaders.Half"
		}
		return fmt.Sprintf("float%d", 8*s.Size)
	case Signed:
		return fmt.Sprintf("int%d", 8*s.Size)
	default:
		return fmt.Sprintf("uint%d", 8*s.Size)
	}
}
