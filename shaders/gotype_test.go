package shaders_test

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"vkcompute/shaders"
)

// member is a type of a shader as a test thinks of it: its leaves and what std430 says of
// it, with nothing taken from the package under test.
type member struct {
	kind     string // number, vector, matrix, array, struct
	number   reflect.Type
	n        int // components, columns, elements
	rows     int // of a matrix
	of       []*member
	paddedGo bool // a vector of 3 that is an array of 4 in Go
	align    int
	size     int // without padding at the end
	stride   int // of the parts of an array or matrix
	offsets  []int
}

var numbers = []reflect.Type{
	reflect.TypeFor[float32](), reflect.TypeFor[float32](), reflect.TypeFor[int32](), reflect.TypeFor[uint32](), reflect.TypeFor[float64](),
	reflect.TypeFor[shaders.Half](), reflect.TypeFor[uint16](), reflect.TypeFor[int64](),
}

func up(n, to int) int { return n + (to-n%to)%to }

// layOut works out alignment, size and offsets bottom up, from the rules.
func (m *member) layOut() {
	for _, c := range m.of {
		c.layOut()
	}
	switch m.kind {
	case "number":
		m.size = int(m.number.Size())
		m.align = m.size
	case "vector":
		w := int(m.number.Size())
		m.size, m.align = m.n*w, map[int]int{2: 2, 3: 4, 4: 4}[m.n]*w
	case "matrix":
		w := int(m.number.Size())
		m.align = map[int]int{2: 2, 3: 4, 4: 4}[m.rows] * w
		m.stride, m.size = m.align, m.align*m.n
	case "array":
		m.align = m.of[0].align
		m.stride = up(m.of[0].size, m.align)
		m.size = m.stride * m.n
	case "struct":
		m.offsets = nil
		at := 0
		for _, c := range m.of {
			at = up(at, c.align)
			m.offsets = append(m.offsets, at)
			m.align = max(m.align, c.align)
			m.size = at + c.size
			at = m.size
			if c.kind == "struct" {
				at = up(at, c.align)
			}
		}
	}
}

// leaves are the places of all numbers and structs, in order.
func (m *member) leaves(at int) []int {
	var list []int
	switch m.kind {
	case "number":
		return []int{at}
	case "vector":
		for i := range m.n {
			list = append(list, at+i*int(m.number.Size()))
		}
	case "matrix":
		for c := range m.n {
			for r := range m.rows {
				list = append(list, at+c*m.stride+r*int(m.number.Size()))
			}
		}
	case "array":
		for i := range m.n {
			list = append(list, m.of[0].leaves(at+i*m.stride)...)
		}
	case "struct":
		list = append(list, at)
		for i, c := range m.of {
			list = append(list, c.leaves(at+m.offsets[i])...)
		}
	}
	return list
}

// places are those of the same numbers in a Go type, by reflection.
func (m *member) places(t reflect.Type, at int) []int {
	var list []int
	if m.kind != "struct" && t.Kind() == reflect.Struct {
		t = t.Field(0).Type // with padding behind it
	}
	switch m.kind {
	case "number":
		return []int{at}
	case "vector":
		for i := range m.n {
			list = append(list, at+i*int(t.Elem().Size()))
		}
	case "matrix":
		for c := range m.n {
			for r := range m.rows {
				list = append(list, at+c*int(t.Elem().Size())+r*int(t.Elem().Elem().Size()))
			}
		}
	case "array":
		for i := range m.n {
			list = append(list, m.of[0].places(t.Elem(), at+i*int(t.Elem().Size()))...)
		}
	case "struct":
		list = append(list, at)
		i := 0
		for f := range t.NumField() {
			if f := t.Field(f); f.Name != "_" {
				list = append(list, m.of[i].places(f.Type, at+int(f.Offset))...)
				i++
			}
		}
	}
	return list
}

func (m *member) has(f func(*member) bool) bool {
	return f(m) || slices.ContainsFunc(m.of, func(c *member) bool { return c.has(f) })
}

func drawMember(t *rapid.T, depth int) *member {
	kinds := []string{"number", "vector", "matrix", "array", "struct"}
	if depth > 2 {
		kinds = kinds[:3]
	}
	m := &member{kind: rapid.SampledFrom(kinds).Draw(t, "kind")}
	switch m.kind {
	case "number", "vector":
		m.number = rapid.SampledFrom(numbers).Draw(t, "number")
		m.n = rapid.IntRange(2, 4).Draw(t, "components")
		m.paddedGo = m.kind == "vector" && m.n == 3 && rapid.Bool().Draw(t, "fourth")
	case "matrix":
		m.number = reflect.TypeFor[float32]()
		m.n, m.rows = rapid.IntRange(2, 4).Draw(t, "columns"), rapid.IntRange(2, 4).Draw(t, "rows")
	case "array":
		m.of = []*member{drawMember(t, depth+1)}
		m.n = rapid.IntRange(1, 3).Draw(t, "elements")
		if m.of[0].kind == "number" {
			m.n += 4 // fewer count as a vector
		}
	case "struct":
		return drawStruct(t, depth)
	}
	return m
}

func drawStruct(t *rapid.T, depth int) *member {
	m := &member{kind: "struct"}
	for range rapid.IntRange(1, 4).Draw(t, "members") {
		m.of = append(m.of, drawMember(t, depth+1))
	}
	return m
}

// goType is the counterpart, with the padding that it takes, some of which is left out or
// is too much where a draw says so.
func (m *member) goType(t *rapid.T, flaw func() bool) reflect.Type {
	switch m.kind {
	case "number":
		return m.number
	case "vector":
		if m.paddedGo {
			return reflect.ArrayOf(4, m.number)
		}
		return reflect.ArrayOf(m.n, m.number)
	case "matrix":
		return reflect.ArrayOf(m.n, reflect.ArrayOf(m.stride/int(m.number.Size()), m.number))
	case "array":
		e := m.of[0].goType(t, flaw)
		if want := m.stride; int(e.Size()) < want && !flaw() {
			if e.Kind() == reflect.Struct {
				e = reflect.StructOf(append(fieldsOf(e), pad(want-int(e.Size()))))
			} else {
				e = reflect.StructOf([]reflect.StructField{{Name: "V", Type: e}, pad(want - int(e.Size()))})
			}
		}
		return reflect.ArrayOf(m.n, e)
	default:
		var fields []reflect.StructField
		for i, c := range m.of {
			end := 0
			if len(fields) > 0 {
				end = int(reflect.StructOf(append(fields[:len(fields):len(fields)], pad(1))).Field(len(fields)).Offset)
			}
			want := m.offsets[i]
			if flaw() {
				want += 4
			}
			if end < want && !flaw() {
				fields = append(fields, pad(want-end))
			}
			fields = append(fields, reflect.StructField{Name: fmt.Sprintf("F%d", i), Type: c.goType(t, flaw)})
		}
		return reflect.StructOf(fields)
	}
}

func pad(n int) reflect.StructField {
	return reflect.StructField{Name: "_", PkgPath: "vkcompute/shaders_test", Type: reflect.ArrayOf(n, reflect.TypeFor[byte]())}
}

func fieldsOf(t reflect.Type) []reflect.StructField {
	var list []reflect.StructField
	for i := range t.NumField() {
		list = append(list, t.Field(i))
	}
	return list
}

// spirv collects the decorations and the types of a module.
type spirv struct {
	decs, types asm
	next        uint32
}

func (s *spirv) id() uint32 { s.next++; return s.next }

func (s *spirv) number(t reflect.Type) uint32 {
	id := s.id()
	bits := uint32(8 * t.Size())
	switch {
	case t == reflect.TypeFor[shaders.Half](), t.Kind() == reflect.Float32, t.Kind() == reflect.Float64:
		s.types = s.types.op(22, id, bits)
	case t.Kind() == reflect.Int32, t.Kind() == reflect.Int64:
		s.types = s.types.op(21, id, bits, 1)
	default:
		s.types = s.types.op(21, id, bits, 0)
	}
	return id
}

func (s *spirv) vector(t reflect.Type, n int) uint32 {
	e, id := s.number(t), s.id()
	s.types = s.types.op(23, id, e, uint32(n))
	return id
}

const decArrayStride, decMatrixStride, decColMajor, decOffset = 6, 7, 5, 35

func (s *spirv) array(elem uint32, n, stride int) uint32 {
	u, c, id := s.number(reflect.TypeFor[uint32]()), s.id(), s.id()
	s.types = s.types.op(43, u, c, uint32(n)).op(28, id, elem, c)
	s.decs = s.decs.op(71, id, decArrayStride, uint32(stride))
	return id
}

func (s *spirv) emit(m *member) uint32 {
	switch m.kind {
	case "number":
		return s.number(m.number)
	case "vector":
		return s.vector(m.number, m.n)
	case "matrix":
		c, id := s.vector(m.number, m.rows), s.id()
		s.types = s.types.op(24, id, c, uint32(m.n))
		return id
	case "array":
		return s.array(s.emit(m.of[0]), m.n, m.stride)
	default:
		ids := []uint32{0}
		for _, c := range m.of {
			ids = append(ids, s.emit(c))
		}
		ids[0] = s.id()
		s.types = s.types.op(30, ids...)
		for i, c := range m.of {
			s.decs = s.decs.op(72, ids[0], uint32(i), decOffset, uint32(m.offsets[i]))
			for c.kind == "array" {
				c = c.of[0]
			}
			if c.kind == "matrix" {
				s.decs = s.decs.op(72, ids[0], uint32(i), decMatrixStride, uint32(c.stride)).op(72, ids[0], uint32(i), decColMajor)
			}
		}
		return ids[0]
	}
}

// moduleOf declares a buffer of elements, or of one, at binding 1.
func moduleOf(t require.TestingT, m *member, whole bool) *shaders.Module {
	s := &spirv{next: idVar}
	block := s.emit(m)
	if !whole {
		array := s.id()
		s.types = s.types.op(29, array, block)
		s.decs = s.decs.op(71, array, decArrayStride, uint32(up(m.size, m.align)))
		block = s.id()
		s.types = s.types.op(30, block, array)
		s.decs = s.decs.op(72, block, 0, decOffset, 0)
	}
	s.types = s.types.op(32, idPtr, 12, block).op(59, idPtr, idVar, 12)
	a := module().op(17, 1).op(15, append([]uint32{5, idMain}, append(str("main"), idVar)...)...).op(16, idMain, 17, 4, 1, 1)
	a[3] = 5000
	a = append(a, s.decs...).op(71, block, 2).op(71, idVar, 33, 1).op(71, idVar, 34, 0)
	a = append(a.op(19, idVoid).op(33, idFnType, idVoid), s.types...)
	loaded, err := tail(a).load()
	require.NoError(t, err)
	return loaded
}

// A Go type fits a shader's exactly when every number of the one lies where the other has
// it, and the error otherwise names a place. Padding that is missing, or one too many,
// decides between the two.
func TestGoTypesFitWhereTheNumbersLieTheSame(t *testing.T) {
	fit, apart := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		m := drawStruct(t, 0)
		m.layOut()
		flaws := rapid.IntRange(0, 1).Draw(t, "flawed")
		flaw := func() bool { return flaws > 0 && rapid.IntRange(0, 9).Draw(t, "flaw") == 0 }
		whole := rapid.Bool().Draw(t, "whole")
		g := m.goType(t, flaw)
		stride := up(m.size, m.align)
		if n := int(g.Size()); n < stride && !flaw() {
			g = reflect.StructOf(append(fieldsOf(g), pad(stride-n)))
		}
		same := reflect.DeepEqual(m.leaves(0), m.places(g, 0))
		k, err := shaders.NewKernel(shaders.KernelSpec{Name: "k", Module: moduleOf(t, m, whole),
			Params: []shaders.Param{{Name: "x", DType: shaders.Composite, Binding: 1}},
			Plan:   func(shaders.Env, []shaders.Operand, *shaders.Plan) error { return nil }})
		require.NoError(t, err)
		gt, err := shaders.TypeOf(g)
		require.NoError(t, err)
		require.Equal(t, int(g.Size()), gt.Size)
		var p shaders.Plan
		err = k.Plan(shaders.Env{WorkgroupSize: [3]uint32{1, 1, 1}},
			[]shaders.Operand{{Layout: shaders.Contiguous(1), DType: shaders.Composite, Type: gt}}, &p)
		want := same && (int(g.Size()) == stride || whole && int(g.Size()) >= m.size)
		if want {
			require.NoError(t, err, "%v", g)
			fit++
		} else {
			var te *shaders.TypeError
			require.ErrorAs(t, err, &te, "%v", g)
			require.ErrorIs(t, err, shaders.ErrType)
			require.NotEmpty(t, te.Do, "%v", te)
			apart++
		}
		// Std430 has nothing but the Go type, where an array of 4 is a vector of 4.
		if !whole && !m.has(func(m *member) bool { return m.paddedGo }) {
			require.Equal(t, want, shaders.Std430(g) == nil, "%v", g)
		}
	})
	require.NotZero(t, fit)
	require.NotZero(t, apart)
}

func TestTypeOfRefuses(t *testing.T) {
	type inner struct{ Next *int32 }
	for _, tt := range []struct {
		value      any
		field, has string
	}{
		{true, "", "use uint32"},
		{0, "", "use int32"},
		{uint(0), "", "use uint32"},
		{uintptr(0), "", "use uint32"},
		{"", "", "address"},
		{[]float32{}, "", "address"},
		{map[int]int{}, "", "address"},
		{complex64(0), "", "two floats"},
		{[0]float32{}, "", "without elements"},
		{struct{}{}, "", "without fields"},
		{struct{ _ [4]byte }{}, "", "without fields"},
		{struct {
			A float32
			B bool
		}{}, "B", "bool"},
		{struct{ List [3]inner }{}, "List[].Next", "*int32"},
		{struct {
			A float32
			_ *int
		}{}, "_", "address"},
	} {
		_, err := shaders.TypeOf(reflect.TypeOf(tt.value))
		require.ErrorIs(t, err, shaders.ErrType, "%T", tt.value)
		var te *shaders.TypeError
		require.ErrorAs(t, err, &te)
		require.Equal(t, tt.field, te.Field)
		require.ErrorContains(t, err, tt.has)
		require.Equal(t, err.Error(), shaders.Std430(reflect.TypeOf(tt.value)).Error())
	}
	_, err := shaders.TypeOf(nil)
	require.ErrorIs(t, err, shaders.ErrType)
}

// What a struct that does not match is told.
func TestMismatchesSayWhatToDo(t *testing.T) {
	vec3 := &member{kind: "vector", n: 3, number: reflect.TypeFor[float32]()}
	float := func() *member { return &member{kind: "number", number: reflect.TypeFor[float32]()} }
	m := &member{kind: "struct", of: []*member{float(), vec3, float()}}
	m.layOut()
	loaded := moduleOf(t, m, false)
	require.Equal(t, "elements: struct { 0 float32; 1 [3]float32 for vec3; 2 float32; }", loaded.Bindings[0].Contents.String())
	k, err := shaders.Elementwise("move", loaded)
	require.NoError(t, err)
	require.Equal(t, shaders.Composite, k.Params[0].DType)
	for _, tt := range []struct {
		value any
		says  string
	}{
		{struct {
			Mass     float32
			_        [12]byte
			Position [3]float32
			Heat     float32
		}{}, ""},
		{struct {
			Mass     float32
			Position [3]float32
			Heat     float32
		}{}, "field Position: want byte 16, where the shader has [3]float32 for vec3 1, found byte 4; put a field _ [12]byte before it"},
		{struct {
			Mass     float32
			_        [12]byte
			Position [4]float32
			Heat     float32
		}{}, "field Heat: want byte 28, where the shader has float32 2, found byte 32; take 4 bytes out before it"},
		{struct {
			Mass     float32
			_        [12]byte
			Position [3]int32
			Heat     float32
		}{}, "field Position: want [3]float32 for vec3, found [3]int32"},
		{struct {
			Mass     float32
			_        [12]byte
			Position [3]float32
		}{}, "want 3 fields, the next one float32 at byte 28, found 2; add a field for member 2"},
		{struct {
			Mass              float32
			_                 [12]byte
			Position          [3]float32
			Heat, Color, More float32
		}{}, "field Color: want 3 fields, as the shader's struct of 3 members has, found 5; call it _ if it is padding"},
		{struct {
			Mass     float32
			_        [12]byte
			Position [3]float32
			Heat     float32
			_        [4]byte
		}{}, "want elements 32 bytes apart, as the shader's struct of 3 members are, found struct"},
		{float32(0), "want elements: struct { 0 float32; 1 [3]float32 for vec3; 2 float32; }, found float32"},
	} {
		gt, err := shaders.TypeOf(reflect.TypeOf(tt.value))
		require.NoError(t, err)
		var p shaders.Plan
		err = k.Plan(shaders.Env{WorkgroupSize: [3]uint32{4, 1, 1}}, []shaders.Operand{{Layout: shaders.Contiguous(3), DType: gt.DType(), Type: gt}}, &p)
		if tt.says == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, tt.says)
		require.ErrorIs(t, err, shaders.ErrOperand)
	}
}

// Comparing is done once: a launch with the same type again costs nothing.
func TestFittingTypesCostNothing(t *testing.T) {
	m := &member{kind: "struct", of: []*member{{kind: "vector", n: 4, number: reflect.TypeFor[float32]()}}}
	m.layOut()
	k, err := shaders.Elementwise("k", moduleOf(t, m, false))
	require.NoError(t, err)
	gt, err := shaders.TypeOf(reflect.TypeFor[struct{ V [4]float32 }]())
	require.NoError(t, err)
	ops := []shaders.Operand{{Layout: shaders.Contiguous(3), DType: shaders.Composite, Type: gt}}
	var p shaders.Plan
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if err := k.Plan(shaders.Env{WorkgroupSize: [3]uint32{4, 1, 1}}, ops, &p); err != nil {
			t.Fatal(err)
		}
	}))
}

// comparesWithAnything launches a module with types that hardly fit it: an error or none,
// whatever it says of its buffers.
func comparesWithAnything(t *testing.T, m *shaders.Module) {
	k, err := shaders.Elementwise("k", m)
	if err != nil {
		require.ErrorIs(t, err, shaders.ErrKernelSpec)
		return
	}
	for _, g := range []reflect.Type{
		reflect.TypeFor[[3][4]float32](), reflect.TypeFor[struct{ A, B int32 }](),
		reflect.TypeFor[struct {
			F0 [4]float32
			F1 [2]struct{ X, Y [3]float32 }
		}](),
	} {
		gt, err := shaders.TypeOf(g)
		require.NoError(t, err)
		ops := make([]shaders.Operand, len(k.Params))
		for i, p := range k.Params {
			ops[i] = shaders.Operand{Layout: shaders.Contiguous(1), DType: p.DType, Kind: p.Kind}
			switch p.DType {
			case shaders.AnyDType:
				ops[i].DType = shaders.Int32
			case shaders.Composite:
				ops[i].Type = gt
				require.Positive(t, k.Contents(i).Element().Size)
			}
		}
		var p shaders.Plan
		_, size := k.Spec(shaders.MaxWorkgroup{Invocations: 128, Size: [3]uint32{128, 128, 64}})
		if err := k.Plan(shaders.Env{WorkgroupSize: size}, ops, &p); err != nil {
			require.ErrorIs(t, err, shaders.ErrOperand)
		}
	}
}

// structured are modules whose buffers hold structs.
func structured(t require.TestingT) (list [][]byte) {
	f32, f64 := reflect.TypeFor[float32](), reflect.TypeFor[float64]()
	leaf := func(kind string, n int, of reflect.Type) *member {
		return &member{kind: kind, n: n, rows: 3, number: of}
	}
	inner := &member{kind: "struct", of: []*member{leaf("vector", 3, f32), leaf("matrix", 2, f32)}}
	for _, m := range []*member{
		inner,
		{kind: "struct", of: []*member{leaf("number", 0, f64), {kind: "array", n: 3, of: []*member{inner}}, leaf("vector", 2, f32)}},
	} {
		m.layOut()
		for _, whole := range []bool{false, true} {
			list = append(list, asm(moduleOf(t, m, whole).Words).bytes(binary.LittleEndian))
		}
	}
	return list
}

func TestStructuredModules(t *testing.T) {
	for _, code := range structured(t) {
		require.True(t, loads(t, code))
		m, err := shaders.Load(code)
		require.NoError(t, err)
		require.NotEqual(t, shaders.OtherForm, m.Bindings[0].Contents.Form)
		// Damage to any word is an error or another module.
		for at := range len(code) / 4 {
			for _, x := range []byte{1, 0x80, 0xff} {
				bad := slices.Clone(code)
				bad[4*at] ^= x
				loads(t, bad)
			}
		}
	}
}
