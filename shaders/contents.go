package shaders

// maxNesting bounds how deep types are followed; what lies deeper is unknown.
const maxNesting = 32

// contents tells what the block of a storage buffer holds.
func (r *reflector) contents(block uint32) Contents {
	t := r.types[block]
	if len(t.args) == 0 {
		return Contents{}
	}
	last := len(t.args) - 1
	if array := r.types[t.args[last]]; array.op == opTypeRuntimeArray {
		d := r.member[memberKey{block, uint32(last)}]
		stride := r.decs[t.args[last]].arrayStride
		elem := r.typeOf(array.args[0], d, 1)
		if last > 0 || d.offset != 0 || elem == nil || stride == 0 || stride > maxBytes {
			return Contents{}
		}
		return Contents{Form: Elements, Elem: elem, Stride: int(stride)}
	}
	if elem := r.typeOf(block, decoration{}, 0); elem != nil && elem.Size > 0 {
		return Contents{Form: Whole, Elem: elem}
	}
	return Contents{}
}

// typeOf makes a Type of a type, nil if a host has no counterpart for it. The layout of a
// matrix is a decoration of the member that it is, or that is an array of it.
func (r *reflector) typeOf(id uint32, d decoration, depth int) *Type {
	if depth > maxNesting {
		return nil
	}
	ofMember := d.is(decMatrixStride)
	if !ofMember {
		if t, known := r.layout[id]; known {
			return t
		}
	}
	t := r.newType(id, d, depth)
	if !ofMember {
		r.layout[id] = t // shared, so that types which name each other often stay small
	}
	return t
}

func (r *reflector) newType(id uint32, d decoration, depth int) *Type {
	in := r.types[id]
	switch in.op {
	case opTypeInt:
		n := Unsigned
		if in.args[1] != 0 {
			n = Signed
		}
		return number(n, in.args[0])
	case opTypeFloat:
		return number(Float, in.args[0])
	case opTypeVector:
		return vector(r.typeOf(in.args[0], decoration{}, depth+1), in.args[1])
	case opTypeMatrix:
		column := r.typeOf(in.args[0], decoration{}, depth+1)
		if column == nil || column.Kind != VectorType || d.matrixStride == 0 || d.matrixStride > maxBytes {
			return nil
		}
		vectors, each := int(in.args[1]), column
		if d.is(decRowMajor) {
			vectors, each = column.Len, vector(column.Elem, in.args[1])
		}
		return &Type{Kind: MatrixType, Len: vectors, Stride: int(d.matrixStride), Size: vectors * int(d.matrixStride), Elem: each}
	case opTypeArray:
		elem := r.typeOf(in.args[0], d, depth+1)
		n, stride := r.consts[in.args[1]], r.decs[id].arrayStride
		// The length of an array that is specialised is not known here.
		if elem == nil || n.op != opConstant || n.value == 0 || stride == 0 {
			return nil
		}
		return &Type{Kind: ArrayType, Len: int(n.value), Stride: int(stride), Size: int(in.size), Elem: elem}
	case opTypeStruct:
		t := &Type{Kind: StructType, Name: r.names[id], Size: int(in.size)}
		for i, member := range in.args {
			key := memberKey{id, uint32(i)}
			md := r.member[key]
			if !md.is(decOffset) {
				return nil // it has no layout, so no buffer holds it
			}
			t.Fields = append(t.Fields, Field{Name: r.fields[key], Offset: int(md.offset), Type: r.typeOf(member, md, depth+1)})
		}
		if len(t.Fields) == 0 {
			return nil
		}
		return t
	default:
		return nil
	}
}

func number(n Number, bits uint32) *Type {
	switch bits {
	case 8, 16, 32, 64:
		return &Type{Kind: ScalarType, Number: n, Size: int(bits / 8)}
	default:
		return nil
	}
}

func vector(elem *Type, n uint32) *Type {
	if elem == nil || elem.Kind != ScalarType {
		return nil
	}
	return &Type{Kind: VectorType, Len: int(n), Stride: elem.Size, Size: int(n) * elem.Size, Elem: elem}
}
