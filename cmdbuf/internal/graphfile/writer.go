package graphfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"

	"vkcompute/shaders"
)

// Writer writes a file. It belongs to one goroutine.
type Writer struct {
	w    io.Writer
	at   uint64 // bytes written
	file *File
	body []byte
	err  error
}

// NewWriter writes a file to w, in one write for each section.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Graph writes everything but the contents. What it is given must be consistent, as the
// package documentation says; that is not checked here, but when the file is read.
func (w *Writer) Graph(f *File) error {
	w.file = f
	w.body = append(w.body[:0], magic...)
	w.u32(Version)
	w.u32(crc32.Checksum(w.body, castagnoli))
	w.write(w.body)

	w.begin()
	w.str(f.Device)
	w.str(f.Comment)
	w.end(secNote)

	w.begin()
	w.u32(uint32(len(f.Modules)))
	for _, words := range f.Modules {
		w.u32(uint32(len(words)))
		for _, v := range words {
			w.u32(v)
		}
	}
	w.end(secCode)

	w.begin()
	w.u32(uint32(len(f.Kernels)))
	for i := range f.Kernels {
		k := &f.Kernels[i]
		w.str(k.Name)
		w.str(k.Entry)
		w.u32(uint32(k.Module))
		w.u8(uint8(k.Grid))
		w.u32(uint32(len(k.Params)))
		for _, p := range k.Params {
			w.str(p.Name)
			w.u8(uint8(p.Kind))
			w.u8(uint8(p.DType))
			w.u8(uint8(p.Access))
			w.u32(p.Binding)
		}
	}
	w.end(secKern)

	w.begin()
	w.u32(uint32(len(f.Memories)))
	for _, m := range f.Memories {
		w.u64(m.Bytes)
		if m.Contents {
			w.u8(1)
		} else {
			w.u8(0)
		}
	}
	w.end(secMemo)

	w.begin()
	w.u32(uint32(len(f.Layouts)))
	for i := range f.Layouts {
		w.layout(&f.Layouts[i])
	}
	w.end(secLayo)

	w.begin()
	views := slices.SortedFunc(slices.Values(f.Views), func(a, b View) int { return strings.Compare(a.Name, b.Name) })
	w.u32(uint32(len(views)))
	for _, v := range views {
		w.str(v.Name)
		w.u8(uint8(v.DType))
		w.u32(uint32(v.Memory))
		w.u32(uint32(v.Layout))
	}
	w.end(secView)

	w.begin()
	w.u32(uint32(len(f.Params)))
	for _, p := range f.Params {
		w.str(p.Name)
		w.u8(uint8(p.Kind))
		w.u8(uint8(p.DType))
		if p.Kind == shaders.ScalarParam {
			w.u32(p.Bits)
		} else {
			w.u32(uint32(p.Memory))
			w.u32(uint32(p.Layout))
		}
	}
	w.end(secPara)

	w.begin()
	w.u32(uint32(len(f.Ops)))
	for i := range f.Ops {
		w.op(f, &f.Ops[i])
	}
	w.end(secOper)

	w.begin()
	w.body = append(w.body, f.Host...)
	w.end(secHost)
	return w.err
}

func (w *Writer) layout(l *shaders.Layout) {
	w.u8(uint8(l.Rank))
	w.u64(uint64(l.Offset))
	for i := range l.Rank {
		w.u64(uint64(l.Shape[i]))
		w.u64(uint64(l.Stride[i]))
	}
}

func (w *Writer) op(f *File, o *Op) {
	w.u8(uint8(o.Kind))
	switch o.Kind {
	case Launch, LaunchIndirect:
		w.u32(uint32(o.Kernel))
		for _, a := range f.Args[o.Args:][:len(f.Kernels[o.Kernel].Params)] {
			w.u8(uint8(a.Kind))
			switch a.Kind {
			case Scalar:
				w.u8(uint8(a.DType))
				w.u32(a.Bits)
			case Tensor:
				w.u8(uint8(a.DType))
				w.u32(uint32(a.Memory))
				w.u32(uint32(a.Layout))
			case Named:
				w.u32(uint32(a.Param))
			}
		}
		if o.Kind == LaunchIndirect {
			w.part(f.Ranges[o.Ranges])
		}
	case Copy:
		w.part(f.Ranges[o.Ranges])
		w.part(f.Ranges[o.Ranges+1])
		w.u64(f.Ranges[o.Ranges].Bytes)
	case Fill:
		w.part(f.Ranges[o.Ranges])
		w.u64(f.Ranges[o.Ranges].Bytes)
		w.u32(o.Value)
	case Upload:
		w.part(f.Ranges[o.Ranges])
		w.u64(f.Ranges[o.Ranges].Bytes)
	}
}

func (w *Writer) part(r Range) {
	w.u32(uint32(r.Memory))
	w.u64(r.Offset)
}

// Block writes a part of the contents. Blocks come in order: memory by memory, each from
// its first byte on, BlockSize bytes but for the last.
func (w *Writer) Block(b Block) error {
	if w.err == nil && w.file == nil {
		w.err = errors.New("graph file: contents before the graph")
	}
	w.begin()
	w.u32(uint32(b.Memory))
	w.u64(b.Offset)
	w.body = append(w.body, b.Data...)
	w.end(secInit)
	return w.err
}

// Close writes the end of the file. It does not close the writer underneath.
func (w *Writer) Close() error {
	at := w.at
	w.begin()
	w.u64(at)
	w.end(secDone)
	return w.err
}

// begin leaves room for the head of a section.
func (w *Writer) begin() { w.body = append(w.body[:0], make([]byte, sectionHead)...) }

// end writes the section.
func (w *Writer) end(name string) {
	copy(w.body, name)
	binary.LittleEndian.PutUint64(w.body[4:], uint64(len(w.body)-sectionHead))
	binary.LittleEndian.PutUint32(w.body[12:], crc32.Checksum(w.body[:12], castagnoli))
	w.u32(crc32.Checksum(w.body[sectionHead:], castagnoli))
	w.write(w.body)
}

func (w *Writer) write(b []byte) {
	if w.err != nil {
		return
	}
	n, err := w.w.Write(b)
	w.at += uint64(n)
	if err != nil {
		w.err = fmt.Errorf("graph file: writing at byte %d: %w", w.at, err)
	}
}

func (w *Writer) u8(v uint8)   { w.body = append(w.body, v) }
func (w *Writer) u32(v uint32) { w.body = binary.LittleEndian.AppendUint32(w.body, v) }
func (w *Writer) u64(v uint64) { w.body = binary.LittleEndian.AppendUint64(w.body, v) }

func (w *Writer) str(s string) {
	w.u32(uint32(len(s)))
	w.body = append(w.body, s...)
}
