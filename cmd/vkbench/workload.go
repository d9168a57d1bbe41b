package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"vkcompute/cmdbuf"
	"vkcompute/internal/bench"
	"vkcompute/internal/bench/suite"
	"vkcompute/internal/shim"
	"vkcompute/shaders"
	"vkcompute/vk"
)

// workload is something that can be measured. There is a file for each, workload_*.go,
// with a function that returns it, and a line in workloads.
type workload struct {
	name string
	doc  string // one line, for the help
	// run measures in this process or, where here is set, may start a worker.
	run func(ctx context.Context, j job) (outcome, error)
	// here measures in this process, which was set up for it. Only for a workload that is
	// run in a worker; see alone.
	here func(ctx context.Context, j job) (outcome, error)
	// record makes a graph of what the workload does, for trace and graph; nil where it
	// records nothing.
	record func(ctx context.Context, s *cmdbuf.Stream) (*cmdbuf.Graph, error)
	// kernels are those of the graph that are not built in, for replay; nil: none.
	kernels func() ([]*shaders.Kernel, error)
}

// workloads are in the order in which they run.
func workloads() []workload {
	return []workload{
		launchWorkload(),
		scalarWorkload(),
		transferWorkload(),
		metacacheWorkload(),
		poolWorkload(),
		peakWorkload(),
		kernelsWorkload(),
		firstWorkload(),
		decodeWorkload(),
		trainWorkload(),
	}
}

// job is what a workload is told.
type job struct {
	name     string // of the workload
	device   vk.DeviceInfo
	validate bool
	profile  string
	cache    string       // folder of pipeline caches and tunings; empty: neither
	emulated *shim.Driver // of the profile, in this process; nil: none
	measure  bench.Options
	decode   decodeFlags
	train    trainFlags
	picture  string // where to draw the pool's pages; empty: nowhere
	say      func(text string, part float64)
	errOut   io.Writer // for a worker's complaints
	// step of steps is the place in the run.
	step, steps int
}

// options are what a workload is measured with; what the device lacks goes to out.
func (j job) options(out *outcome) suite.Options {
	o := suite.Options{Measure: j.measure, Progress: j.say, Unsupported: out.lacks}
	if j.profile != "" {
		o.Scale = suite.Small // a CPU is beneath the profiles that are tested
	}
	return o
}

// outcome is what a workload found.
type outcome struct {
	Results  []bench.Result `json:"results"`
	Warnings []string       `json:"warnings,omitempty"`
	// Unsupported is what the device cannot do.
	Unsupported []bench.Unsupported `json:"unsupported,omitempty"`
	// Setup is what the process was set up with, for the environment.
	Setup string `json:"setup,omitempty"`
	// table shows the results to a person.
	table func(io.Writer) error
}

func (o *outcome) lacks(u bench.Unsupported) { o.Unsupported = append(o.Unsupported, u) }

// write shows the outcome to a person.
func (o *outcome) write(w io.Writer) error {
	if len(o.Results) > 0 || len(o.Unsupported) == 0 {
		if err := o.table(w); err != nil {
			return err
		}
	}
	return bench.WriteUnsupported(w, o.Unsupported)
}

// explain makes the usual table of the results, under a few lines that say what they are.
func (o *outcome) explain(intro string) {
	results := o.Results
	o.table = func(w io.Writer) error { return bench.WriteTable(w, intro, results) }
}

func find(name string) *workload {
	for _, w := range workloads() {
		if w.name == name {
			return &w
		}
	}
	return nil
}

func names() []string {
	var list []string
	for _, w := range workloads() {
		list = append(list, w.name)
	}
	return list
}

// recorded are the workloads that have a graph to show.
func recorded() []string {
	var list []string
	for _, w := range workloads() {
		if w.record != nil {
			list = append(list, w.name)
		}
	}
	return list
}

func workloadHelp() string {
	var b strings.Builder
	b.WriteString("Workloads:\n\n")
	for _, w := range workloads() {
		fmt.Fprintf(&b, "  %-10s %s\n", w.name, w.doc)
	}
	return b.String()
}
