package cmdbuf_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vkcompute/cmdbuf"
	"vkcompute/cmdbuf/internal/graphfile"
	"vkcompute/cmdbuf/internal/graphfile/graphfiletest"
	"vkcompute/internal/testenv"
	"vkcompute/pool"
	"vkcompute/shaders"
	"vkcompute/vk"
)

var update = flag.Bool("update", false, "write the golden files anew")

// everything is a graph with one of each thing that a file can hold, and its tensors.
type everything struct {
	graph         *cmdbuf.Graph
	x, y, z       *cmdbuf.Tensor[float32]
	index, bumped *cmdbuf.Tensor[int32]
	grid          *cmdbuf.Tensor[uint32]
	close         func()
}

func newEverything(t testing.TB, s *cmdbuf.Stream) *everything {
	t.Helper()
	e := &everything{}
	var err error
	must := func(err error) { t.Helper(); require.NoError(t, err) }
	e.x, err = cmdbuf.Upload(s, ascending(1, 12), 3, 4)
	must(err)
	e.y, err = cmdbuf.New[float32](s, 4, 3)
	must(err)
	e.z, err = cmdbuf.Upload(s, ascending(100, 12), 12)
	must(err)
	e.index, err = cmdbuf.Upload(s, []int32{5, -7, 1 << 30, 9}, 4)
	must(err)
	e.bumped, err = cmdbuf.Upload(s, []int32{0, 0, 0, 0}, 2, 2)
	must(err)
	e.grid, err = cmdbuf.Upload(s, []uint32{1, 1, 1}, 3)
	must(err)
	empty, err := cmdbuf.New[float32](s, 0)
	must(err)
	turned, err := e.x.Transpose(0, 1)
	must(err)
	middle, err := e.z.Range(0, 4, 8, 1)
	must(err)
	first, err := e.y.Reshape(12)
	must(err)
	first, err = first.Range(0, 0, 4, 1)
	must(err)
	square, err := e.index.Reshape(2, 2)
	must(err)
	e.graph, err = s.Capture(ctx, func(c *cmdbuf.Capture) error {
		tmp, err := cmdbuf.Temp[float32](c, 4, 3)
		if err != nil {
			return err
		}
		return errors.Join(
			c.Launch(shaders.Add, turned, turned, tmp),
			c.Launch(shaders.Mul, tmp, cmdbuf.Param("factor", middle4(e.z, t)), e.y),
			tmp.Close(),
			c.Launch(shaders.Add, e.x, e.x, e.x),
			c.Launch(shaders.AddInt, square, e.bumped, e.bumped),
			c.Launch(shaders.Sum, cmdbuf.Param("none", empty), middle4(e.z, t)),
			cmdbuf.WriteIn(c, middle, []float32{-1, -2, -3, -4}),
			c.Copy(first, middle),
			c.LaunchIndirect(shaders.Fill, e.grid, cmdbuf.Param("value", cmdbuf.Float32(0.5)), middle),
		)
	})
	must(err)
	e.close = func() {
		require.NoError(t, errors.Join(e.graph.Close(), e.x.Close(), e.y.Close(), e.z.Close(), e.index.Close(), e.bumped.Close(), e.grid.Close(), empty.Close()))
	}
	return e
}

// middle4 is the last element of z, as a scalar tensor.
func middle4(z *cmdbuf.Tensor[float32], t testing.TB) *cmdbuf.Tensor[float32] {
	t.Helper()
	l := shaders.Contiguous(1)
	l.Offset = 11
	v, err := z.Strided(l)
	require.NoError(t, err)
	return v
}

func (e *everything) views() map[string]cmdbuf.Arg {
	return map[string]cmdbuf.Arg{"x": e.x, "y": e.y, "z": e.z, "bumped": e.bumped}
}

func (e *everything) save(t testing.TB, o cmdbuf.SaveOptions) []byte {
	t.Helper()
	o.Views = e.views()
	var b bytes.Buffer
	require.NoError(t, e.graph.Save(ctx, &b, o))
	return b.Bytes()
}

// state reads what the graph changes.
func state(t testing.TB, x, y, z *cmdbuf.Tensor[float32], n *cmdbuf.Tensor[int32]) []float32 {
	t.Helper()
	list := append(append(read(t, x), read(t, y)...), read(t, z)...)
	for _, v := range read(t, n) {
		list = append(list, float32(v))
	}
	return list
}

func named[T cmdbuf.Element](t testing.TB, l *cmdbuf.LoadedGraph, name string) *cmdbuf.Tensor[T] {
	t.Helper()
	x, err := cmdbuf.TensorNamed[T](l, name)
	require.NoError(t, err)
	return x
}

func loadedState(t testing.TB, l *cmdbuf.LoadedGraph) []float32 {
	t.Helper()
	return state(t, named[float32](t, l, "x"), named[float32](t, l, "y"), named[float32](t, l, "z"), named[int32](t, l, "bumped"))
}

// A graph that was saved and loaded does what the first one did, on a stream that is set
// up otherwise, and says so when it is saved again.
func TestLoadedGraphsDoTheSame(t *testing.T) {
	s := newStream(t, cmdbuf.Options{})
	e := newEverything(t, s)
	require.NoError(t, e.graph.Replay())
	require.NoError(t, e.graph.Set("value", cmdbuf.Float32(0.25)))
	saved := e.save(t, cmdbuf.SaveOptions{Contents: true, Comment: "after one replay"})
	require.Equal(t, saved, e.save(t, cmdbuf.SaveOptions{Contents: true, Comment: "after one replay"}), "saving changes nothing")
	require.NoError(t, e.graph.ReplayN(2))
	want := state(t, e.x, e.y, e.z, e.bumped)
	require.Contains(t, want, float32(0.25))
	e.close()

	for name, o := range map[string]cmdbuf.Options{
		"the same":  {},
		"other":     {Pools: pool.ExclusivePages(), Order: cmdbuf.AsCalled, Sets: cmdbuf.RebuildSets, BatchLimit: 1},
		"in pieces": {MaxSubmitTime: time.Nanosecond},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := cmdbuf.NewStream(s.Device(), o)
			if errors.Is(err, vk.ErrUnsupported) {
				t.Skip(err)
			}
			require.NoError(t, err)
			l, err := cmdbuf.Load(ctx, s, bytes.NewReader(saved), cmdbuf.LoadOptions{})
			require.NoError(t, err)
			require.NoError(t, s.Validate())
			require.Equal(t, "after one replay", l.Comment)
			require.Contains(t, l.SavedOn, s.Device().Info().Name)
			require.Equal(t, []string{"bumped", "x", "y", "z"}, l.Views())
			require.NoError(t, l.ReplayN(2))
			require.Equal(t, want, loadedState(t, l))

			// The same file, but for what the memory holds now.
			views := map[string]cmdbuf.Arg{"x": named[float32](t, l, "x"), "y": named[float32](t, l, "y"), "z": named[float32](t, l, "z"), "bumped": named[int32](t, l, "bumped")}
			var again bytes.Buffer
			require.NoError(t, l.Save(ctx, &again, cmdbuf.SaveOptions{Contents: true, Comment: l.Comment, Views: views}))
			requireSameGraph(t, saved, again.Bytes())
			require.NoError(t, l.Close())
			require.NoError(t, l.Close(), "closing twice")
			require.ErrorIs(t, l.Replay(), cmdbuf.ErrClosed)
			_, err = cmdbuf.TensorAt[float32](l, 0)
			require.ErrorIs(t, err, cmdbuf.ErrClosed)
			require.NoError(t, s.Close(ctx), "nothing is left")
		})
	}
}

// requireSameGraph compares files without contents.
func requireSameGraph(t *testing.T, a, b []byte) {
	t.Helper()
	x, err := graphfiletest.Split(a)
	require.NoError(t, err)
	y, err := graphfiletest.Split(b)
	require.NoError(t, err)
	require.Len(t, y, len(x))
	for i, n := range graphfiletest.Names {
		require.Equal(t, n, x[i].Name)
		require.Equal(t, x[i].Body, y[i].Body, "section %s", n)
	}
}

// Tensors and parameters of a loaded graph can be asked for and changed.
func TestLoadedGraphsDescribeThemselves(t *testing.T) {
	s := newStream(t, cmdbuf.Options{})
	e := newEverything(t, s)
	scale := upload(t, s, []float32{3}, 1)
	require.NoError(t, e.graph.Set("factor", scale))
	require.NoError(t, e.graph.Set("none", scale), "two parameters may share what nothing writes")
	saved := e.save(t, cmdbuf.SaveOptions{})
	e.close()
	l, err := cmdbuf.Load(ctx, s, bytes.NewReader(saved), cmdbuf.LoadOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })

	_, err = cmdbuf.TensorNamed[int32](l, "x")
	require.ErrorContains(t, err, "float32")
	_, err = cmdbuf.TensorNamed[int32](l, "w")
	require.ErrorContains(t, err, "bumped")
	_, err = cmdbuf.TensorAt[int32](l, len(l.Tensors()))
	require.Error(t, err)
	_, err = cmdbuf.TensorAt[int32](l, -1)
	require.Error(t, err)

	p := l.Parameters()
	require.Len(t, p, 3)
	require.Equal(t, cmdbuf.Parameter{Name: "value", Kind: shaders.ScalarParam, DType: shaders.Float32, Value: cmdbuf.Float32(0.5), Uses: 1}, p[2])
	require.Equal(t, "factor", p[0].Name)
	require.Equal(t, shaders.TensorParam, p[0].Kind)
	require.Equal(t, 1, p[0].Layout.Len())

	sizes := map[uint64]int{}
	written := 0
	for i, info := range l.Tensors() {
		sizes[info.Bytes]++
		if info.Access&shaders.Write != 0 {
			written++
		}
		x, err := cmdbuf.TensorAt[uint32](l, i)
		require.NoError(t, err)
		require.EqualValues(t, info.Bytes, 4*x.Len())
		for _, v := range read(t, x) {
			require.Zero(t, v, "without contents all is zero")
		}
		require.NoError(t, x.Close(), "a borrowed tensor closes nothing")
	}
	require.Equal(t, map[uint64]int{48: 4, 16: 2, 12: 1, 4: 1}, sizes, "x, y, z and a temporary; index and bumped; grid; factor")
	require.Equal(t, 5, written)
	require.NoError(t, l.Replay())
	require.NoError(t, l.Set("value", cmdbuf.Float32(9)))
	require.NoError(t, l.Replay())
}

// The digest is that of what the graph writes, and of nothing else.
func TestDigest(t *testing.T) {
	s := newStream(t, cmdbuf.Options{})
	x, y := upload(t, s, ascending(1, 5000), 5000), zeros(t, s, 5000)
	g, err := s.Capture(ctx, func(c *cmdbuf.Capture) error { return c.Launch(shaders.Add, x, x, y) })
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, g.Save(ctx, &b, cmdbuf.SaveOptions{Contents: true}))
	require.NoError(t, g.Close())
	load := func() *cmdbuf.LoadedGraph {
		l, err := cmdbuf.Load(ctx, s, bytes.NewReader(b.Bytes()), cmdbuf.LoadOptions{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, l.Close()) })
		return l
	}
	digest := func(l *cmdbuf.LoadedGraph) [32]byte {
		d, err := l.Digest(ctx)
		require.NoError(t, err)
		return d
	}
	one, two := load(), load()
	before := digest(one)
	require.NoError(t, one.Replay())
	after := digest(one)
	require.NotEqual(t, before, after)
	require.NoError(t, two.ReplayN(3))
	require.Equal(t, after, digest(two))
	in, err := cmdbuf.TensorAt[float32](two, 0)
	require.NoError(t, err)
	require.NoError(t, in.Write(ascending(2, 5000)))
	require.Equal(t, after, digest(two), "an input does not count")
	require.NoError(t, two.Replay())
	require.NotEqual(t, after, digest(two))
}

// ownKernel is add.comp as a program would bring it, under another name.
func ownKernel(t testing.TB, name string) *shaders.Kernel {
	t.Helper()
	k, err := shaders.NewKernel(shaders.KernelSpec{
		Name: name, Module: shaders.Add.Module, Params: shaders.Add.Params, Grid: shaders.FoldedGrid,
		Plan: func(env shaders.Env, ops []shaders.Operand, p *shaders.Plan) error {
			return shaders.Add.Plan(env, ops, p)
		},
		Spec: shaders.Add.Spec, InPlace: shaders.Add.InPlace,
	})
	require.NoError(t, err)
	return k
}

func TestKernelsOfTheProgram(t *testing.T) {
	s := newStream(t, cmdbuf.Options{})
	x := upload(t, s, ascending(1, 9), 9)
	k := ownKernel(t, "my add")
	require.NoError(t, k.Err())
	g, err := s.Capture(ctx, func(c *cmdbuf.Capture) error { return c.Launch(k, x, x, x) })
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, g.Save(ctx, &b, cmdbuf.SaveOptions{Contents: true}))
	require.NoError(t, g.Close())
	alive := s.Stats().Pools.Total.Slices

	other, err := shaders.NewKernel(shaders.KernelSpec{Name: "my add", Module: shaders.Mul.Module, Params: k.Params, Grid: shaders.FoldedGrid,
		Plan: func(env shaders.Env, ops []shaders.Operand, p *shaders.Plan) error {
			return shaders.Mul.Plan(env, ops, p)
		},
		Spec: shaders.Mul.Spec, InPlace: shaders.Mul.InPlace,
	})
	require.NoError(t, err)
	exact, err := shaders.NewKernel(shaders.KernelSpec{Name: "my add", Module: shaders.Add.Module, Params: k.Params, Grid: shaders.ExactGrid,
		Plan: func(env shaders.Env, ops []shaders.Operand, p *shaders.Plan) error {
			return shaders.Add.Plan(env, ops, p)
		}})
	require.NoError(t, err)
	for name, c := range map[string]struct {
		o     cmdbuf.LoadOptions
		wrong string
		first float32
	}{
		"none":                     {cmdbuf.LoadOptions{}, "none of that name", 0},
		"itself":                   {cmdbuf.LoadOptions{Kernels: []*shaders.Kernel{nil, other, k}}, "", 2},
		"other code":               {cmdbuf.LoadOptions{Kernels: []*shaders.Kernel{other}}, "other SPIR-V", 0},
		"other code, if it must":   {cmdbuf.LoadOptions{Kernels: []*shaders.Kernel{other}, Match: cmdbuf.SameName}, "", 1},
		"another grid":             {cmdbuf.LoadOptions{Kernels: []*shaders.Kernel{exact}, Match: cmdbuf.SameName}, "other parameters", 0},
		"of no name, if it may be": {cmdbuf.LoadOptions{Kernels: []*shaders.Kernel{shaders.Add}, Match: cmdbuf.SameName}, "none of that name", 0},
	} {
		l, err := cmdbuf.Load(ctx, s, bytes.NewReader(b.Bytes()), c.o)
		if c.wrong != "" {
			require.ErrorIs(t, err, cmdbuf.ErrUnknownKernel, name)
			require.ErrorContains(t, err, c.wrong, name)
			continue
		}
		require.NoError(t, err, name)
		require.NoError(t, l.Replay())
		y, err := cmdbuf.TensorAt[float32](l, 0)
		require.NoError(t, err)
		require.Equal(t, c.first, read(t, y)[0], name)
		require.NoError(t, l.Close())
	}
	require.NoError(t, s.Sync(ctx))
	require.Equal(t, alive, s.Stats().Pools.Total.Slices, "what failed left nothing")
}

func TestSavingAndLoadingWhenItMayNotBe(t *testing.T) {
	s := newStream(t, cmdbuf.Options{})
	e := newEverything(t, s)
	defer e.close()
	saved := e.save(t, cmdbuf.SaveOptions{Contents: true})
	stranger := zeros(t, s, 4)
	for name, v := range map[string]cmdbuf.Arg{"a tensor it does not use": stranger, "a scalar": cmdbuf.Int32(1), "nothing": nil} {
		require.Error(t, e.graph.Save(ctx, io.Discard, cmdbuf.SaveOptions{Views: map[string]cmdbuf.Arg{"v": v}}), name)
	}
	_, err := s.Capture(ctx, func(c *cmdbuf.Capture) error {
		require.ErrorIs(t, e.graph.Save(ctx, io.Discard, cmdbuf.SaveOptions{}), cmdbuf.ErrCapturing)
		_, err := cmdbuf.Load(ctx, s, bytes.NewReader(saved), cmdbuf.LoadOptions{})
		require.ErrorIs(t, err, cmdbuf.ErrCapturing)
		return nil
	})
	require.NoError(t, err)

	over, cancel := context.WithCancel(ctx)
	cancel()
	_, err = cmdbuf.Load(over, s, bytes.NewReader(saved), cmdbuf.LoadOptions{})
	require.ErrorIs(t, err, context.Canceled)
	var limit *vk.LimitError
	_, err = cmdbuf.Load(ctx, s, bytes.NewReader(saved), cmdbuf.LoadOptions{MaxBytes: 100})
	require.ErrorAs(t, err, &limit)
	require.EqualValues(t, 100, limit.Max)
	require.ErrorIs(t, e.graph.Save(ctx, brokenWriter{}, cmdbuf.SaveOptions{Contents: true}), errBroken)
	_, err = cmdbuf.Load(ctx, s, io.MultiReader(bytes.NewReader(saved[:len(saved)/2]), brokenReader{}), cmdbuf.LoadOptions{})
	require.ErrorIs(t, err, errBroken)
	require.NoError(t, s.Validate())

	// Other streams' graphs can be closed while they are saved; what was begun is whole.
	again := newEverything(t, s)
	w := &closingWriter{close: again.close}
	require.NoError(t, again.graph.Save(ctx, w, cmdbuf.SaveOptions{Contents: true}))
	l, err := cmdbuf.Load(ctx, s, &w.b, cmdbuf.LoadOptions{})
	require.NoError(t, err)
	require.NoError(t, l.Close())
	require.ErrorIs(t, again.graph.Save(ctx, io.Discard, cmdbuf.SaveOptions{}), cmdbuf.ErrClosed)
}

var errBroken = errors.New("broken")

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errBroken }

// closingWriter does something at the first write.
type closingWriter struct {
	b     bytes.Buffer
	close func()
}

func (w *closingWriter) Write(p []byte) (int, error) {
	if w.close != nil {
		w.close()
		w.close = nil
	}
	return w.b.Write(p)
}

// A tensor of another stream that a graph uses is saved as the graph left it.
func TestSavingTensorsOfOtherStreams(t *testing.T) {
	a := newStream(t, cmdbuf.Options{})
	b, err := cmdbuf.NewStream(a.Device(), cmdbuf.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close(ctx)) })
	x, one := upload(t, a, []float32{0}, 1), upload(t, b, []float32{1}, 1)
	e, err := a.Record()
	require.NoError(t, err)
	require.NoError(t, b.WaitFor(e))
	g, err := b.Capture(ctx, func(c *cmdbuf.Capture) error { return c.Launch(shaders.Add, x, one, x) })
	require.NoError(t, err)
	require.NoError(t, g.ReplayN(7))
	var f bytes.Buffer
	require.NoError(t, g.Save(ctx, &f, cmdbuf.SaveOptions{Contents: true, Views: map[string]cmdbuf.Arg{"x": x}}))
	l, err := cmdbuf.Load(ctx, a, &f, cmdbuf.LoadOptions{})
	require.NoError(t, err)
	require.NoError(t, l.Replay())
	require.Equal(t, []float32{8}, read(t, named[float32](t, l, "x")))
	require.NoError(t, errors.Join(l.Close(), g.Close()))
	e, err = b.Record()
	require.NoError(t, err)
	require.NoError(t, a.WaitFor(e))
}

// A damaged file is an error wherever it is cut and whatever byte changes, and leaves
// nothing behind.
func TestDamagedGraphFiles(t *testing.T) {
	s := newStream(t, cmdbuf.Options{})
	x, err := cmdbuf.Upload(s, ascending(1, 8), 8)
	require.NoError(t, err)
	g, err := s.Capture(ctx, func(c *cmdbuf.Capture) error {
		return errors.Join(c.Launch(shaders.Nop), c.Launch(shaders.Fill, cmdbuf.Param("v", cmdbuf.Float32(1)), x))
	})
	require.NoError(t, err)
	var f bytes.Buffer
	require.NoError(t, g.Save(ctx, &f, cmdbuf.SaveOptions{Contents: true}))
	b := f.Bytes()
	require.NoError(t, errors.Join(g.Close(), x.Close()))
	require.NoError(t, s.Sync(ctx))
	alive := s.Stats().Pools.Total.Slices - s.Stats().Cache.UnpinnedEntries
	refused := func(b []byte, what string, at int) {
		t.Helper()
		_, err := cmdbuf.Load(ctx, s, bytes.NewReader(b), cmdbuf.LoadOptions{})
		var fe *cmdbuf.FileError
		if !errors.As(err, &fe) {
			t.Fatalf("%s %d of %d: want a FileError, found %v", what, at, len(b), err)
		}
		require.NotEmpty(t, fe.Want)
	}
	step := 1
	if testing.Short() {
		step = 3
	}
	for i := 0; i < len(b); i += step {
		refused(b[:i], "cut at byte", i)
		d := bytes.Clone(b)
		d[i] ^= 1 << (i % 8)
		refused(d, "changed byte", i)
	}
	require.NoError(t, s.Validate())
	require.NoError(t, s.Sync(ctx))
	require.Equal(t, alive, s.Stats().Pools.Total.Slices-s.Stats().Cache.UnpinnedEntries, "no memory is left")
	l, err := cmdbuf.Load(ctx, s, bytes.NewReader(b), cmdbuf.LoadOptions{})
	require.NoError(t, err, "it was a good file")
	require.NoError(t, l.Close())
}

// A launch that is wrong though the file is consistent is an error that names its byte.
func TestWrongLaunchesInFiles(t *testing.T) {
	s := newStream(t, cmdbuf.Options{})
	x, y := zeros(t, s, 8), zeros(t, s, 8)
	g, err := s.Capture(ctx, func(c *cmdbuf.Capture) error {
		return errors.Join(c.Launch(shaders.Copy, x, y), c.Launch(shaders.Fill, cmdbuf.Float32(1), x))
	})
	require.NoError(t, err)
	var f bytes.Buffer
	require.NoError(t, g.Save(ctx, &f, cmdbuf.SaveOptions{}))
	require.NoError(t, g.Close())
	list, err := graphfiletest.Split(f.Bytes())
	require.NoError(t, err)
	oper := list[7]
	require.Equal(t, "oper", oper.Name)
	oper.Body = bytes.Clone(oper.Body)
	// 4 bytes count; the first launch: kind, kernel, x of kind, type, memory, layout, y likewise.
	const second = 4 + 5 + 10
	copy(oper.Body[second+2:], []byte{0, 0, 0, 0}) // y is x
	oper.Body[second+1] = byte(shaders.Int32)      // and of another type
	list[7] = oper
	_, err = cmdbuf.Load(ctx, s, bytes.NewReader(graphfiletest.Seal(list)), cmdbuf.LoadOptions{})
	require.ErrorIs(t, err, shaders.ErrOperand)
	require.ErrorContains(t, err, "operation 0, byte ")
	require.NoError(t, s.Validate())
}

const golden = "../testdata/graphs/everything.vkgraph"

// A file of the first version of the format is read by every later one. Its kernels may
// have been improved since.
func TestGoldenGraph(t *testing.T) {
	s := newStream(t, cmdbuf.Options{})
	e := newEverything(t, s)
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(golden), 0o777))
		require.NoError(t, os.WriteFile(golden, e.save(t, cmdbuf.SaveOptions{Contents: true, Comment: "one of everything"}), 0o666))
	}
	require.NoError(t, e.graph.ReplayN(3))
	want := state(t, e.x, e.y, e.z, e.bumped)
	e.close()
	b, err := os.ReadFile(golden)
	require.NoError(t, err)
	l, err := cmdbuf.Load(ctx, s, bytes.NewReader(b), cmdbuf.LoadOptions{Match: cmdbuf.SameName})
	require.NoError(t, err)
	require.Equal(t, "one of everything", l.Comment)
	require.NoError(t, l.ReplayN(3))
	require.Equal(t, want, loadedState(t, l))
	require.NoError(t, l.Close())

	l, err = cmdbuf.Load(ctx, s, bytes.NewReader(b), cmdbuf.LoadOptions{})
	if err == nil {
		require.NoError(t, l.Close())
		return
	}
	require.ErrorIs(t, err, cmdbuf.ErrUnknownKernel, "other SPIR-V is the only reason")
}

// Every graph file among the test data loads and replays.
func TestGraphsOfTheTestData(t *testing.T) {
	s := newStream(t, cmdbuf.Options{})
	files, err := filepath.Glob("../testdata/graphs/*.vkgraph")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, name := range files {
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		l, err := cmdbuf.Load(ctx, s, bytes.NewReader(b), cmdbuf.LoadOptions{Match: cmdbuf.SameName})
		require.NoError(t, err, name)
		require.NoError(t, l.Replay())
		_, err = l.Digest(ctx)
		require.NoError(t, err)
		require.NoError(t, l.Close())
	}
}

// A graph of very many launches is saved and loaded in a size and a time that go with it.
func TestLongGraphs(t *testing.T) {
	testenv.Require(t)
	n := 20_000
	switch {
	case testenv.Long():
		n = 100_000
	case testing.Short():
		n = 4_000
	}
	d, err := vk.Open(vk.Options{}) // the validation layer would take minutes
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	s, err := cmdbuf.NewStream(d, cmdbuf.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(ctx)) })
	x := upload(t, s, make([]int32, 2*n), 2*n)
	one := upload(t, s, []int32{0}, 1) // both begin with zeros
	heap := func() int {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	before := heap()
	start := time.Now()
	g, err := s.Capture(ctx, func(c *cmdbuf.Capture) error {
		for i := range n {
			v, err := x.Range(0, i, i+256, 1) // each with an offset of its own
			if err != nil {
				return err
			}
			if err := c.Launch(shaders.AddInt, v, one, v); err != nil {
				return err
			}
			if i%2 == 0 { // and some without overlap
				if err := c.Launch(shaders.Fill, cmdbuf.Int32(int32(i)), one); err != nil {
					return err
				}
			}
		}
		return nil
	})
	require.NoError(t, err)
	captured := time.Since(start)
	launches := g.Stats().Launches
	own := heap() - before
	var b bytes.Buffer
	start = time.Now()
	require.NoError(t, g.Save(ctx, &b, cmdbuf.SaveOptions{}))
	saved := time.Since(start)
	start = time.Now()
	l, err := cmdbuf.Load(ctx, s, bytes.NewReader(b.Bytes()), cmdbuf.LoadOptions{})
	require.NoError(t, err)
	loaded := time.Since(start)
	t.Logf("%d launches: captured in %v, %d bytes of Go memory each; saved in %v, %d bytes each; loaded in %v",
		launches, captured.Round(time.Millisecond), own/launches, saved.Round(time.Millisecond), b.Len()/launches, loaded.Round(time.Millisecond))
	require.Equal(t, launches, l.Stats().Launches)
	require.Equal(t, g.Stats().Barriers, l.Stats().Barriers)
	require.Less(t, b.Len()/launches, 100)
	require.NoError(t, errors.Join(g.Replay(), l.Replay()))
	y, err := cmdbuf.TensorAt[int32](l, 0)
	require.NoError(t, err)
	require.True(t, slices.Equal(read(t, x), read(t, y)))
	require.NoError(t, errors.Join(l.Close(), g.Close()))
}

// FuzzLoad makes graphs of any sections, in a file whose checksums are right.
func FuzzLoad(f *testing.F) {
	s := newStream(f, cmdbuf.Options{})
	e := newEverything(f, s)
	b := e.save(f, cmdbuf.SaveOptions{Contents: true})
	e.close()
	list, err := graphfiletest.Split(b)
	require.NoError(f, err)
	code := list[1].Body
	body := func(i int) []byte { return list[i].Body }
	var contents []byte
	for _, s := range list[len(graphfiletest.Names):] {
		contents = append(contents, s.Body...)
	}
	f.Add(body(2), body(3), body(4), body(5), body(6), body(7), body(8), contents)
	f.Fuzz(func(t *testing.T, kern, memo, layo, view, para, oper, host, contents []byte) {
		var sections []graphfiletest.Section
		for i, b := range [][]byte{nil, code, kern, memo, layo, view, para, oper, host} {
			if i == 0 {
				b = body(0)
			}
			sections = append(sections, graphfiletest.Section{Name: graphfiletest.Names[i], Body: b})
		}
		// The contents as the memories want them, so that mostly they are right.
		r := graphfile.NewReader(bytes.NewReader(graphfiletest.Seal(sections)))
		if file, err := r.Graph(); err == nil {
			sections = append(sections, blocks(file, contents)...)
		}
		if loaded, err := loadAny(s, graphfiletest.Seal(sections)); loaded {
			require.NoError(t, err)
		}
		require.NoError(t, s.Validate())
		for _, m := range s.Device().Messages() {
			t.Errorf("validation: %v", m)
		}
	})
}

// Files whose numbers were changed here and there, with good checksums: whatever they say
// now, the answer is a graph or an error, and the stream goes on.
func TestChangedNumbersInGraphFiles(t *testing.T) {
	s := newStream(t, cmdbuf.Options{})
	e := newEverything(t, s)
	b := e.save(t, cmdbuf.SaveOptions{Contents: true})
	e.close()
	good, err := graphfiletest.Split(b)
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(3, 4))
	n := 600
	switch {
	case testenv.Long():
		n = 20_000
	case testing.Short():
		n = 100
	}
	loaded := 0
	for range n {
		list := slices.Clone(good)
		for range 1 + rng.IntN(3) {
			i := 2 + rng.IntN(len(graphfiletest.Names)-3) // not note, code, host
			body := bytes.Clone(list[i].Body)
			at := rng.IntN(len(body))
			switch rng.IntN(3) {
			case 0:
				body[at] = byte(rng.IntN(8))
			case 1:
				body[at] += byte(rng.IntN(3) - 1)
			default:
				body[at] ^= 1 << rng.IntN(8)
			}
			list[i].Body = body
		}
		ok, err := loadAny(s, graphfiletest.Seal(list))
		if ok {
			loaded++
			require.NoError(t, err)
		}
		require.NoError(t, s.Validate())
	}
	t.Logf("%d of %d loaded", loaded, n)
	require.NotZero(t, loaded)
	require.Less(t, loaded, n)
	require.NoError(t, s.Sync(ctx))
	require.Equal(t, 0, s.Stats().Pools.Total.Slices-s.Stats().Cache.UnpinnedEntries)
}

// blocks cuts contents for the memories that want some.
func blocks(f *graphfile.File, contents []byte) (list []graphfiletest.Section) {
	for i, m := range f.Memories {
		if !m.Contents || m.Bytes > 1<<20 {
			continue
		}
		body := make([]byte, 12+m.Bytes)
		body[0], body[1] = byte(i), byte(i>>8)
		contents = contents[copy(body[12:], contents):]
		if m.Bytes > 0 {
			list = append(list, graphfiletest.Section{Name: "init", Body: body})
		}
	}
	return list
}

// loadAny loads what may be anything, looks at all of it, and closes it.
func loadAny(s *cmdbuf.Stream, b []byte) (loaded bool, err error) {
	l, err := cmdbuf.Load(ctx, s, bytes.NewReader(b), cmdbuf.LoadOptions{MaxBytes: 1 << 20})
	if err != nil {
		return false, err
	}
	for i := range l.Tensors() {
		if _, err := cmdbuf.TensorAt[uint32](l, i); err != nil {
			return true, errors.Join(err, l.Close())
		}
	}
	l.Parameters()
	err = l.Save(ctx, io.Discard, cmdbuf.SaveOptions{})
	return true, errors.Join(err, l.Close())
}
