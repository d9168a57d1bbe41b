package suite

import (
	"context"
	"errors"
	"fmt"

	"vkcompute/cmdbuf"
	"vkcompute/internal/bench"
	"vkcompute/metacache"
	"vkcompute/shaders"
	"vkcompute/shaders/ref"
	"vkcompute/vk"
)

const scalarName = "scalar"

// A step of the program: launches that are the same in every step, and between them
// some that differ in one number. The cache holds the infos of the former and a few
// more, so that those of the latter push them out where every key is admitted.
const (
	stepLaunches = 96
	stepEvery    = 4 // every fourth has the number
	stepEntries  = stepLaunches*(stepEvery-1)/stepEvery + 8
	stepElements = 64
)

// steps is a way to run the program.
type steps struct {
	name   string
	policy metacache.Policy
	// launch makes one launch with the number.
	launch func(l launcher, number float32, name string, out *cmdbuf.Tensor[float32]) error
	graph  bool
}

// launcher is a stream or a capture.
type launcher interface {
	Launch(*shaders.Kernel, ...cmdbuf.Arg) error
}

// The number is the lower bound of the random numbers, which is an info word, or their
// seed, which is a push constant. The work is the same.
func stepWays() []steps {
	bound := func(l launcher, number float32, name string, out *cmdbuf.Tensor[float32]) error {
		low := cmdbuf.Arg(cmdbuf.Float32(number))
		if name != "" {
			low = cmdbuf.Param(name, low)
		}
		return l.Launch(shaders.RandomUniform, cmdbuf.Uint32(7), cmdbuf.Uint32(0), low, cmdbuf.Float32(1<<20), out)
	}
	seed := func(l launcher, number float32, name string, out *cmdbuf.Tensor[float32]) error {
		s := cmdbuf.Arg(cmdbuf.Uint32(uint32(number)))
		if name != "" {
			s = cmdbuf.Param(name, s)
		}
		return l.Launch(shaders.RandomUniform, s, cmdbuf.Uint32(0), cmdbuf.Float32(-1), cmdbuf.Float32(1<<20), out)
	}
	plain := metacache.DefaultPolicy()
	plain.MaxEntries = stepEntries
	admit := plain
	admit.Admission = metacache.AdmitFrequent
	return []steps{
		{"in-key", plain, bound, false},
		{"in-key-admission", admit, bound, false},
		{"push-constant", plain, seed, false},
		{"graph-info", plain, bound, true},
		{"graph-push", plain, seed, true},
	}
}

// program is the way set up on a stream.
type program struct {
	way    steps
	stream *cmdbuf.Stream
	graph  *cmdbuf.Graph
	fixed  []*cmdbuf.Tensor[float32]
	number float32 // of the last launch that had one
	names  [stepLaunches]string
	before metacache.Stats
}

// Scalar measures a program some of whose launches have a number that is another one each
// time: among the
// info words without and with an admission rule, as a push constant, and as a parameter
// of a recorded graph.
func Scalar(ctx context.Context, d *vk.Device, o Options) (list []bench.Result, err error) {
	var programs []*program
	defer func() {
		for _, p := range programs {
			err = errors.Join(err, p.close())
		}
	}()
	var g bench.Group
	for _, way := range stepWays() {
		o.say("setting up "+way.name, 0)
		p, err := newProgram(ctx, d, way)
		if p != nil {
			programs = append(programs, p)
		}
		if err != nil {
			return nil, fmt.Errorf("scalar: %s: %w", way.name, err)
		}
		if err := p.verify(ctx); err != nil {
			return nil, fmt.Errorf("scalar: %s: %w", way.name, err)
		}
		// Until the frequencies have settled.
		if err := p.run(ctx, 50); err != nil {
			return nil, fmt.Errorf("scalar: %s: %w", way.name, err)
		}
		p.before = p.stream.Stats().Cache
		g.Cases = append(g.Cases, bench.Case{Name: way.name, Run: func(shots int) error { return p.run(ctx, shots) }})
	}
	samples, err := o.measure(ctx, []bench.Group{g})
	if err != nil {
		return nil, fmt.Errorf("scalar: %w", err)
	}
	for i, p := range programs {
		list = append(list, bench.NewResult(scalarName, p.way.name, "wall", "ns/launch", samples[i], stepLaunches))
		if !p.way.graph {
			now := p.stream.Stats().Cache
			during := metacache.Stats{Hits: now.Hits - p.before.Hits, Misses: now.Misses - p.before.Misses}
			list = append(list, bench.NewFigure(scalarName, p.way.name, "hits", "%", []float64{100 * during.HitRate()}))
		}
		if err := p.verify(ctx); err != nil {
			return nil, fmt.Errorf("scalar: %s, after measuring: %w", p.way.name, err)
		}
	}
	return list, nil
}

func newProgram(ctx context.Context, d *vk.Device, way steps) (*program, error) {
	s, err := cmdbuf.NewStream(d, cmdbuf.Options{Cache: &way.policy, BatchLimit: stepLaunches + 1, Order: cmdbuf.AsCalled})
	if err != nil {
		return nil, err
	}
	p := &program{way: way, stream: s}
	for range stepLaunches {
		t, err := cmdbuf.New[float32](s, stepElements)
		if err != nil {
			return p, err
		}
		p.fixed = append(p.fixed, t)
	}
	if !way.graph {
		return p, nil
	}
	for i := 0; i < stepLaunches; i += stepEvery {
		p.names[i] = fmt.Sprintf("number %d", i)
	}
	p.graph, err = s.Capture(ctx, func(c *cmdbuf.Capture) error { return p.step(c) })
	return p, err
}

// step makes the launches of one step.
func (p *program) step(l launcher) error {
	for i := range stepLaunches {
		var err error
		if i%stepEvery == 0 {
			p.next()
			err = p.way.launch(l, p.number, p.names[i], p.fixed[i])
		} else {
			err = l.Launch(shaders.RandomUniform, cmdbuf.Uint32(3), cmdbuf.Uint32(0), cmdbuf.Float32(-float32(i)), cmdbuf.Float32(float32(i)), p.fixed[i])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// next is a number that no launch had. Whole numbers below 2²⁴ are exact in float32.
func (p *program) next() { p.number = float32((int(p.number) + 1) & (1<<20 - 1)) }

// run makes so many steps and waits for each.
func (p *program) run(ctx context.Context, shots int) error {
	for range shots {
		if p.graph == nil {
			if err := p.step(p.stream); err != nil {
				return err
			}
		} else {
			for i := 0; i < stepLaunches; i += stepEvery {
				p.next()
				value := cmdbuf.Float32(p.number)
				if p.way.name == "graph-push" {
					value = cmdbuf.Uint32(uint32(p.number))
				}
				if err := p.graph.Set(p.names[i], value); err != nil {
					return err
				}
			}
			if err := p.graph.Replay(); err != nil {
				return err
			}
		}
		if err := p.stream.Sync(ctx); err != nil {
			return err
		}
	}
	return nil
}

// verify makes two steps and compares what the last left with the reference.
func (p *program) verify(ctx context.Context) error {
	if err := p.run(ctx, 2); err != nil {
		return err
	}
	want := ref.RandomUniform(7, 0, p.number, 1<<20, []int{stepElements})
	if p.way.name == "push-constant" || p.way.name == "graph-push" {
		want = ref.RandomUniform(uint32(p.number), 0, -1, 1<<20, []int{stepElements})
	}
	if err := same(ctx, p.fixed[stepLaunches-stepEvery], want); err != nil {
		return fmt.Errorf("the launch with number %v: %w", p.number, err)
	}
	for i := 1; i < stepLaunches; i += stepEvery {
		if err := same(ctx, p.fixed[i], ref.RandomUniform(3, 0, -float32(i), float32(i), []int{stepElements})); err != nil {
			return fmt.Errorf("launch %d: %w", i, err)
		}
	}
	return nil
}

// same compares a tensor with the reference.
func same(ctx context.Context, t *cmdbuf.Tensor[float32], want ref.Result) error {
	found, err := t.Read(ctx)
	if err != nil {
		return err
	}
	for i := range want.Value {
		if err := ref.Compare(want.Value[i], want.Bound[i], found[i]); err != nil {
			return fmt.Errorf("%w: element %d: %w", ErrWrong, i, err)
		}
	}
	return nil
}

func (p *program) close() error {
	var err error
	for _, t := range p.fixed {
		err = errors.Join(err, t.Close())
	}
	return errors.Join(err, p.stream.Close(context.Background()))
}

// RecordScalar records a step whose numbers are parameters of the graph.
func RecordScalar(ctx context.Context, s *cmdbuf.Stream) (g *cmdbuf.Graph, err error) {
	ways := stepWays()
	p := &program{way: ways[len(ways)-2], stream: s}
	// The graph keeps the memory.
	defer func() {
		for _, t := range p.fixed {
			err = errors.Join(err, t.Close())
		}
	}()
	for i := range stepLaunches {
		t, err := cmdbuf.New[float32](s, stepElements)
		if err != nil {
			return nil, err
		}
		p.fixed = append(p.fixed, t)
		if i%stepEvery == 0 {
			p.names[i] = fmt.Sprintf("number %d", i)
		}
	}
	return s.Capture(ctx, func(c *cmdbuf.Capture) error { return p.step(c) })
}
