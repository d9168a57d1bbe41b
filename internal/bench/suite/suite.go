package suite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"vkcompute/cmdbuf"
	"vkcompute/internal/bench"
	"vkcompute/internal/bench/lack"
	"vkcompute/vk"
)

// Options of every workload.
type Options struct {
	Measure bench.Options
	// Progress is told what happens, and may be nil.
	Progress func(text string, part float64)
	// Unsupported is told of each case that the device cannot do, and may be nil.
	Unsupported func(bench.Unsupported)
	// Scale is how large operands are.
	Scale Scale
}

// Scale says by what the size of operands is chosen.
type Scale uint8

const (
	// ByDevice: large on a GPU, small on a CPU.
	ByDevice Scale = iota
	// Small: as on a CPU. For a GPU that is emulated on one.
	Small
)

// small tells whether operands are those for a CPU.
func (o *Options) small(d *vk.Device) bool { return o.Scale == Small || d.Info().Type == vk.CPU }

// unsupported passes on that the device lacks what a case needs, and tells whether err
// says so.
func (o *Options) unsupported(workload, name string, err error) bool {
	if !lack.Of(err) {
		return false
	}
	if o.Unsupported != nil {
		o.Unsupported(bench.Unsupported{Workload: workload, Case: name, Reason: err.Error()})
	}
	return true
}

// ErrWrong: something did not compute what it should.
var ErrWrong = errors.New("wrong result")

func (o *Options) say(text string, part float64) {
	if o.Progress != nil {
		o.Progress(text, part)
	}
}

// measure runs groups and gives the samples in the order of all their cases.
func (o *Options) measure(ctx context.Context, groups []bench.Group) ([]bench.Samples, error) {
	m := o.Measure
	m.Progress = func(p bench.Progress) { o.say(fmt.Sprintf("measuring, round %d", p.Round), p.Part) }
	samples, err := bench.Measure(ctx, groups, m)
	if err != nil {
		return nil, err
	}
	var list []bench.Samples
	for _, g := range samples {
		list = append(list, g...)
	}
	return list, nil
}

// one is a group of one case: its number of shots is its own.
func one(name string, run func(shots int) error) bench.Group {
	return bench.Group{Cases: []bench.Case{{Name: name, Run: run}}}
}

// stream makes a stream for f and closes it.
func stream(d *vk.Device, o cmdbuf.Options, f func(*cmdbuf.Stream) error) error {
	s, err := cmdbuf.NewStream(d, o)
	if err != nil {
		return err
	}
	err = f(s)
	// No deadline: closing is what makes leaving safe.
	return errors.Join(err, s.Close(context.Background()))
}

// rates turns times in nanoseconds into amounts a second, in units of 10⁹.
func rates(amount float64, ns []float64) []float64 {
	list := make([]float64, len(ns))
	for i, t := range ns {
		list[i] = amount / max(t, 1)
	}
	return list
}

// once times f by itself.
func once(f func() error) (float64, error) {
	begin := time.Now()
	err := f()
	return float64(time.Since(begin)), err
}

// closing closes what f has made, whatever happened.
func closing(err *error, c interface{ Close() error }) { *err = errors.Join(*err, c.Close()) }
