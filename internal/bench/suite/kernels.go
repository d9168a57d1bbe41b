package suite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"vkcompute/cmdbuf"
	"vkcompute/internal/bench"
	"vkcompute/internal/bench/suite/probes/variant"
	"vkcompute/shaders"
	"vkcompute/vk"
)

const kernelsName = "kernels"

// plainTime is how long plain Go is measured for each kernel, or one run, if that takes
// longer.
const plainTime = 10 * time.Millisecond

// Kernels measures each built-in kernel beside its roof, the time that memory or
// arithmetic allows at best as probes of the same run find it, and beside the same
// operation in plain Go on one core. A function such as exp counts as one operation.
func Kernels(ctx context.Context, d *vk.Device, o Options) (list []bench.Result, err error) {
	err = stream(d, cmdbuf.Options{}, func(s *cmdbuf.Stream) (err error) {
		list, err = kernels(ctx, s, o, o.kernelSizes(d))
		return err
	})
	if o.unsupported(kernelsName, "all", err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("kernels: %w", err)
	}
	return list, nil
}

// kernelSizes are the sizes of the operands: large enough that a launch is not all
// latency, small enough for a CPU.
type kernelSizes struct {
	elements int // of an element-wise kernel, a power of two
	matrix   int // rows and columns of a matrix product
	// products are the rows and columns of those that are measured tile by tile.
	products []int
}

func (o *Options) kernelSizes(d *vk.Device) kernelSizes {
	size := kernelSizes{1 << 22, 1024, []int{512, 1024}}
	if o.small(d) {
		size.elements, size.matrix = 1<<17, 128
	}
	// Where a binding may not be that large, the figures of smaller ones still stand
	// beside the roof of their own size.
	most := d.Limits().MaxStorageBufferRange / 4
	for uint64(size.elements) > most {
		size.elements /= 2
	}
	for uint64(size.matrix*size.matrix) > most {
		size.matrix /= 2
	}
	size.products = slices.DeleteFunc(size.products, func(n int) bool { return uint64(n*n) > most })
	return size
}

func kernels(ctx context.Context, s *cmdbuf.Stream, o Options, size kernelSizes) (list []bench.Result, err error) {
	b := &operands{s: s}
	defer func() { err = errors.Join(err, b.close()) }()
	o.say("probing memory and arithmetic", 0)
	// The kernels' operands lie in the same caches as those of a probe of their size.
	memory, err := memoryProbes(ctx, s, 3*4*size.elements)
	defer func() { err = errors.Join(err, closeProbes(memory)) }()
	if err != nil {
		return nil, err
	}
	// So does the one operand of a kernel that only reads.
	reading, err := memoryProbes(ctx, s, 4*size.elements)
	defer func() { err = errors.Join(err, closeProbes(reading)) }()
	if err != nil {
		return nil, err
	}
	sizes := o.probeSizes(s.Device())
	// The best of these is within a few per cent of the whole sweep's.
	arithmetic, err := fmaProbes(ctx, s, sizes.invocations, []variant.FMA{{Width: 1, Accumulators: 8, Unroll: 16}, {Width: 1, Accumulators: 12, Unroll: 4}, {Width: 1, Accumulators: 12, Unroll: 16}, {Width: 4, Accumulators: 4, Unroll: 4}})
	defer func() { err = errors.Join(err, closeProbes(arithmetic)) }()
	if err != nil {
		return nil, err
	}
	b.cases(size)
	b.strided(size.elements)
	cases := b.list
	if b.err != nil {
		return nil, b.err
	}
	plain := make([][]float64, len(cases))
	var groups []bench.Group
	for i, c := range cases {
		o.say("checking "+c.name(), 0)
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("%w: %w", bench.ErrInterrupted, err)
		}
		if err := c.verify(ctx, s); err != nil {
			return nil, fmt.Errorf("%s: %w", c.name(), err)
		}
		for spent := time.Duration(0); spent < plainTime && len(plain[i]) < bench.MaxRounds; {
			begin := time.Now()
			c.plain()
			took := time.Since(begin)
			spent += took
			plain[i] = append(plain[i], float64(took))
		}
		groups = append(groups, one(c.name(), launches(ctx, s, c.kernel, c.args...)))
	}
	probes := append([]probe{reading[0], memory[1], memory[0]}, arithmetic...)
	for _, p := range probes {
		groups = append(groups, one(p.name, p.run))
	}
	samples, err := o.measure(ctx, groups)
	if err != nil {
		return nil, err
	}
	rate := func(i int) float64 { return bench.Median(rates(probes[i].amount, samples[len(cases)+i])) }
	read, copied, operations := rate(0), max(rate(1), rate(2)), 0.0 // a nanosecond
	for i := 3; i < len(probes); i++ {
		operations = max(operations, rate(i))
	}
	product := ceiling{operations: operations, loads: read / 16}
	for i, c := range cases {
		r := bench.NewResult(kernelsName, c.name(), "wall", "ns/launch", samples[i], 1)
		bandwidth, most := copied, operations
		if c.reads {
			bandwidth = read
		}
		if c.kernel == shaders.MatMul {
			most = product.with(s, s.Tuning())
		}
		byMemory, byArithmetic := c.bytes/bandwidth, c.operations/most
		roof, bound := byMemory, "memory"
		if byArithmetic > byMemory {
			roof, bound = byArithmetic, "arithmetic"
		}
		r.Reference = map[string]float64{"roof": max(roof, 0.1), "go": max(bench.Median(plain[i]), 0.1)}
		r.Note = fmt.Sprintf("%.0f %% of what %s allows", 100*roof/max(r.Median, 0.1), bound)
		list = append(list, r)
		if bound == "memory" {
			list = append(list, bench.NewFigure(kernelsName, c.name(), "bandwidth", "GB/s", rates(c.bytes, samples[i])))
		} else {
			list = append(list, bench.NewFigure(kernelsName, c.name(), "arithmetic", "GFLOP/s", rates(c.operations, samples[i])))
		}
	}
	products, err := matmuls(ctx, s, o, size.products, product)
	if err != nil {
		return nil, err
	}
	list = append(list, products...)
	for _, roof := range []struct {
		name, what, metric, unit string
		value                    float64
	}{
		{"roof/read", "reading " + sizeName(4*size.elements) + ", of kernels that write next to nothing", "bandwidth", "GB/s", read},
		{"roof/memory", "the better of reading and copying " + sizeName(3*4*size.elements) + ", read plus written", "bandwidth", "GB/s", copied},
		{"roof/arithmetic", "fused multiply-adds alone; a matrix product is bounded by its loads as well", "arithmetic", "GFLOP/s", operations},
	} {
		r := bench.NewFigure(kernelsName, roof.name, roof.metric, roof.unit, []float64{roof.value})
		r.Note = roof.what
		list = append(list, r)
	}
	return list, nil
}

// RecordKernels records a launch of each kernel.
func RecordKernels(ctx context.Context, s *cmdbuf.Stream) (g *cmdbuf.Graph, err error) {
	b := &operands{s: s}
	// The graph keeps the memory.
	defer func() { err = errors.Join(err, b.close()) }()
	cases := b.cases(new(Options).kernelSizes(s.Device()))
	if b.err != nil {
		return nil, b.err
	}
	return s.Capture(ctx, func(c *cmdbuf.Capture) error {
		for _, k := range cases {
			if err := c.Launch(k.kernel, k.args...); err != nil {
				return err
			}
		}
		return nil
	})
}
