package main

import (
	"context"
	"io"

	"vkcompute/internal/bench/suite"
)

func poolWorkload() workload {
	return workload{
		name: "pool", doc: "the allocator of device memory: a slice released and one allocated; --map FILE draws its pages",
		run: func(ctx context.Context, j job) (out outcome, err error) {
			var picture func(func(io.Writer) error) error
			if j.picture != "" {
				picture = func(draw func(io.Writer) error) error { return output{path: j.picture}.write(draw) }
			}
			out.Results, err = suite.Pool(ctx, j.options(&out), picture)
			out.explain("pool: bookkeeping alone, no device. cycle: one of so many slices of 64 to 4096 bytes is released and another\n" +
				"allocated, alignment 256, after a turn through them. holes: a page with so many free ranges, on which a request succeeds or fails; one that fails\n" +
				"there comes from a page behind it, and what that takes by itself is taken off.")
			return out, err
		},
	}
}
