package suite

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"vkcompute/cmdbuf"
	"vkcompute/internal/bench"
	"vkcompute/shaders"
	"vkcompute/vk"
)

const (
	// tuneGain is how much faster a tuning must be, as a part of the time, to be worth a file.
	tuneGain = 0.03
	// tuneLoss is how much slower any of the kernels may become for that.
	tuneLoss = 0.05
	// tuneChance is how likely it may be that a candidate only seems to be faster.
	tuneChance = 0.01
	// tuneShot is how long a matrix product may take; dozens of tiles are tried on it.
	tuneShot = 200 * time.Millisecond
	// tuneRounds are measured of each candidate at least: of fewer, all but one say nothing.
	tuneRounds = 11
	// tuneHopeless is how many times as long as the best so far a candidate takes at a
	// first glance that is not measured further.
	tuneHopeless = 1.3
)

// Tuned is what Tune found.
type Tuned struct {
	Default, Chosen shaders.Tuning
	// Tried is every step of the search, in its order.
	Tried []Trial
	// Kernels compare the two, measured side by side after the search.
	Kernels []TunedKernel
	// Gain is how many times as fast the kernels run as with the default, in the middle of
	// them; 1 where it was kept.
	Gain float64
}

// Trial is one candidate beside the best until then.
type Trial struct {
	Knob, Value string
	Tuning      shaders.Tuning
	// Time is that of the kernels it concerns as a part of the best's until then: the
	// median of the rounds, and the tenth and ninetieth percentile.
	Time, Low, High float64
	Rounds          int // 0: given up at a first glance
	Taken           bool
	// Why it was not taken.
	Why string
	// Wrong: it computed something else than plain Go, as Why tells.
	Wrong error
}

// Wrong joins what candidates computed wrong, nil if none did: the tuning that was chosen is
// right all the same.
func (t *Tuned) Wrong() error {
	var list []error
	for _, x := range t.Tried {
		if x.Wrong != nil {
			list = append(list, fmt.Errorf("tune: %s %s (%+v): %w", x.Knob, x.Value, x.Tuning, x.Wrong))
		}
	}
	return errors.Join(list...)
}

// TunedKernel is a kernel under both tunings, in nanoseconds a launch.
type TunedKernel struct {
	Name            string
	Default, Chosen bench.Summary
}

// Tune searches the tuning of a device: one value after the other, the kernels that show
// its effect measured under every candidate in turns. A candidate must compute what plain
// Go does, and be faster in more rounds than chance would have it, or the default is kept.
// base is the
// default; a test may start from a worse one.
func Tune(ctx context.Context, d *vk.Device, o Options, base shaders.Tuning) (Tuned, error) {
	size := tuneSizes{1 << 22, 1024}
	if o.small(d) {
		size = tuneSizes{1 << 17, 512}
	}
	return tune(ctx, d, o, base, size)
}

// tuneSizes are those of the operands: as large as a program's, within what one binding
// may hold.
type tuneSizes struct {
	elements int // of an element-wise kernel and a reduction, a power of two
	side     int // of a matrix
}

func tune(ctx context.Context, d *vk.Device, o Options, base shaders.Tuning, size tuneSizes) (t Tuned, err error) {
	t = Tuned{Default: base, Chosen: base, Gain: 1}
	if err := cmdbuf.CheckTuning(d.Info(), base); err != nil {
		return t, fmt.Errorf("tune: %w", err)
	}
	err = stream(d, cmdbuf.Options{Tuning: &base}, func(s *cmdbuf.Stream) (err error) {
		for {
			b := &tuneBench{ctx: ctx, d: d, o: o, operands: operands{s: s}}
			took, err := b.setUp(size)
			if err == nil && took > tuneShot && size.side > 64 {
				if err := b.Close(); err != nil {
					return err
				}
				size.side /= 2
				continue
			}
			if err == nil {
				err = b.search(&t)
			}
			return errors.Join(err, b.Close())
		}
	})
	if err != nil {
		return t, fmt.Errorf("tune: %w", err)
	}
	return t, nil
}

// tuneBench holds the operands, which all candidates share: other memory would be other
// caches.
type tuneBench struct {
	operands
	ctx   context.Context
	d     *vk.Device
	o     Options
	cases []tuneCase
}

type tuneCase struct {
	name   string
	kernel *shaders.Kernel
	args   []cmdbuf.Arg
	spoil  func() error // so that a candidate that writes nothing is found out
	check  func(context.Context) error
}

func (b *tuneBench) Close() error { return b.close() }

// setUp makes the operands, computes what should come out, and says how long a matrix product
// takes.
func (b *tuneBench) setUp(size tuneSizes) (time.Duration, error) {
	b.o.say("computing references", 0)
	n, side := size.elements, size.side
	limit := int(min(b.d.Limits().MaxStorageBufferRange/4, 1<<30))
	for n > limit {
		n /= 2
	}
	for side*side > limit {
		side /= 2
	}
	x, hx := tensor(&b.operands, wave, n)
	y, hy := tensor(&b.operands, positive, n)
	want := make([]float32, n)
	for i := range want {
		want[i] = hx[i] + hy[i]
	}
	b.add(shaders.Add, want, 0, x, y)

	rows := max(1, n/rowLen)
	want = make([]float32, rows)
	for r := range want {
		want[r] = plainSum(hx[r*rowLen : (r+1)*rowLen])
	}
	b.add(shaders.Sum, want, 1e-3, b.shaped(x, rows, rowLen))

	m, hm := tensor(&b.operands, wave, side, side)
	v, hv := tensor(&b.operands, positive, side)
	want = make([]float32, side)
	for r := range want {
		sum := 0.0
		for i, w := range hv {
			sum += float64(hm[r*side+i]) * float64(w)
		}
		want[r] = float32(sum)
	}
	b.add(shaders.MatVec, want, 1e-3, m, v)

	second, hs := tensor(&b.operands, positive, side, side)
	want = make([]float32, side*side)
	for r := range side {
		row := want[r*side : (r+1)*side]
		for i := range side {
			a := hm[r*side+i]
			for c, w := range hs[i*side : (i+1)*side] {
				row[c] += a * w
			}
		}
	}
	b.add(shaders.MatMul, want, 1e-2, m, second)
	if b.err != nil {
		return 0, b.err
	}
	product := b.cases[len(b.cases)-1]
	product.name = fmt.Sprintf("%s/%d", product.name, side)
	b.cases[len(b.cases)-1] = product
	run := launches(b.ctx, b.s, product.kernel, product.args...)
	if err := run(1); err != nil { // compiled
		return 0, err
	}
	took, err := once(func() error { return run(1) })
	return time.Duration(took), err
}

func (b *tuneBench) shaped(t *cmdbuf.Tensor[float32], shape ...int) *cmdbuf.Tensor[float32] {
	if b.err != nil {
		return nil
	}
	v, err := t.Reshape(shape...)
	b.err = err
	return v
}

// add adds a case whose last operand is made here.
func (b *tuneBench) add(k *shaders.Kernel, want []float32, tolerance float64, inputs ...*cmdbuf.Tensor[float32]) {
	if b.err != nil {
		return
	}
	shape := []int{len(want)}
	switch k {
	case shaders.Sum:
		shape = append(shape, 1)
	case shaders.MatMul:
		side := int(math.Sqrt(float64(len(want))))
		shape = []int{side, side}
	}
	spoilt := make([]float32, len(want))
	for i := range spoilt {
		spoilt[i] = float32(math.NaN())
	}
	out, _ := tensor(&b.operands, func(int) float32 { return 0 }, shape...)
	c := tuneCase{name: k.Name, kernel: k, check: func(ctx context.Context) error {
		found, err := out.Read(ctx)
		if err != nil {
			return err
		}
		for i, w := range want {
			if !(math.Abs(float64(w)-float64(found[i])) <= tolerance*max(1, math.Abs(float64(w)))) {
				return fmt.Errorf("%s: %w: element %d: want %v as plain Go has it, found %v", k.Name, ErrWrong, i, w, found[i])
			}
		}
		return nil
	}, spoil: func() error { return errors.Join(out.Write(spoilt), b.s.Sync(b.ctx)) }}
	for _, in := range inputs {
		c.args = append(c.args, in)
	}
	c.args = append(c.args, out)
	b.cases = append(b.cases, c)
}

// shows lists the cases that show a knob.
func (b *tuneBench) shows(k knob) []tuneCase {
	var list []tuneCase
	for _, c := range b.cases {
		if len(k.kernels) == 0 || slices.Contains(k.kernels, c.kernel.Name) {
			list = append(list, c)
		}
	}
	return list
}

// search goes from knob to knob, and then measures what it found beside the default.
func (b *tuneBench) search(t *Tuned) error {
	info, all := b.d.Info(), knobs()
	for i, k := range all {
		trials := []Trial{{Tuning: t.Chosen}}
		for _, c := range k.candidates(t.Chosen, info) {
			trials = append(trials, Trial{Knob: k.name, Value: c.name, Tuning: c.tuning})
		}
		if len(trials) == 1 {
			continue
		}
		if _, err := b.compare(trials, b.shows(k), k.name, i, len(all)+1); err != nil {
			return err
		}
		if best := take(trials); best > 0 {
			t.Chosen = trials[best].Tuning
		}
		t.Tried = append(t.Tried, trials[1:]...)
	}
	// The best of many may owe it to chance: once more, by itself.
	trials := []Trial{{Tuning: t.Default}, {Knob: "all", Value: "together", Tuning: t.Chosen}}
	if t.Chosen == t.Default {
		trials = trials[:1]
	}
	times, err := b.compare(trials, b.cases, "what was found", len(all), len(all)+1)
	if err != nil {
		return err
	}
	if len(trials) > 1 && take(trials) == 0 {
		trials[1].Why = "found before, and not again: " + trials[1].Why
		t.Chosen = t.Default
	}
	t.Tried = append(t.Tried, trials[1:]...)
	if len(trials) > 1 && trials[1].Taken {
		t.Gain = 1 / trials[1].Time
	}
	for i, c := range b.cases {
		k := TunedKernel{Name: c.name, Default: bench.Summarise(times[i][0])}
		if k.Chosen = k.Default; t.Chosen != t.Default {
			k.Chosen = bench.Summarise(times[i][1])
		}
		t.Kernels = append(t.Kernels, k)
	}
	return nil
}

// compare measures cases under each trial's tuning, the first of which is what the others
// are compared with, and fills in their times. The times come back by case, trial and
// round; those of a trial that does not run are empty.
func (b *tuneBench) compare(trials []Trial, cases []tuneCase, what string, step, steps int) (times [][]bench.Samples, err error) {
	kernels := make([][]*shaders.Kernel, len(trials)) // by trial and case
	for i := range trials {
		for _, c := range cases {
			kernels[i] = append(kernels[i], c.kernel.Tuned(trials[i].Tuning))
		}
		b.o.say("checking "+what, float64(step)/float64(steps))
		if err := b.ctx.Err(); err != nil {
			return nil, fmt.Errorf("%w: %w", bench.ErrInterrupted, err)
		}
		if err := b.verify(kernels[i], cases); err != nil {
			if i == 0 || !errors.Is(err, ErrWrong) {
				return nil, err
			}
			trials[i].Why, trials[i].Wrong = err.Error(), err
		}
	}
	if step+1 < steps { // the last comparison is to be a good one
		if err := b.glance(trials, kernels, cases, what); err != nil {
			return nil, err
		}
	}
	var groups []bench.Group
	for at, c := range cases {
		var g bench.Group
		for i, t := range trials {
			if t.Why == "" {
				g.Cases = append(g.Cases, bench.Case{Name: fmt.Sprintf("%s, %s %s", c.name, t.Knob, t.Value), Run: launches(b.ctx, b.s, kernels[i][at], c.args...)})
			}
		}
		groups = append(groups, g)
	}
	m := b.o.Measure
	m.Rounds = max(m.Rounds, tuneRounds)
	m.Time /= time.Duration(steps)
	if m.Limit /= time.Duration(steps); m.Limit > 0 {
		m.Limit = max(m.Limit, 3*m.Time)
	}
	m.Progress = func(p bench.Progress) {
		b.o.say(fmt.Sprintf("measuring %s, round %d", what, p.Round), (float64(step)+p.Part)/float64(steps))
	}
	measured, err := bench.Measure(b.ctx, groups, m)
	if err != nil {
		return nil, err
	}
	times = make([][]bench.Samples, len(cases))
	for c := range cases {
		times[c] = make([]bench.Samples, len(trials))
		at := 0
		for i := range trials {
			if trials[i].Why == "" {
				times[c][i] = measured[c][at]
				at++
			}
		}
	}
	for i := 1; i < len(trials); i++ {
		if trials[i].Why == "" {
			judge(&trials[i], cases, times, i)
		}
	}
	return times, nil
}

// glance runs everything a few times, and gives up trials that are far from the best.
func (b *tuneBench) glance(trials []Trial, kernels [][]*shaders.Kernel, cases []tuneCase, what string) error {
	b.o.say("looking at "+what, 0)
	least := make([][]float64, len(trials))
	for i := range trials {
		if err := b.ctx.Err(); err != nil {
			return fmt.Errorf("%w: %w", bench.ErrInterrupted, err)
		}
		if trials[i].Why != "" {
			continue
		}
		for c := range cases {
			took, err := quickest(launches(b.ctx, b.s, kernels[i][c], cases[c].args...))
			if err != nil {
				return err
			}
			least[i] = append(least[i], float64(took))
		}
	}
	best := 1.0
	parts := make([]float64, len(trials))
	for i := range trials {
		if trials[i].Why == "" {
			sum := 0.0
			for c := range cases {
				sum += math.Log(least[i][c] / least[0][c])
			}
			parts[i] = math.Exp(sum / float64(len(cases)))
			best = min(best, parts[i])
		}
	}
	for i := 1; i < len(trials); i++ {
		if t := &trials[i]; t.Why == "" && parts[i] > tuneHopeless*best {
			t.Time, t.Low, t.High, t.Why = parts[i], parts[i], parts[i], "slower at a glance"
		}
	}
	return nil
}

// verify compares what the cases' tuned kernels compute with plain Go.
func (b *tuneBench) verify(tuned []*shaders.Kernel, cases []tuneCase) error {
	for i, c := range cases {
		if err := errors.Join(c.spoil(), b.s.Launch(tuned[i], c.args...), b.s.Sync(b.ctx)); err != nil {
			return err
		}
		if err := c.check(b.ctx); err != nil {
			return err
		}
	}
	return nil
}

// judge says how trial i did beside trial 0: in each round the geometric mean of the
// kernels' times as parts of each other, so that a slow kernel counts no more than a
// quick one.
func judge(t *Trial, cases []tuneCase, times [][]bench.Samples, i int) {
	var together []float64
	worst, name := 0.0, ""
	for c := range cases {
		parts := bench.Ratios(times[c][i], times[c][0])
		if together == nil {
			together = make([]float64, len(parts))
		}
		for r, p := range parts {
			together[r] += math.Log(p) / float64(len(cases))
		}
		if m := bench.Median(parts); m > worst {
			worst, name = m, cases[c].name
		}
	}
	for r := range together {
		together[r] = math.Exp(together[r])
	}
	s := bench.Summarise(together)
	t.Time, t.Low, t.High, t.Rounds = s.Median, s.P10, s.P90, s.Count
	switch {
	case t.Time > 1-tuneGain:
		t.Why = "not faster"
	case bench.Chance(together) > tuneChance:
		t.Why = "within the noise"
	case worst > 1+tuneLoss:
		t.Why = fmt.Sprintf("%s takes %.2f times as long", name, worst)
	}
}

// take marks the best of those that may be taken, and returns its place, 0 for none.
func take(trials []Trial) int {
	best := 0
	for i := 1; i < len(trials); i++ {
		if t := &trials[i]; t.Why == "" && (best == 0 || t.Time < trials[best].Time) {
			best = i
		}
	}
	for i := 1; i < len(trials); i++ {
		if t := &trials[i]; i != best && t.Why == "" {
			t.Why = "another was faster"
		}
	}
	trials[best].Taken = best > 0
	return best
}

// within leaves out what a device cannot use, and what is there already.
