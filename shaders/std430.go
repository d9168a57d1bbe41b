package shaders

import "reflect"

// Std430 tells whether a Go type lies in memory as GLSL's std430 lays out the struct with
// the same members, so that a test can hold a struct to it before there is a shader. A
// launch compares with the layout that the module states, whatever rules that one follows.
//
// An array of 2, 3 or 4 numbers counts as a vector, an array of those as a matrix by
// columns or as an array of vectors, which is the same. The rules are those of section
// 7.6.2.2, "Standard Uniform Block Layout", of the OpenGL specification as GLSL amends
// them for std430, and of "Standard Buffer Layout" in Vulkan's, extended alignment aside:
//
//	number          aligned to its size
//	vector of 2     aligned to 2 numbers
//	vector of 3, 4  aligned to 4 numbers; one of 3 has the size of 3
//	array           aligned as its element, whose size is rounded up to that: the stride
//	struct          aligned as the member that is aligned most, its size rounded up to that
//
// So what Go lays out in the same way needs no thought (structs of numbers and vectors of
// 2 and 4 in falling order of size), and vectors of 3 need a field of padding behind them.
// The error is a *TypeError with the field that is out of place.
func Std430(t reflect.Type) error {
	g, err := TypeOf(t)
	if err != nil {
		return err
	}
	want, align := std430(g)
	c := Contents{Form: Elements, Elem: want, Stride: roundUp(want.Size, align)}
	if err := c.fits(g); err != nil {
		return err
	}
	return nil
}

// std430 lays out the counterpart of a Go type, and tells its alignment. The size of a
// struct leaves out the padding at its end, as that of every shader's Type does.
func std430(g *Type) (t *Type, align int) {
	switch g.Kind {
	case ArrayType:
		elem, align := std430(g.Elem)
		if g.Len >= 2 && g.Len <= 4 && elem.Kind == ScalarType {
			return vector(elem, uint32(g.Len)), (g.Len + g.Len&1) * elem.Size
		}
		stride := roundUp(elem.Size, align)
		return &Type{Kind: ArrayType, Len: g.Len, Stride: stride, Size: g.Len * stride, Elem: elem}, align
	case StructType:
		s := &Type{Kind: StructType, Name: g.Name}
		align, end := 1, 0
		for _, f := range g.Fields {
			m, a := std430(f.Type)
			at := roundUp(end, a)
			s.Fields = append(s.Fields, Field{Name: f.Name, Offset: at, Type: m})
			s.Size, align = at+m.Size, max(align, a)
			end = s.Size
			if m.Kind == StructType {
				end = at + roundUp(m.Size, a)
			}
		}
		return s, align
	default:
		return &Type{Kind: ScalarType, Number: g.Number, Size: g.Size}, g.Size
	}
}

func roundUp(n, to int) int { return (n + to - 1) / to * to }
