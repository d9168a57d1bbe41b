package suite

import (
	"context"
	"errors"
	"fmt"
	"math"

	"vkcompute/cmdbuf"
	"vkcompute/internal/bench"
	"vkcompute/shaders"
	"vkcompute/vk"
)

const transferName = "transfer"

// transferSizes are bytes: what a launch's latency hides, what fits in caches, and what
// does not.
var transferSizes = [...]int{4 << 10, 1 << 20, 32 << 20}

// touches is how often fresh memory is made.
const touches = 5

// movers are the tensors of one size.
type movers struct {
	bytes int
	host  []float32
	back  []float32
	a, b  *cmdbuf.Tensor[float32]
}

// Transfer measures uploads, downloads, copies and fills, and what memory costs that
// nobody has touched yet.
func Transfer(ctx context.Context, d *vk.Device, o Options) (list []bench.Result, err error) {
	err = stream(d, cmdbuf.Options{}, func(s *cmdbuf.Stream) error {
		list, err = transfers(ctx, s, o)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("transfer: %w", err)
	}
	for _, bytes := range transferSizes[1:] {
		more, err := touch(ctx, d, o, bytes)
		if o.unsupported(transferName, "first-touch/size="+sizeName(bytes), err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("transfer: fresh memory: %w", err)
		}
		list = append(list, more...)
	}
	return list, nil
}

func sizeName(bytes int) string {
	if bytes >= 1<<20 {
		return fmt.Sprintf("%dMiB", bytes>>20)
	}
	return fmt.Sprintf("%dKiB", bytes>>10)
}

func transfers(ctx context.Context, s *cmdbuf.Stream, o Options) (list []bench.Result, err error) {
	type measured struct {
		name     string
		moved    float64
		at, host int // places of the samples; host below 0: nothing to compare with
	}
	var groups []bench.Group
	var cases []measured
	for _, bytes := range transferSizes {
		o.say("setting up "+sizeName(bytes), 0)
		m, err := newMovers(s, bytes)
		if o.unsupported(transferName, "size="+sizeName(bytes), err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		defer closing(&err, m)
		if err := m.verify(ctx, s); err != nil {
			if o.unsupported(transferName, "size="+sizeName(bytes), err) {
				continue
			}
			return nil, err
		}
		each := func(f func() error) func(int) error {
			return func(shots int) error {
				for range shots {
					if err := f(); err != nil {
						return err
					}
				}
				return s.Sync(ctx)
			}
		}
		base := make([]float32, len(m.host))
		host := len(groups)
		groups = append(groups, one("host", func(shots int) error {
			for range shots {
				copy(base, m.host)
			}
			return nil
		}))
		add := func(name string, moved, host int, run func() error) {
			name += "/size=" + sizeName(bytes)
			cases = append(cases, measured{name, float64(moved * bytes), len(groups), host})
			groups = append(groups, one(name, each(run)))
		}
		add("upload", 2, host, func() error { return errors.Join(m.a.Write(m.host), s.Sync(ctx)) })
		add("download", 2, host, func() error { return m.a.ReadInto(ctx, m.back) })
		add("copy", 2, host, func() error { return errors.Join(s.Copy(m.b, m.a), s.Sync(ctx)) })
		switch err := m.verifyFill(ctx, s); {
		case err == nil:
			add("fill", 1, -1, func() error { return errors.Join(s.Launch(shaders.Fill, cmdbuf.Float32(3), m.b), s.Sync(ctx)) })
		case !o.unsupported(transferName, "fill/size="+sizeName(bytes), err):
			return nil, err
		}
	}
	samples, err := o.measure(ctx, groups)
	if err != nil {
		return nil, err
	}
	for _, c := range cases {
		r := bench.NewResult(transferName, c.name, "wall", "ns/op", samples[c.at], 1)
		if c.host >= 0 {
			r.Against("host", bench.NewResult(transferName, "", "wall", "ns/op", samples[c.host], 1))
		}
		list = append(list, r, bench.NewFigure(transferName, c.name, "bandwidth", "GB/s", rates(c.moved, samples[c.at])))
	}
	return list, nil
}

func newMovers(s *cmdbuf.Stream, bytes int) (*movers, error) {
	n := bytes / 4
	m := &movers{bytes: bytes, host: make([]float32, n), back: make([]float32, n)}
	for i := range m.host {
		m.host[i] = float32(i*7%1021) + 1
	}
	for _, t := range []**cmdbuf.Tensor[float32]{&m.a, &m.b} {
		var err error
		if *t, err = cmdbuf.New[float32](s, n); err != nil {
			return nil, errors.Join(err, m.Close())
		}
	}
	return m, nil
}

func (m *movers) Close() error {
	var err error
	for _, t := range []*cmdbuf.Tensor[float32]{m.a, m.b} {
		if t != nil {
			err = errors.Join(err, t.Close())
		}
	}
	return err
}

// verify moves known numbers through all three.
func (m *movers) verify(ctx context.Context, s *cmdbuf.Stream) error {
	if err := errors.Join(m.a.Write(m.host), s.Copy(m.b, m.a), m.b.ReadInto(ctx, m.back)); err != nil {
		return err
	}
	for i, want := range m.host {
		if math.Float32bits(m.back[i]) != math.Float32bits(want) {
			return fmt.Errorf("%w: upload, copy and download of %s: element %d: want %v, found %v", ErrWrong, sizeName(m.bytes), i, want, m.back[i])
		}
	}
	return nil
}

func (m *movers) verifyFill(ctx context.Context, s *cmdbuf.Stream) error {
	if err := s.Launch(shaders.Fill, cmdbuf.Float32(5), m.b); err != nil {
		return err
	}
	if err := m.b.ReadInto(ctx, m.back); err != nil {
		return err
	}
	for i, found := range m.back {
		if found != 5 {
			return fmt.Errorf("%w: fill of %s: element %d: want 5, found %v", ErrWrong, sizeName(m.bytes), i, found)
		}
	}
	return nil
}

// touch times memory from its allocation: reserving it, the first fill, which touches
// every page, and the next one. Each sample has a stream, and so pages, of its own.
func touch(ctx context.Context, d *vk.Device, o Options, bytes int) ([]bench.Result, error) {
	var reserve, first, reuse []float64
	for i := range touches {
		o.say("touching fresh memory", float64(i)/touches)
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("%w: %w", bench.ErrInterrupted, err)
		}
		err := stream(d, cmdbuf.Options{}, func(s *cmdbuf.Stream) (err error) {
			// The pipeline is compiled, and what the stream itself needs is touched.
			small, err := cmdbuf.New[float32](s, 64)
			if err != nil {
				return err
			}
			defer closing(&err, small)
			if err := errors.Join(s.Launch(shaders.Fill, cmdbuf.Float32(1), small), s.Sync(ctx)); err != nil {
				return err
			}
			var t *cmdbuf.Tensor[float32]
			took, err := once(func() (err error) {
				t, err = cmdbuf.New[float32](s, bytes/4)
				return err
			})
			if err != nil {
				return err
			}
			defer closing(&err, t)
			reserve = append(reserve, took)
			for _, list := range []*[]float64{&first, &reuse} {
				took, err := once(func() error {
					return errors.Join(s.Launch(shaders.Fill, cmdbuf.Float32(2), t), s.Sync(ctx))
				})
				if err != nil {
					return err
				}
				*list = append(*list, took)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	at := "/size=" + sizeName(bytes)
	again := bench.NewResult(transferName, "reuse"+at, "wall", "ns/op", reuse, 1)
	touched := bench.NewResult(transferName, "first-touch"+at, "wall", "ns/op", first, 1)
	touched.Against("reuse", again)
	return []bench.Result{bench.NewResult(transferName, "reserve"+at, "wall", "ns/op", reserve, 1), touched, again}, nil
}
