package main

import (
	"context"

	"vkcompute/internal/bench/suite"
)

func metacacheWorkload() workload {
	return workload{
		name: "metacache", doc: "the metadata cache: hits, misses and captures, beside a port of its reference",
		run: func(ctx context.Context, j job) (out outcome, err error) {
			out.Results, err = suite.Metacache(ctx, j.options(&out))
			out.explain("metacache: the metadata cache by itself, no device. Beside it a straightforward port of the cache it is modelled\n" +
				"on. miss: look-up, store and eviction in a full cache, after as many uncounted ones as it has entries: what ran before\n" +
				"has taken the processor's caches. capture: with commit and release, per info.")
			return out, err
		},
	}
}
