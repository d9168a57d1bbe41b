package main

import (
	"context"

	"vkcompute/internal/bench/suite"
	"vkcompute/vk"
)

func scalarWorkload() workload {
	return workload{
		name: "scalar", doc: "a number that changes at every launch: as info word, with admission, as push constant, as graph parameter",
		run: runScalar, here: scalarHere, record: suite.RecordScalar,
	}
}

func runScalar(ctx context.Context, j job) (outcome, error) {
	out, err := alone(scalarHere)(ctx, j)
	out.explain("scalar: steps of 96 launches, a quarter of them with a number that no launch had before;\n" +
		"the cache holds the infos of the others and 8 more. One submission a step, which is waited for.")
	return out, err
}

func scalarHere(ctx context.Context, j job) (out outcome, err error) {
	err = withDevice(j, func(d *vk.Device) error {
		out.Results, err = suite.Scalar(ctx, d, j.options(&out))
		return err
	})
	return out, err
}
