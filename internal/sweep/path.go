package sweep

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"vkcompute/cmdbuf"
	"vkcompute/shaders"
	"vkcompute/vk"
)

// ErrWrong says that the device computed something else than it should.
var ErrWrong = errors.New("wrong result")

// Run does on a device what programs do: allocate, write, launch, read, wait for another
// stream, capture, replay, change, save, load, measure, close. Whatever fails, everything it
// made is closed when it returns.
func Run(ctx context.Context, d *vk.Device) error {
	err := work(ctx, d, cmdbuf.Options{BatchLimit: 3})
	if err == nil {
		// A time that nothing takes: each segment of a replay is a submission of its own.
		err = work(ctx, d, cmdbuf.Options{Profile: d.Limits().TimestampBits > 0, Sets: cmdbuf.RebuildSets, MaxSubmitTime: 1})
	}
	return err
}

// path is what the main path has made so far.
type path struct {
	ctx     context.Context
	s       *cmdbuf.Stream
	closers []func() error // run backwards
}

func (p *path) closes(f func() error) { p.closers = append(p.closers, f) }

// close closes everything, the error of the path first.
func (p *path) close(err error) error {
	for _, c := range slices.Backward(p.closers) {
		err = errors.Join(err, c())
	}
	return err
}

func (p *path) stream(d *vk.Device, o cmdbuf.Options) (*cmdbuf.Stream, error) {
	s, err := cmdbuf.NewStream(d, o)
	if err != nil {
		return nil, err
	}
	p.closes(func() error {
		// A wait that failed leaves the stream open; the second attempt has to do.
		err := s.Close(p.ctx)
		if err != nil {
			err = errors.Join(err, s.Close(p.ctx))
		}
		return err
	})
	return s, nil
}

func upload[T cmdbuf.Element](p *path, s *cmdbuf.Stream, host []T) (*cmdbuf.Tensor[T], error) {
	t, err := cmdbuf.Upload(s, host, len(host))
	if err == nil {
		p.closes(t.Close)
	}
	return t, err
}

// expect reads a tensor.
func (p *path) expect(t *cmdbuf.Tensor[float32], want ...float32) error {
	got, err := t.Read(p.ctx)
	if err == nil && !slices.Equal(got, want) {
		err = fmt.Errorf("sweep: %w: %v, want %v", ErrWrong, got, want)
	}
	return err
}

// steps does one after the other until one fails.
func steps(list ...func() error) error {
	for _, f := range list {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

func work(ctx context.Context, d *vk.Device, o cmdbuf.Options) (err error) {
	p := &path{ctx: ctx}
	defer func() { err = p.close(err) }()
	if p.s, err = p.stream(d, o); err != nil {
		return err
	}
	// All of them before the device has anything to do: whether a write goes through the
	// mapping or is a copy on the device depends on how far that is.
	t, err := p.upload()
	if err != nil {
		return err
	}
	err = steps(
		func() error { return p.eager(t) },     // x is 12, 23, 34, 45
		func() error { return p.across(d, t) }, // x is 13, 24, 35, 46
		func() error { return p.graph(t, o.Profile) },
	)
	if err != nil {
		return err
	}
	return p.s.Validate()
}

type tensors struct {
	x, y, ones, tens *cmdbuf.Tensor[float32]
	grid             *cmdbuf.Tensor[uint32]
}

func (p *path) upload() (t tensors, err error) {
	for _, f := range []struct {
		to   **cmdbuf.Tensor[float32]
		host []float32
	}{{&t.x, []float32{1, 2, 3, 4}}, {&t.y, []float32{10, 20, 30, 40}}, {&t.ones, []float32{1, 1, 1, 1}}, {&t.tens, []float32{10, 10, 10, 10}}} {
		if *f.to, err = upload(p, p.s, f.host); err != nil {
			return t, err
		}
	}
	t.grid, err = upload(p, p.s, []uint32{1, 1, 1})
	return t, err
}

// eager launches, and writes while a launch is pending.
func (p *path) eager(t tensors) error {
	x, y := t.x, t.y
	add := func() error { return p.s.Launch(shaders.Add, x, y, x) }
	return steps(add, func() error { return y.Write([]float32{1, 1, 1, 1}) }, add,
		func() error { return p.expect(x, 12, 23, 34, 45) })
}

// across lends a tensor to another stream and uses what that makes of it.
func (p *path) across(d *vk.Device, t tensors) error {
	other, err := p.stream(d, cmdbuf.Options{})
	if err != nil {
		return err
	}
	z, err := upload(p, other, make([]float32, 4))
	if err != nil {
		return err
	}
	after := func(to, from *cmdbuf.Stream) func() error {
		return func() error {
			e, err := from.Record()
			if err != nil {
				return err
			}
			return to.WaitFor(e)
		}
	}
	return steps(after(other, p.s), func() error { return other.Copy(z, t.x) }, after(p.s, other),
		func() error { return p.s.Launch(shaders.Add, z, t.y, t.x) })
}

// graph captures, replays, changes, saves and loads.
func (p *path) graph(of tensors, profile bool) error {
	x, y := of.x, of.y
	g, err := p.s.Capture(p.ctx, func(c *cmdbuf.Capture) error {
		t, err := cmdbuf.Temp[float32](c, 4)
		if err != nil {
			return err
		}
		u, err := cmdbuf.Temp[float32](c, 4)
		if err != nil {
			return err
		}
		return steps( // x += value + tensor + 1
			func() error { return cmdbuf.WriteIn(c, y, []float32{1, 1, 1, 1}) },
			func() error { return c.Copy(t, x) },
			func() error { return c.Launch(shaders.Fill, cmdbuf.Param("value", cmdbuf.Float32(2)), u) },
			func() error { return c.LaunchIndirect(shaders.Add, of.grid, t, u, t) },
			func() error { return c.Launch(shaders.Add, t, cmdbuf.Param("tensor", of.ones), x) },
			func() error { return c.Launch(shaders.Add, x, y, x) })
	})
	if err != nil {
		return err
	}
	p.closes(g.Close)
	err = steps(
		func() error { return p.s.Launch(shaders.Add, x, y, x) },
		func() error { return g.ReplayN(2) }, // with the batch in the same submission
		func() error { return p.expect(x, 22, 33, 44, 55) },
		func() error { return g.Set("value", cmdbuf.Float32(3)) },
		func() error { return g.Set("tensor", of.tens) },
		g.Replay,
		func() error { return p.expect(x, 36, 47, 58, 69) },
	)
	if err != nil {
		return err
	}
	if profile {
		if _, err := p.s.Profile(p.ctx); err != nil {
			return err
		}
		if _, err := g.Profile(p.ctx); err != nil {
			return err
		}
	}
	var file bytes.Buffer
	if err := g.Save(p.ctx, &file, cmdbuf.SaveOptions{Contents: true, Views: map[string]cmdbuf.Arg{"x": x}}); err != nil {
		return err
	}
	loaded, err := cmdbuf.Load(p.ctx, p.s, &file, cmdbuf.LoadOptions{})
	if err != nil {
		return err
	}
	p.closes(loaded.Close)
	again, err := cmdbuf.TensorNamed[float32](loaded, "x")
	if err != nil {
		return err
	}
	return steps(loaded.Replay, func() error { return p.expect(again, 50, 61, 72, 83) })
}
