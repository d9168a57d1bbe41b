package cmdbuf_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"vkcompute/cmdbuf"
	"vkcompute/internal/testenv"
	"vkcompute/internal/vktest"
	"vkcompute/metacache"
	"vkcompute/pool"
	"vkcompute/shaders"
	"vkcompute/vk"
)

// recording is a graph and what it is to do.
type recording struct {
	on     int
	graph  *cmdbuf.Graph
	loaded *cmdbuf.LoadedGraph // nil if it was captured
	own    []*cells            // that came with the file
	steps  []*step
	params []*param
}

func (g *recording) close() error {
	if g.loaded != nil {
		return g.loaded.Close()
	}
	return g.graph.Close()
}

// mems are the memories that the graph has in its file, in any order.
func (g *recording) mems() (list []*cells) {
	for _, s := range g.steps {
		if !s.recorded() {
			continue
		}
		for _, w := range s.windows() {
			if !w.mem.temp && !slices.Contains(list, w.mem) {
				list = append(list, w.mem)
			}
		}
	}
	return list
}

// computer is two streams of a device, and an interpreter that is told the same.
type computer struct {
	device  *vk.Device
	streams [2]*cmdbuf.Stream
	live    []*cells
	graphs  []*recording
	ids     int
	did     map[string]int // what was done, over all checks
}

func (c *computer) id() int {
	c.ids++
	return c.ids
}

func drawOptions(t *rapid.T, d *vk.Device) cmdbuf.Options {
	o := cmdbuf.Options{
		Order:         rapid.SampledFrom([]cmdbuf.Order{cmdbuf.ByLevel, cmdbuf.AsCalled}).Draw(t, "order"),
		Sets:          rapid.SampledFrom([]cmdbuf.SetCaching{cmdbuf.CacheSets, cmdbuf.CacheSets, cmdbuf.RebuildSets}).Draw(t, "sets"),
		BatchLimit:    rapid.SampledFrom([]int{0, 1, 3}).Draw(t, "batch"),
		MaxSubmitTime: rapid.SampledFrom([]time.Duration{0, 0, time.Nanosecond}).Draw(t, "split"),
		Cache:         rapid.SampledFrom([]*metacache.Policy{nil, {MaxEntries: 2, MaxCachedSize: 2048}, {}}).Draw(t, "cache"),
		Pools:         rapid.SampledFrom([]pool.Layout{{}, pool.ExclusivePages()}).Draw(t, "pools"),
	}
	info := d.Info()
	if info.Features.DeviceAddress {
		o.Addresses = rapid.IntRange(0, 3).Draw(t, "addresses") == 0
	}
	if info.Limits.TimestampBits > 0 {
		o.Profile = rapid.IntRange(0, 5).Draw(t, "profile") == 0
	}
	return o
}

func newComputer(t *rapid.T, d *vk.Device, did map[string]int) *computer {
	c := &computer{device: d, did: did}
	for i := range c.streams {
		s, err := cmdbuf.NewStream(d, drawOptions(t, d))
		if err != nil {
			t.Fatal(err)
		}
		c.streams[i] = s
		// The validation layer sees more where nobody asks for progress, and command buffers
		// are used again where somebody does.
		if rapid.SampledFrom([]bool{true, true, false}).Draw(t, "stop polling") {
			if err := s.StopPolling(); err != nil {
				t.Fatal(err)
			}
		}
	}
	return c
}

// furnish gives each stream a few tensors: few, so that programs get in their own way.
func (c *computer) furnish(t *rapid.T) {
	for on := range c.streams {
		c.add(t, &cells{on: on, dtype: shaders.Int32}, rapid.IntRange(24, 48).Draw(t, "words"))
		c.add(t, &cells{on: on, dtype: shaders.Int32}, rapid.IntRange(16, 32).Draw(t, "words"))
		c.add(t, &cells{on: on, dtype: shaders.Uint32}, rapid.IntRange(16, 32).Draw(t, "words"))
		c.add(t, &cells{on: on, dtype: shaders.Uint32, grid: true}, 3)
	}
}

// close gives everything back; nothing may be left.
func (c *computer) close() error {
	var err error
	for _, g := range c.graphs {
		err = errors.Join(err, g.close())
	}
	for _, m := range c.live {
		err = errors.Join(err, m.dev.close())
	}
	for _, s := range c.streams {
		if s != nil {
			err = errors.Join(err, s.Close(ctx))
		}
	}
	return err
}

func (c *computer) writer(on int) *writer {
	w := &writer{}
	for _, m := range c.live {
		if m.on == on {
			w.mems = append(w.mems, m)
		}
	}
	return w
}

func drawStream(t *rapid.T) int { return rapid.IntRange(0, 1).Draw(t, "stream") }

// allocate makes a tensor of any size.
func (c *computer) allocate(t *rapid.T) {
	if len(c.live) >= 14 {
		t.Skip("enough tensors")
	}
	c.add(t, &cells{on: drawStream(t), dtype: drawType(t)}, rapid.IntRange(1, 48).Draw(t, "words"))
}

func drawType(t *rapid.T) shaders.DType {
	return rapid.SampledFrom([]shaders.DType{shaders.Int32, shaders.Int32, shaders.Uint32}).Draw(t, "type")
}

// add makes a tensor of n words.
func (c *computer) add(t *rapid.T, m *cells, n int) {
	m.id, m.words = c.id(), drawWords(t, m, n)
	var err error
	if m.dev, err = newHandle(c.streams[m.on], m.dtype, n); err != nil {
		t.Fatal(err)
	}
	if err := m.dev.write(m.words); err != nil {
		t.Fatal(err)
	}
	c.live = append(c.live, m)
}

// release closes a tensor; what was launched or recorded with it stays right.
func (c *computer) release(t *rapid.T) {
	if len(c.live) == 0 {
		t.Skip("no tensors")
	}
	i := rapid.IntRange(0, len(c.live)-1).Draw(t, "tensor")
	if err := c.live[i].dev.close(); err != nil {
		t.Fatal(err)
	}
	c.live = slices.Delete(c.live, i, i+1)
}

// launch runs some steps eagerly.
func (c *computer) launch(t *rapid.T) {
	on := drawStream(t)
	for range rapid.IntRange(1, 6).Draw(t, "launches") {
		if s, ok := c.writer(on).draw(t); ok {
			c.step(t, on, s)
		}
	}
}

func (c *computer) step(t *rapid.T, on int, s *step) {
	err := s.launch(c.streams[on])
	if s.refused() {
		if !errors.Is(err, cmdbuf.ErrOverlap) {
			t.Fatalf("%v: want ErrOverlap, found %v", s, err)
		}
		c.did["eager steps refused"]++
		return
	}
	if err != nil {
		t.Fatalf("%v: %v", s, err)
	}
	s.run()
	c.did["eager steps"]++
}

// scatter writes to a view with gaps.
func (c *computer) scatter(t *rapid.T) {
	on := drawStream(t)
	w := c.writer(on)
	v, ok := w.window(t, drawType(t), drawShape(t), true)
	if !ok {
		t.Skip("no room")
	}
	c.step(t, on, &step{kind: uploadStep, to: v, words: drawWords(t, v.mem, v.layout.Len())})
}

// drawSteps draws a program of a graph.
func (c *computer) drawSteps(t *rapid.T, w *writer, most int) (list []*step) {
	var temps []*cells
	for range rapid.IntRange(1, most).Draw(t, "steps") {
		switch rapid.IntRange(0, 9).Draw(t, "temporary") {
		case 0:
			m := &cells{id: c.id(), temp: true, dtype: drawType(t)}
			m.words = make([]uint32, rapid.IntRange(1, 40).Draw(t, "words"))
			first := argument{scalar: true, dtype: m.dtype, bits: drawWord(t)}
			list = append(list, &step{kind: tempStep, mem: m}, &step{kind: launchStep, kernel: shaders.Fill,
				args: []argument{first, {dtype: m.dtype, win: window{m, shaders.Contiguous(len(m.words))}}}})
			temps, w.mems = append(temps, m), append(w.mems, m)
		case 1:
			if len(temps) > 0 {
				m := temps[0]
				temps = temps[1:]
				w.mems = slices.DeleteFunc(w.mems, func(o *cells) bool { return o == m })
				list = append(list, &step{kind: closeStep, mem: m})
			}
		default:
			if s, ok := w.draw(t); ok && !s.refused() {
				list = append(list, s)
			}
		}
	}
	return list
}

// capture records a program.
func (c *computer) capture(t *rapid.T) {
	if len(c.graphs) >= 4 {
		t.Skip("enough graphs")
	}
	g := &recording{on: drawStream(t)}
	w := c.writer(g.on)
	w.name = func() string { return fmt.Sprintf("p%d", len(w.params)) }
	g.steps = c.drawSteps(t, w, 20)
	g.params = slices.DeleteFunc(w.params, func(p *param) bool { // of steps that came to nothing
		return !slices.ContainsFunc(g.steps, func(s *step) bool {
			return slices.ContainsFunc(s.args, func(a argument) bool { return a.param == p })
		})
	})
	var err error
	g.graph, err = c.streams[g.on].Capture(ctx, func(rec *cmdbuf.Capture) error {
		for _, s := range g.steps {
			if err := s.record(rec); err != nil {
				return fmt.Errorf("%v: %w", s, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	c.graphs = append(c.graphs, g)
	c.did["captures"]++
	c.did["captured steps"] += len(g.steps)
	c.did["barriers in graphs"] += g.graph.Stats().Barriers
}

func (c *computer) drawGraph(t *rapid.T) *recording {
	if len(c.graphs) == 0 {
		t.Skip("no graphs")
	}
	return rapid.SampledFrom(c.graphs).Draw(t, "graph")
}

// replay submits a graph a few times, of which nobody waits for any.
func (c *computer) replay(t *rapid.T) {
	g := c.drawGraph(t)
	n := rapid.IntRange(1, 3).Draw(t, "times")
	if rapid.Bool().Draw(t, "at once") {
		if err := g.graph.ReplayN(n); err != nil {
			t.Fatal(err)
		}
	} else {
		for range n {
			if err := g.graph.Replay(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range n {
		for _, s := range g.steps {
			s.run()
		}
	}
	c.did["replays"] += n
	if g.loaded != nil {
		c.did["replays of loaded graphs"] += n
	}
}

// set changes a parameter.
func (c *computer) set(t *rapid.T) {
	g := c.drawGraph(t)
	if len(g.params) == 0 {
		t.Skip("no parameters")
	}
	p := rapid.SampledFrom(g.params).Draw(t, "parameter")
	value, reshaped := p.value, false
	if value.scalar {
		value.bits = drawWord(t)
	} else {
		shape := p.value.win.shape()
		for i := range shape { // another shape may fit as well
			if rapid.IntRange(0, 5).Draw(t, "other") == 0 {
				shape[i] = rapid.IntRange(0, 3).Draw(t, "extent")
				reshaped = true
			}
		}
		if shaders.Contiguous(shape...).Len() > oneGroup && slices.ContainsFunc(g.steps, func(s *step) bool {
			return s.grid != nil && slices.ContainsFunc(s.args, func(a argument) bool { return a.param == p })
		}) {
			t.Skip("more than the grid does")
		}
		w, ok := c.writer(g.on).window(t, value.dtype, shape, true)
		if !ok {
			t.Skip("no room")
		}
		value.win = w
	}
	arg, err := value.bare()
	if err != nil {
		t.Fatal(err)
	}
	err = g.graph.Set(p.name, arg)
	switch {
	case err == nil:
		p.value = value
		c.did["parameters set"]++
	case !value.scalar && errors.Is(err, cmdbuf.ErrOverlap) && g.touches(value.win.mem, p):
		c.did["parameters refused"]++ // its barriers were planned without this
	case reshaped && errors.Is(err, shaders.ErrOperand):
		c.did["shapes refused"]++
	default:
		t.Fatalf("set %s to %v: %v", p.name, value, err)
	}
}

func (w window) shape() []int { return slices.Clone(w.layout.Shape[:w.layout.Rank]) }

// touches tells whether anything but a parameter lies in a memory.
func (g *recording) touches(m *cells, but *param) bool {
	for _, s := range g.steps {
		if s.grid == m || s.kind != launchStep && slices.ContainsFunc(s.windows(), func(w window) bool { return w.mem == m }) {
			return true
		}
		for _, a := range s.args {
			if v := a.now(); !v.scalar && a.param != but && v.win.mem == m {
				return true
			}
		}
	}
	return false
}

// reload sends a graph through a file, to the other stream.
func (c *computer) reload(t *rapid.T) {
	if len(c.graphs) >= 4 {
		t.Skip("enough graphs")
	}
	g := c.drawGraph(t)
	o := cmdbuf.SaveOptions{Contents: rapid.IntRange(0, 3).Draw(t, "contents") != 0, Views: map[string]cmdbuf.Arg{}}
	mems := g.mems()
	for _, m := range mems { // also those that were closed: the graph has them still
		o.Views[fmt.Sprintf("m%d", m.id)] = m.dev.arg()
	}
	var file bytes.Buffer
	if err := g.graph.Save(ctx, &file, o); err != nil {
		t.Fatal(err)
	}
	l, err := cmdbuf.Load(ctx, c.streams[1-g.on], &file, cmdbuf.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n := &recording{on: 1 - g.on, graph: l.Graph, loaded: l}
	c.graphs = append(c.graphs, n)
	copies := map[*cells]*cells{}
	for _, m := range mems {
		k := &cells{id: c.id(), on: n.on, dtype: m.dtype, words: make([]uint32, len(m.words)), grid: m.grid}
		if o.Contents {
			copy(k.words, m.words)
		}
		if k.dev, err = loadedHandle(l, m.dtype, fmt.Sprintf("m%d", m.id)); err != nil {
			t.Fatal(err)
		}
		copies[m] = k
		n.own = append(n.own, k)
		c.live = append(c.live, k)
	}
	n.translate(g, copies)
	c.did["loads"]++
	if got := len(l.Parameters()); got != len(n.params) {
		t.Fatalf("%d parameters after loading, want %d", got, len(n.params))
	}
}

// translate makes the steps of another graph its own, on copies of the memories.
func (g *recording) translate(from *recording, copies map[*cells]*cells) {
	win := func(w window) window {
		if w.mem == nil {
			return w
		}
		if copies[w.mem] == nil { // a temporary, or memory of what is not recorded
			copies[w.mem] = &cells{id: -w.mem.id, dtype: w.mem.dtype, temp: true, words: slices.Clone(w.mem.words)}
		}
		w.mem = copies[w.mem]
		return w
	}
	params := map[*param]*param{}
	for _, p := range from.params {
		q := *p
		q.value.win = win(q.value.win)
		params[p] = &q
		g.params = append(g.params, &q)
	}
	for _, s := range from.steps {
		if !s.recorded() {
			continue
		}
		n := *s
		n.args = slices.Clone(s.args)
		for i := range n.args {
			n.args[i].win = win(n.args[i].win)
			n.args[i].param = params[s.args[i].param]
		}
		n.to, n.from = win(s.to), win(s.from)
		if s.grid != nil {
			n.grid = win(window{mem: s.grid}).mem
		}
		g.steps = append(g.steps, &n)
	}
}

// closeGraph closes a graph, whatever of it is in flight.
func (c *computer) closeGraph(t *rapid.T) {
	g := c.drawGraph(t)
	if err := g.close(); err != nil {
		t.Fatal(err)
	}
	c.graphs = slices.DeleteFunc(c.graphs, func(o *recording) bool { return o == g })
	// Its tensors went with it.
	c.live = slices.DeleteFunc(c.live, func(m *cells) bool { return slices.Contains(g.own, m) })
}

// check compares every byte.
func (c *computer) check(t *rapid.T) {
	for _, m := range c.live {
		got, err := m.dev.read()
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, m.words) {
			t.Fatalf("m%d of stream %d holds %v, want %v", m.id, m.on, got, m.words)
		}
		c.did["tensors compared"]++
	}
}

func (c *computer) validate(t *rapid.T) {
	for _, s := range c.streams {
		if err := s.Validate(); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range c.device.Messages() {
		t.Fatalf("validation: %v", m)
	}
}

// warm keeps the kernels compiled while streams come and go.
func warm(t *testing.T, d *vk.Device) {
	for _, o := range []cmdbuf.Options{{}, {Addresses: true}} {
		s, err := cmdbuf.NewStream(d, o)
		if errors.Is(err, vk.ErrUnsupported) {
			return
		}
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close(ctx)) })
		for _, k := range integerKernels() {
			st := &step{kind: launchStep, kernel: k}
			for i := range k.Params {
				p := &k.Params[i]
				a := argument{scalar: p.Kind == shaders.ScalarParam, dtype: p.DType}
				if a.dtype == shaders.AnyDType {
					a.dtype = shaders.Int32
				}
				if !a.scalar {
					h, err := newHandle(s, a.dtype, 1)
					require.NoError(t, err)
					defer h.close()
					a.win = window{&cells{dev: h}, shaders.Contiguous(1)}
				}
				st.args = append(st.args, a)
			}
			require.NoError(t, st.launch(s))
		}
	}
}

// Whatever program runs, eagerly, captured and replayed, in any order that is allowed, in
// pieces, with other parameters, or from a file, on memory that comes and goes: every byte
// is what an interpreter says.
func TestRandomPrograms(t *testing.T) {
	d := vktest.Open(t)
	warm(t, d)
	did := map[string]int{}
	run := func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			c := newComputer(t, d, did)
			done := false
			defer func() {
				if !done {
					c.close() // the failure is reported already
				}
			}()
			c.furnish(t)
			t.Repeat(map[string]func(*rapid.T){
				"":            c.validate,
				"allocate":    c.allocate,
				"close":       c.release,
				"launch":      c.launch,
				"launch too":  c.launch,
				"scatter":     c.scatter,
				"capture":     c.capture,
				"replay":      c.replay,
				"replay too":  c.replay,
				"set":         c.set,
				"reload":      c.reload,
				"close graph": c.closeGraph,
				"check":       c.check,
				"flush":       func(t *rapid.T) { c.must(t, c.streams[drawStream(t)].Flush()) },
				"sync":        func(t *rapid.T) { c.must(t, c.streams[drawStream(t)].Sync(ctx)) },
			})
			c.check(t)
			done = true
			if err := c.close(); err != nil {
				t.Fatal(err)
			}
		})
	}
	defer func() { t.Log(did) }()
	if !testenv.Long() {
		run(t)
		return
	}
	for i := range 100 {
		if !t.Run(fmt.Sprint(i), run) {
			return
		}
	}
}

func (c *computer) must(t *rapid.T, err error) {
	if err != nil {
		t.Fatal(err)
	}
}
