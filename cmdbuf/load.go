package cmdbuf

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"vkcompute/cmdbuf/internal/graphfile"
	"vkcompute/pool"
	"vkcompute/shaders"
	"vkcompute/vk"
)

// FileError says at which byte the file of a graph is wrong, what was wanted there, and
// what was found.
type FileError = graphfile.Error

// ErrUnknownKernel: a kernel of a saved graph that the program does not have. How its
// launches are worked out is Go code, which a file cannot hold.
var ErrUnknownKernel = errors.New("unknown kernel")

// KernelMatch says which kernels may stand for those of a saved graph.
type KernelMatch uint8

const (
	// SameCode wants the name, the parameters and the SPIR-V that were saved: what is
	// loaded does what was saved.
	SameCode KernelMatch = iota
	// SameName wants the name and the parameters, and takes the program's code: a graph
	// of an older program, on kernels that were improved since.
	SameName
)

// LoadOptions say what a graph may be made of.
type LoadOptions struct {
	// Kernels are those of the program itself. The built-in ones are known.
	Kernels []*shaders.Kernel
	// Match says how they are found; zero: SameCode.
	Match KernelMatch
	// MaxBytes bounds the memory of the tensors; 0: what the device has.
	MaxBytes uint64
}

// LoadedGraph is a graph from a file, with the memory it works on. Besides that it is a
// Graph: replayed, changed and saved in the same way.
type LoadedGraph struct {
	*Graph
	SavedOn string // device and driver
	Comment string

	memories []memory
	views    map[string]graphfile.View
	layouts  []shaders.Layout
	closed   bool // guarded by the stream's lock
}

// memory is what tensors of a loaded graph lie in.
type memory struct {
	slice pool.Slice // with a reference
	info  TensorInfo
}

// TensorInfo describes the memory of a loaded graph's tensors.
type TensorInfo struct {
	Bytes  uint64
	DType  shaders.DType  // of the first argument that lies in it; AnyDType: only copied
	Access shaders.Access // what the graph does with it
}

// Load makes a graph of what Graph.Save wrote, by capturing the same launches on this
// stream, and reads no further than its end. The memory of its tensors is allocated and
// has the saved contents, or zeros.
//
// A file that is damaged, or was made up, is an error, a *FileError where the bytes alone
// show it. The SPIR-V in the file is compared and never run: a kernel must be built in or
// be one of the options', ErrUnknownKernel otherwise.
func Load(ctx context.Context, s *Stream, r io.Reader, o LoadOptions) (*LoadedGraph, error) {
	reader := graphfile.NewReader(r)
	f, err := reader.Graph()
	if err != nil {
		return nil, fmt.Errorf("cmdbuf: load: %w", err)
	}
	l := &LoadedGraph{SavedOn: f.Device, Comment: f.Comment, layouts: f.Layouts, views: map[string]graphfile.View{}}
	for _, v := range f.Views {
		l.views[v.Name] = v
	}
	if err := l.build(ctx, s, f, reader, &o); err != nil {
		err = fmt.Errorf("cmdbuf: load: %w", err)
		if l.Graph != nil {
			err = errors.Join(err, l.Graph.Close())
		}
		return nil, errors.Join(err, l.release(s))
	}
	return l, nil
}

func (l *LoadedGraph) build(ctx context.Context, s *Stream, f *graphfile.File, r *graphfile.Reader, o *LoadOptions) error {
	kernels := make([]*shaders.Kernel, len(f.Kernels))
	for i := range f.Kernels {
		var err error
		if kernels[i], err = o.find(f, &f.Kernels[i]); err != nil {
			return err
		}
	}
	if err := l.allocate(s, f, o); err != nil {
		return err
	}
	at := -1
	g, err := s.Capture(ctx, func(c *Capture) error {
		for i := range f.Ops {
			at = i
			if err := l.operation(c, f, &f.Ops[i], kernels); err != nil {
				return err
			}
		}
		at = -1
		return nil
	})
	if err != nil && at >= 0 {
		return fmt.Errorf("operation %d, byte %d of the file: %w", at, f.Ops[at].At, err)
	}
	if err != nil {
		return err
	}
	l.Graph = g
	return l.fill(s, f, r)
}

// find returns the kernel that stands for a saved one.
func (o *LoadOptions) find(f *graphfile.File, saved *graphfile.Kernel) (*shaders.Kernel, error) {
	want := codeDigest(f.Modules[saved.Module])
	why := "the program has none of that name"
	for _, list := range [][]*shaders.Kernel{o.Kernels, shaders.Builtins()} {
		for _, k := range list {
			if k == nil || k.Name != saved.Name || k.Err() != nil {
				continue
			}
			switch have := codeDigest(k.Module.Words); {
			case !slices.Equal(k.Params, saved.Params) || gridMode(k) != saved.Grid:
				why = "the program's kernel of that name has other parameters"
			case o.Match == SameName:
				return k, nil
			case have != want || k.Entry != saved.Entry:
				why = fmt.Sprintf("the program's kernel of that name has other SPIR-V, %x", have[:6])
			default:
				return k, nil
			}
		}
	}
	return nil, fmt.Errorf("byte %d of the file: %w: want %q with SPIR-V %x, entry point %q: %s; give it in LoadOptions.Kernels, or allow SameName",
		saved.At, ErrUnknownKernel, saved.Name, want[:6], saved.Entry, why)
}

// allocate makes the memories.
func (l *LoadedGraph) allocate(s *Stream, f *graphfile.File, o *LoadOptions) error {
	total := uint64(0)
	for _, m := range f.Memories {
		total += m.Bytes // far below 2⁶⁴: each is bounded, and has bytes in the file
	}
	if o.MaxBytes > 0 && total > o.MaxBytes {
		return &vk.LimitError{Name: "LoadOptions.MaxBytes", Want: total, Max: o.MaxBytes, What: "the memory of a saved graph"}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.idle("load"); err != nil {
		return err
	}
	for i, m := range f.Memories {
		slice, err := s.pools.Alloc(m.Bytes)
		if err != nil {
			return fmt.Errorf("memory %d of %d, %d bytes: %w", i, len(f.Memories), m.Bytes, err)
		}
		l.memories = append(l.memories, memory{slice, TensorInfo{Bytes: m.Bytes}})
	}
	return nil
}

// view makes a view of a memory.
func (l *LoadedGraph) view(s *Stream, e element, memory int, layout shaders.Layout) (view, error) {
	v := view{stream: s, slice: l.memories[memory].slice, element: e, layout: layout, borrowed: true}
	return v, v.bind()
}

// saved stands for the elements of the types that a program had when it saved a graph.
type saved [wordSize]byte

// tensor makes the argument for a parameter of a kernel.
func (l *LoadedGraph) tensor(s *Stream, dtype shaders.DType, memory int, layout shaders.Layout, k *shaders.Kernel, param int) (Arg, error) {
	e := number(dtype)
	if dtype == shaders.Composite {
		c := k.Contents(param)
		if c.Elem == nil || c.Form == shaders.Whole && layout.Offset != 0 {
			return nil, fmt.Errorf("kernel %q: parameter %d takes no such elements", k.Name, param)
		}
		e.typ = c.Element()
		e.size = uint64(e.typ.Size)
	}
	v, err := l.view(s, e, memory, layout)
	if err != nil {
		return nil, err
	}
	switch dtype {
	case shaders.Float32:
		return &Tensor[float32]{v: v}, nil
	case shaders.Int32:
		return &Tensor[int32]{v: v}, nil
	case shaders.Uint32:
		return &Tensor[uint32]{v: v}, nil
	case shaders.Float64:
		return &Tensor[float64]{v: v}, nil
	case shaders.Float16:
		return &Tensor[shaders.Half]{v: v}, nil
	default:
		return &Tensor[saved]{v: v}, nil
	}
}

// note remembers what the graph does with a memory.
func (l *LoadedGraph) note(memory int, dtype shaders.DType, access shaders.Access) {
	i := &l.memories[memory].info
	if i.DType == shaders.AnyDType {
		i.DType = dtype
	}
	i.Access |= access
}

// operation captures an operation again.
func (l *LoadedGraph) operation(c *Capture, f *graphfile.File, o *graphfile.Op, kernels []*shaders.Kernel) error {
	s := c.stream
	switch o.Kind {
	case graphfile.Launch, graphfile.LaunchIndirect:
		k := kernels[o.Kernel]
		args := make([]Arg, len(k.Params))
		for i := range args {
			var err error
			if args[i], err = l.argument(s, f, &f.Args[int(o.Args)+i], k, i); err != nil {
				return err
			}
		}
		if o.Kind == graphfile.Launch {
			return c.Launch(k, args...)
		}
		r := f.Ranges[o.Ranges]
		three := shaders.Contiguous(3)
		three.Offset = int(r.Offset / wordSize)
		grid, err := l.view(s, number(shaders.Uint32), int(r.Memory), three)
		if err != nil {
			return err
		}
		l.note(int(r.Memory), shaders.Uint32, shaders.Read)
		return c.LaunchIndirect(k, &Tensor[uint32]{v: grid}, args...)
	case graphfile.Copy:
		from, to := f.Ranges[o.Ranges], f.Ranges[o.Ranges+1]
		l.note(int(from.Memory), shaders.AnyDType, shaders.Read)
		l.note(int(to.Memory), shaders.AnyDType, shaders.Write)
		return c.step(func() error { return c.transfer(l.end(from), l.end(to), to.Bytes) })
	case graphfile.Fill:
		to := f.Ranges[o.Ranges]
		l.note(int(to.Memory), shaders.AnyDType, shaders.Write)
		return c.step(func() error { return c.fill(l.end(to), to.Bytes, o.Value) })
	default: // an upload: the reader knows no other
		to := f.Ranges[o.Ranges]
		l.note(int(to.Memory), shaders.AnyDType, shaders.Write)
		layout := shaders.Contiguous(int(to.Bytes / wordSize))
		layout.Offset = int(to.Offset / wordSize)
		v := view{stream: s, slice: l.memories[to.Memory].slice, element: number(shaders.Uint32), layout: layout}
		return c.write(&v, f.Host[o.Host:][:to.Bytes])
	}
}

func (l *LoadedGraph) end(r graphfile.Range) transferEnd {
	return transferEnd{l.memories[r.Memory].slice, r.Offset}
}

func (l *LoadedGraph) argument(s *Stream, f *graphfile.File, a *graphfile.Arg, k *shaders.Kernel, i int) (Arg, error) {
	access := k.Params[i].Access
	switch a.Kind {
	case graphfile.Scalar:
		return Scalar{a.Bits, a.DType}, nil
	case graphfile.Tensor:
		l.note(int(a.Memory), a.DType, access)
		return l.tensor(s, a.DType, int(a.Memory), f.Layouts[a.Layout], k, i)
	}
	p := &f.Params[a.Param]
	if p.Kind == shaders.ScalarParam {
		return Param(p.Name, Scalar{p.Bits, p.DType}), nil
	}
	l.note(p.Memory, p.DType, access)
	t, err := l.tensor(s, p.DType, p.Memory, f.Layouts[p.Layout], k, i)
	if err != nil {
		return nil, err
	}
	return Param(p.Name, t), nil
}

// fill puts the contents into the memories.
func (l *LoadedGraph) fill(s *Stream, f *graphfile.File, r *graphfile.Reader) error {
	for i, m := range f.Memories {
		if !m.Contents && m.Bytes > 0 {
			if err := s.zero(l.memories[i].slice); err != nil {
				return fmt.Errorf("memory %d: %w", i, err)
			}
		}
	}
	pending := 0
	for {
		b, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		layout := shaders.Contiguous(len(b.Data) / wordSize)
		layout.Offset = int(b.Offset / wordSize)
		v := view{stream: s, slice: l.memories[b.Memory].slice, element: number(shaders.Uint32), layout: layout}
		if err := s.write(&v, b.Data); err != nil {
			return fmt.Errorf("memory %d: %w", b.Memory, err)
		}
		// Staging memory goes when its copy is done, and that begins with its submission.
		if pending += len(b.Data); pending >= maxStaging {
			pending = 0
			if err := s.Flush(); err != nil {
				return err
			}
		}
	}
}

// zero fills a slice with zeros.
func (s *Stream) zero(slice pool.Slice) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.idle("fill"); err != nil {
		return err
	}
	return s.fill(transferEnd{slice, 0}, slice.Size(), 0)
}

// Tensors describes the memory of the graph's tensors, in the order in which its
// operations first name them, argument by argument.
func (l *LoadedGraph) Tensors() []TensorInfo {
	list := make([]TensorInfo, len(l.memories))
	for i := range l.memories {
		list[i] = l.memories[i].info
	}
	return list
}

// Views are the names of the tensors that were saved with one, sorted.
func (l *LoadedGraph) Views() []string {
	var names []string
	for name := range l.views {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// borrow makes a tensor for whoever has the graph. The layout is of elements of size bytes.
func borrow[T Element](l *LoadedGraph, memory int, layout func(element) (shaders.Layout, error)) (*Tensor[T], error) {
	l.stream.mu.Lock()
	defer l.stream.mu.Unlock()
	if l.closed {
		return nil, ErrClosed
	}
	e, err := elementOf[T](l.stream)
	if err != nil {
		return nil, err
	}
	at, err := layout(e)
	if err != nil {
		return nil, err
	}
	v, err := l.view(l.stream, e, memory, at)
	if err != nil {
		return nil, err
	}
	return &Tensor[T]{v: v}, nil
}

// TensorAt is the whole memory of a loaded graph's tensor, see LoadedGraph.Tensors, as a
// row of elements of any type. It belongs to the graph.
func TensorAt[T Element](l *LoadedGraph, i int) (*Tensor[T], error) {
	if i < 0 || i >= len(l.memories) {
		return nil, fmt.Errorf("cmdbuf: loaded graph: want a tensor from 0 to %d, found %d", len(l.memories)-1, i)
	}
	t, err := borrow[T](l, i, func(e element) (shaders.Layout, error) {
		return shaders.Contiguous(int(l.memories[i].info.Bytes / e.size)), nil
	})
	if err != nil {
		return nil, fmt.Errorf("cmdbuf: loaded graph: tensor %d: %w", i, err)
	}
	return t, nil
}

// TensorNamed is a tensor that was saved with a name. It belongs to the graph.
func TensorNamed[T Element](l *LoadedGraph, name string) (*Tensor[T], error) {
	v, ok := l.views[name]
	if !ok {
		return nil, fmt.Errorf("cmdbuf: loaded graph: it has no tensor %q; it has %q", name, l.Views())
	}
	t, err := borrow[T](l, v.Memory, func(e element) (shaders.Layout, error) {
		if v.DType != e.dtype {
			return shaders.Layout{}, fmt.Errorf("want elements of type %v, found %v", e, v.DType)
		}
		return l.layouts[v.Layout], nil
	})
	if err != nil {
		return nil, fmt.Errorf("cmdbuf: loaded graph: tensor %q: %w", name, err)
	}
	return t, nil
}

// Digest is the SHA-256 of everything the graph writes, after everything launched before:
// for each memory with its number and size, all bytes. It tells whether two devices, or
// two drivers, came to the same.
func (l *LoadedGraph) Digest(ctx context.Context) ([sha256.Size]byte, error) {
	h := sha256.New()
	for i := range l.memories {
		m := &l.memories[i]
		if m.info.Access&shaders.Write == 0 {
			continue
		}
		h.Write(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, uint64(i)), m.info.Bytes))
		err := l.stream.eachBytes(ctx, m.slice, func(_ uint64, b []byte) error {
			_, err := h.Write(b)
			return err
		})
		if err != nil {
			return [sha256.Size]byte{}, fmt.Errorf("cmdbuf: digest: tensor %d: %w", i, err)
		}
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}

// Close closes the graph, and gives back its memory when the last replay is done. It
// does not wait for the device. Closing twice does nothing.
func (l *LoadedGraph) Close() error {
	return errors.Join(l.Graph.Close(), l.release(l.stream))
}

// release gives back the memories.
func (l *LoadedGraph) release(s *Stream) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	var err error
	for i := range l.memories {
		err = errors.Join(err, l.memories[i].slice.Release())
	}
	return err
}
