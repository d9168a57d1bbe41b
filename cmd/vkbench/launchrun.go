package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"vkcompute/internal/bench/launch"
	"vkcompute/vk"
)

// defaultSize is the number of launches measured under the default setting too.
const defaultSize = 256

// llvmpipeSetup takes away what hides the cost of a launch on Mesa's CPU driver. It hands
// each launch to a pool of threads, whose waking costs ten times the launch; without
// the threads it runs on the one that submits, and the process is pinned to a core. glibc
// gives freed memory back to the system and fetches it again, page by page, when the
// driver's allocations (its shader cache above all) happen to lie at the top of the heap.
// 32 MiB is the largest mmap threshold that glibc takes.
func llvmpipeSetup() []string {
	return []string{"LP_NUM_THREADS=0", "MALLOC_MMAP_THRESHOLD_=33554432", "MALLOC_TRIM_THRESHOLD_=1073741824"}
}

// The prefix of the cases measured under the default setting.
const defaultPrefix = "default/"

func runLaunch(ctx context.Context, j job) (outcome, error) {
	if !isLLVMpipe(&j.device) {
		out, err := launchHere(ctx, j, launch.Options{})
		out.show(launch.Section{Title: "Launches"})
		return out, err
	}
	settings := llvmpipeSetup()
	out, err := startWorker(ctx, j, launch.Name, settings)
	if err != nil {
		return out, err
	}
	if out.Setup != "" {
		settings = append([]string{out.Setup}, settings...)
	}
	out.Setup = "in a process of its own, " + strings.Join(settings, ", ")
	j.measure.Time /= 4
	here, err := launchHere(ctx, j, launch.Options{Sizes: []int{defaultSize}, Scope: launch.Modes, Prefix: defaultPrefix})
	if err != nil {
		return out, err
	}
	out.Results = append(out.Results, here.Results...)
	out.Warnings = append(out.Warnings, here.Warnings...)
	out.show(
		launch.Section{Title: "Launches, in the process set up for it"},
		launch.Section{Title: "Launches, default setting: the driver's thread pool hides what they cost", Prefix: defaultPrefix})
	return out, nil
}

func (o *outcome) show(sections ...launch.Section) {
	results := o.Results
	o.table = func(w io.Writer) error { return launch.WriteTable(w, results, sections) }
}

func launchHere(ctx context.Context, j job, o launch.Options) (out outcome, err error) {
	o.Measure, o.Progress = j.measure, j.say
	err = withDevice(j, func(d *vk.Device) error {
		if d.Info().Name != j.device.Name {
			return fmt.Errorf("device %d was %q and is %q now", j.device.Index, j.device.Name, d.Info().Name)
		}
		out.Results, err = launch.Run(ctx, d, o)
		return err
	})
	return out, err
}
