package cmdbuf_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"vkcompute/cmdbuf"
	"vkcompute/internal/vktest"
	"vkcompute/shaders"
	"vkcompute/vk"
)

// touch is a range of bytes that a command reads or writes.
type touch struct {
	buffer, lo, hi uint64
	write          bool
}

// touchesOf are the ranges that a launch is bound to, from the tensors and from what the
// kernel declares: what a tensor reaches, from the last aligned byte before it on.
func touchesOf(d *vk.Device, k *shaders.Kernel, args []cmdbuf.Arg) (list []touch) {
	align := max(d.Limits().MinStorageBufferAlignment, 4)
	for i, a := range args {
		var buffer, at uint64
		var l shaders.Layout
		switch x := a.(type) {
		case *cmdbuf.Tensor[float32]:
			l = x.Layout()
			buffer, at = typed[float32]{x}.place()
		case *cmdbuf.Tensor[int32]:
			l = x.Layout()
			buffer, at = typed[int32]{x}.place()
		case *cmdbuf.Tensor[uint32]:
			l = x.Layout()
			buffer, at = typed[uint32]{x}.place()
		default:
			continue
		}
		if l.Len() == 0 {
			continue
		}
		lo, hi := l.Bounds()
		access := k.Params[i].Access
		t := touch{buffer, (at + 4*uint64(lo)) / align * align, at + 4*uint64(hi+1), access&shaders.Write != 0}
		list = append(list, t)
	}
	return list
}

// exact is a range of a copy, to the byte.
func exact(w window, write bool) touch {
	buffer, at := w.mem.dev.place()
	lo, hi := w.layout.Bounds()
	return touch{buffer, at + 4*uint64(lo), at + 4*uint64(hi+1), write}
}

func conflict(a, b []touch) bool {
	for _, x := range a {
		for _, y := range b {
			if x.buffer == y.buffer && x.lo < y.hi && y.lo < x.hi && (x.write || y.write) {
				return true
			}
		}
	}
	return false
}

// fewest is the least number of barriers with which a sequence of commands can run in its
// order, and the least in any order that keeps every conflicting pair in order.
//
// Barriers cut the sequence into pieces that run at once, so in one order it is the least
// number of pieces without a conflicting pair inside, less one: by dynamic programming
// over where the last piece begins. In any order, each conflict of a chain needs a barrier
// of its own, and running by levels needs no more: it is the longest chain.
func fewest(commands [][]touch) (inOrder, inAny int) {
	n := len(commands)
	if n == 0 {
		return 0, 0
	}
	latest := make([]int, n) // the last command before it that it conflicts with
	chain := make([]int, n)
	for j := range commands {
		latest[j] = -1
		for i := range j {
			if conflict(commands[i], commands[j]) {
				latest[j] = i
				chain[j] = max(chain[j], chain[i]+1)
			}
		}
		inAny = max(inAny, chain[j])
	}
	pieces := make([]int, n+1) // of the first so many commands
	for k := 1; k <= n; k++ {
		pieces[k] = n
		worst := -1 // latest of the last piece, from … k-1
		for from := k - 1; from >= 0; from-- {
			if worst = max(worst, latest[from]); worst < from {
				pieces[k] = min(pieces[k], pieces[from]+1)
			}
		}
	}
	return pieces[n] - 1, inAny
}

// requireSound checks that the barriers a graph explains separate every conflicting pair.
func requireSound(t require.TestingT, g *cmdbuf.Graph, commands [][]touch) {
	e := g.Explain()
	require.Len(t, e.Operations, len(commands))
	require.Len(t, e.Barriers, g.Stats().Barriers)
	piece := make([]int, len(commands))
	next := 0
	for i := range commands {
		if next < len(e.Barriers) && e.Barriers[next].Before == i {
			next++
		}
		piece[i] = next
	}
	for j := range commands {
		for i := range j {
			if piece[i] == piece[j] && conflict(commands[i], commands[j]) {
				require.Fail(t, "no barrier", "operations %d and %d", i, j)
			}
		}
	}
}

// sums are barriers of many programs.
type sums struct{ programs, commands, one, emitted, least, byLevel, leastAny int }

func (s *sums) String() string {
	return fmt.Sprintf("%d programs of %d commands: %d barriers with one before each but the first, %d emitted, %d the least in this order; by level %d, the least in any order %d",
		s.programs, s.commands, s.one, s.emitted, s.least, s.byLevel, s.leastAny)
}

// In the order of the calls, no program needs fewer barriers than the library emits, in
// batches and in graphs; and by level, no order does.
func TestBarriersAreTheFewest(t *testing.T) {
	d := vktest.Open(t)
	warm(t, d)
	var total sums
	rapid.Check(t, func(t *rapid.T) {
		streams := map[cmdbuf.Order]*cmdbuf.Stream{}
		for _, o := range []cmdbuf.Order{cmdbuf.AsCalled, cmdbuf.ByLevel} {
			s, err := cmdbuf.NewStream(d, cmdbuf.Options{Order: o})
			require.NoError(t, err)
			defer s.Close(ctx)
			streams[o] = s
		}
		c := &computer{device: d, did: map[string]int{}}
		var steps []*step
		for n, o := range []cmdbuf.Order{cmdbuf.AsCalled, cmdbuf.ByLevel} {
			s := streams[o]
			c.streams = [2]*cmdbuf.Stream{s, s}
			if n == 0 {
				for range rapid.IntRange(2, 6).Draw(t, "tensors") {
					c.add(t, &cells{dtype: drawType(t)}, rapid.IntRange(8, 400).Draw(t, "words"))
				}
				w := c.writer(0)
				for range rapid.IntRange(2, 60).Draw(t, "steps") {
					if s, ok := w.draw(t); ok && s.kind != uploadStep && s.recorded() && !s.refused() {
						steps = append(steps, s)
					}
				}
			} else { // the same on the other stream
				for _, m := range c.live {
					require.NoError(t, m.dev.close())
					var err error
					m.dev, err = newHandle(s, m.dtype, len(m.words))
					require.NoError(t, err)
				}
			}
			var commands [][]touch
			for _, st := range steps {
				if st.kind == copyStep {
					commands = append(commands, []touch{exact(st.from, false), exact(st.to, true)})
					continue
				}
				args, err := st.deviceArgs()
				require.NoError(t, err)
				commands = append(commands, touchesOf(d, st.kernel, args))
			}
			g, err := s.Capture(ctx, func(rec *cmdbuf.Capture) error {
				for _, st := range steps {
					if err := st.record(rec); err != nil {
						return err
					}
				}
				return nil
			})
			require.NoError(t, err)
			inOrder, inAny := fewest(commands)
			emitted := g.Stats().Barriers
			if o == cmdbuf.ByLevel {
				require.Equal(t, inAny, emitted, "by level: %v", steps)
				total.byLevel += emitted
				total.leastAny += inAny
			} else {
				require.Equal(t, inOrder, emitted, "in the order of the calls: %v", steps)
				requireSound(t, g, commands)
				total.programs++
				total.commands += len(steps)
				total.one += max(len(steps)-1, 0)
				total.emitted += emitted
				total.least += inOrder
			}
			// Eagerly: what came before the replay is ordered by the graph's own barriers.
			require.NoError(t, g.Replay())
			before := s.Stats().Barriers
			for _, st := range steps {
				require.NoError(t, st.launch(s))
			}
			require.EqualValues(t, inOrder, s.Stats().Barriers-before, "eagerly: %v", steps)
			require.NoError(t, g.Close())
		}
		for _, m := range c.live {
			require.NoError(t, m.dev.close())
		}
		for _, m := range d.Messages() {
			t.Fatalf("validation: %v", m)
		}
	})
	t.Log(&total)
	require.Less(t, total.emitted, total.one)
}

// The dynamic program is right: on short sequences it is what trying every set of
// barriers gives.
func TestFewestBarriersAgainstAllChoices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		commands := make([][]touch, rapid.IntRange(0, 9).Draw(t, "commands"))
		for i := range commands {
			for range rapid.IntRange(0, 3).Draw(t, "ranges") {
				lo := rapid.Uint64Range(0, 7).Draw(t, "lo")
				commands[i] = append(commands[i], touch{1, lo, lo + rapid.Uint64Range(1, 4).Draw(t, "n"), rapid.Bool().Draw(t, "write")})
			}
		}
		gaps := max(len(commands)-1, 0)
		least := gaps
		for set := range 1 << gaps {
			count, ok := 0, true
			for i := range gaps {
				count += set >> i & 1
			}
			for j := range commands {
				for i := range j {
					between := set >> i & (1<<(j-i) - 1)
					ok = ok && (between != 0 || !conflict(commands[i], commands[j]))
				}
			}
			if ok {
				least = min(least, count)
			}
		}
		inOrder, inAny := fewest(commands)
		if inOrder != least || inAny > inOrder {
			t.Fatalf("%v: %d in order and %d in any, want %d", commands, inOrder, inAny, least)
		}
	})
}

// script collects the launches of a program.
type script struct {
	t        *testing.T
	s        *cmdbuf.Stream
	kernels  []*shaders.Kernel
	args     [][]cmdbuf.Arg
	commands [][]touch
}

func (p *script) launch(k *shaders.Kernel, args ...cmdbuf.Arg) {
	p.kernels, p.args = append(p.kernels, k), append(p.args, args)
	p.commands = append(p.commands, touchesOf(p.s.Device(), k, args))
}

func (p *script) tensor(shape ...int) *cmdbuf.Tensor[float32] {
	p.t.Helper()
	x, err := cmdbuf.New[float32](p.s, shape...)
	require.NoError(p.t, err)
	p.t.Cleanup(func() { require.NoError(p.t, x.Close()) })
	return x
}

func (p *script) reshape(x *cmdbuf.Tensor[float32], shape ...int) *cmdbuf.Tensor[float32] {
	p.t.Helper()
	v, err := x.Reshape(shape...)
	require.NoError(p.t, err)
	return v
}

// capture records the script.
func (p *script) capture() *cmdbuf.Graph {
	p.t.Helper()
	g, err := p.s.Capture(ctx, func(c *cmdbuf.Capture) error {
		var err error
		for i, k := range p.kernels {
			err = errors.Join(err, c.Launch(k, p.args[i]...))
		}
		return err
	})
	require.NoError(p.t, err)
	p.t.Cleanup(func() { require.NoError(p.t, g.Close()) })
	return g
}

// decodeStep writes one step of a transformer with grouped attention over a key and value
// cache, from a token on the device to the next, in the order in which one would write it
// by hand.
func (p *script) decodeStep(layers int) {
	const (
		dim, heads, groups, size = 64, 8, 4, 8
		hidden, vocabulary, most = 96, 128, 16
	)
	token, position := upload(p.t, p.s, []int32{1}, 1), upload(p.t, p.s, []int32{3}, 1)
	frequencies := p.tensor(size / 2)
	x, normed, mixed := p.tensor(dim), p.tensor(dim), p.tensor(dim)
	q, k, v := p.tensor(heads*size), p.tensor(groups*size), p.tensor(groups*size)
	gate, up := p.tensor(hidden), p.tensor(hidden)
	epsilon := cmdbuf.Float32(1e-5)
	p.launch(shaders.Gather, p.tensor(vocabulary, dim), token, p.reshape(x, 1, dim))
	for range layers {
		keys, values := p.tensor(most, groups, size), p.tensor(most, groups, size)
		p.launch(shaders.RMSNorm, x, p.tensor(dim), epsilon, normed)
		p.launch(shaders.MatVec, p.tensor(heads*size, dim), normed, q)
		p.launch(shaders.MatVec, p.tensor(groups*size, dim), normed, k)
		p.launch(shaders.MatVec, p.tensor(groups*size, dim), normed, v)
		qh, kh := p.reshape(q, heads, size), p.reshape(k, groups, size)
		p.launch(shaders.Rotary, qh, frequencies, position, qh)
		p.launch(shaders.Rotary, kh, frequencies, position, kh)
		p.launch(shaders.Put, p.reshape(k, 1, groups, size), position, keys)
		p.launch(shaders.Put, p.reshape(v, 1, groups, size), position, values)
		p.launch(shaders.Attention, p.reshape(q, 1, heads, size), keys, values, position, cmdbuf.Float32(0.35), p.reshape(mixed, 1, heads, size))
		p.launch(shaders.MatVecAdd, p.tensor(dim, heads*size), mixed, x, x)
		p.launch(shaders.RMSNorm, x, p.tensor(dim), epsilon, normed)
		p.launch(shaders.MatVec, p.tensor(hidden, dim), normed, gate)
		p.launch(shaders.MatVec, p.tensor(hidden, dim), normed, up)
		p.launch(shaders.SiluMul, gate, up, gate)
		p.launch(shaders.MatVecAdd, p.tensor(dim, hidden), gate, x, x)
	}
	logits := p.tensor(vocabulary)
	p.launch(shaders.RMSNorm, x, p.tensor(dim), epsilon, normed)
	p.launch(shaders.MatVec, p.tensor(vocabulary, dim), normed, logits)
	p.launch(shaders.ArgMax, logits, token)
}

// One step of a transformer of twelve layers: a layer is ten levels deep, and there are no
// more barriers than that.
func TestBarriersOfATransformerStep(t *testing.T) {
	const layers = 12
	for _, o := range []cmdbuf.Order{cmdbuf.AsCalled, cmdbuf.ByLevel} {
		s := newStream(t, cmdbuf.Options{Order: o})
		p := &script{t: t, s: s}
		p.decodeStep(layers)
		g := p.capture()
		inOrder, inAny := fewest(p.commands)
		emitted := g.Stats().Barriers
		t.Logf("order %d: %d launches, %d barriers; the least in the order of the calls is %d, in any order %d; one per launch is %d",
			o, len(p.commands), emitted, inOrder, inAny, len(p.commands)-1)
		if o == cmdbuf.AsCalled {
			require.Equal(t, inOrder, emitted)
			requireSound(t, g, p.commands)
		} else {
			require.Equal(t, inAny, emitted)
		}
		require.Equal(t, 10*layers+3, emitted)
		require.NoError(t, g.ReplayN(2))
		require.NoError(t, s.Sync(ctx))
	}
}
