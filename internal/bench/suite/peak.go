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
	"vkcompute/internal/bench/suite/probes"
	"vkcompute/internal/bench/suite/probes/variant"
	"vkcompute/shaders"
	"vkcompute/vk"
)

const peakName = "peak"

const (
	// probeTime is how long a launch of a probe is made: much longer than a submission,
	// and short enough for a desktop's watchdog.
	probeTime = 2 * time.Millisecond
	// probeGroup is its workgroup.
	probeGroup = 128
)

// probe is a launch whose work is known.
type probe struct {
	name   string
	amount float64 // of bytes or operations
	run    func(shots int) error
	close  func() error
}

// sizes of the probes: a CPU has few cores and large caches.
type probeSizes struct {
	invocations int // of an arithmetic probe
	bytes       int // of a memory probe, beyond the caches
}

func (o *Options) probeSizes(d *vk.Device) probeSizes {
	if o.small(d) {
		return probeSizes{1 << 12, 32 << 20}
	}
	return probeSizes{min(1<<18, int(d.Limits().MaxStorageBufferRange/4)), 256 << 20}
}

// launches runs a launch so often and waits once.
func launches(ctx context.Context, s *cmdbuf.Stream, k *shaders.Kernel, args ...cmdbuf.Arg) func(int) error {
	return func(shots int) error {
		for range shots {
			if err := s.Launch(k, args...); err != nil {
				return err
			}
		}
		return s.Sync(ctx)
	}
}

// quickest is the least time of a few runs.
func quickest(run func(int) error) (time.Duration, error) {
	best := time.Duration(math.MaxInt64)
	for range 3 {
		took, err := once(func() error { return run(1) })
		if err != nil {
			return 0, err
		}
		best = min(best, time.Duration(took))
	}
	return max(best, 1), nil
}

// Peak finds what the device does at best: float32 fused multiply-adds, over numbers of
// accumulators and unrolling, and bytes read and copied by kernels.
func Peak(ctx context.Context, d *vk.Device, o Options) (list []bench.Result, err error) {
	err = stream(d, cmdbuf.Options{}, func(s *cmdbuf.Stream) (err error) {
		list, err = peak(ctx, s, o, o.probeSizes(d), variant.FMAs())
		return err
	})
	if o.unsupported(peakName, "all", err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("peak: %w", err)
	}
	return list, nil
}

func peak(ctx context.Context, s *cmdbuf.Stream, o Options, size probeSizes, variants []variant.FMA) (list []bench.Result, err error) {
	o.say("sweeping accumulators and unrolling", 0)
	arithmetic, err := fmaProbes(ctx, s, size.invocations, variants)
	defer func() { err = errors.Join(err, closeProbes(arithmetic)) }()
	if err != nil {
		return nil, err
	}
	o.say("sweeping ways to read and copy", 0)
	memory, err := memoryProbes(ctx, s, size.bytes)
	defer func() { err = errors.Join(err, closeProbes(memory)) }()
	if err != nil {
		return nil, err
	}
	var groups []bench.Group
	for _, p := range append(slices.Clone(arithmetic), memory...) {
		groups = append(groups, one(p.name, p.run))
	}
	samples, err := o.measure(ctx, groups)
	if err != nil {
		return nil, err
	}
	var sweep []bench.Result
	for i, p := range arithmetic {
		sweep = append(sweep, bench.NewFigure(peakName, "fma/"+p.name, "arithmetic", "GFLOP/s", rates(p.amount, samples[i])))
	}
	best := slices.MaxFunc(sweep, func(a, b bench.Result) int { return int(math.Copysign(1, a.Median-b.Median)) })
	best.Note = "best of the sweep, at " + best.Case[len("fma/"):]
	best.Case = "fma"
	list = append(list, best)
	for i, p := range memory {
		r := bench.NewFigure(peakName, []string{"read", "copy"}[i], "bandwidth", "GB/s", rates(p.amount, samples[len(arithmetic)+i]))
		r.Note = fmt.Sprintf("best of the sweep, at %s, %s", p.name, sizeName(size.bytes))
		list = append(list, r)
	}
	return append(list, sweep...), nil
}

func closeProbes(list []probe) error {
	var err error
	for _, p := range list {
		err = errors.Join(err, p.close())
	}
	return err
}

// fmaProbes makes a probe of each variant that takes about probeTime, and checks what it
// computes. The probes share their tensors; the first closes them.
func fmaProbes(ctx context.Context, s *cmdbuf.Stream, invocations int, variants []variant.FMA) (list []probe, err error) {
	x, err := cmdbuf.Upload(s, []float32{1, 1}, 2)
	if err != nil {
		return nil, err
	}
	out, err := cmdbuf.New[float32](s, invocations)
	if err != nil {
		return nil, errors.Join(err, x.Close())
	}
	nothing := func() error { return nil }
	list = append(list, probe{close: func() error { return errors.Join(x.Close(), out.Close()) }})
	for i, v := range variants {
		k, err := probes.FMA(v, probeGroup)
		if err != nil {
			return list, err
		}
		rounds := max(1, 64/v.Unroll)
		steps := func() float64 { return float64(rounds * v.Unroll) }
		for {
			took, err := quickest(launches(ctx, s, k, cmdbuf.Uint32(uint32(rounds)), x, out))
			if err != nil {
				return list, fmt.Errorf("%v: %w", v, err)
			}
			// Above 2²² steps the sums are no longer exact.
			if took >= probeTime/2 || steps() > 1<<21 {
				break
			}
			rounds = int(float64(rounds) * min(8, 1.2*float64(probeTime)/float64(took)))
		}
		run := launches(ctx, s, k, cmdbuf.Uint32(uint32(rounds)), x, out)
		if err := run(1); err != nil {
			return list, err
		}
		found, err := out.Read(ctx)
		if err != nil {
			return list, err
		}
		chains := float64(v.Width * v.Accumulators)
		for at, f := range found {
			want := chains * (float64(at&7) + steps())
			if math.Abs(float64(f)-want) > 1e-6*want {
				return list, fmt.Errorf("%v: %w: invocation %d: want %v, found %v", v, ErrWrong, at, want, f)
			}
		}
		p := probe{name: v.String(), amount: 2 * chains * steps() * float64(invocations), run: run, close: nothing}
		if i == 0 {
			p.close = list[0].close
			list[0] = p
		} else {
			list = append(list, p)
		}
	}
	return list, nil
}

// memoryProbes makes the best probe that reads so many bytes, and the best that copies
// them.
func memoryProbes(ctx context.Context, s *cmdbuf.Stream, bytes int) (list []probe, err error) {
	bytes = min(bytes, int(min(s.Device().Limits().MaxStorageBufferRange, 1<<30)))
	// A power of two, so that every way of sharing it out comes out even.
	n := 1
	for n*2 <= bytes/4 {
		n *= 2
	}
	bytes = 4 * n
	host := make([]float32, n)
	for i := range host {
		host[i] = float32(i & 3)
	}
	x, err := cmdbuf.Upload(s, host, n)
	if err != nil {
		return nil, err
	}
	to, err := cmdbuf.New[float32](s, n)
	if err != nil {
		return nil, errors.Join(err, x.Close())
	}
	closeBoth := func() error { return errors.Join(x.Close(), to.Close()) }
	fail := func(err error) ([]probe, error) { return nil, errors.Join(err, closeBoth()) }
	type found struct {
		probe
		took  time.Duration
		check func() error
	}
	best := [2]found{{took: math.MaxInt64}, {took: math.MaxInt64}}
	for _, blocks := range []int{4, 16, 64, 256} {
		invocations := n / 4 / blocks
		if invocations < probeGroup || invocations/probeGroup > 65535 {
			continue
		}
		sums, err := to.Range(0, 0, invocations, 1)
		if err != nil {
			return fail(err)
		}
		for _, way := range []probes.Way{probes.Turns, probes.Runs} {
			read, err := probes.Read(way, probeGroup)
			if err != nil {
				return fail(err)
			}
			copied, err := probes.Copy(way, probeGroup)
			if err != nil {
				return fail(err)
			}
			name := fmt.Sprintf("%s of %d blocks", way, blocks)
			for kind, f := range []found{
				{probe: probe{name, float64(bytes), launches(ctx, s, read, cmdbuf.Uint32(uint32(blocks)), x, sums), nil}, check: func() error { return expect(ctx, sums, func(int) float32 { return 6 * float32(blocks) }) }},
				{probe: probe{name, 2 * float64(bytes), launches(ctx, s, copied, cmdbuf.Uint32(uint32(blocks)), x, to), nil}, check: func() error { return expect(ctx, to, func(i int) float32 { return host[i] }) }},
			} {
				// Twice, because on a machine with other work the quickest way may have a bad
				// moment, and a slow one would be the roof.
				f.took = math.MaxInt64
				for range 2 {
					took, err := quickest(f.run)
					if err != nil {
						return fail(err)
					}
					f.took = min(f.took, took)
				}
				if f.took < best[kind].took {
					best[kind] = f
				}
			}
		}
	}
	for kind, f := range best {
		if f.run == nil {
			return fail(fmt.Errorf("%s: too small to measure", sizeName(bytes)))
		}
		if err := errors.Join(s.Launch(shaders.Fill, cmdbuf.Float32(-1), to), f.run(1), f.check()); err != nil {
			return fail(fmt.Errorf("%s: %w", f.name, err))
		}
		f.close = func() error { return nil }
		if kind == 0 {
			f.close = closeBoth
		}
		list = append(list, f.probe)
	}
	return list, nil
}

// expect compares a tensor with what each element should be, exactly.
func expect(ctx context.Context, t *cmdbuf.Tensor[float32], want func(i int) float32) error {
	found, err := t.Read(ctx)
	if err != nil {
		return err
	}
	for i, f := range found {
		if w := want(i); f != w {
			return fmt.Errorf("%w: element %d: want %v, found %v", ErrWrong, i, w, f)
		}
	}
	return nil
}
