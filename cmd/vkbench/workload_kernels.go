package main

import (
	"context"

	"vkcompute/internal/bench/suite"
	"vkcompute/vk"
)

func kernelsWorkload() workload {
	return workload{
		name: "kernels", doc: "each built-in kernel against the roof that memory or arithmetic sets, and against plain Go",
		run: func(ctx context.Context, j job) (out outcome, err error) {
			err = withDevice(j, func(d *vk.Device) error {
				out.Results, err = suite.Kernels(ctx, d, j.options(&out))
				return err
			})
			out.explain("kernels: roof is the time that probes of the same run allow for the kernel's bytes (read plus written) or operations\n" +
				"(an exp counts as one), whichever is longer; go is the same in plain Go on one core.")
			return out, err
		},
		record: suite.RecordKernels,
	}
}
