package main

import (
	"context"
	"fmt"
	"io"

	"vkcompute/cmdbuf"
	"vkcompute/internal/bench/launch"
	"vkcompute/vk"
)

// defaultSize is the number of launches measured under the default setting too.
const defaultSize = 256

// The prefix of the cases measured under the default setting.
const defaultPrefix = "default/"

func launchWorkload() workload {
	return workload{
		name: launch.Name, doc: "one launch: everything rebuilt, info cached, recorded and replayed, beside plain C",
		run: runLaunch, here: launchAll, record: recordChain, kernels: launch.Kernels,
	}
}

func runLaunch(ctx context.Context, j job) (outcome, error) {
	out, err := alone(launchAll)(ctx, j)
	if err != nil || !isLLVMpipe(&j.device) {
		out.show(launch.Section{Title: "Launches"})
		return out, err
	}
	j.measure.Time /= 4
	here, err := launchHere(ctx, j, launch.Options{Sizes: []int{defaultSize}, Scope: launch.Modes, Prefix: defaultPrefix})
	if err != nil {
		return out, err
	}
	out.Results = append(out.Results, here.Results...)
	out.Warnings = append(out.Warnings, here.Warnings...)
	out.Unsupported = append(out.Unsupported, here.Unsupported...)
	out.show(
		launch.Section{Title: "Launches, in the process set up for it"},
		launch.Section{Title: "Launches, default setting: the driver's thread pool hides what they cost", Prefix: defaultPrefix})
	return out, nil
}

// launchAll measures every mode in this process.
func launchAll(ctx context.Context, j job) (outcome, error) {
	return launchHere(ctx, j, launch.Options{})
}

func (o *outcome) show(sections ...launch.Section) {
	results := o.Results
	o.table = func(w io.Writer) error { return launch.WriteTable(w, results, sections) }
}

func launchHere(ctx context.Context, j job, o launch.Options) (out outcome, err error) {
	o.Measure, o.Progress, o.Unsupported = j.measure, j.say, out.lacks
	err = withDevice(j, func(d *vk.Device) error {
		if d.Info().Name != j.device.Name {
			return fmt.Errorf("device %d was %q and is %q now", j.device.Index, j.device.Name, d.Info().Name)
		}
		if info := d.Info(); len(o.Sizes) == 0 && (j.validate || info.Type == vk.CPU && !isLLVMpipe(&info)) {
			// Where each launch is looked at, or wakes threads, thousands take longer than
			// they tell.
			o.Sizes = launch.DefaultSizes()
			o.Sizes = o.Sizes[:len(o.Sizes)-1]
		}
		out.Results, err = launch.Run(ctx, d, o)
		return err
	})
	return out, err
}

// recordChain is the graph of the mode replay, of 16 launches.
func recordChain(ctx context.Context, s *cmdbuf.Stream) (*cmdbuf.Graph, error) {
	return launch.Record(ctx, s, 16)
}
