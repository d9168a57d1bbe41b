package main

import (
	"fmt"
	"strings"

	"vkcompute/internal/bench"
)

// writeSummary says in a few lines what a run found, for whoever reads no further.
func writeSummary(b *strings.Builder, r *bench.Report) {
	var lines []string
	say := func(format string, a ...any) { lines = append(lines, fmt.Sprintf(format, a...)) }
	wall := func(workload, name string) *bench.Result { return r.Find(workload, name, "wall") }

	const n = 256
	rebuild, cached, replay := wall("launch", fmt.Sprintf("rebuild/n=%d", n)), wall("launch", fmt.Sprintf("cached/n=%d", n)), wall("launch", fmt.Sprintf("replay/n=%d", n))
	if rebuild != nil && cached != nil && replay != nil && replay.Median > 0 {
		say("a launch     %s ns with everything rebuilt, %s ns with its info cached, %s ns replayed: %.2f times cheaper",
			bench.Number(rebuild.Median), bench.Number(cached.Median), bench.Number(replay.Median), rebuild.Median/replay.Median)
		if c := replay.Ratio["c"].Median; c > 0 {
			say("beside C     %.2f, %.2f and %.2f times the same commands in plain C (%d launches a submission)", rebuild.Ratio["c"].Median, cached.Ratio["c"].Median, c, n)
		}
	}
	if read, copied := r.Find("peak", "read", "bandwidth"), r.Find("peak", "copy", "bandwidth"); read != nil && copied != nil {
		say("memory       %s GB/s read by a kernel, %s GB/s copied (bytes read plus written)", bench.Number(read.Median), bench.Number(copied.Median))
	}
	if fma := r.Find("peak", "fma", "arithmetic"); fma != nil {
		say("arithmetic   %s GFLOP/s in float32 fused multiply-adds (%s)", bench.Number(fma.Median), fma.Note)
	}
	if best, worst, middle := spread(r); best != nil {
		say("kernels      reach %.0f %% of what memory or arithmetic allows in the middle: %s %.0f %%, %s %.0f %%", middle,
			best.Case, 100/best.quotientRoof(), worst.Case, 100/worst.quotientRoof())
	}
	for _, shape := range []string{"260K", "15M"} {
		if replay, cached := r.Find("decode", shape+"/replay", "tokens/s"), r.Find("decode", shape+"/cached", "tokens/s"); replay != nil && cached != nil {
			say("decode       %s tokens/s of a transformer with %s parameters replayed, %s launched anew", bench.Number(replay.Median), shape, bench.Number(cached.Median))
		}
	}
	if steps, accuracy := r.Find("train", "replay", "steps/s"), r.Find("train", "replay", "accuracy"); steps != nil && accuracy != nil {
		say("train        %s steps/s of a classifier replayed, %.1f %% of the test images right", bench.Number(steps.Median), 100*accuracy.Median)
	}
	if len(lines) == 0 {
		return
	}
	for _, l := range lines {
		b.WriteString(l + "\n")
	}
	b.WriteString("\n")
}

// roofed is a kernel's result with the time that its roof allows.
type roofed struct{ *bench.Result }

func (k roofed) quotientRoof() float64 { return k.Median / k.Reference["roof"] }

// spread finds the kernels nearest to and farthest from their roofs, and the middle in
// per cent of the roof.
func spread(r *bench.Report) (best, worst *roofed, middle float64) {
	var shares []float64
	for i := range r.Results {
		k := roofed{&r.Results[i]}
		if k.Workload != "kernels" || k.Metric != "wall" || k.Reference["roof"] == 0 {
			continue
		}
		shares = append(shares, 100/k.quotientRoof())
		if best == nil || k.quotientRoof() < best.quotientRoof() {
			best = &k
		}
		if worst == nil || k.quotientRoof() > worst.quotientRoof() {
			worst = &k
		}
	}
	return best, worst, bench.Median(shares)
}
