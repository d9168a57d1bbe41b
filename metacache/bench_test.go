package metacache_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vkcompute/internal/metaport/workload"
	"vkcompute/metacache"
)

// Method. Cache and port run in turns in one process, in rounds long enough for
// the clock. Reported are the medians over the rounds, in ns for an operation,
// and x/port, the median of the ratios of neighbouring rounds: a machine that
// changes its speed between rounds moves the former and hardly the latter. The
// loop around the look-up is the same on both sides. Every answer is checked.
// ns/op is that of both sides together and means nothing.

// compare reports a case. A round is about so many operations of each side.
func compare(b *testing.B, c workload.Case, err error, cacheOps, portOps int) {
	require.NoError(b, err)
	require.NoError(b, c.Cache(cacheOps)) // warm up
	require.NoError(b, c.Port(portOps))
	var r rounds
	for b.Loop() {
		r.add(timed(b, c.Cache, cacheOps), timed(b, c.Port, portOps))
	}
	r.report(b, "")
}

// rounds are the samples of both sides, and of their ratio.
type rounds struct{ cache, port, ratio []float64 }

func (r *rounds) add(cache, port float64) {
	r.cache = append(r.cache, cache)
	r.port = append(r.port, port)
	r.ratio = append(r.ratio, cache/port)
}

func (r *rounds) report(b *testing.B, per string) {
	b.ReportMetric(median(r.cache), "cache-ns"+per)
	b.ReportMetric(median(r.port), "port-ns"+per)
	b.ReportMetric(median(r.ratio), "x/port")
}

func timed(b *testing.B, run func(int) error, n int) float64 {
	begun := time.Now()
	err := run(n)
	took := time.Since(begun)
	if err != nil {
		b.Fatal(err)
	}
	return float64(took.Nanoseconds()) / float64(n)
}

func median(samples []float64) float64 {
	slices.Sort(samples)
	return samples[len(samples)/2]
}

// BenchmarkHit: look-ups that hit, by the words of an info. infos=96 is a
// program's step; infos=4096 is a working set that leaves the processor's first
// cache. In turn the cache foresees each look-up; at random it foresees none, and
// neither does the processor.
func BenchmarkHit(b *testing.B) {
	for order, name := range map[workload.Order]string{workload.InTurn: "in-turn", workload.AtRandom: "at-random"} {
		for _, infos := range []int{workload.LaunchesPerStep, 4096} {
			for _, words := range workload.HitWords() {
				b.Run(fmt.Sprintf("%s/infos=%d/words=%d", name, infos, words), func(b *testing.B) {
					c, err := workload.HitAmong(infos, words, order)
					compare(b, c, err, 4096, 4096)
				})
			}
		}
	}
}

// BenchmarkMiss: a look-up that misses, its store and the eviction, by the
// entries of the full cache. The port's scan gets fewer operations a round.
func BenchmarkMiss(b *testing.B) {
	for _, entries := range workload.MissEntries() {
		b.Run(fmt.Sprintf("entries=%d", entries), func(b *testing.B) {
			c, err := workload.Miss(entries)
			compare(b, c, err, 4096, max(4, 1<<16/entries))
		})
	}
}

// BenchmarkCapture: a capture of so many infos, its commit and the release of
// the graph, in ns for each info. Linear time keeps the figure level.
func BenchmarkCapture(b *testing.B) {
	for _, infos := range []int{1000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("infos=%d", infos), func(b *testing.B) {
			c, err := workload.Capture(infos)
			require.NoError(b, err)
			var r rounds
			for b.Loop() {
				r.add(timed(b, c.Cache, 1)/float64(infos), timed(b, c.Port, 1)/float64(infos))
			}
			r.report(b, "/info")
		})
	}
}

// BenchmarkScalar: a program with a scalar that is another one at each launch,
// in ns for a launch (look-up, and building and storing what misses), and how
// many of the launches hit.
func BenchmarkScalar(b *testing.B) {
	for _, s := range workload.Scalars() {
		b.Run(s.String(), func(b *testing.B) {
			c, err := workload.NewScalar(s)
			require.NoError(b, err)
			require.NoError(b, c.Run(100*workload.LaunchesPerStep))
			before := c.Stats()
			b.ResetTimer()
			require.NoError(b, c.Run(b.N))
			b.StopTimer()
			after := c.Stats()
			during := metacache.Stats{Hits: after.Hits - before.Hits, Misses: after.Misses - before.Misses}
			b.ReportMetric(100*during.HitRate(), "%hit")
		})
	}
}

// BenchmarkControl is the loop and the checks of BenchmarkHit without a cache.
func BenchmarkControl(b *testing.B) {
	keys := make([][]uint64, workload.LaunchesPerStep)
	for i := range keys {
		keys[i] = words(uint64(i))
	}
	i := 0
	for b.Loop() {
		if keys[i][0] != uint64(i) {
			b.Fatal("wrong key")
		}
		if i++; i == len(keys) {
			i = 0
		}
	}
}
