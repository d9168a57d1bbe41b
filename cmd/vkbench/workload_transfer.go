package main

import (
	"context"

	"vkcompute/internal/bench/suite"
	"vkcompute/vk"
)

func transferWorkload() workload {
	return workload{
		name: "transfer", doc: "upload, download, device copy and fill, and what the first touch of memory costs",
		run: func(ctx context.Context, j job) (out outcome, err error) {
			err = withDevice(j, func(d *vk.Device) error {
				out.Results, err = suite.Transfer(ctx, d, j.options(&out))
				return err
			})
			out.explain("transfer: each call is waited for. Bandwidth is bytes read plus written: 2n for an upload, a download or a\n" +
				"copy of n bytes, n for a fill. Beside it a copy within the host's memory.")
			return out, err
		},
	}
}
