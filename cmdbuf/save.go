package cmdbuf

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"slices"

	"vkcompute/cmdbuf/internal/graphfile"
	"vkcompute/pool"
	"vkcompute/shaders"
	"vkcompute/vk"
)

// SaveOptions say what goes into the file of a graph besides the graph.
type SaveOptions struct {
	// Contents adds what the memory of the graph's tensors holds when everything launched
	// so far is done. Without them it begins as zeros where the graph is loaded.
	Contents bool
	// Views are tensors that can be found by name in the loaded graph. They must lie in
	// memory that the graph uses.
	Views map[string]Arg
	// Comment is for whoever loads the graph.
	Comment string
}

// Save writes the graph to a file that Load makes a graph of, on any device: the kernels
// with their SPIR-V, the operations in the order in which they run, the memory of the
// tensors, the named parameters with their present values, and the bytes of uploads. The
// infos are not in it: what they hold depends on the device, so they are made anew.
//
// Nothing may change the contents while they are written, or they are not of one moment;
// the graph itself is. The graph may be closed or changed meanwhile.
func (g *Graph) Save(ctx context.Context, w io.Writer, o SaveOptions) error {
	d, err := g.describe(o)
	if err != nil {
		return fmt.Errorf("cmdbuf: save: %w", err)
	}
	defer d.release()
	file := graphfile.NewWriter(w)
	if err := file.Graph(&d.file); err != nil {
		return fmt.Errorf("cmdbuf: save: %w", err)
	}
	if o.Contents {
		if err := d.writeContents(ctx, file); err != nil {
			return fmt.Errorf("cmdbuf: save: %w", err)
		}
	}
	if err := file.Close(); err != nil {
		return fmt.Errorf("cmdbuf: save: %w", err)
	}
	return nil
}

// description is what a file says of a graph.
type description struct {
	stream   *Stream
	file     graphfile.File
	slices   []pool.Slice // of the memories, with a reference each
	memories map[pool.Slice]int
	layouts  map[shaders.Layout]int
	kernels  map[*shaders.Kernel]int
	modules  map[[sha256.Size]byte]int
	contents bool
	err      error
}

func (d *description) release() {
	for _, s := range d.slices {
		s.Release()
	}
}

// describe works out what the file says, as the graph is now.
func (g *Graph) describe(o SaveOptions) (*description, error) {
	s := g.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	if g.closed {
		return nil, fmt.Errorf("graph %d: %w", g.id, ErrClosed)
	}
	if err := s.uncaptured("save"); err != nil { // a lost device's graphs can be saved
		return nil, err
	}
	info := s.dev.Info()
	d := &description{
		stream: s, file: graphfile.File{Device: info.Name + ", " + info.Driver, Comment: o.Comment},
		memories: map[pool.Slice]int{}, layouts: map[shaders.Layout]int{}, kernels: map[*shaders.Kernel]int{}, modules: map[[sha256.Size]byte]int{},
	}
	err := d.graph(&g.ops, o)
	if err != nil {
		d.release()
		return nil, err
	}
	return d, nil
}

func (d *description) graph(o *ops, options SaveOptions) error {
	d.contents = options.Contents
	tensors := o.tensorMemory()
	for i := range o.list {
		d.operation(o, &o.list[i], tensors)
	}
	for _, p := range o.params {
		q := graphfile.Param{Name: p.name, DType: p.dtype, Kind: shaders.ScalarParam, Bits: p.bits}
		if p.tensor {
			q = graphfile.Param{Name: p.name, DType: p.dtype, Kind: shaders.TensorParam, Memory: d.memory(o.slices[p.slice]), Layout: d.layout(o.layouts[p.layout])}
		}
		d.file.Params = append(d.file.Params, q)
	}
	for _, name := range slices.Sorted(maps.Keys(options.Views)) {
		v := viewOf(options.Views[name])
		if v == nil {
			return fmt.Errorf("view %q: want a tensor, found %T", name, options.Views[name])
		}
		memory, ok := d.memories[v.slice]
		if !ok {
			return fmt.Errorf("view %q: want a tensor in memory that the graph uses", name)
		}
		d.file.Views = append(d.file.Views, graphfile.View{Name: name, DType: v.dtype, Memory: memory, Layout: d.layout(v.layout)})
	}
	return d.err
}

// tensorMemory are the slices that tensors lie in: not those of infos, and not the staging
// memory of uploads, which belongs to its operation.
func (o *ops) tensorMemory() map[pool.Slice]bool {
	used := map[pool.Slice]bool{}
	for i := range o.list {
		p := &o.list[i]
		a := o.accessesOf(p)
		switch p.kind {
		case opLaunch:
			for _, r := range o.operands[p.args.from:p.args.to] {
				if r.kind == shaders.TensorParam {
					used[o.slices[r.slice]] = true
				}
			}
			if p.indirect {
				used[a[len(a)-1].slice] = true
			}
		case opCopy:
			if a[0].slice.Role() != vk.UploadMemory {
				used[a[0].slice] = true
			}
			used[a[1].slice] = true
		case opFill:
			used[a[0].slice] = true
		}
	}
	return used
}

// memory numbers a slice.
func (d *description) memory(slice pool.Slice) int {
	i, ok := d.memories[slice]
	if !ok {
		if err := slice.Retain(); err != nil {
			d.err = err // the graph holds a reference, so this takes a slice with very many
			return 0
		}
		i = len(d.slices)
		d.memories[slice] = i
		d.slices = append(d.slices, slice)
		d.file.Memories = append(d.file.Memories, graphfile.Memory{Bytes: slice.Size(), Contents: d.contents})
	}
	return i
}

func (d *description) layout(l shaders.Layout) int {
	i, ok := d.layouts[l]
	if !ok {
		i = len(d.file.Layouts)
		d.layouts[l] = i
		d.file.Layouts = append(d.file.Layouts, l)
	}
	return i
}

// codeDigest tells SPIR-V modules apart.
func codeDigest(words []uint32) [sha256.Size]byte {
	b := make([]byte, 0, 4*len(words))
	for _, w := range words {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return sha256.Sum256(b)
}

func gridMode(k *shaders.Kernel) shaders.GridMode {
	if k.Foldable() {
		return shaders.FoldedGrid
	}
	return shaders.ExactGrid
}

func (d *description) kernel(k *shaders.Kernel) int {
	if i, ok := d.kernels[k]; ok {
		return i
	}
	digest := codeDigest(k.Module.Words)
	module, ok := d.modules[digest]
	if !ok {
		module = len(d.file.Modules)
		d.modules[digest] = module
		d.file.Modules = append(d.file.Modules, k.Module.Words)
	}
	i := len(d.file.Kernels)
	d.kernels[k] = i
	d.file.Kernels = append(d.file.Kernels, graphfile.Kernel{Name: k.Name, Entry: k.Entry, Module: module, Grid: gridMode(k), Params: k.Params})
	return i
}

// part is the range of an access in its memory.
func (d *description) part(b *binding) graphfile.Range {
	if b.size%wordSize != 0 || b.offset%wordSize != 0 {
		d.err = fmt.Errorf("a copy or an upload of %d bytes at byte %d: want whole words of %d bytes, which files count in", b.size, b.offset-b.slice.Offset(), wordSize)
	}
	return graphfile.Range{Memory: int32(d.memory(b.slice)), Offset: b.offset - b.slice.Offset(), Bytes: b.size}
}

func (d *description) operation(o *ops, p *op, tensors map[pool.Slice]bool) {
	f := &d.file
	x := graphfile.Op{Args: int32(len(f.Args)), Ranges: int32(len(f.Ranges)), Host: len(f.Host), Value: p.value}
	a := o.accessesOf(p)
	switch p.kind {
	case opLaunch:
		x.Kind, x.Kernel = graphfile.Launch, int32(d.kernel(p.program.kernel))
		for _, r := range o.operands[p.args.from:p.args.to] {
			y := graphfile.Arg{Kind: graphfile.Scalar, DType: r.dtype, Bits: r.bits}
			switch {
			case r.named >= 0:
				if r.kind == shaders.TensorParam {
					d.memory(o.slices[r.slice])
				}
				y = graphfile.Arg{Kind: graphfile.Named, DType: r.dtype, Param: r.named}
			case r.kind == shaders.TensorParam:
				y = graphfile.Arg{Kind: graphfile.Tensor, DType: r.dtype, Memory: int32(d.memory(o.slices[r.slice])), Layout: int32(d.layout(o.layouts[r.layout]))}
			}
			f.Args = append(f.Args, y)
		}
		if p.indirect {
			x.Kind = graphfile.LaunchIndirect
			f.Ranges = append(f.Ranges, d.part(&a[len(a)-1]))
		}
	case opCopy:
		if tensors[a[0].slice] {
			x.Kind = graphfile.Copy
			f.Ranges = append(f.Ranges, d.part(&a[0]), d.part(&a[1]))
			break
		}
		x.Kind = graphfile.Upload
		from := a[0].offset - a[0].slice.Offset()
		f.Host = append(f.Host, a[0].slice.Mapped()[from:from+a[0].size]...)
		f.Ranges = append(f.Ranges, d.part(&a[1]))
	case opFill:
		x.Kind = graphfile.Fill
		f.Ranges = append(f.Ranges, d.part(&a[0]))
	}
	f.Ops = append(f.Ops, x)
}

// writeContents writes what the memories hold.
func (d *description) writeContents(ctx context.Context, w *graphfile.Writer) error {
	for i, slice := range d.slices {
		err := d.stream.eachBytes(ctx, slice, func(at uint64, b []byte) error {
			for len(b) > 0 {
				n := min(len(b), graphfile.BlockSize)
				if err := w.Block(graphfile.Block{Memory: i, Offset: at, Data: b[:n]}); err != nil {
					return err
				}
				at += uint64(n)
				b = b[n:]
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("memory %d of %d: %w", i, len(d.slices), err)
		}
	}
	return nil
}

// eachBytes calls f with the bytes of a slice, in pieces, without the stream's lock.
func (s *Stream) eachBytes(ctx context.Context, slice pool.Slice, f func(at uint64, b []byte) error) error {
	var buffer []byte
	for at, size := uint64(0), slice.Size(); at < size; {
		n := min(size-at, maxStaging)
		if buffer == nil {
			buffer = make([]byte, n)
		}
		if err := s.download(ctx, slice, at, buffer[:n]); err != nil {
			return err
		}
		if err := f(at, buffer[:n]); err != nil {
			return err
		}
		at += n
	}
	return nil
}

// download copies bytes of a slice to the host, after everything launched before. Unlike
// a read of a tensor it goes through a copy on the device always: the slice may belong to
// another stream, whose timeline knows nothing of this one's replays.
func (s *Stream) download(ctx context.Context, slice pool.Slice, offset uint64, host []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.idle("read"); err != nil {
		return err
	}
	n := uint64(len(host))
	staging, err := s.pools.AllocRole(n, vk.ReadbackMemory)
	if err != nil {
		return fmt.Errorf("staging memory: %w", err)
	}
	defer staging.Release()
	if err := s.transfer(transferEnd{slice, offset}, transferEnd{staging, 0}, n); err != nil {
		return err
	}
	if err := s.flush(); err != nil {
		return err
	}
	if err := s.wait(ctx, s.timeline.Submitted()); err != nil {
		return err
	}
	if err := s.open("read"); err != nil { // others had the lock meanwhile
		return err
	}
	whole := view{stream: s, element: number(shaders.Uint32), layout: shaders.Contiguous(int(n / wordSize))}
	return gather(&whole, staging, 0, n, 0, host)
}
