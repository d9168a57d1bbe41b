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
				"(an exp counts as one), whichever is longer; the bytes of kernels that write next to nothing are those of roof/read, of others\n" +
				"those of roof/memory. A matrix product's roof is the smaller of what multiply-adds allow and what the loads of four elements\n" +
				"allow that its tile needs; matmul/N/tile=RxC is a sweep of tiles, R by C results of an invocation. go is the same in plain\n" +
				"Go on one core.")
			return out, err
		},
		record: suite.RecordKernels,
	}
}
