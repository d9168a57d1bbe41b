package suite

import (
	"context"
	"fmt"

	"vkcompute/internal/bench"
	"vkcompute/internal/metaport/workload"
	"vkcompute/metacache"
)

const metacacheName = "metacache"

// captureInfos are the sizes of a capture; a level figure says that it is linear.
var captureInfos = [...]int{1000, 10_000, 100_000}

// Metacache measures the metadata cache, beside a port of the one it is modelled on: a
// hit, a miss with its store and eviction, a capture, and a program with a scalar that
// is another one at each launch. It needs no device.
func Metacache(ctx context.Context, o Options) ([]bench.Result, error) {
	type measured struct {
		name, unit string
		per        float64
	}
	var cases []measured
	var groups []bench.Group
	add := func(unit string, per, warm int, c workload.Case, err error) error {
		if err != nil {
			return err
		}
		cases = append(cases, measured{c.Name, unit, float64(per)})
		// A group each: where the port scans, as many shots would take it minutes.
		ours := one(c.Name, c.Cache)
		ours.Cases[0].Warm = warm
		groups = append(groups, ours, one(c.Name+" in the port", c.Port))
		return nil
	}
	o.say("filling caches", 0)
	for _, words := range workload.HitWords() {
		c, err := workload.Hit(words)
		if err := add("ns/op", 1, 1, c, err); err != nil {
			return nil, err
		}
	}
	for _, entries := range workload.MissEntries() {
		c, err := workload.Miss(entries)
		// A full turn, as a program makes that does nothing but miss. The port goes
		// through all its entries at each miss anyway.
		if err := add("ns/op", 1, entries, c, err); err != nil {
			return nil, err
		}
	}
	for _, infos := range captureInfos {
		c, err := workload.Capture(infos)
		if err := add("ns/info", infos, 1, c, err); err != nil {
			return nil, err
		}
	}
	var scalars []workload.ScalarCase
	var before []metacache.Stats
	for _, s := range workload.Scalars() {
		c, err := workload.NewScalar(s)
		if err == nil {
			// Until the frequencies have settled.
			err = c.Run(100 * workload.LaunchesPerStep)
		}
		if err != nil {
			return nil, err
		}
		scalars, before = append(scalars, c), append(before, c.Stats())
		groups = append(groups, one(c.Name, c.Run))
	}
	samples, err := o.measure(ctx, groups)
	if err != nil {
		return nil, fmt.Errorf("metacache: %w", err)
	}
	var list []bench.Result
	for i, c := range cases {
		r := bench.NewResult(metacacheName, c.name, "wall", c.unit, samples[2*i], c.per)
		port := bench.NewResult(metacacheName, c.name, "wall", c.unit, samples[2*i+1], c.per)
		if port.Median > 0 {
			r.Against("port", port)
		}
		list = append(list, r)
	}
	for i, c := range scalars {
		at := 2*len(cases) + i
		list = append(list, bench.NewResult(metacacheName, "scalar/"+c.Name, "wall", "ns/launch", samples[at], 1))
		now := c.Stats()
		during := metacache.Stats{Hits: now.Hits - before[i].Hits, Misses: now.Misses - before[i].Misses}
		list = append(list, bench.NewFigure(metacacheName, "scalar/"+c.Name, "hits", "%", []float64{100 * during.HitRate()}))
	}
	return list, nil
}
