package graphfile_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"vkcompute/cmdbuf/internal/graphfile"
	"vkcompute/cmdbuf/internal/graphfile/graphfiletest"
	"vkcompute/shaders"
)

// contents are what the memories that have any hold.
type contents [][]byte

// encode writes a file.
func encode(f *graphfile.File, c contents) ([]byte, error) {
	var b bytes.Buffer
	w := graphfile.NewWriter(&b)
	err := w.Graph(f)
	for m := range c {
		for at := 0; at < len(c[m]); at += graphfile.BlockSize {
			end := min(len(c[m]), at+graphfile.BlockSize)
			err = errors.Join(err, w.Block(graphfile.Block{Memory: m, Offset: uint64(at), Data: c[m][at:end]}))
		}
	}
	err = errors.Join(err, w.Close())
	return b.Bytes(), err
}

// decode reads a file to its end.
func decode(r io.Reader) (*graphfile.File, contents, error) {
	d := graphfile.NewReader(r)
	f, err := d.Graph()
	if err != nil {
		return nil, nil, err
	}
	c := make(contents, len(f.Memories))
	for {
		b, err := d.Next()
		if err == io.EOF {
			return f, c, nil
		}
		if err != nil {
			return nil, nil, err
		}
		c[b.Memory] = append(c[b.Memory], b.Data...)
	}
}

// sample has something of everything.
func sample() (*graphfile.File, contents) {
	f := &graphfile.File{
		Device: "a device", Comment: "ein Kommentar, größer",
		Modules: [][]uint32{{0x07230203, 1, 2, 3}, {}},
		Kernels: []graphfile.Kernel{
			{Name: "add", Entry: "main", Module: 0, Grid: shaders.FoldedGrid, Params: []shaders.Param{
				{Name: "a", DType: shaders.Float32, Access: shaders.Read, Binding: 1},
				{Name: "scale", Kind: shaders.ScalarParam, DType: shaders.AnyDType},
				{Name: "out", DType: shaders.Float32, Access: shaders.Write, Binding: 2},
			}},
			{Name: "nop", Entry: "other", Module: 1, Params: []shaders.Param{}},
		},
		Memories: []graphfile.Memory{{Bytes: 64, Contents: true}, {Bytes: 0, Contents: true}, {Bytes: 128}, {Bytes: 12, Contents: true}},
		Layouts: []shaders.Layout{
			shaders.Contiguous(2, 8),
			{Rank: 1, Offset: 15, Shape: [8]int{16}, Stride: [8]int{-1}},
			shaders.Contiguous(),
			shaders.Contiguous(0),
		},
		Views: []graphfile.View{{Name: "in", DType: shaders.Float32, Memory: 0, Layout: 1}, {Name: "out", DType: shaders.Int32, Memory: 2, Layout: 0}},
		Params: []graphfile.Param{
			{Name: "t", Kind: shaders.TensorParam, DType: shaders.Float32, Memory: 2, Layout: 0},
			{Name: "s", Kind: shaders.ScalarParam, DType: shaders.Float32, Bits: math.Float32bits(1.5)},
		},
		Args: []graphfile.Arg{
			{Kind: graphfile.Tensor, DType: shaders.Float32, Memory: 0, Layout: 1},
			{Kind: graphfile.Scalar, DType: shaders.Float32, Bits: 7},
			{Kind: graphfile.Named, DType: shaders.Float32, Param: 0},
			{Kind: graphfile.Tensor, DType: shaders.Float32, Memory: 1, Layout: 3},
			{Kind: graphfile.Named, DType: shaders.Float32, Param: 1},
			{Kind: graphfile.Tensor, DType: shaders.Float32, Memory: 0, Layout: 2},
		},
		Ranges: []graphfile.Range{
			{Memory: 3, Offset: 0, Bytes: 12},
			{Memory: 0, Offset: 0, Bytes: 32}, {Memory: 0, Offset: 32, Bytes: 32},
			{Memory: 2, Offset: 4, Bytes: 8},
			{Memory: 2, Offset: 0, Bytes: 8},
			{Memory: 0, Offset: 60, Bytes: 4},
		},
		Ops: []graphfile.Op{
			{Kind: graphfile.Launch, Kernel: 0},
			{Kind: graphfile.LaunchIndirect, Kernel: 0, Args: 3, Ranges: 0},
			{Kind: graphfile.Copy, Args: 6, Ranges: 1},
			{Kind: graphfile.Fill, Args: 6, Ranges: 3, Value: 0xdeadbeef},
			{Kind: graphfile.Upload, Args: 6, Ranges: 4},
			{Kind: graphfile.Upload, Args: 6, Ranges: 5, Host: 8},
			{Kind: graphfile.Launch, Kernel: 1, Args: 6, Ranges: 6, Host: 12},
		},
		Host: []byte("twelve bytes"),
	}
	c := contents{bytes.Repeat([]byte{1, 2, 3, 4}, 16), nil, nil, []byte("other twelve")}
	return f, c
}

var ignoreOffsets = cmp.Options{cmpopts.IgnoreFields(graphfile.Op{}, "At"), cmpopts.IgnoreFields(graphfile.Kernel{}, "At"), cmpopts.EquateEmpty()}

func TestWhatIsWrittenIsRead(t *testing.T) {
	f, c := sample()
	b, err := encode(f, c)
	require.NoError(t, err)
	got, gotContents, err := decode(iotest.OneByteReader(bytes.NewReader(b)))
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(f, got, ignoreOffsets))
	require.Empty(t, cmp.Diff(c, gotContents, cmpopts.EquateEmpty()))
	again, err := encode(got, gotContents)
	require.NoError(t, err)
	require.Equal(t, b, again)
}

// The description of the format and the writer agree: sections split and sealed by the
// former are the same file.
func TestTheFormatIsTheOneDescribed(t *testing.T) {
	f, c := sample()
	b, err := encode(f, c)
	require.NoError(t, err)
	list, err := graphfiletest.Split(b)
	require.NoError(t, err)
	require.Equal(t, b, graphfiletest.Seal(list))
	for i, name := range graphfiletest.Names {
		require.Equal(t, name, list[i].Name)
	}
	require.Len(t, list, len(graphfiletest.Names)+2, "and the contents of two memories that have bytes")
}

// Contents longer than a block, and a memory of no bytes that has contents, at the end.
func TestLongContents(t *testing.T) {
	const n = 2*graphfile.BlockSize + 400
	long := make([]byte, n)
	for i := range long {
		long[i] = byte(i * 7 >> 3)
	}
	f := &graphfile.File{Memories: []graphfile.Memory{{Contents: true}, {Bytes: 8}, {Bytes: n, Contents: true}, {Contents: true}}}
	b, err := encode(f, contents{nil, nil, long, nil})
	require.NoError(t, err)
	got, c, err := decode(bytes.NewReader(b))
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(f, got, ignoreOffsets))
	require.True(t, bytes.Equal(long, c[2]))

	list, err := graphfiletest.Split(b)
	require.NoError(t, err)
	last := len(list) - 1
	for name, change := range map[string]func() []graphfiletest.Section{
		"blocks swapped": func() []graphfiletest.Section {
			l := append([]graphfiletest.Section(nil), list...)
			l[last], l[last-1] = l[last-1], l[last]
			return l
		},
		"a block missing":      func() []graphfiletest.Section { return list[:last] },
		"a block twice":        func() []graphfiletest.Section { return append(list[:last:last], list[last], list[last]) },
		"another memory":       func() []graphfiletest.Section { return patch(list, last, 0, 1) },
		"another offset":       func() []graphfiletest.Section { return patch(list, last, 4, 1) },
		"a block of half size": func() []graphfiletest.Section { return resize(list, last-1, 12+graphfile.BlockSize/2) },
		"a block too large":    func() []graphfiletest.Section { return resize(list, last-1, 12+graphfile.BlockSize+4) },
	} {
		_, _, err := decode(bytes.NewReader(graphfiletest.Seal(change())))
		requireFileError(t, err, name)
	}
}

// patch changes one byte of a section.
func patch(list []graphfiletest.Section, section, at int, value byte) []graphfiletest.Section {
	l := append([]graphfiletest.Section(nil), list...)
	l[section].Body = bytes.Clone(l[section].Body)
	l[section].Body[at] = value
	return l
}

func resize(list []graphfiletest.Section, section, size int) []graphfiletest.Section {
	l := append([]graphfiletest.Section(nil), list...)
	l[section].Body = append(bytes.Clone(l[section].Body), make([]byte, 16)...)[:size]
	return l
}

func requireFileError(t *testing.T, err error, what string, args ...any) *graphfile.Error {
	t.Helper()
	var fe *graphfile.Error
	require.ErrorAs(t, err, &fe, append([]any{what}, args...)...)
	require.NotEmpty(t, fe.Want)
	require.NotEmpty(t, fe.Found)
	return fe
}

// A file cut off anywhere is an error that names the end.
func TestTruncatedAnywhere(t *testing.T) {
	f, c := sample()
	b, err := encode(f, c)
	require.NoError(t, err)
	for n := range b {
		_, _, err := decode(bytes.NewReader(b[:n]))
		fe := requireFileError(t, err, "cut off at byte", n)
		require.EqualValues(t, n, fe.Offset)
		require.Contains(t, fe.Found, "end of the file")
	}
	// What follows a file is not looked at.
	_, _, err = decode(io.MultiReader(bytes.NewReader(b), iotest.ErrReader(errors.New("read on"))))
	require.NoError(t, err)
}

// Any bit of the file that flips is noticed.
func TestEveryBitCounts(t *testing.T) {
	f, c := sample()
	b, err := encode(f, c)
	require.NoError(t, err)
	for i := range b {
		for bit := range 8 {
			d := bytes.Clone(b)
			d[i] ^= 1 << bit
			_, _, err := decode(bytes.NewReader(d))
			fe := requireFileError(t, err, fmt.Sprintf("byte %d, bit %d", i, bit))
			require.LessOrEqual(t, fe.Offset, int64(len(b)))
		}
	}
}

func TestErrorsOfReaderAndWriterPass(t *testing.T) {
	f, c := sample()
	b, err := encode(f, c)
	require.NoError(t, err)
	broken := errors.New("broken")
	for _, n := range []int{0, 20, 100, len(b) - 1} {
		_, _, err := decode(io.MultiReader(bytes.NewReader(b[:n]), iotest.ErrReader(broken)))
		require.ErrorIs(t, err, broken)
	}
	for n := range 12 {
		w := graphfile.NewWriter(&failing{after: n, err: broken})
		err := errors.Join(w.Graph(f), w.Block(graphfile.Block{Data: c[0]}), w.Block(graphfile.Block{Memory: 3, Data: c[3]}), w.Close())
		require.ErrorIs(t, err, broken, n)
	}
	_, err = graphfile.NewReader(bytes.NewReader(b)).Next()
	require.Error(t, err)
	require.Error(t, graphfile.NewWriter(io.Discard).Block(graphfile.Block{}))
}

type failing struct {
	after int
	err   error
}

func (w *failing) Write(b []byte) (int, error) {
	if w.after--; w.after < 0 {
		return 0, w.err
	}
	return len(b), nil
}

// Behind good checksums, what contradicts itself is found, at its place.
func TestInconsistentFiles(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(f *graphfile.File)
		section string
		want    string
	}{
		"a module that is not there":     {func(f *graphfile.File) { f.Kernels[1].Module = 2 }, "kern", "one of 2"},
		"a grid mode that is none":       {func(f *graphfile.File) { f.Kernels[0].Grid = 2 }, "kern", "grid mode"},
		"a kind that is none":            {func(f *graphfile.File) { f.Kernels[0].Params[0].Kind = 2 }, "kern", "kind"},
		"an access that is none":         {func(f *graphfile.File) { f.Kernels[0].Params[0].Access = 4 }, "kern", "access"},
		"an element type that is none":   {func(f *graphfile.File) { f.Kernels[0].Params[0].DType = 9 }, "kern", "element type"},
		"a memory of an odd size":        {func(f *graphfile.File) { f.Memories[2].Bytes = 130 }, "memo", "multiple of 4"},
		"a memory too large":             {func(f *graphfile.File) { f.Memories[2].Bytes = 1 << 40 }, "memo", "at most"},
		"a negative extent":              {func(f *graphfile.File) { f.Layouts[0].Shape[1] = -8 }, "layo", "layout"},
		"a layout that begins below 0":   {func(f *graphfile.File) { f.Layouts[1].Offset = 14 }, "layo", "layout"},
		"a layout outside of its memory": {func(f *graphfile.File) { f.Args[0].Memory = 3 }, "oper", "inside the 3 elements"},
		"two views of one name":          {func(f *graphfile.File) { f.Views[1].Name = "in" }, "view", "order of their names"},
		"a view of any type":             {func(f *graphfile.File) { f.Views[1].DType = shaders.AnyDType }, "view", "element type"},
		"a view outside of its memory":   {func(f *graphfile.File) { f.Views[1].Memory = 1 }, "view", "inside the 0 elements"},
		"two parameters of one name":     {func(f *graphfile.File) { f.Params[1].Name = "t" }, "para", "no other"},
		"a parameter without a name":     {func(f *graphfile.File) { f.Params[1].Name = "" }, "para", "not none"},
		"a parameter's memory":           {func(f *graphfile.File) { f.Params[0].Memory = 4 }, "para", "one of 4"},
		"a scalar for a tensor":          {func(f *graphfile.File) { f.Args[0].Kind = graphfile.Scalar }, "oper", "a tensor for parameter"},
		"a tensor for a scalar":          {func(f *graphfile.File) { f.Args[1].Kind = graphfile.Tensor }, "oper", "a scalar for parameter"},
		"a named tensor for a scalar":    {func(f *graphfile.File) { f.Args[1].Kind = graphfile.Named }, "oper", "a scalar for parameter"},
		"a parameter that is not there":  {func(f *graphfile.File) { f.Args[4].Param = 2 }, "oper", "one of 2"},
		"an argument of no kind":         {func(f *graphfile.File) { f.Args[4].Kind = 3 }, "oper", "kind of an argument"},
		"a grid outside of its memory":   {func(f *graphfile.File) { f.Ranges[0].Offset = 4 }, "oper", "part of the 12 bytes"},
		"a copy onto itself":             {func(f *graphfile.File) { f.Ranges[2].Offset = 28 }, "oper", "do not overlap"},
		"a copy outside of its memory":   {func(f *graphfile.File) { f.Ranges[1].Bytes = 36 }, "oper", "part of the 64 bytes"},
		"a copy from outside":            {func(f *graphfile.File) { f.Ranges[1].Memory = 3 }, "oper", "part of the 12 bytes"},
		"a copy of no bytes":             {func(f *graphfile.File) { f.Ranges[1].Bytes = 0 }, "oper", "not 0"},
		"a fill of odd bytes":            {func(f *graphfile.File) { f.Ranges[3].Bytes = 7 }, "oper", "multiple of 4"},
		"a fill at an odd place":         {func(f *graphfile.File) { f.Ranges[3].Offset = 5 }, "oper", "multiple of 4"},
		"a sum of offsets that wraps":    {func(f *graphfile.File) { f.Ranges[3].Offset = math.MaxUint64 - 3 }, "oper", "part of the 128 bytes"},
		"a length that wraps":            {func(f *graphfile.File) { f.Ranges[3].Bytes = math.MaxUint64 - 3 }, "oper", "part of the 128 bytes"},
		"too few host bytes":             {func(f *graphfile.File) { f.Host = f.Host[:11] }, "host", "12 bytes"},
		"too many host bytes":            {func(f *graphfile.File) { f.Host = append(bytes.Clone(f.Host), 0) }, "host", "12 bytes"},
		"nothing wrong":                  {func(*graphfile.File) {}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f, content := sample()
			c.change(f)
			b, err := encode(f, content)
			require.NoError(t, err)
			_, _, err = decode(bytes.NewReader(b))
			if c.section == "" {
				require.NoError(t, err)
				return
			}
			fe := requireFileError(t, err, name)
			require.Equal(t, c.section, fe.Section)
			require.Contains(t, fe.Error(), c.want)
			list, err := graphfiletest.Split(b)
			require.NoError(t, err)
			for _, s := range list {
				if s.Name == c.section {
					require.GreaterOrEqual(t, fe.Offset, int64(s.At))
					require.LessOrEqual(t, fe.Offset, int64(s.At+len(s.Body)))
				}
			}
		})
	}
}

// What the writer cannot even write.
func TestInconsistentBytes(t *testing.T) {
	f, c := sample()
	b, err := encode(f, c)
	require.NoError(t, err)
	list, err := graphfiletest.Split(b)
	require.NoError(t, err)
	last := len(list[7].Body) - 5 // of the last operation
	for name, c := range map[string]struct {
		section, at int
		value       byte
		want        string
	}{
		"a rank too large":           {4, 4, 9, "a rank, 0 to 8"},
		"a kernel that is not there": {7, last + 1, 2, "a kernel, one of 2"},
		"an operation of no kind":    {7, last, 5, "kind of an operation"},
		"contents or not":            {3, 4 + 8, 2, "whether contents follow"},
	} {
		_, _, err := decode(bytes.NewReader(graphfiletest.Seal(patch(list, c.section, c.at, c.value))))
		fe := requireFileError(t, err, name)
		require.EqualValues(t, list[c.section].At+c.at, fe.Offset, name)
		require.Contains(t, fe.Want, c.want)
	}
}

// Sections of a wrong version, order, length and number.
func TestWrongSections(t *testing.T) {
	f, c := sample()
	b, err := encode(f, c)
	require.NoError(t, err)
	list, err := graphfiletest.Split(b)
	require.NoError(t, err)
	for i := range list {
		_, _, err := decode(bytes.NewReader(graphfiletest.Seal(append(list[:i:i], list[i+1:]...))))
		requireFileError(t, err, "without section", list[i].Name)
		_, _, err = decode(bytes.NewReader(graphfiletest.Seal(append(list[:i:i], list[max(i-1, 0):]...))))
		if i > 0 {
			requireFileError(t, err, "with a section twice", list[i-1].Name)
		}
		_, _, err = decode(bytes.NewReader(graphfiletest.Seal(resize(list, i, len(list[i].Body)+1))))
		fe := requireFileError(t, err, "with a byte more in", list[i].Name)
		require.Equal(t, list[i].Name, fe.Section)
		if n := len(list[i].Body); n > 0 {
			_, _, err = decode(bytes.NewReader(graphfiletest.Seal(resize(list, i, n-1))))
			fe = requireFileError(t, err, "with a byte less in", list[i].Name)
			require.Equal(t, list[i].Name, fe.Section)
		}
	}
	other := graphfiletest.Seal(nil)
	other[8] = 2
	copy(other[12:], binary.LittleEndian.AppendUint32(nil, crc(other[:12])))
	_, _, err = decode(bytes.NewReader(other))
	require.ErrorContains(t, err, "version 2")
	_, _, err = decode(bytes.NewReader([]byte("a text, not a graph")))
	require.ErrorContains(t, err, "as every saved graph begins")
}

// Numbers that a file spells without having the bytes make nobody allocate them.
func TestHostileNumbersCostNothing(t *testing.T) {
	f, c := sample()
	b, err := encode(f, c)
	require.NoError(t, err)
	list, err := graphfiletest.Split(b)
	require.NoError(t, err)
	files := map[string][]byte{}
	for i, s := range list {
		for at := 0; at+4 <= len(s.Body); at++ {
			l := patch(list, i, at, 0xff)
			copy(l[i].Body[at:], "\xff\xff\xff\x7f")
			files[fmt.Sprintf("%s at %d", s.Name, at)] = graphfiletest.Seal(l)
		}
		// A head whose length goes far beyond the file, and whose checksum is right.
		d := bytes.Clone(b)
		head := d[s.At-16:]
		binary.LittleEndian.PutUint64(head[4:], 1<<62)
		binary.LittleEndian.PutUint32(head[12:], crc(head[:12]))
		files[s.Name+"'s length"] = d
	}
	for name, b := range files {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, _ = decode(bytes.NewReader(b)) // some numbers may be anything
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(256<<10+64*len(b)), name)
	}
}

// Files of any shape are read as they were written.
func TestAnyFile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, c := draw(t)
		b, err := encode(f, c)
		if err != nil {
			t.Fatal(err)
		}
		got, gotContents, err := decode(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(f, got, ignoreOffsets); d != "" {
			t.Fatal(d)
		}
		if d := cmp.Diff(c, gotContents, cmpopts.EquateEmpty()); d != "" {
			t.Fatal(d)
		}
	})
}

func draw(t *rapid.T) (*graphfile.File, contents) {
	name := rapid.StringN(0, 6, 20)
	dtype := rapid.Map(rapid.IntRange(1, 3), func(i int) shaders.DType { return shaders.DType(i) })
	f := &graphfile.File{Device: name.Draw(t, "device"), Comment: name.Draw(t, "comment")}
	for range rapid.IntRange(1, 3).Draw(t, "modules") {
		f.Modules = append(f.Modules, rapid.SliceOfN(rapid.Uint32(), 0, 5).Draw(t, "words"))
	}
	for range rapid.IntRange(1, 3).Draw(t, "kernels") {
		k := graphfile.Kernel{Name: name.Draw(t, "kernel"), Entry: name.Draw(t, "entry"), Module: rapid.IntRange(0, len(f.Modules)-1).Draw(t, "module"), Grid: shaders.GridMode(rapid.IntRange(0, 1).Draw(t, "grid"))}
		for range rapid.IntRange(0, 3).Draw(t, "params") {
			k.Params = append(k.Params, shaders.Param{Name: name.Draw(t, "param"), Kind: shaders.ParamKind(rapid.IntRange(0, 1).Draw(t, "kind")),
				DType: shaders.DType(rapid.IntRange(0, 3).Draw(t, "dtype")), Access: shaders.Access(rapid.IntRange(0, 3).Draw(t, "access")), Binding: rapid.Uint32().Draw(t, "binding")})
		}
		f.Kernels = append(f.Kernels, k)
	}
	var c contents
	for range rapid.IntRange(1, 4).Draw(t, "memories") {
		m := graphfile.Memory{Bytes: 4 * rapid.Uint64Range(4, 20).Draw(t, "elements"), Contents: rapid.Bool().Draw(t, "contents")}
		f.Memories = append(f.Memories, m)
		var b []byte
		if m.Contents {
			b = rapid.SliceOfN(rapid.Byte(), int(m.Bytes), int(m.Bytes)).Draw(t, "bytes")
		}
		c = append(c, b)
	}
	memory := rapid.IntRange(0, len(f.Memories)-1)
	for range rapid.IntRange(1, 3).Draw(t, "layouts") { // inside four elements, so inside any memory
		l := shaders.Contiguous(rapid.SampledFrom([][]int{{}, {4}, {2, 2}, {1, 3, 1}, {0, 7}}).Draw(t, "shape")...)
		f.Layouts = append(f.Layouts, l)
	}
	layout := rapid.IntRange(0, len(f.Layouts)-1)
	for _, n := range []string{"a", "b", "c"}[:rapid.IntRange(0, 3).Draw(t, "views")] {
		f.Views = append(f.Views, graphfile.View{Name: n, DType: dtype.Draw(t, "dtype"), Memory: memory.Draw(t, "memory"), Layout: layout.Draw(t, "layout")})
	}
	for _, n := range []string{"p", "q"}[:rapid.IntRange(0, 2).Draw(t, "parameters")] {
		p := graphfile.Param{Name: n, Kind: shaders.ParamKind(rapid.IntRange(0, 1).Draw(t, "kind")), DType: dtype.Draw(t, "dtype")}
		if p.Kind == shaders.ScalarParam {
			p.Bits = rapid.Uint32().Draw(t, "bits")
		} else {
			p.Memory, p.Layout = memory.Draw(t, "memory"), layout.Draw(t, "layout")
		}
		f.Params = append(f.Params, p)
	}
	arg := func(p *shaders.Param) graphfile.Arg {
		for i := range f.Params {
			if f.Params[i].Kind == p.Kind && rapid.Bool().Draw(t, "named") {
				return graphfile.Arg{Kind: graphfile.Named, Param: int32(i), DType: f.Params[i].DType}
			}
		}
		if p.Kind == shaders.ScalarParam {
			return graphfile.Arg{Kind: graphfile.Scalar, DType: dtype.Draw(t, "dtype"), Bits: rapid.Uint32().Draw(t, "bits")}
		}
		return graphfile.Arg{Kind: graphfile.Tensor, DType: dtype.Draw(t, "dtype"), Memory: int32(memory.Draw(t, "memory")), Layout: int32(layout.Draw(t, "layout"))}
	}
	part := func(m int, elements uint64) graphfile.Range {
		return graphfile.Range{Memory: int32(m), Offset: 4 * rapid.Uint64Range(0, f.Memories[m].Bytes/4-elements).Draw(t, "offset"), Bytes: 4 * elements}
	}
	for range rapid.IntRange(0, 8).Draw(t, "operations") {
		o := graphfile.Op{Kind: graphfile.OpKind(rapid.IntRange(0, 4).Draw(t, "operation")), Args: int32(len(f.Args)), Ranges: int32(len(f.Ranges)), Host: len(f.Host)}
		elements := rapid.Uint64Range(1, 3).Draw(t, "elements")
		m := memory.Draw(t, "memory")
		switch o.Kind {
		case graphfile.Launch, graphfile.LaunchIndirect:
			o.Kernel = int32(rapid.IntRange(0, len(f.Kernels)-1).Draw(t, "kernel"))
			for i := range f.Kernels[o.Kernel].Params {
				f.Args = append(f.Args, arg(&f.Kernels[o.Kernel].Params[i]))
			}
			if o.Kind == graphfile.LaunchIndirect {
				f.Ranges = append(f.Ranges, part(m, 3))
			}
		case graphfile.Copy:
			if len(f.Memories) == 1 {
				continue
			}
			f.Ranges = append(f.Ranges, part(m, elements), part((m+1)%len(f.Memories), elements))
		case graphfile.Fill:
			o.Value = rapid.Uint32().Draw(t, "value")
			f.Ranges = append(f.Ranges, part(m, elements))
		case graphfile.Upload:
			f.Ranges = append(f.Ranges, part(m, elements))
			f.Host = append(f.Host, rapid.SliceOfN(rapid.Byte(), int(4*elements), int(4*elements)).Draw(t, "host")...)
		}
		f.Ops = append(f.Ops, o)
	}
	return f, c
}
