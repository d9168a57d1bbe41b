package suite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"vkcompute/cmdbuf"
	"vkcompute/internal/bench"
	"vkcompute/shaders"
	"vkcompute/vk"
)

const firstName = "first"

// First measures what a program waits for before its first result: a device opened and
// closed, and with a stream, an upload, one kernel and the read of its result in between,
// where the kernel has to be compiled and where the pipeline cache on disk has it. open
// opens a device with a folder for that cache, or without where it is empty.
//
// The driver is loaded by then, and may keep compiled shaders on disk by itself.
func First(ctx context.Context, open func(folder string) (*vk.Device, error), o Options) (list []bench.Result, err error) {
	root, err := os.MkdirTemp("", "vkcompute-first-*")
	if err != nil {
		return nil, fmt.Errorf("first: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(root)) }()
	cold, warm := filepath.Join(root, "cold"), filepath.Join(root, "warm")
	times := func(f func() error) func(int) error {
		return func(shots int) error {
			for range shots {
				if err := f(); err != nil {
					return err
				}
			}
			return nil
		}
	}
	cases := []bench.Case{
		{Name: "open", Run: times(func() error {
			d, err := open("")
			if err != nil {
				return err
			}
			return d.Close()
		})},
		{Name: "result", Run: times(func() error { return firstResult(ctx, open, "") })},
		{Name: "result/cache=cold", Run: times(func() error {
			return errors.Join(os.RemoveAll(cold), firstResult(ctx, open, cold))
		})},
		{Name: "result/cache=warm", Run: times(func() error { return firstResult(ctx, open, warm) })},
	}
	samples, err := o.measure(ctx, []bench.Group{{Cases: cases}})
	if err != nil {
		return nil, fmt.Errorf("first: %w", err)
	}
	// Otherwise cold and warm were the same.
	if kept, err := filepath.Glob(filepath.Join(warm, "*")); err != nil || len(kept) != 1 {
		return nil, fmt.Errorf("first: %w: want one file of compiled shaders in the cache's folder, found %q", ErrWrong, kept)
	}
	for i, c := range cases {
		list = append(list, bench.NewResult(firstName, c.Name, "wall", "ns/op", samples[i], 1))
	}
	list[0].Note = "no kernel"
	list[2].Note = "compiles and writes the cache's file"
	list[3].Against("cold", list[2])
	return list, nil
}

// firstResult is a short program.
func firstResult(ctx context.Context, open func(string) (*vk.Device, error), folder string) (err error) {
	d, err := open(folder)
	if err != nil {
		return err
	}
	defer closing(&err, d)
	return stream(d, cmdbuf.Options{}, func(s *cmdbuf.Stream) (err error) {
		x, err := cmdbuf.Upload(s, []float32{1, 2, 3}, 3)
		if err != nil {
			return err
		}
		defer closing(&err, x)
		if err := s.Launch(shaders.Add, x, x, x); err != nil {
			return err
		}
		got, err := x.Read(ctx)
		if err == nil && !slices.Equal(got, []float32{2, 4, 6}) {
			err = fmt.Errorf("%w: 1 2 3 doubled is %v", ErrWrong, got)
		}
		return err
	})
}
