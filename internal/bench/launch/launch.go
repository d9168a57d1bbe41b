package launch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"vkcompute/cmdbuf"
	"vkcompute/internal/bench"
	"vkcompute/internal/bench/lack"
	"vkcompute/internal/cfloor"
	"vkcompute/shaders"
	"vkcompute/vk"
)

// Name is the workload's name in results.
const Name = "launch"

// Scope says how much is measured.
type Scope int

const (
	// Full is every mode, the controls, and what happens once.
	Full Scope = iota
	// Modes is the modes alone.
	Modes
)

// Options of Run.
type Options struct {
	// Sizes are the numbers of launches in a submission; none: DefaultSizes.
	Sizes []int
	Scope Scope
	// Prefix goes before the names of cases.
	Prefix  string
	Measure bench.Options
	// Progress is told what happens and how far it has come, and may be nil.
	Progress func(text string, part float64)
	// Unsupported is told of sizes that the device is too small for, and may be nil.
	Unsupported func(bench.Unsupported)
}

// otherAllocations is how many there are at most besides those of plain C's launches.
const otherAllocations = 512

// DefaultSizes are the launches of a submission that are measured.
func DefaultSizes() []int { return []int{1, 16, 256, 1024, 4096} }

// Validate reports sizes that cannot be measured.
func (o *Options) Validate() error {
	seen := map[int]bool{}
	for _, n := range o.Sizes {
		if n < 1 || n > 1<<14 || seen[n] {
			return fmt.Errorf("launch: sizes %v: want different numbers of launches, each 1 to %d", o.Sizes, 1<<14)
		}
		seen[n] = true
	}
	return nil
}

// ErrUnequal: the library and plain C did not record the same commands, so that their
// times cannot be compared.
var ErrUnequal = errors.New("the library and plain C differ")

// Run measures. The results hold the library's figures with plain C's as references.
func Run(ctx context.Context, d *vk.Device, o Options) ([]bench.Result, error) {
	if len(o.Sizes) == 0 {
		o.Sizes = DefaultSizes()
	}
	if o.Progress == nil {
		o.Progress = func(string, float64) {}
	}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Unsupported == nil {
		o.Unsupported = func(bench.Unsupported) {}
	}
	o.Sizes = slices.Sorted(slices.Values(o.Sizes))
	buffers := true
	for {
		r := &rig{ctx: ctx, d: d, o: o, buffers: buffers}
		results, err := r.run()
		if closed := r.close(); !lack.Of(err) || closed != nil {
			return results, errors.Join(err, closed)
		}
		// All sizes exist side by side, and how much memory that takes shows as they go. A
		// buffer with memory of its own for each launch is what takes most.
		if buffers {
			buffers = false
			o.Unsupported(bench.Unsupported{Workload: Name, Case: o.Prefix + "rebuild in plain C with buffers", Reason: err.Error()})
			continue
		}
		last := len(o.Sizes) - 1
		o.Unsupported(bench.Unsupported{Workload: Name, Case: fmt.Sprintf("%sn=%d", o.Prefix, o.Sizes[last]), Reason: err.Error()})
		if o.Sizes = o.Sizes[:last]; last == 0 {
			return nil, nil
		}
	}
}

// rig is everything that is set up for a run.
type rig struct {
	ctx   context.Context
	d     *vk.Device
	o     Options
	add   *shaders.Kernel
	nop   *shaders.Kernel
	plain *plain
	sizes []*size
	idle  *submitter

	nopPlain *plain
	buffers  bool // plain C may make a buffer for each launch
}

// size is what exists for one number of launches. Streams are not shared between sizes: a
// small batch would be billed for taking apart the large one recorded before it.
type size struct {
	n        int
	ours     [modeCount]*library
	graphs   [modeCount]*cmdbuf.Graph // of the modes that replay one
	nopOurs  *library
	nop      *cmdbuf.Graph
	batch    *cfloor.Floor // chains with the barriers of a batch, and of a graph
	recorded *cfloor.Floor
	nopChain *cfloor.Floor
	barriers [modeCount]int // in one submission, of the library
	buffers  bool           // plain C may have a buffer with memory of its own for each launch
}

func (r *rig) run() ([]bench.Result, error) {
	r.o.Progress("setting up", 0)
	if err := r.setUp(); err != nil {
		return nil, err
	}
	r.o.Progress("checking results", 0)
	if err := r.verify(); err != nil {
		return nil, err
	}
	groups := r.groups()
	m := r.o.Measure
	m.Progress = func(p bench.Progress) {
		r.o.Progress(fmt.Sprintf("measuring, round %d", p.Round), p.Part)
	}
	samples, err := bench.Measure(r.ctx, groups, m)
	if err != nil {
		return nil, fmt.Errorf("launch: %w", err)
	}
	results := r.results(samples)
	if r.o.Scope == Full {
		once, err := r.once()
		if err != nil {
			return nil, err
		}
		results = append(results, once...)
	}
	r.o.Progress("checking results again", 1)
	return results, r.verify()
}

func (r *rig) setUp() error {
	var err error
	if r.add == nil { // a test puts a wrong one in its place
		if r.add, err = oneGroup(shaders.Add); err != nil {
			return err
		}
	}
	if r.nop, err = oneGroup(shaders.Nop); err != nil {
		return err
	}
	if r.plain, err = newPlain(r.d, r.add); err != nil {
		return err
	}
	if r.o.Scope == Full {
		if r.nopPlain, err = newPlain(r.d, r.nop); err != nil {
			return err
		}
		if r.idle, err = newSubmitter(r.d); err != nil {
			return err
		}
	}
	for _, n := range r.o.Sizes {
		s := &size{n: n, buffers: r.buffers && uint64(n)+otherAllocations <= r.d.Limits().MaxMemoryAllocationCount}
		r.sizes = append(r.sizes, s)
		for _, m := range modesOf(r.d) {
			if s.ours[m], err = newLibrary(r.d, r.add, m, n); err != nil {
				return err
			}
			if !m.recorded() {
				continue
			}
			if s.graphs[m], err = s.ours[m].record(r.ctx, n); err != nil {
				return err
			}
		}
		if s.batch, err = r.plain.chain(n, betweenLaunches, batchEnd); err != nil {
			return err
		}
		if s.recorded, err = r.plain.chain(n, graphBegin, graphEnd); err != nil {
			return err
		}
		if r.o.Scope != Full {
			continue
		}
		if s.nopOurs, err = newLibrary(r.d, r.nop, replay, n); err != nil {
			return err
		}
		s.nop, err = s.nopOurs.stream.Capture(r.ctx, func(c *cmdbuf.Capture) error {
			for range n {
				if err := c.Launch(r.nop); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		if s.nopChain, err = r.nopPlain.chain(n, graphBegin, graphEnd); err != nil {
			return err
		}
	}
	return nil
}

// runner executes shots of a chain.
type runner func(shots int) error

// library returns how the library runs a chain in a mode.
func (r *rig) library(m mode, s *size) runner {
	l := s.ours[m]
	if m.recorded() {
		return func(shots int) error { return l.replay(r.ctx, s.graphs[m], shots) }
	}
	return func(shots int) error { return l.eager(r.ctx, s.n, shots) }
}

// plainModes are the ways of plain C that a mode of the library is compared with, by
// the name of the reference.
func plainModes(m mode, s *size) map[string]runner {
	on := func(f *cfloor.Floor, m cfloor.Mode) runner { return func(shots int) error { return f.Run(m, shots) } }
	switch m {
	case rebuild:
		if !s.buffers {
			return map[string]runner{"c": on(s.batch, cfloor.Rebuild)}
		}
		return map[string]runner{"c": on(s.batch, cfloor.Rebuild), "c.buffer": on(s.batch, cfloor.RebuildBuffer)}
	case cached:
		return map[string]runner{"c": on(s.batch, cfloor.Cached)}
	}
	return map[string]runner{"c": on(s.recorded, cfloor.Replay)}
}

// verify compares every way of launching with the reference, and what each recorded.
func (r *rig) verify() error {
	const shots = 2
	for _, s := range r.sizes {
		want := start()
		want.advance(s.n, shots)
		for _, m := range modesOf(r.d) {
			name := fmt.Sprintf("%v/n=%d", m, s.n)
			if err := r.verifyLibrary(name, m, s, shots, want); err != nil {
				return err
			}
			for reference, run := range plainModes(m, s) {
				if err := r.verifyPlain(name+" in plain C ("+reference+")", run, shots, want); err != nil {
					return err
				}
				floor := s.batch
				if m.recorded() {
					floor = s.recorded
				}
				ours, theirs := cfloor.Counts{Launches: s.n, Barriers: s.barriers[m]}, floor.Recorded()
				if ours != theirs {
					return fmt.Errorf("launch: %s: %w: %d launches and %d barriers, plain C (%s) %d and %d",
						name, ErrUnequal, ours.Launches, ours.Barriers, reference, theirs.Launches, theirs.Barriers)
				}
			}
		}
	}
	return nil
}

func (r *rig) verifyLibrary(name string, m mode, s *size, shots int, want *state) error {
	l := s.ours[m]
	if err := l.set(start()); err != nil {
		return err
	}
	if err := r.library(m, s)(shots - 1); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	run := func() error { return r.library(m, s)(1) }
	var err error
	if m.recorded() {
		err = run()
		s.barriers[m] = graphBarriers(s.graphs[m])
	} else {
		s.barriers[m], err = l.barriers(run)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	found, err := l.get(r.ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return want.compare(name, found)
}

func (r *rig) verifyPlain(name string, run runner, shots int, want *state) error {
	if err := r.plain.set(start()); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := run(shots); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	found, err := r.plain.get()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return want.compare(name, found)
}

// close gives everything back, in the reverse order.
func (r *rig) close() error {
	var err error
	if r.idle != nil {
		r.idle.close()
	}
	for _, p := range []*plain{r.plain, r.nopPlain} {
		if p != nil {
			p.close()
		}
	}
	for _, s := range r.sizes {
		for _, l := range append(s.ours[:], s.nopOurs) {
			if l != nil {
				err = errors.Join(err, l.close()) // and its graphs
			}
		}
	}
	return err
}

// first is how often what happens once is measured.
const first = 5

// once measures what happens once for a stream or a graph: the first launch, with every
// page touched for the first time, and the recording.
func (r *rig) once() ([]bench.Result, error) {
	var list []bench.Result
	var times []float64
	for range first {
		l, err := newLibrary(r.d, r.add, cached, 1)
		if err != nil {
			return nil, err
		}
		begin := time.Now()
		err = l.eager(r.ctx, 1, 1)
		times = append(times, float64(time.Since(begin)))
		if err = errors.Join(err, l.close()); err != nil {
			return nil, fmt.Errorf("launch: the first one: %w", err)
		}
	}
	list = append(list, r.result("first", "ns", times, 1))
	for _, s := range r.sizes {
		times = times[:0]
		for range first {
			begin := time.Now()
			g, err := s.ours[replay].record(r.ctx, s.n)
			times = append(times, float64(time.Since(begin)))
			if err != nil {
				return nil, fmt.Errorf("launch: capture of %d: %w", s.n, err)
			}
			if err := g.Close(); err != nil {
				return nil, fmt.Errorf("launch: capture of %d: %w", s.n, err)
			}
		}
		list = append(list, r.result(fmt.Sprintf("capture/n=%d", s.n), unitLaunch, times, float64(s.n)))
		host, err := r.host(s)
		if err != nil {
			return nil, fmt.Errorf("launch: host time of replays of %d: %w", s.n, err)
		}
		list = append(list, host...)
	}
	return list, nil
}

// hostShots is how many replays of n launches the host's part is measured with: hundreds,
// but not so many that the device takes seconds.
func hostShots(n int) int { return min(max(1<<17/n, 25), 300) }

// host measures what the host does for a replay: the call alone, without the wait, and
// what setting a parameter beforehand adds to it. A driver on the CPU leaves the caches to
// the kernels' memory, the colder the longer the graph was; a replay of one launch before
// each call brings the code back, so that the call's own cost is measured.
func (r *rig) host(s *size) ([]bench.Result, error) {
	l := s.ours[replay]
	scale, err := cmdbuf.New[float32](l.stream, 1)
	if err != nil {
		return nil, err
	}
	defer scale.Close()
	g, err := l.stream.Capture(r.ctx, func(c *cmdbuf.Capture) error {
		if err := c.Launch(shaders.Fill, cmdbuf.Param("scale", cmdbuf.Float32(0)), scale); err != nil {
			return err
		}
		for i := range s.n - 1 {
			from, to := step(i)
			if err := c.Launch(l.kernel, l.view[from], l.view[tensorB], l.view[to]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	warm, err := l.stream.Capture(r.ctx, func(c *cmdbuf.Capture) error {
		return c.Launch(shaders.Fill, cmdbuf.Param("scale", cmdbuf.Float32(0)), scale)
	})
	if err != nil {
		return nil, errors.Join(err, g.Close())
	}
	var calls, sets []float64
	for i := range 2 * hostShots(s.n) {
		if err := errors.Join(warm.Set("scale", cmdbuf.Float32(float32(i))), warm.Replay(), l.stream.Sync(r.ctx)); err != nil {
			return nil, errors.Join(err, warm.Close(), g.Close())
		}
		begin := time.Now()
		if i%2 == 1 {
			err = g.Set("scale", cmdbuf.Float32(float32(i)))
		}
		err = errors.Join(err, g.Replay())
		took := float64(time.Since(begin))
		if err = errors.Join(err, l.stream.Sync(r.ctx)); err != nil {
			return nil, errors.Join(err, warm.Close(), g.Close())
		}
		if i%2 == 1 {
			sets = append(sets, took)
		} else {
			calls = append(calls, took)
		}
	}
	call := bench.NewResult(Name, fmt.Sprintf("%shost/n=%d", r.o.Prefix, s.n), "host", "ns/replay", calls, 1)
	for i := range sets {
		sets[i] -= call.Median
	}
	return []bench.Result{call, bench.NewResult(Name, fmt.Sprintf("%sset/n=%d", r.o.Prefix, s.n), "host", "ns", sets, 1)}, errors.Join(warm.Close(), g.Close())
}
