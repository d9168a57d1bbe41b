package suite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"vkcompute/cmdbuf"
	"vkcompute/internal/bench"
	"vkcompute/shaders"
)

// ceiling is what bounds a matrix product: arithmetic, and loads.
type ceiling struct {
	operations float64 // of fused multiply-adds alone, a nanosecond
	loads      float64 // of four elements, a nanosecond
}

// of is how many operations a nanosecond a tile may come to: what multiply-adds alone
// allow, or the loads that a tile needs for them, if that is less. Direct operands come in
// patches of four by four elements in four loads; of staged ones each element comes once
// for the whole group.
func (c ceiling) of(tile shaders.Tile, group [3]uint32) float64 {
	rows, cols, perLoad := float64(tile.Rows), float64(tile.Cols), 4.0
	if tile.Operands == shaders.StagedOperands {
		rows, cols, perLoad = rows*float64(group[1]), cols*float64(group[0]), 1
	}
	return min(c.operations, 2*c.loads*perLoad*rows*cols/(rows+cols))
}

// limitsOf are the limits that a kernel's sizes are chosen by.
func limitsOf(s *cmdbuf.Stream, t shaders.Tuning) shaders.MaxWorkgroup {
	l := s.Device().Limits()
	return shaders.MaxWorkgroup{Invocations: uint32(l.MaxWorkgroupInvocations), Size: l.MaxWorkgroupSize, SharedBytes: uint32(l.MaxSharedMemory), Tuning: t}
}

// with is that of the tile of a tuning.
func (c ceiling) with(s *cmdbuf.Stream, t shaders.Tuning) float64 {
	_, group := shaders.MatMul.Spec(limitsOf(s, t))
	return c.of(t.MatMulTile(), group)
}

// blocks are the tiles of the sweep, results of an invocation along M and N, the stream's
// own first. Large matrices take long, so only what may be good for them is tried.
func blocks(own shaders.Tile, n int) [][2]uint32 {
	list := [][2]uint32{{8, 8}, {8, 16}, {16, 8}, {16, 16}}
	switch {
	case own.Operands == shaders.StagedOperands:
		list = [][2]uint32{{2, 4}, {4, 4}, {4, 8}, {8, 4}, {8, 8}}
	case n <= 512:
		list = append(list, [2]uint32{4, 4}, [2]uint32{4, 8}, [2]uint32{8, 4})
	}
	first := [2]uint32{own.Rows, own.Cols}
	list = slices.DeleteFunc(list, func(b [2]uint32) bool { return b == first })
	return append([][2]uint32{first}, list...)
}

// matmuls measures products of square matrices, beside what a sweep of tiles finds and
// beside their ceiling.
func matmuls(ctx context.Context, s *cmdbuf.Stream, o Options, sizes []int, c ceiling) (list []bench.Result, err error) {
	// Launches take long, so a few samples do.
	o.Measure.Rounds = min(o.Measure.Rounds, bench.FewRounds)
	o.Measure.Time /= 4
	for i, n := range sizes {
		if i > 0 {
			times := n / sizes[0]
			runs := float64(times * times * times * len(blocks(s.Tuning().MatMulTile(), n)) * (bench.FewRounds + 2))
			if took := time.Duration(runs * list[0].Median); took > productTime {
				list[0].Note += fmt.Sprintf("; %d left out, for it would take %v", n, took.Round(time.Second))
				break
			}
		}
		part, err := matmul(ctx, s, o, n, c)
		if err != nil {
			return nil, fmt.Errorf("matmul of %d: %w", n, err)
		}
		list = append(list, part...)
	}
	return list, nil
}

// productTime is how long a sweep of tiles of one size may take.
const productTime = 40 * time.Second

func matmul(ctx context.Context, s *cmdbuf.Stream, o Options, n int, c ceiling) (list []bench.Result, err error) {
	name := fmt.Sprintf("matmul/%d", n)
	o.say("sweeping tiles of "+name, 0)
	b := &operands{s: s}
	defer func() { err = errors.Join(err, b.close()) }()
	x, hx := tensor(b, wave, n, n)
	y, hy := tensor(b, wave, n, n)
	out, _ := tensor(b, zero[float32], n, n)
	if b.err != nil {
		return nil, b.err
	}
	// Plain Go makes a few rows, spread over the matrix.
	rows := min(n, 16)
	want := make([]float32, rows*n)
	plain := func() {
		clear(want)
		for r := range rows {
			line := want[r*n : (r+1)*n]
			for k := range n {
				f := hx[r*(n/rows)*n+k]
				for j, v := range hy[k*n : (k+1)*n] {
					line[j] += f * v
				}
			}
		}
	}
	begin := time.Now()
	plain()
	inGo := float64(time.Since(begin)) * float64(n) / float64(rows)

	own := s.Tuning()
	var tunings []shaders.Tuning
	var kernels []*shaders.Kernel
	for _, size := range blocks(own.MatMulTile(), n) {
		t := own
		t.MatMul.Rows, t.MatMul.Cols = size[0], size[1]
		tunings, kernels = append(tunings, t), append(kernels, shaders.MatMul.Tuned(t))
	}
	var groups []bench.Group
	for i, k := range kernels {
		if err := s.Launch(k, x, y, out); err != nil {
			return nil, err
		}
		found, err := out.Read(ctx)
		if err != nil {
			return nil, err
		}
		for r := range rows {
			for j := range n {
				w, f := float64(want[r*n+j]), float64(found[r*(n/rows)*n+j])
				if !(max(w-f, f-w) <= 1e-2*max(1, w, -w)) {
					return nil, fmt.Errorf("%w: tile %v, element (%d, %d): want %v as plain Go has it, found %v", ErrWrong, tileName(tunings[i]), r*(n/rows), j, w, f)
				}
			}
		}
		groups = append(groups, one(name, launches(ctx, s, k, x, y, out)))
	}
	samples, err := o.measure(ctx, groups)
	if err != nil {
		return nil, err
	}
	operations := 2 * float64(n) * float64(n) * float64(n)
	var sweep []bench.Result
	best := 0
	for i := range kernels {
		if bench.Median(samples[i]) < bench.Median(samples[best]) {
			best = i
		}
		roof := c.with(s, tunings[i])
		r := bench.NewFigure(kernelsName, name+"/tile="+tileName(tunings[i]), "arithmetic", "GFLOP/s", rates(operations, samples[i]))
		r.Note = fmt.Sprintf("%.0f %% of what loads and multiply-adds allow (%s GFLOP/s)", 100*r.Median/roof, bench.Number(roof))
		sweep = append(sweep, r)
	}
	roof := c.with(s, own)
	r := bench.NewResult(kernelsName, name, "wall", "ns/launch", samples[0], 1)
	r.Reference = map[string]float64{"roof": max(operations/roof, 0.1), "go": max(inGo, 0.1)}
	share := bench.Median(samples[best]) / bench.Median(samples[0])
	r.Note = fmt.Sprintf("%.0f %% of what arithmetic and loads allow; tile %s at %.0f %% of the best, %s", 100*operations/roof/max(r.Median, 0.1), tileName(own), 100*share, tileName(tunings[best]))
	list = append(list, r, bench.NewFigure(kernelsName, name, "arithmetic", "GFLOP/s", rates(operations, samples[0])))
	return append(list, sweep...), nil
}

// tileName is a tile's results of an invocation.
func tileName(t shaders.Tuning) string {
	tile := t.MatMulTile()
	return fmt.Sprintf("%dx%d", tile.Rows, tile.Cols)
}
