package graphfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"

	"vkcompute/shaders"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Reader reads a file. It belongs to one goroutine.
type Reader struct {
	r    io.Reader
	at   int64 // bytes read
	file *File
	body []byte // of the block at hand
	err  error  // what ended it

	// Where the contents are.
	memory int
	offset uint64
}

// NewReader reads a file from r, which may end with the file or not: no byte behind it is
// asked for. Reads are as large as a section allows; a file on disk needs no buffering.
func NewReader(r io.Reader) *Reader { return &Reader{r: r} }

// Graph reads everything but the contents. It is called once and first.
func (r *Reader) Graph() (*File, error) {
	if r.err == nil && r.file == nil {
		r.file, r.err = r.graph()
	}
	return r.file, r.err
}

func (r *Reader) graph() (*File, error) {
	if err := r.header(); err != nil {
		return nil, err
	}
	f := &File{}
	for _, s := range []struct {
		name string
		read func(*cursor, *File)
	}{
		{secNote, readNote}, {secCode, readCode}, {secKern, readKernels}, {secMemo, readMemories}, {secLayo, readLayouts},
		{secView, readViews}, {secPara, readParams}, {secOper, readOps},
	} {
		c, err := r.section(s.name)
		if err != nil {
			return nil, err
		}
		s.read(c, f)
		if err := c.end(); err != nil {
			return nil, err
		}
	}
	c, err := r.section(secHost)
	if err != nil {
		return nil, err
	}
	want := uint64(0)
	for i := range f.Ops {
		if f.Ops[i].Kind == Upload {
			want += f.Ranges[f.Ops[i].Ranges].Bytes // far below 2⁶⁴: memories are, and operations are few
		}
	}
	if uint64(len(c.body)) != want {
		c.fail(0, fmt.Sprintf("the %d bytes of all uploads", want), fmt.Sprint(len(c.body)))
		return nil, c.err
	}
	f.Host = c.body
	r.skipEmpty(f)
	return f, nil
}

// skipEmpty moves on to the next memory of which contents are to come.
func (r *Reader) skipEmpty(f *File) {
	for r.memory < len(f.Memories) && (!f.Memories[r.memory].Contents || r.offset == f.Memories[r.memory].Bytes) {
		r.memory++
		r.offset = 0
	}
}

// Next returns the next block of contents, whose data is valid until the call after. At
// the end of the file, if all is there, it returns io.EOF.
func (r *Reader) Next() (Block, error) {
	if r.file == nil && r.err == nil {
		r.err = errors.New("graph file: the contents were asked for before the graph")
	}
	if r.err != nil {
		return Block{}, r.err
	}
	b, err := r.next()
	r.err = err
	return b, err
}

func (r *Reader) next() (Block, error) {
	if r.memory == len(r.file.Memories) {
		return Block{}, r.done()
	}
	c, err := r.section(secInit)
	if err != nil {
		return Block{}, err
	}
	r.body = c.body
	b := Block{Memory: r.memory, Offset: r.offset}
	if m := c.u32("the memory"); c.err == nil && uint64(m) != uint64(b.Memory) {
		c.fail(4, fmt.Sprintf("contents of memory %d", b.Memory), fmt.Sprintf("those of %d", m))
	}
	if o := c.u64("the offset"); c.err == nil && o != b.Offset {
		c.fail(8, fmt.Sprintf("contents from byte %d on", b.Offset), fmt.Sprint(o))
	}
	size := min(BlockSize, r.file.Memories[r.memory].Bytes-r.offset)
	b.Data = c.take(int(size), "contents")
	if err := c.end(); err != nil {
		return Block{}, err
	}
	r.offset += size
	r.skipEmpty(r.file)
	return b, nil
}

// done reads the last section.
func (r *Reader) done() error {
	want := uint64(r.at)
	c, err := r.section(secDone)
	if err != nil {
		return err
	}
	if n := c.u64("the length of the file"); c.err == nil && n != want {
		c.fail(8, fmt.Sprintf("%d, the bytes of the file so far", want), fmt.Sprint(n))
	}
	if err := c.end(); err != nil {
		return err
	}
	return io.EOF
}

// read fills b.
func (r *Reader) read(b []byte, section, what string) error {
	n, err := io.ReadFull(r.r, b)
	r.at += int64(n)
	switch {
	case err == io.EOF || err == io.ErrUnexpectedEOF:
		return &Error{Offset: r.at, Section: section, Want: what, Found: "the end of the file"}
	case err != nil:
		return fmt.Errorf("graph file, byte %d: reading: %w", r.at, err)
	}
	return nil
}

func (r *Reader) header() error {
	var b [headerSize]byte
	if err := r.read(b[:len(magic)], "", fmt.Sprintf("%q, as every saved graph begins", magic)); err != nil {
		return err
	}
	if string(b[:len(magic)]) != magic {
		return &Error{Offset: 0, Want: fmt.Sprintf("%q, as every saved graph begins", magic), Found: fmt.Sprintf("%q", b[:len(magic)])}
	}
	if err := r.read(b[len(magic):], "", "version and checksum"); err != nil {
		return err
	}
	if err := checksum(b[:headerSize-4], b[headerSize-4:], int64(headerSize-4), "", "the header"); err != nil {
		return err
	}
	if v := binary.LittleEndian.Uint32(b[len(magic):]); v != Version {
		return &Error{Offset: int64(len(magic)), Want: fmt.Sprintf("version %d, which this program knows", Version), Found: fmt.Sprintf("version %d", v)}
	}
	return nil
}

// checksum compares.
func checksum(of, sum []byte, at int64, section, what string) error {
	have, want := binary.LittleEndian.Uint32(sum), crc32.Checksum(of, castagnoli)
	if have != want {
		return &Error{Offset: at, Section: section, Want: fmt.Sprintf("the checksum of %s, %08x", what, want), Found: fmt.Sprintf("%08x: the file is damaged", have)}
	}
	return nil
}

// section reads a section, which must have this name, and checks it.
func (r *Reader) section(name string) (*cursor, error) {
	var head [sectionHead]byte
	start := r.at
	if err := r.read(head[:], name, fmt.Sprintf("section %q", name)); err != nil {
		return nil, err
	}
	if err := checksum(head[:12], head[12:], start+12, name, "the section's head"); err != nil {
		return nil, err
	}
	if string(head[:4]) != name {
		return nil, &Error{Offset: start, Section: name, Want: fmt.Sprintf("section %q", name), Found: fmt.Sprintf("section %q", head[:4])}
	}
	length := binary.LittleEndian.Uint64(head[4:])
	if name == secInit && length > BlockSize+12 {
		return nil, &Error{Offset: start + 4, Section: name, Want: fmt.Sprintf("at most %d bytes", BlockSize+12), Found: fmt.Sprint(length)}
	}
	c := &cursor{section: name, start: r.at}
	var buffer []byte
	if name == secInit {
		buffer = r.body
	}
	var err error
	if c.body, err = r.sized(buffer[:0], length, name); err != nil {
		return nil, err
	}
	var sum [4]byte
	at := r.at
	if err := r.read(sum[:], name, "the section's checksum"); err != nil {
		return nil, err
	}
	return c, checksum(c.body, sum[:], at, name, "the section")
}

// sized reads n bytes. It never has room for much more than twice of what came.
func (r *Reader) sized(b []byte, n uint64, section string) ([]byte, error) {
	const first = 64 << 10
	for uint64(len(b)) < n {
		have := len(b)
		more := int(min(n-uint64(have), uint64(max(first, have))))
		b = slices.Grow(b, more)[:have+more]
		if err := r.read(b[have:], section, fmt.Sprintf("%d bytes of the section", n)); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func readNote(c *cursor, f *File) {
	f.Device, f.Comment = c.str("the device"), c.str("the comment")
}

func readCode(c *cursor, f *File) {
	n := c.count(4, "modules")
	f.Modules = make([][]uint32, 0, n)
	for range n {
		words := make([]uint32, c.count(4, "SPIR-V words"))
		for i := range words {
			words[i] = c.u32("a SPIR-V word")
		}
		f.Modules = append(f.Modules, words)
	}
}

func readKernels(c *cursor, f *File) {
	n := c.count(17, "kernels")
	f.Kernels = make([]Kernel, 0, n)
	for range n {
		k := Kernel{At: c.start + int64(c.at), Name: c.str("a kernel's name"), Entry: c.str("an entry point"), Module: c.index(len(f.Modules), "a module"),
			Grid: shaders.GridMode(c.enum(uint8(shaders.ExactGrid), uint8(shaders.FoldedGrid), "a grid mode"))}
		params := c.count(11, "a kernel's parameters")
		k.Params = make([]shaders.Param, 0, params)
		for range params {
			p := shaders.Param{Name: c.str("a parameter's name"), Kind: shaders.ParamKind(c.enum(uint8(shaders.TensorParam), uint8(shaders.ScalarParam), "a parameter's kind")),
				DType:  shaders.DType(c.enum(uint8(shaders.AnyDType), uint8(shaders.Composite), "a parameter's element type")),
				Access: shaders.Access(c.enum(0, uint8(shaders.ReadWrite), "an access")), Binding: c.u32("a binding")}
			k.Params = append(k.Params, p)
		}
		f.Kernels = append(f.Kernels, k)
	}
}

func readMemories(c *cursor, f *File) {
	n := c.count(9, "memories")
	f.Memories = make([]Memory, 0, n)
	for range n {
		m := Memory{Bytes: c.u64("a memory's size")}
		if c.err == nil && (m.Bytes > MaxBytes || m.Bytes%4 != 0) {
			c.fail(8, fmt.Sprintf("a memory's size in bytes, a multiple of 4 of at most %d", uint64(MaxBytes)), fmt.Sprint(m.Bytes))
		}
		m.Contents = c.enum(0, 1, "whether contents follow") == 1
		f.Memories = append(f.Memories, m)
	}
}

func readLayouts(c *cursor, f *File) {
	n := c.count(9, "layouts")
	f.Layouts = make([]shaders.Layout, 0, n)
	for range n {
		at := c.at
		l := shaders.Layout{Rank: int(c.enum(0, shaders.MaxRank, "a rank"))}
		number := func(what string) int {
			v := int64(c.u64(what))
			if int64(int(v)) != v {
				c.fail(8, what+" that fits this machine's int", fmt.Sprint(v))
			}
			return int(v)
		}
		l.Offset = number("an offset")
		for i := range l.Rank {
			l.Shape[i], l.Stride[i] = number("an extent"), number("a stride")
		}
		if err := l.Validate(); c.err == nil && err != nil {
			c.fail(c.at-at, "a layout that a shader can index", err.Error())
		}
		f.Layouts = append(f.Layouts, l)
	}
}

// placed reads a memory and a layout that stays inside it. How large composite elements are
// only the program knows; they have a byte at least.
func (c *cursor) placed(f *File, what string, dtype shaders.DType) (memory, layout int) {
	memory, layout = c.index(len(f.Memories), "the memory of "+what), c.index(len(f.Layouts), "the layout of "+what)
	if c.err != nil {
		return 0, 0
	}
	lo, hi := f.Layouts[layout].Bounds()
	if n := f.Memories[memory].Bytes / uint64(max(dtype.Size(), 1)); lo <= hi && uint64(hi) >= n {
		c.fail(4, fmt.Sprintf("a layout inside the %d elements of memory %d", n, memory), fmt.Sprintf("one of elements %d to %d", lo, hi))
	}
	return memory, layout
}

func readViews(c *cursor, f *File) {
	n := c.count(13, "views")
	f.Views = make([]View, 0, n)
	for range n {
		at := c.at
		v := View{Name: c.str("a view's name"), DType: c.dtype("a view")}
		if last := len(f.Views) - 1; c.err == nil && last >= 0 && v.Name <= f.Views[last].Name {
			c.fail(c.at-at, "the views in the order of their names", fmt.Sprintf("%q after %q", v.Name, f.Views[last].Name))
		}
		v.Memory, v.Layout = c.placed(f, "a view", v.DType)
		f.Views = append(f.Views, v)
	}
}

func readParams(c *cursor, f *File) {
	n := c.count(10, "parameters")
	f.Params = make([]Param, 0, n)
	names := make(map[string]bool, n)
	for range n {
		at := c.at
		p := Param{Name: c.str("a parameter's name")}
		if c.err == nil && (p.Name == "" || names[p.Name]) {
			c.fail(c.at-at, "a name that no other parameter has, and not none", fmt.Sprintf("%q", p.Name))
		}
		names[p.Name] = true
		p.Kind = shaders.ParamKind(c.enum(uint8(shaders.TensorParam), uint8(shaders.ScalarParam), "a parameter's kind"))
		if p.Kind == shaders.ScalarParam {
			p.DType, p.Bits = c.scalar("a parameter"), c.u32("a scalar's bits")
		} else {
			p.DType = c.dtype("a parameter")
			p.Memory, p.Layout = c.placed(f, "a parameter", p.DType)
		}
		f.Params = append(f.Params, p)
	}
}

func readOps(c *cursor, f *File) {
	n := c.count(5, "operations")
	f.Ops = make([]Op, 0, n)
	host := 0
	for range n {
		if c.err != nil {
			return
		}
		o := Op{At: c.start + int64(c.at), Args: int32(len(f.Args)), Ranges: int32(len(f.Ranges)), Host: host}
		o.Kind = OpKind(c.enum(uint8(Launch), uint8(Upload), "the kind of an operation"))
		switch o.Kind {
		case Launch, LaunchIndirect:
			o.Kernel = int32(c.index(len(f.Kernels), "a kernel"))
			if c.err != nil {
				return
			}
			for i := range f.Kernels[o.Kernel].Params {
				f.Args = append(f.Args, c.arg(f, &f.Kernels[o.Kernel].Params[i]))
			}
			if o.Kind == LaunchIndirect {
				f.Ranges = append(f.Ranges, c.part(f, gridBytes))
			}
		case Copy:
			source, target := c.part(f, 0), c.part(f, 0)
			target.Bytes = c.bytes(f, target)
			source.Bytes = target.Bytes
			c.fits(f, source)
			if c.err == nil && source.Memory == target.Memory && source.Offset < target.Offset+target.Bytes && target.Offset < source.Offset+source.Bytes {
				c.fail(8, "a copy between parts that do not overlap", fmt.Sprintf("%d bytes of memory %d from byte %d to %d", source.Bytes, source.Memory, source.Offset, target.Offset))
			}
			f.Ranges = append(f.Ranges, source, target)
		case Fill:
			target := c.part(f, 0)
			target.Bytes = c.bytes(f, target)
			f.Ranges = append(f.Ranges, target)
			o.Value = c.u32("the value of a fill")
		case Upload:
			target := c.part(f, 0)
			target.Bytes = c.bytes(f, target)
			f.Ranges = append(f.Ranges, target)
			if uint64(host)+target.Bytes > math.MaxInt {
				c.fail(8, "uploads that fit this machine's int", fmt.Sprint(uint64(host)+target.Bytes))
				return
			}
			host += int(target.Bytes)
		}
		f.Ops = append(f.Ops, o)
		if len(f.Args) > math.MaxInt32 || len(f.Ranges) > math.MaxInt32 {
			c.fail(0, "at most 2³¹ arguments", "more")
		}
	}
}

// arg reads an argument for a parameter of a kernel.
func (c *cursor) arg(f *File, p *shaders.Param) Arg {
	at := c.at
	a := Arg{Kind: ArgKind(c.enum(uint8(Scalar), uint8(Named), "the kind of an argument"))}
	kind := shaders.TensorParam
	switch a.Kind {
	case Scalar:
		kind, a.DType, a.Bits = shaders.ScalarParam, c.scalar("an argument"), c.u32("a scalar's bits")
	case Tensor:
		a.DType = c.dtype("an argument")
		memory, layout := c.placed(f, "an argument", a.DType)
		a.Memory, a.Layout = int32(memory), int32(layout)
	case Named:
		a.Param = int32(c.index(len(f.Params), "a parameter"))
		if c.err != nil {
			return a
		}
		kind, a.DType = f.Params[a.Param].Kind, f.Params[a.Param].DType
	}
	if c.err == nil && kind != p.Kind {
		c.fail(c.at-at, fmt.Sprintf("a %v for parameter %q", p.Kind, p.Name), fmt.Sprintf("a %v", kind))
	}
	return a
}

// part reads memory and offset of a range of so many bytes, 0 if they are yet to come.
func (c *cursor) part(f *File, bytes uint64) Range {
	r := Range{Memory: int32(c.index(len(f.Memories), "a memory")), Offset: c.u64("an offset"), Bytes: bytes}
	if c.err == nil && r.Offset%4 != 0 {
		c.fail(8, "an offset, a multiple of 4", fmt.Sprint(r.Offset))
	}
	c.fits(f, r)
	return r
}

// bytes reads the length of a range.
func (c *cursor) bytes(f *File, r Range) uint64 {
	r.Bytes = c.u64("a number of bytes")
	if c.err == nil && (r.Bytes == 0 || r.Bytes%4 != 0) {
		c.fail(8, "a number of bytes, a multiple of 4 and not 0", fmt.Sprint(r.Bytes))
	}
	c.fits(f, r)
	return r.Bytes
}

// fits checks that a range lies inside its memory.
func (c *cursor) fits(f *File, r Range) {
	if c.err != nil {
		return
	}
	if size := f.Memories[r.Memory].Bytes; r.Offset > size || r.Bytes > size-r.Offset {
		c.fail(8, fmt.Sprintf("a part of the %d bytes of memory %d", size, r.Memory), fmt.Sprintf("%d bytes from byte %d on", r.Bytes, r.Offset))
	}
}
