package shaders

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// The numbers below are those of the SPIR-V specification, version 1.6.
const (
	spirvMagic     = 0x07230203
	spirvHeader    = 5       // words
	spirvMaxBound  = 1 << 22 // universal limit on ids
	spirvModelComp = 5       // execution model GLCompute

	opName               = 5
	opExtension          = 10
	opEntryPoint         = 15
	opExecutionMode      = 16
	opCapability         = 17
	opTypeBool           = 20
	opTypeInt            = 21
	opTypeFloat          = 22
	opTypeVector         = 23
	opTypeMatrix         = 24
	opTypeArray          = 28
	opTypeRuntimeArray   = 29
	opTypeStruct         = 30
	opTypePointer        = 32
	opConstantTrue       = 41
	opConstantFalse      = 42
	opConstant           = 43
	opConstantComposite  = 44
	opSpecConstantTrue   = 48
	opSpecConstantFalse  = 49
	opSpecConstant       = 50
	opSpecConstComposite = 51
	opSpecConstantOp     = 52
	opFunction           = 54
	opFunctionEnd        = 56
	opFunctionCall       = 57
	opVariable           = 59
	opDecorate           = 71
	opMemberDecorate     = 72
	opExecutionModeID    = 331

	modeLocalSize   = 17
	modeLocalSizeID = 38

	decSpecID       = 1
	decBufferBlock  = 3
	decRowMajor     = 4
	decArrayStride  = 6
	decMatrixStride = 7
	decBuiltIn      = 11
	decNonWritable  = 24
	decNonReadable  = 25
	decBinding      = 33
	decSet          = 34
	decOffset       = 35

	builtInWorkgroupSize = 25

	storageUniformConstant = 0
	storageUniform         = 2
	storageWorkgroup       = 4
	storagePushConstant    = 9
	storageStorageBuffer   = 12
)

// Load reads a SPIR-V module, in either byte order, and reflects it. The code
// is copied. The module is not validated beyond what reflection rests on; that
// is spirv-val's work. Errors are *LoadError.
func Load(code []byte) (*Module, error) {
	words, err := toWords(code)
	if err != nil {
		return nil, err
	}
	r := reflector{
		words:  words,
		names:  map[uint32]string{},
		types:  map[uint32]typeInfo{},
		consts: map[uint32]constInfo{},
		decs:   map[uint32]decoration{},
		member: map[memberKey]decoration{},
		modes:  map[uint32]localSize{},
		bodies: map[uint32]bool{},
		calls:  map[uint32]int{},
		seen:   map[uint32]bool{},
		fields: map[memberKey]string{},
		layout: map[uint32]*Type{},
	}
	if err := r.scan(); err != nil {
		return nil, err
	}
	return r.module()
}

func toWords(code []byte) ([]uint32, error) {
	if len(code) < 4 {
		return nil, &LoadError{Err: ErrNotSPIRV, Detail: fmt.Sprintf("want at least %d bytes, found %d", 4*spirvHeader, len(code))}
	}
	var order binary.ByteOrder
	switch {
	case binary.LittleEndian.Uint32(code) == spirvMagic:
		order = binary.LittleEndian
	case binary.BigEndian.Uint32(code) == spirvMagic:
		order = binary.BigEndian
	default:
		return nil, &LoadError{Err: ErrNotSPIRV, Detail: fmt.Sprintf("want magic number %#08x in either byte order, found bytes % x", spirvMagic, code[:4])}
	}
	if len(code)%4 != 0 {
		return nil, &LoadError{Word: len(code) / 4, Err: ErrTruncated, Detail: fmt.Sprintf("%d bytes are not a whole number of 4-byte words", len(code))}
	}
	if len(code) < 4*spirvHeader {
		return nil, &LoadError{Word: len(code) / 4, Err: ErrTruncated, Detail: fmt.Sprintf("want a header of %d words", spirvHeader)}
	}
	words := make([]uint32, len(code)/4)
	for i := range words {
		words[i] = order.Uint32(code[4*i:])
	}
	return words, nil
}

type typeInfo struct {
	op      uint32
	args    []uint32 // operands after the result id; each names an earlier type or constant
	size    uint64   // bytes with explicit layout, 0 where it has none or is unsized
	packed  uint64   // bytes without any layout, for workgroup memory
	storage uint32   // pointers
}

type constInfo struct {
	op    uint32
	value uint32   // low word of a scalar
	parts []uint32 // composites
	known bool     // value means something
}

// decoration gathers the decorations of one id or member that reflection uses.
type decoration struct {
	has                                   uint64 // bit per decoration below 64
	specID, builtIn, binding, set, offset uint32
	arrayStride, matrixStride             uint32
}

func (d decoration) is(dec uint32) bool { return d.has>>dec&1 != 0 }

type memberKey struct{ id, member uint32 }

type localSize struct {
	size  [3]uint32
	ids   [3]uint32
	byID  bool
	found bool
}

type variable struct {
	id, typ, storage uint32
	word             int
}

type entry struct {
	id    uint32
	name  string
	iface []uint32
}

type reflector struct {
	words   []uint32
	names   map[uint32]string
	types   map[uint32]typeInfo
	consts  map[uint32]constInfo
	decs    map[uint32]decoration
	member  map[memberKey]decoration
	modes   map[uint32]localSize
	seen    map[uint32]bool
	fields  map[memberKey]string // names of members
	layout  map[uint32]*Type     // of types that were looked at, nil for what has no counterpart
	bodies  map[uint32]bool      // functions that have ended
	calls   map[uint32]int       // functions that are called, with the word of one call
	inside  uint32               // function being read, 0 between functions
	vars    []variable
	entries []entry
	wgSize  uint32 // constant decorated as the WorkgroupSize built-in
	caps    []Capability
	exts    []string
}

func invalid(word int, format string, args ...any) error {
	return &LoadError{Word: word, Err: ErrInvalidModule, Detail: fmt.Sprintf(format, args...)}
}

// scan walks the instructions once. Types and constants must be defined before
// they are used and only once, as the specification demands; that is also what
// keeps every later lookup free of cycles.
func (r *reflector) scan() error {
	if v := r.words[1]; v>>16 != 1 || v>>8&0xff > 6 || v&0xff != 0 {
		return invalid(1, "want version 1.0 to 1.6, found %#08x", v)
	}
	bound := r.words[3]
	if bound == 0 || bound > spirvMaxBound {
		return invalid(3, "want an id bound from 1 to %d, found %d", spirvMaxBound, bound)
	}
	if r.words[4] != 0 {
		return invalid(4, "want schema 0, found %d", r.words[4])
	}
	for at := spirvHeader; at < len(r.words); {
		op, n := r.words[at]&0xffff, int(r.words[at]>>16)
		if n == 0 {
			return invalid(at, "instruction %d has no length", op)
		}
		if n > len(r.words)-at {
			return &LoadError{Word: at, Err: ErrTruncated, Detail: fmt.Sprintf("instruction %d wants %d words, %d are left", op, n, len(r.words)-at)}
		}
		if err := r.instruction(at, op, r.words[at+1:at+n]); err != nil {
			return err
		}
		at += n
	}
	// A module cut between two instructions is whole to a parser; what shows it is
	// a function without an end or without a body.
	if r.inside != 0 {
		return &LoadError{Word: len(r.words), Err: ErrTruncated, Detail: fmt.Sprintf("function %d has no end", r.inside)}
	}
	for id, at := range r.calls {
		if !r.bodies[id] {
			return &LoadError{Word: at, Err: ErrTruncated, Detail: fmt.Sprintf("function %d is called and not there", id)}
		}
	}
	for _, e := range r.entries {
		if !r.bodies[e.id] {
			return &LoadError{Word: len(r.words), Err: ErrTruncated, Detail: fmt.Sprintf("function %d of entry point %q is not there", e.id, e.name)}
		}
	}
	return nil
}

func (r *reflector) instruction(at int, op uint32, args []uint32) error {
	if want := minArgs(op); len(args) < want {
		return invalid(at, "instruction %d wants %d operands, found %d", op, want, len(args))
	}
	switch op {
	case opName:
		s, _, err := text(at, args[1:])
		if err != nil {
			return err
		}
		r.names[args[0]] = s
	case opMemberName:
		s, _, err := text(at, args[2:])
		if err != nil {
			return err
		}
		r.fields[memberKey{args[0], args[1]}] = s
	case opExtension:
		s, _, err := text(at, args)
		if err != nil {
			return err
		}
		r.exts = append(r.exts, s)
	case opCapability:
		r.caps = append(r.caps, Capability(args[0]))
	case opEntryPoint:
		if args[0] != spirvModelComp {
			return nil
		}
		s, rest, err := text(at, args[2:])
		if err != nil {
			return err
		}
		r.entries = append(r.entries, entry{id: args[1], name: s, iface: rest})
	case opExecutionMode, opExecutionModeID:
		return r.mode(at, op, args)
	case opDecorate:
		d := r.decs[args[0]]
		if err := decorate(at, &d, args[1], args[2:]); err != nil {
			return err
		}
		r.decs[args[0]] = d
		if args[1] == decBuiltIn && d.builtIn == builtInWorkgroupSize {
			r.wgSize = args[0]
		}
	case opMemberDecorate:
		key := memberKey{args[0], args[1]}
		d := r.member[key]
		if err := decorate(at, &d, args[2], args[3:]); err != nil {
			return err
		}
		r.member[key] = d
	case opTypeBool, opTypeInt, opTypeFloat, opTypeVector, opTypeMatrix, opTypeArray, opTypeRuntimeArray, opTypeStruct, opTypePointer:
		return r.typeDef(at, op, args)
	case opConstantTrue, opConstantFalse, opConstant, opConstantComposite,
		opSpecConstantTrue, opSpecConstantFalse, opSpecConstant, opSpecConstComposite, opSpecConstantOp:
		return r.constDef(at, op, args)
	case opFunction:
		if r.inside != 0 {
			return invalid(at, "function %d begins within function %d", args[1], r.inside)
		}
		r.inside = args[1]
		return r.define(at, args[1])
	case opFunctionEnd:
		if r.inside == 0 {
			return invalid(at, "a function ends that did not begin")
		}
		r.bodies[r.inside], r.inside = true, 0
	case opFunctionCall:
		r.calls[args[2]] = at
	case opVariable:
		if err := r.define(at, args[1]); err != nil {
			return err
		}
		r.vars = append(r.vars, variable{id: args[1], typ: args[0], storage: args[2], word: at})
	}
	return nil
}

// minArgs is the least number of operand words of an instruction that
// reflection reads.
func minArgs(op uint32) int {
	switch op {
	case opExtension, opCapability, opTypeBool, opTypeStruct:
		return 1
	case opName, opMemberName, opFunction, opExecutionMode, opExecutionModeID, opDecorate, opTypeFloat, opTypeRuntimeArray,
		opConstantTrue, opConstantFalse, opConstantComposite, opSpecConstantTrue, opSpecConstantFalse, opSpecConstComposite:
		return 2
	case opEntryPoint, opMemberDecorate, opTypeInt, opTypeVector, opTypeMatrix, opTypeArray, opTypePointer,
		opConstant, opSpecConstant, opSpecConstantOp, opVariable, opFunctionCall:
		return 3
	default:
		return 0
	}
}

// text reads a literal string and returns the operands after it.
func text(at int, args []uint32) (string, []uint32, error) {
	var b []byte
	for i, w := range args {
		var c [4]byte
		binary.LittleEndian.PutUint32(c[:], w)
		if end := bytes.IndexByte(c[:], 0); end >= 0 {
			return strings.ToValidUTF8(string(append(b, c[:end]...)), "�"), args[i+1:], nil
		}
		b = append(b, c[:]...)
	}
	return "", nil, invalid(at, "a string does not end within its instruction")
}

func (r *reflector) define(at int, id uint32) error {
	if id == 0 || id >= r.words[3] {
		return invalid(at, "id %d is not below the bound %d", id, r.words[3])
	}
	if r.seen[id] {
		return invalid(at, "id %d is defined twice", id)
	}
	r.seen[id] = true
	return nil
}

func (r *reflector) mode(at int, op uint32, args []uint32) error {
	entry, mode, rest := args[0], args[1], args[2:]
	byID := mode == modeLocalSizeID && op == opExecutionModeID
	if mode != modeLocalSize && !byID {
		return nil
	}
	if len(rest) != 3 {
		return invalid(at, "a workgroup size wants 3 operands, found %d", len(rest))
	}
	m := localSize{byID: byID, found: true}
	if byID {
		m.ids = [3]uint32(rest)
	} else {
		m.size = [3]uint32(rest)
	}
	r.modes[entry] = m
	return nil
}

func decorate(at int, d *decoration, dec uint32, args []uint32) error {
	var to *uint32
	switch dec {
	case decSpecID:
		to = &d.specID
	case decBuiltIn:
		to = &d.builtIn
	case decBinding:
		to = &d.binding
	case decSet:
		to = &d.set
	case decOffset:
		to = &d.offset
	case decArrayStride:
		to = &d.arrayStride
	case decMatrixStride:
		to = &d.matrixStride
	case decBufferBlock, decRowMajor, decNonWritable, decNonReadable:
	default:
		return nil
	}
	if to != nil {
		if len(args) < 1 {
			return invalid(at, "decoration %d wants an operand", dec)
		}
		*to = args[0]
	}
	d.has |= 1 << dec
	return nil
}

// maxBytes bounds every size worked out from a module, so that products of two
// stay within uint64.
const maxBytes = 1 << 31

func (r *reflector) typeDef(at int, op uint32, args []uint32) error {
	id := args[0]
	if err := r.define(at, id); err != nil {
		return err
	}
	t := typeInfo{op: op, args: args[1:]}
	element := func(id uint32) (typeInfo, error) {
		e, ok := r.types[id]
		if !ok && !r.seen[id] {
			return e, invalid(at, "type %d is used before it is defined", id)
		}
		return e, nil // a type reflection does not follow (an image) has no size
	}
	switch op {
	case opTypeBool:
		t.packed = 4
	case opTypeInt, opTypeFloat:
		if args[1] > 64 {
			return invalid(at, "want a width up to 64 bits, found %d", args[1])
		}
		t.size = uint64(args[1]) / 8
		t.packed = t.size
	case opTypeVector, opTypeMatrix:
		e, err := element(args[1])
		if err != nil {
			return err
		}
		if args[2] < 2 || args[2] > 16 {
			return invalid(at, "want 2 to 16 components, found %d", args[2])
		}
		t.size, t.packed = e.size*uint64(args[2]), e.packed*uint64(args[2])
	case opTypeArray:
		e, err := element(args[1])
		if err != nil {
			return err
		}
		n, ok := r.consts[args[2]]
		if !ok {
			return invalid(at, "length %d of an array is not an earlier constant", args[2])
		}
		t.size = uint64(r.decs[id].arrayStride) * uint64(n.value)
		if t.size == 0 {
			t.size = e.size * uint64(n.value)
		}
		t.packed = e.packed * uint64(n.value)
	case opTypeRuntimeArray:
		if _, err := element(args[1]); err != nil {
			return err
		}
	case opTypeStruct:
		for m, member := range t.args {
			e, err := element(member)
			if err != nil {
				return err
			}
			d := r.member[memberKey{id, uint32(m)}]
			size := e.size
			if d.is(decMatrixStride) {
				size = r.matrixSize(member, d)
			}
			t.size = max(t.size, uint64(d.offset)+size)
			t.packed += e.packed
			if t.packed > maxBytes {
				break
			}
		}
	case opTypePointer:
		// A pointer may name a type that comes later (OpTypeForwardPointer), so
		// it is looked up when it is used. Its own size is that of an address.
		t.storage, t.size, t.packed = args[1], 8, 8
	}
	if t.size > maxBytes || t.packed > maxBytes {
		return invalid(at, "type %d is larger than %d bytes", id, uint64(maxBytes))
	}
	r.types[id] = t
	return nil
}

// matrixSize is the size of a matrix, or an array of matrices, inside a struct,
// where the stride is a decoration of the member.
func (r *reflector) matrixSize(id uint32, d decoration) uint64 {
	t := r.types[id]
	if t.op == opTypeArray || t.op == opTypeRuntimeArray {
		return t.size // the array's own stride counts
	}
	if t.op != opTypeMatrix {
		return t.size
	}
	vectors := uint64(t.args[1])
	if column := r.types[t.args[0]]; d.is(decRowMajor) && column.op == opTypeVector {
		vectors = uint64(column.args[1])
	}
	return uint64(d.matrixStride) * vectors
}

func (r *reflector) constDef(at int, op uint32, args []uint32) error {
	typ, id := args[0], args[1]
	if err := r.define(at, id); err != nil {
		return err
	}
	if !r.seen[typ] {
		return invalid(at, "type %d of constant %d is used before it is defined", typ, id)
	}
	c := constInfo{op: op}
	switch op {
	case opConstantTrue, opSpecConstantTrue:
		c.value, c.known = 1, true
	case opConstantFalse, opSpecConstantFalse:
		c.known = true
	case opConstant, opSpecConstant:
		c.value, c.known = args[2], true
	case opConstantComposite, opSpecConstComposite:
		c.parts = args[2:]
	case opSpecConstantOp:
		c.value, c.known = r.evaluate(args[2], args[3:])
	}
	r.consts[id] = c
	return nil
}

// evaluate works out what a length made of specialisation constants is by
// default: glslc multiplies and takes apart the workgroup size.
func (r *reflector) evaluate(op uint32, args []uint32) (value uint32, known bool) {
	const (
		compositeExtract = 81
		iAdd, iSub, iMul = 128, 130, 132
		uDiv             = 134
		shiftLeft        = 196
	)
	if len(args) != 2 {
		return 0, false
	}
	x := r.consts[args[0]]
	if op == compositeExtract {
		if uint64(args[1]) >= uint64(len(x.parts)) {
			return 0, false
		}
		part := r.consts[x.parts[args[1]]]
		return part.value, part.known
	}
	y := r.consts[args[1]]
	if !x.known || !y.known {
		return 0, false
	}
	switch op {
	case iAdd:
		return x.value + y.value, true
	case iSub:
		return x.value - y.value, true
	case iMul:
		return x.value * y.value, true
	case uDiv:
		if y.value != 0 {
			return x.value / y.value, true
		}
	case shiftLeft:
		return x.value << y.value, true
	}
	return 0, false
}

func (r *reflector) module() (*Module, error) {
	m := &Module{Words: r.words, Capabilities: r.caps, Extensions: r.exts}
	if len(r.entries) == 0 {
		return nil, invalid(len(r.words), "want a compute entry point, found none")
	}
	for id, c := range r.consts {
		d := r.decs[id]
		if !d.is(decSpecID) {
			continue
		}
		switch c.op {
		case opSpecConstant, opSpecConstantTrue, opSpecConstantFalse:
			m.Constants = append(m.Constants, SpecInfo{ID: d.specID, Name: r.names[id], Default: c.value})
		}
	}
	slices.SortFunc(m.Constants, func(a, b SpecInfo) int { return int(int64(a.ID) - int64(b.ID)) })
	// A compiler may give the workgroup size constants of its own that share an ID.
	kept := m.Constants[:0]
	for _, c := range m.Constants {
		if n := len(kept); n > 0 && kept[n-1].ID == c.ID {
			if kept[n-1].Default != c.Default {
				return nil, invalid(len(r.words), "two specialisation constants have the ID %d and different defaults", c.ID)
			}
			if kept[n-1].Name == "" {
				kept[n-1].Name = c.Name
			}
			continue
		}
		kept = append(kept, c)
	}
	m.Constants = kept
	for _, v := range r.vars {
		if err := r.variable(m, v); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(m.Bindings, func(a, b BindingInfo) int {
		if a.Set != b.Set {
			return int(int64(a.Set) - int64(b.Set))
		}
		return int(int64(a.Binding) - int64(b.Binding))
	})
	m.Bindings = mergeAliases(m.Bindings)
	for _, e := range r.entries {
		ep, err := r.entry(e)
		if err != nil {
			return nil, err
		}
		m.Entries = append(m.Entries, ep)
	}
	return m, nil
}

// mergeAliases joins variables that share a binding: the shader may do through
// one what it may not through the other, so a barrier needs both.
func mergeAliases(in []BindingInfo) []BindingInfo {
	out := in[:0]
	for _, b := range in {
		if n := len(out); n > 0 && out[n-1].Set == b.Set && out[n-1].Binding == b.Binding {
			out[n-1].Access |= b.Access
			if out[n-1].Kind != b.Kind {
				out[n-1].Kind = OtherBinding
			}
			if out[n-1].Contents != b.Contents {
				out[n-1].Contents = Contents{} // two views of the same bytes
			}
			continue
		}
		out = append(out, b)
	}
	return out
}

func (r *reflector) variable(m *Module, v variable) error {
	switch v.storage {
	case storageUniformConstant, storageUniform, storageWorkgroup, storagePushConstant, storageStorageBuffer:
	default:
		return nil
	}
	ptr, ok := r.types[v.typ]
	if !ok || ptr.op != opTypePointer {
		return invalid(v.word, "variable %d has type %d, which is not a pointer", v.id, v.typ)
	}
	id := ptr.args[1]
	t, ok := r.types[id]
	if !ok && v.storage != storageUniformConstant {
		return invalid(v.word, "variable %d points to type %d, which is not defined", v.id, id)
	}
	switch v.storage {
	case storageWorkgroup:
		m.SharedBytes += int(t.packed)
		if m.SharedBytes > maxBytes {
			return invalid(v.word, "more than %d bytes of workgroup memory", uint64(maxBytes))
		}
		return nil
	case storagePushConstant:
		m.PushSize = max(m.PushSize, int(t.size))
		m.Push = r.typeOf(id, decoration{}, 0)
		return nil
	}
	d := r.decs[v.id]
	if !d.is(decSet) || !d.is(decBinding) {
		return invalid(v.word, "resource variable %d (%q) has no descriptor set or no binding", v.id, r.names[v.id])
	}
	b := BindingInfo{Set: d.set, Binding: d.binding, Name: r.names[v.id], Count: 1, Access: ReadWrite}
	for t.op == opTypeArray || t.op == opTypeRuntimeArray {
		n := uint32(0)
		if t.op == opTypeArray {
			n = r.consts[t.args[1]].value
		}
		if product := uint64(b.Count) * uint64(n); product <= maxBytes {
			b.Count = uint32(product)
		} else {
			return invalid(v.word, "binding %d of set %d holds more than %d descriptors", b.Binding, b.Set, uint64(maxBytes))
		}
		id = t.args[0]
		t = r.types[id]
	}
	switch {
	case v.storage == storageStorageBuffer, v.storage == storageUniform && r.decs[id].is(decBufferBlock):
		b.Kind = StorageBuffer
	case v.storage == storageUniform:
		b.Kind, b.Access = UniformBuffer, Read
	}
	if b.Kind == StorageBuffer {
		if t.op != opTypeStruct {
			return invalid(v.word, "storage buffer variable %d is not a struct", v.id)
		}
		// A decoration holds for the whole buffer when it is on the variable or
		// on every member.
		readOnly, writeOnly := d.is(decNonWritable), d.is(decNonReadable)
		allRO, allWO := len(t.args) > 0, len(t.args) > 0
		for i := range t.args {
			md := r.member[memberKey{id, uint32(i)}]
			allRO = allRO && md.is(decNonWritable)
			allWO = allWO && md.is(decNonReadable)
		}
		if readOnly || allRO {
			b.Access &^= Write
		}
		if writeOnly || allWO {
			b.Access &^= Read
		}
		if b.Name == "" {
			b.Name = r.names[id]
		}
		b.Contents = r.contents(id)
	}
	m.Bindings = append(m.Bindings, b)
	return nil
}

func (r *reflector) entry(e entry) (EntryPoint, error) {
	ep := EntryPoint{Name: e.name}
	m := r.modes[e.id]
	ids := m.ids[:]
	// The WorkgroupSize built-in, where there is one, overrides the mode.
	if r.wgSize != 0 {
		c, ok := r.consts[r.wgSize]
		if !ok || len(c.parts) != 3 {
			return ep, invalid(len(r.words), "the WorkgroupSize built-in is not a constant of 3 parts")
		}
		ids, m.byID, m.found = c.parts, true, true
	}
	if !m.found {
		return ep, invalid(len(r.words), "entry point %q has no workgroup size", e.name)
	}
	ep.LocalSize = m.size
	if m.byID {
		for i, id := range ids {
			c, ok := r.consts[id]
			if !ok || !c.known {
				return ep, invalid(len(r.words), "axis %d of the workgroup size of %q is not a scalar constant", i, e.name)
			}
			ep.LocalSize[i] = c.value
			if d := r.decs[id]; d.is(decSpecID) {
				if d.specID == 1<<32-1 {
					return ep, invalid(len(r.words), "specialisation constant ID %d is out of range", d.specID)
				}
				ep.LocalSizeSpec[i] = d.specID + 1
			}
		}
	}
	for i, s := range ep.LocalSize {
		if s == 0 {
			return ep, invalid(len(r.words), "axis %d of the workgroup size of %q is 0", i, e.name)
		}
	}
	return ep, nil
}
