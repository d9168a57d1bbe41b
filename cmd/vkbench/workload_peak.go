package main

import (
	"context"

	"vkcompute/internal/bench/suite"
	"vkcompute/vk"
)

func peakWorkload() workload {
	return workload{
		name: "peak", doc: "what the device does at best: fused multiply-adds, memory read and copied",
		run: func(ctx context.Context, j job) (out outcome, err error) {
			err = withDevice(j, func(d *vk.Device) error {
				out.Results, err = suite.Peak(ctx, d, j.options(&out))
				return err
			})
			out.explain("peak: float32 fused multiply-adds (two operations each) by independent accumulators and steps unrolled, and memory\n" +
				"read and copied by kernels. Bytes are counted read plus written: a copy of n bytes moves 2n.")
			return out, err
		},
	}
}
