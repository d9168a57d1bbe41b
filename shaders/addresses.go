package shaders

import (
	"errors"
	"fmt"
	"slices"
)

// ErrNotAddressable: a module whose buffers cannot be passed by address.
var ErrNotAddressable = errors.New("buffers cannot be passed by address")

// Addressed is a module made from another so that it takes its storage buffers by device
// address, as 64-bit values in its push constants, instead of by descriptor.
type Addressed struct {
	Module *Module
	// Addresses says where in the push constants the address of each binding of set 0
	// goes, in bytes, ascending by binding. Variables that share a binding have an
	// address each, because drivers do not all turn one pointer into another.
	Addresses []BindingAddress
}

// BindingAddress is the place of one address.
type BindingAddress struct {
	Binding uint32
	Offset  int
}

const (
	opMemberName             = 6
	opExtInstImport          = 11
	opMemoryModel            = 14
	opTypeForwardPointer     = 39
	opLoad                   = 61
	opStore                  = 62
	opCopyMemory             = 63
	opCopyMemorySized        = 64
	opAccessChain            = 65
	opInBoundsAccessChain    = 66
	opPtrAccessChain         = 67
	opArrayLength            = 68
	opInBoundsPtrAccess      = 70
	opCopyObject             = 83
	opSelect                 = 169
	opAtomicLoad             = 227
	opAtomicStore            = 228
	opAtomicXor              = 242
	opPhi                    = 245
	opLabel                  = 248
	opLine                   = 8
	opNoLine                 = 317
	decBlock                 = 2
	decCoherent              = 23
	decVolatile              = 21
	storagePhysical          = 5349
	addressingPhysical64     = 5348
	memoryVolatile           = 1
	memoryAligned            = 2
	extPhysicalStorage       = "SPV_KHR_physical_storage_buffer"
	capPhysicalStorage       = uint32(CapPhysicalStorageAddress)
	addressBytes             = 8
	maxPushConstantsPortable = 128
)

// Addressed rewrites the module: pointers into storage buffers become physical ones,
// loaded at the start of each function from members that are added to the push constant
// block. What a shader does with a buffer stays the same, so its accesses do too.
//
// It answers ErrNotAddressable for what physical pointers cannot do: the length of a
// runtime array, buffers declared in arrays, coherent or volatile, or in the old style of
// uniform blocks, and more addresses than push constants of every device hold.
func (m *Module) Addressed() (*Addressed, error) {
	w := &rewriter{m: m, pointers: map[uint32]pointerType{}, results: map[uint32]uint32{}, types: map[uint32][]uint32{}, buffers: map[uint32]*bufferVar{}, push: map[uint32]bool{}}
	if err := w.scan(); err != nil {
		return nil, err
	}
	return w.rewrite()
}

type pointerType struct{ class, pointee uint32 }

type bufferVar struct {
	id, pointer, binding uint32
	member               uint32 // of the push constant block
	offset               int
	viaType              uint32 // pointer to that member
	index                uint32 // constant with the member's number
}

type rewriter struct {
	m        *Module
	next     uint32 // id
	pointers map[uint32]pointerType
	results  map[uint32]uint32   // type of each result that is a pointer
	types    map[uint32][]uint32 // instruction of each other type
	buffers  map[uint32]*bufferVar
	order    []*bufferVar
	intType  uint32
	pushVar  uint32
	pushPtr  uint32
	pushType uint32
	push     map[uint32]bool // ids whose declarations move behind all other types
}

func refuse(format string, args ...any) error {
	return fmt.Errorf("shaders: %w: %s", ErrNotAddressable, fmt.Sprintf(format, args...))
}

// each calls f for every instruction with its operation and operands.
func (m *Module) each(f func(op uint32, args []uint32) error) error {
	for at := spirvHeader; at < len(m.Words); {
		n := int(m.Words[at] >> 16)
		if n == 0 || at+n > len(m.Words) {
			return refuse("instruction at word %d reaches beyond the end", at)
		}
		if err := f(m.Words[at]&0xffff, m.Words[at+1:at+n]); err != nil {
			return err
		}
		at += n
	}
	return nil
}

// scan collects types, variables and what stands in the way.
func (w *rewriter) scan() error {
	w.next = w.m.Words[3]
	bindings := map[uint32]uint32{}
	guarded := map[uint32]bool{} // coherent or volatile
	inFunction := false
	err := w.m.each(func(op uint32, a []uint32) error {
		if len(a) < leastOperands(op) {
			return refuse("operation %d has %d operands, want at least %d", op, len(a), leastOperands(op))
		}
		switch op {
		case opDecorate:
			if len(a) >= 3 && a[1] == decBinding {
				bindings[a[0]] = a[2]
			}
			if len(a) >= 2 && (a[1] == decCoherent || a[1] == decVolatile) {
				guarded[a[0]] = true
			}
		case opTypeInt:
			if len(a) >= 3 && a[1] == 32 && (w.intType == 0 || a[2] == 0) {
				w.intType = a[0]
			}
			w.types[a[0]] = append([]uint32{op}, a...)
		case opTypeFloat, opTypeVector, opTypeMatrix, opTypeArray, opTypeRuntimeArray, opTypeStruct:
			w.types[a[0]] = append([]uint32{op}, a...)
		case opTypePointer:
			w.pointers[a[0]] = pointerType{a[1], a[2]}
		case opTypeForwardPointer:
			return refuse("it declares pointers ahead")
		case opFunction:
			inFunction = true
		case opVariable:
			if inFunction {
				return nil
			}
			switch a[2] {
			case storageStorageBuffer:
				p := w.pointers[a[0]]
				if t := w.types[p.pointee]; len(t) == 0 || t[0] != opTypeStruct {
					return refuse("a buffer is not a single block")
				}
				b := &bufferVar{id: a[1], pointer: a[0], binding: bindings[a[1]]}
				w.buffers[a[1]] = b
				w.order = append(w.order, b)
			case storageUniform:
				return refuse("it has a uniform block at binding %d; compile it for SPIR-V 1.3 or later with storage buffers", bindings[a[1]])
			case storagePushConstant:
				w.pushPtr, w.pushVar = a[0], a[1]
				w.pushType = w.pointers[a[0]].pointee
			}
		case opArrayLength:
			return refuse("it asks for the length of a runtime array")
		case opCopyMemory, opCopyMemorySized, opPtrAccessChain, opInBoundsPtrAccess:
			return refuse("operation %d", op)
		case opAccessChain, opInBoundsAccessChain, opCopyObject, opSelect, opPhi:
			if len(a) >= 2 {
				w.results[a[1]] = a[0]
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for id := range guarded {
		if w.buffers[id] != nil {
			return refuse("the buffer at binding %d is coherent or volatile", w.buffers[id].binding)
		}
	}
	if len(w.order) > 0 && w.intType == 0 {
		return refuse("it has no 32-bit integer type to index with")
	}
	slices.SortStableFunc(w.order, func(a, b *bufferVar) int { return int(a.binding) - int(b.binding) })
	return nil
}

// leastOperands is how many operands the rewriter relies on.
func leastOperands(op uint32) int {
	switch op {
	case opName:
		return 1
	case opStore, opDecorate, opTypeStruct, opMemoryModel, opSelect, opPhi, opCopyObject:
		return 2
	case opLoad, opVariable, opTypePointer, opTypeInt, opTypeVector, opTypeMatrix, opTypeArray, opEntryPoint, opAccessChain, opInBoundsAccessChain:
		return 3
	}
	if op == opTypeFloat || op == opTypeRuntimeArray {
		return 2
	}
	return 0
}

func (w *rewriter) id() uint32 {
	id := w.next
	w.next++
	return id
}

func instruction(op uint32, args ...uint32) []uint32 {
	return append([]uint32{uint32(len(args)+1)<<16 | op}, args...)
}

// physical tells whether a pointer type points into a buffer after the rewriting.
func (w *rewriter) physical(pointer uint32) bool {
	return w.pointers[pointer].class == storageStorageBuffer
}

// alignment of what a pointer points to: that of its smallest scalar, which std430 and
// every other layout keeps.
func (w *rewriter) alignment(t uint32) uint32 { return w.alignmentWithin(t, 16) }

// alignmentWithin looks so many types deep: a module may claim to contain itself.
func (w *rewriter) alignmentWithin(t uint32, depth int) uint32 {
	d := w.types[t]
	if len(d) == 0 || depth == 0 {
		return 4
	}
	switch d[0] {
	case opTypeInt, opTypeFloat:
		return max(d[2]/8, 1)
	case opTypeVector, opTypeMatrix, opTypeArray, opTypeRuntimeArray:
		return w.alignmentWithin(d[2], depth-1)
	case opTypeStruct:
		least := uint32(16)
		for _, member := range d[2:] {
			least = min(least, w.alignmentWithin(member, depth-1))
		}
		return least
	}
	return 4
}

// aligned adds the memory operand that an access through a physical pointer must have.
// rest are the memory operands there were.
func aligned(rest []uint32, alignment uint32) []uint32 {
	if len(rest) == 0 {
		return []uint32{memoryAligned, alignment}
	}
	if rest[0]&memoryAligned != 0 {
		return rest
	}
	// The literal of Aligned comes before those of higher bits.
	return append([]uint32{rest[0] | memoryAligned, alignment}, rest[1:]...)
}

func (w *rewriter) rewrite() (*Addressed, error) {
	out := &Addressed{}
	offset := (w.m.PushSize + addressBytes - 1) / addressBytes * addressBytes
	for i, b := range w.order {
		b.offset = offset + i*addressBytes
		out.Addresses = append(out.Addresses, BindingAddress{b.binding, b.offset})
	}
	pushSize := w.m.PushSize
	if n := len(w.order); n > 0 {
		pushSize = offset + n*addressBytes
	}
	if pushSize > maxPushConstantsPortable {
		return nil, refuse("%d bytes of push constants, every device has %d", pushSize, maxPushConstantsPortable)
	}
	members := uint32(0)
	if w.pushVar != 0 {
		members = uint32(len(w.types[w.pushType]) - 2)
		w.push[w.pushVar], w.push[w.pushPtr], w.push[w.pushType] = true, true, true
	}
	fresh := w.pushVar == 0 && len(w.order) > 0
	if fresh {
		w.pushType, w.pushPtr, w.pushVar = w.id(), w.id(), w.id()
	}
	for i, b := range w.order {
		b.member, b.viaType, b.index = members+uint32(i), w.id(), w.id()
	}

	var words []uint32
	emit := func(op uint32, args ...uint32) { words = append(words, instruction(op, args...)...) }
	extended, annotated, declared := false, false, false
	extend := func() {
		if !extended {
			extended = true
			emit(opCapability, capPhysicalStorage)
		}
	}
	var moved [][]uint32
	byFunction := w.used()
	function, loads := -1, map[uint32]uint32{}
	err := w.m.each(func(op uint32, a []uint32) error {
		if op != opCapability && !extended {
			extend()
			// Extensions follow capabilities.
			emit(opExtension, literal(extPhysicalStorage)...)
		}
		isType := op >= opTypeVoidFirst && op <= opTypeForwardPointer
		if !annotated && (isType || op == opFunction) {
			annotated = true
			w.annotate(emit, fresh)
		}
		switch {
		case op == opMemoryModel:
			emit(op, addressingPhysical64, a[1])
			return nil
		case op == opEntryPoint:
			emit(op, w.interfaceOf(a, fresh)...)
			return nil
		case op == opName && w.buffers[a[0]] != nil, op == opDecorate && w.buffers[a[0]] != nil:
			return nil
		case op == opTypePointer && w.push[a[0]], op == opTypeStruct && w.push[a[0]], op == opVariable && w.push[a[1]]:
			moved = append(moved, append([]uint32{op}, a...))
			return nil
		case op == opTypePointer && a[1] == storageStorageBuffer:
			emit(op, a[0], storagePhysical, a[2])
			return nil
		case op == opVariable && w.buffers[a[1]] != nil:
			return nil
		case op == opFunction:
			if !declared {
				declared = true
				w.declare(emit, moved, fresh)
			}
			function++
			clear(loads)
		case op == opVariable, op == opLabel, op == opLine, op == opNoLine:
			// The loads go behind the variables that begin a function's first block.
		case function >= 0 && op != opFunctionParameter && len(loads) == 0 && op != opFunctionEnd:
			for _, b := range byFunction[function] {
				member, value := w.id(), w.id()
				emit(opAccessChain, b.viaType, member, w.pushVar, b.index)
				emit(opLoad, b.pointer, value, member)
				loads[b.id] = value
			}
		}
		if function >= 0 {
			a = w.replace(op, a, loads)
		}
		emit(op, a...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	head := slices.Clone(w.m.Words[:spirvHeader])
	head[3] = w.next
	rewritten := *w.m
	rewritten.Words = append(head, words...)
	rewritten.PushSize = pushSize
	rewritten.Bindings = nil
	rewritten.Capabilities = append(slices.Clone(w.m.Capabilities), CapPhysicalStorageAddress)
	rewritten.Extensions = append(slices.Clone(w.m.Extensions), extPhysicalStorage)
	out.Module = &rewritten
	return out, nil
}

const (
	opTypeVoidFirst     = 19
	opFunctionParameter = 55
)

// literal packs a string as SPIR-V does.
func literal(s string) []uint32 {
	words := make([]uint32, len(s)/4+1)
	for i := range len(s) {
		words[i/4] |= uint32(s[i]) << (8 * (i % 4))
	}
	return words
}

// interfaceOf drops the buffers from an entry point's interface, and adds the push
// constant variable where versions from 1.4 on want it.
func (w *rewriter) interfaceOf(a []uint32, fresh bool) []uint32 {
	end := 2
	for end < len(a) && a[end]&0xff000000 != 0 {
		end++
	}
	end++ // the word that ends the name
	list := slices.Clone(a[:end])
	globals := false
	for _, id := range a[end:] {
		if w.buffers[id] != nil {
			globals = true
			continue
		}
		list = append(list, id)
	}
	if fresh && globals {
		list = append(list, w.pushVar)
	}
	return list
}

// annotate emits the decorations of the added members.
func (w *rewriter) annotate(emit func(uint32, ...uint32), fresh bool) {
	if fresh {
		emit(opDecorate, w.pushType, decBlock)
	}
	for _, b := range w.order {
		emit(opMemberDecorate, w.pushType, b.member, decOffset, uint32(b.offset))
	}
}

// declare emits the push constant block with the added members, behind the pointer types
// they have.
func (w *rewriter) declare(emit func(uint32, ...uint32), moved [][]uint32, fresh bool) {
	var added []uint32
	for _, b := range w.order {
		added = append(added, b.pointer)
	}
	if fresh {
		emit(opTypeStruct, append([]uint32{w.pushType}, added...)...)
		emit(opTypePointer, w.pushPtr, storagePushConstant, w.pushType)
		emit(opVariable, w.pushPtr, w.pushVar, storagePushConstant)
	}
	for _, d := range moved {
		if d[0] == opTypeStruct {
			d = append(d, added...)
		}
		emit(d[0], d[1:]...)
	}
	for _, b := range w.order {
		emit(opTypePointer, b.viaType, storagePushConstant, b.pointer)
		emit(opConstant, w.intType, b.index, b.member)
	}
}

// used lists for each function the buffers it names, by binding.
func (w *rewriter) used() [][]*bufferVar {
	var list [][]*bufferVar
	w.m.each(func(op uint32, a []uint32) error {
		if op == opFunction {
			list = append(list, nil)
		}
		if len(list) == 0 {
			return nil
		}
		for _, i := range pointerOperands(op, a) {
			if b := w.buffers[a[i]]; b != nil && !slices.Contains(list[len(list)-1], b) {
				list[len(list)-1] = append(list[len(list)-1], b)
			}
		}
		return nil
	})
	return list
}

// pointerOperands are the operands of an instruction that may be pointers to buffers.
// Everything else in an instruction may be a literal that happens to look like an id.
func pointerOperands(op uint32, a []uint32) []int {
	var list []int
	switch {
	case op == opLoad, op == opAccessChain, op == opInBoundsAccessChain, op == opCopyObject,
		op == opAtomicLoad, op > opAtomicStore && op <= opAtomicXor:
		list = []int{2}
	case op == opStore, op == opAtomicStore:
		list = []int{0}
	case op == opSelect:
		list = []int{3, 4}
	case op == opFunctionCall:
		for i := 3; i < len(a); i++ {
			list = append(list, i)
		}
	case op == opPhi:
		for i := 2; i < len(a); i += 2 {
			list = append(list, i)
		}
	}
	return slices.DeleteFunc(list, func(i int) bool { return i >= len(a) })
}

// replace puts the loaded pointers in place of the variables, and aligns what goes
// through them.
func (w *rewriter) replace(op uint32, a []uint32, loads map[uint32]uint32) []uint32 {
	a = slices.Clone(a)
	pointer := uint32(0) // type of the pointer of a load or a store
	for _, i := range pointerOperands(op, a) {
		if b := w.buffers[a[i]]; b != nil {
			pointer = b.pointer
			a[i] = loads[a[i]]
		} else {
			pointer = w.results[a[i]]
		}
	}
	if !w.physical(pointer) {
		return a
	}
	switch op {
	case opLoad:
		return append(a[:3:3], aligned(a[3:], w.alignment(w.pointers[pointer].pointee))...)
	case opStore:
		return append(a[:2:2], aligned(a[2:], w.alignment(w.pointers[pointer].pointee))...)
	}
	return a
}
