package sweep

import (
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

// Run does on a device what programs do: allocate, write, launch, read, capture,
// replay, measure, close. Whatever fails, everything it made is closed when it returns.
func Run(ctx context.Context, d *vk.Device) error {
	err := work(ctx, d, cmdbuf.Options{BatchLimit: 3})
	if err == nil && d.Limits().TimestampBits > 0 {
		err = work(ctx, d, cmdbuf.Options{Profile: true, Sets: cmdbuf.RebuildSets})
	}
	return err
}

func work(ctx context.Context, d *vk.Device, o cmdbuf.Options) (err error) {
	s, err := cmdbuf.NewStream(d, o)
	if err != nil {
		return err
	}
	var closers []func() error
	defer func() {
		for _, c := range slices.Backward(closers) {
			err = errors.Join(err, c())
		}
		// A wait that failed leaves the stream open; the second attempt has to do.
		if e := s.Close(ctx); e != nil {
			err = errors.Join(err, e, s.Close(ctx))
		}
	}()
	tensor := func(host []float32) (*cmdbuf.Tensor[float32], error) {
		t, err := cmdbuf.Upload(s, host, len(host))
		if err == nil {
			closers = append(closers, t.Close)
		}
		return t, err
	}
	x, err := tensor([]float32{1, 2, 3, 4})
	if err != nil {
		return err
	}
	y, err := tensor([]float32{10, 20, 30, 40})
	if err != nil {
		return err
	}
	expect := func(t *cmdbuf.Tensor[float32], want ...float32) error {
		got, err := t.Read(ctx)
		if err == nil && !slices.Equal(got, want) {
			err = fmt.Errorf("sweep: %w: %v, want %v", ErrWrong, got, want)
		}
		return err
	}
	if err := s.Launch(shaders.Add, x, y, x); err != nil {
		return err
	}
	if err := y.Write([]float32{1, 1, 1, 1}); err != nil { // while the launch is pending
		return err
	}
	if err := s.Launch(shaders.Add, x, y, x); err != nil {
		return err
	}
	if err := expect(x, 12, 23, 34, 45); err != nil {
		return err
	}
	g, err := s.Capture(ctx, func(c *cmdbuf.Capture) error {
		return errors.Join(c.Launch(shaders.Add, x, y, x), c.Launch(shaders.Mul, x, y, x))
	})
	if err != nil {
		return err
	}
	closers = append(closers, g.Close)
	if err := s.Launch(shaders.Add, x, y, x); err != nil {
		return err
	}
	if err := g.ReplayN(2); err != nil { // with the batch in the same submission
		return err
	}
	if err := g.Replay(); err != nil {
		return err
	}
	if err := expect(x, 16, 27, 38, 49); err != nil {
		return err
	}
	if o.Profile {
		if _, err := s.Profile(ctx); err != nil {
			return err
		}
		if _, err := g.Profile(ctx); err != nil {
			return err
		}
	}
	return s.Validate()
}
