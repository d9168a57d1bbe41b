package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"vkcompute/internal/bench"
	"vkcompute/vk"
)

type runCommand struct {
	deviceFlags
	Workloads []string      `arg:"" optional:"" name:"workload" help:"Workloads to run; none: all."`
	Count     *int          `help:"Least number of samples of each figure. Without it: 20, or fewer where they would take longer than three times --time." placeholder:"N"`
	Time      time.Duration `default:"2s" help:"How long to measure each workload, if that gives more samples."`
	Checked   bool          `name:"validate" help:"Run under the validation layer. Its messages fail the run, and the figures are not comparable with others."`
	Cache     string        `help:"Folder of pipeline caches and tunings: kernels are found there, and tuned by what 'vkbench tune' left. Without it: the defaults, whose figures compare with others'." placeholder:"DIR" type:"path"`
	Map       string        `help:"With workload pool: draw its pages as SVG." placeholder:"FILE" type:"path"`
	decodeFlags
	trainFlags
	Format string `enum:"table,json,csv,markdown,bench,prom" default:"table" help:"table, json, csv, markdown, bench (for benchstat) or prom (a text file for node-exporter)."`
	Output string `short:"o" help:"File to write to instead of standard output." placeholder:"FILE" type:"path"`
}

// Help is shown by kong below the flags.
func (c *runCommand) Help() string { return workloadHelp() }

// Validate is called by kong: what it refuses is bad usage.
func (c *runCommand) Validate() error {
	for i, name := range c.Workloads {
		if find(name) == nil {
			return fmt.Errorf("unknown workload %q: want %s", name, strings.Join(names(), " or "))
		}
		if slices.Contains(c.Workloads[:i], name) {
			return fmt.Errorf("workload %q was given twice", name)
		}
	}
	if c.Count != nil && (*c.Count < 1 || *c.Count > bench.MaxRounds) {
		return fmt.Errorf("--count %d: want 1 to %d", *c.Count, bench.MaxRounds)
	}
	if c.Map != "" && len(c.Workloads) > 0 && !slices.Contains(c.Workloads, "pool") {
		return errors.New("--map draws the pages of workload pool, which is not among those to run")
	}
	if c.Time < 0 {
		return fmt.Errorf("--time %v: want 0 or more", c.Time)
	}
	if err := c.trainFlags.check(len(c.Workloads) == 0 || slices.Contains(c.Workloads, "train")); err != nil {
		return err
	}
	if err := c.decodeFlags.check(len(c.Workloads) == 0 || slices.Contains(c.Workloads, "decode")); err != nil {
		return err
	}
	return c.deviceFlags.check()
}

func (c *runCommand) Run(s *streams, ctx *runContext) error {
	o := output{c.Output, s.out}
	for _, file := range []output{o, {path: c.Map}} {
		if err := file.check(); err != nil {
			return err
		}
	}
	selected := c.Workloads
	if len(selected) == 0 {
		selected = names()
	}
	_, device, _, err := c.choose()
	if err != nil {
		return err
	}
	report := &bench.Report{Schema: bench.Schema, Environment: environment(&device)}
	report.Environment.Profile = c.Profile
	if device.Type == vk.CPU {
		report.Warnings = append(report.Warnings, "this device is a CPU: the figures show what library and driver cost, not what a GPU would")
	}
	if c.Profile != "" {
		report.Warnings = append(report.Warnings, "the device is emulated (profile "+c.Profile+"): what stands before the driver costs time of its own")
	}
	if c.Checked {
		report.Warnings = append(report.Warnings, "the validation layer is on: it costs more than what is measured")
	}
	if c.Cache != "" {
		report.Environment.Setup = "tuning: " + tuningOf(c.Cache, &device)
	}
	report.Warnings = append(report.Warnings, hostWarnings("/")...)
	var outcomes []outcome
	for i, name := range selected {
		j := job{name: name, device: device, validate: c.Checked, profile: c.Profile, cache: c.Cache, emulated: c.emulated, errOut: s.err, picture: c.Map, decode: c.decodeFlags, train: c.trainFlags, step: i, steps: len(selected),
			measure: c.samples(),
			say:     func(t string, part float64) { s.progress.step(i, len(selected), name, t, part) }}
		out, err := find(name).run(ctx, j)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		outcomes = append(outcomes, out)
		report.Results = append(report.Results, out.Results...)
		report.Warnings = append(report.Warnings, out.Warnings...)
		report.Unsupported = append(report.Unsupported, out.Unsupported...)
		if out.Setup != "" {
			report.Environment.Setup = strings.TrimPrefix(report.Environment.Setup+"; "+name+": "+out.Setup, "; ")
		}
	}
	if n := unstable(report.Results); n > 0 {
		report.Warnings = append(report.Warnings, fmt.Sprintf("%d of %d figures are unstable: their samples spread by more than %.0f %%; is something else running?", n, len(report.Results), 100*bench.UnstableSpread))
	}
	s.progress.clear()
	return o.write(func(w io.Writer) error {
		if c.Format == "table" {
			return writeTable(w, report, outcomes)
		}
		return report.Write(w, bench.Format(c.Format))
	})
}

// samples says how many are taken.
func (c *runCommand) samples() bench.Options {
	if c.Count != nil {
		return bench.Options{Rounds: *c.Count, Time: c.Time}
	}
	return bench.Options{Rounds: 20, Time: c.Time, Limit: 3 * c.Time}
}

func environment(d *vk.DeviceInfo) bench.Environment {
	e := bench.Host()
	e.Device, e.Driver, e.API = d.Name, d.Driver, d.API.String()
	return e
}

func unstable(results []bench.Result) int {
	n := 0
	for _, r := range results {
		if r.Unstable {
			n++
		}
	}
	return n
}

func writeTable(w io.Writer, r *bench.Report, outcomes []outcome) error {
	e := &r.Environment
	var b strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-8s %s\n", name, value)
		}
	}
	line("device", e.Device)
	line("driver", e.Driver)
	line("Vulkan", e.API)
	line("host", e.CPU+", "+e.OS+", "+e.Go)
	line("commit", e.Commit)
	line("profile", e.Profile)
	line("setup", e.Setup)
	for _, warning := range r.Warnings {
		line("warning", warning)
	}
	b.WriteString("\n")
	writeSummary(&b, r)
	for _, o := range outcomes {
		if err := o.write(&b); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// withDevice opens the device for f and closes it. What the validation layer said is an
// error.
func withDevice(j job, f func(*vk.Device) error) (err error) {
	o := vk.Options{Device: fmt.Sprint(j.device.Index), PipelineCache: j.cache}
	if j.validate {
		o.Validation = vk.ValidationSync
	}
	d, err := vk.Open(o)
	if err != nil {
		return err
	}
	defer func() {
		var said []error
		for _, m := range d.Messages() {
			said = append(said, fmt.Errorf("validation: %v", m))
		}
		err = errors.Join(err, errors.Join(said...), d.Close())
		if j.emulated != nil {
			for _, v := range j.emulated.Violations() {
				err = errors.Join(err, fmt.Errorf("the emulated device does not allow: %s", v))
			}
		}
	}()
	return f(d)
}
