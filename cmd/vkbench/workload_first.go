package main

import (
	"context"
	"fmt"

	"vkcompute/internal/bench/suite"
	"vkcompute/vk"
)

func firstWorkload() workload {
	return workload{
		name: "first", doc: "from nothing to a first result: a device opened, a kernel compiled or found in the cache, run and read",
		run: func(ctx context.Context, j job) (out outcome, err error) {
			open := func(folder string) (*vk.Device, error) {
				o := vk.Options{Device: fmt.Sprint(j.device.Index), PipelineCache: folder}
				if j.validate {
					o.Validation = vk.ValidationSync
				}
				return vk.Open(o) // its Close fails on messages nobody has read
			}
			out.Results, err = suite.First(ctx, open, j.options(&out))
			if j.emulated != nil && err == nil {
				for _, v := range j.emulated.Violations() {
					err = fmt.Errorf("the emulated device does not allow: %s", v)
				}
			}
			out.explain("first: a device opened and closed, and with a stream, an upload, one kernel and the read of its result in between:\n" +
				"compiled without a cache, compiled and kept on disk, and found there. The driver is loaded already, and may keep\n" +
				"compiled shaders by itself.")
			return out, err
		},
	}
}
