package graphfile

import (
	"fmt"

	"vkcompute/shaders"
)

// Version is that of the format.
const Version = 1

// BlockSize is the most bytes of contents in one section; every block but the last of a
// memory has as many.
const BlockSize = 1 << 20

const (
	magic       = "\x89VKG\r\n\x1a\n"
	headerSize  = len(magic) + 8
	sectionHead = 16
	gridBytes   = 12 // three u32

	// MaxBytes is the greatest size of a memory: a tensor of 32-bit elements can cover it.
	MaxBytes = 4 * shaders.MaxElements
)

// The sections, in order.
const (
	secNote = "note"
	secCode = "code"
	secKern = "kern"
	secMemo = "memo"
	secLayo = "layo"
	secView = "view"
	secPara = "para"
	secOper = "oper"
	secHost = "host"
	secInit = "init"
	secDone = "done"
)

// Error says where a file is wrong.
type Error struct {
	Offset  int64  // of the byte, from the start of the file
	Section string // its name; "" for the header
	Want    string
	Found   string
}

func (e *Error) Error() string {
	where := "header"
	if e.Section != "" {
		where = fmt.Sprintf("section %q", e.Section)
	}
	return fmt.Sprintf("graph file, byte %d (%s): want %s, found %s", e.Offset, where, e.Want, e.Found)
}

// File is a graph without the contents of its memories.
type File struct {
	Device   string // on which it was saved
	Comment  string
	Modules  [][]uint32
	Kernels  []Kernel
	Memories []Memory
	Layouts  []shaders.Layout
	Views    []View
	Params   []Param
	Ops      []Op
	Args     []Arg   // of all launches
	Ranges   []Range // of all other operations, and of indirect launches
	Host     []byte  // of all uploads
}

// Kernel is what a file knows of a kernel. How its launches are planned is code, which a
// file has not.
type Kernel struct {
	Name   string
	Entry  string
	Module int
	Grid   shaders.GridMode
	Params []shaders.Param
	At     int64 // where the file has it
}

// Memory is what tensors lie in.
type Memory struct {
	Bytes    uint64
	Contents bool // they follow in blocks
}

// View is a tensor with a name.
type View struct {
	Name   string
	DType  shaders.DType
	Memory int
	Layout int
}

// Param is a named argument and its value.
type Param struct {
	Name   string
	Kind   shaders.ParamKind
	DType  shaders.DType
	Bits   uint32 // of a scalar
	Memory int    // of a tensor
	Layout int
}

// OpKind is what an operation does.
type OpKind uint8

const (
	Launch OpKind = iota
	LaunchIndirect
	Copy
	Fill
	Upload
)

func (k OpKind) String() string {
	if int(k) >= len(opNames) {
		return fmt.Sprintf("operation(%d)", uint8(k))
	}
	return opNames[k]
}

var opNames = [...]string{"launch", "indirect launch", "copy", "fill", "upload"}

// Op is an operation. Its arguments, ranges and host bytes lie in the file's lists.
type Op struct {
	Kind   OpKind
	Kernel int32
	Args   int32 // index of the first
	Ranges int32 // index of the first: the grid, the source then the target, or the target
	Value  uint32
	Host   int   // index of the first byte
	At     int64 // where the file has it
}

// Range is a part of a memory, in bytes.
type Range struct {
	Memory        int32
	Offset, Bytes uint64
}

// Arg is an argument of a launch.
type Arg struct {
	Kind   ArgKind
	DType  shaders.DType
	Bits   uint32 // of a scalar
	Memory int32  // of a tensor
	Layout int32
	Param  int32 // of a parameter
}

// ArgKind tells what an argument is.
type ArgKind uint8

const (
	Scalar ArgKind = iota
	Tensor
	Named
)

// Block is a part of the contents of a memory.
type Block struct {
	Memory int
	Offset uint64
	Data   []byte
}
