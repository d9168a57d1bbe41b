package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"vkcompute/cmdbuf"
	"vkcompute/internal/bench"
	"vkcompute/internal/bench/suite"
	"vkcompute/shaders"
	"vkcompute/vk"
)

type tuneCommand struct {
	deviceFlags
	Cache  string        `help:"Folder of pipeline caches (vk.Options.PipelineCache), to write the tuning to. Without it: vkcompute in the user's folder of caches." placeholder:"DIR" type:"path"`
	Time   time.Duration `default:"20s" help:"How long to measure in all, if that gives more samples."`
	DryRun bool          `help:"Write no file."`
	Format string        `enum:"table,json" default:"table" help:"table or json, which has every candidate."`
	Output string        `short:"o" help:"File to write to instead of standard output." placeholder:"FILE" type:"path"`
}

// Help is shown by kong below the flags.
func (tuneCommand) Help() string {
	return "Measures workgroups, tiles and ways to read in representative kernels, each candidate beside the best until then and checked against plain Go. What is faster by more than the noise is written beside the pipeline cache, where the streams of a device opened with that folder find it; otherwise the default is. A candidate that computes something else is never chosen, is told, and makes the exit status 1."
}

// Validate is called by kong.
func (c *tuneCommand) Validate() error {
	if c.Time < 0 {
		return fmt.Errorf("--time %v: want 0 or more", c.Time)
	}
	return c.check()
}

// tuneReport is the JSON form.
type tuneReport struct {
	Schema  int            `json:"schema"`
	Device  string         `json:"device"`
	Driver  string         `json:"driver"`
	File    string         `json:"file,omitempty"` // empty: none was written
	Default shaders.Tuning `json:"default"`
	Chosen  shaders.Tuning `json:"chosen"`
	Gain    float64        `json:"gain"`
	Kernels []tunedKernel  `json:"kernels"`
	Trials  []tuneTrial    `json:"trials"`
}

type tunedKernel struct {
	Name    string  `json:"name"`
	Default float64 `json:"default"` // median, ns a launch
	Chosen  float64 `json:"chosen"`
}

type tuneTrial struct {
	Knob  string `json:"knob"`
	Value string `json:"value"`
	// Time as a part of the best's until then; 0: not measured.
	Time float64 `json:"time"`
	Low  float64 `json:"p10"`
	High float64 `json:"p90"`
	// Rounds that were measured; 0: given up at a first glance.
	Rounds int    `json:"rounds"`
	Taken  bool   `json:"taken"`
	Why    string `json:"why,omitempty"`
}

func (c *tuneCommand) Run(s *streams, ctx *runContext) error {
	o := output{c.Output, s.out}
	if err := o.check(); err != nil {
		return err
	}
	folder, err := cacheFolder(c.Cache)
	if !c.DryRun {
		if err == nil {
			err = writable(folder)
		}
		if err != nil {
			return err
		}
	}
	_, device, _, err := c.choose()
	if err != nil {
		return err
	}
	var out outcome
	j := job{name: "tune", device: device, profile: c.Profile, emulated: c.emulated,
		measure: bench.Options{Time: c.Time, Limit: 3 * c.Time},
		say:     func(t string, part float64) { s.progress.step(0, 1, "tune", t, part) }}
	var found suite.Tuned
	err = withDevice(j, func(d *vk.Device) error {
		found, err = suite.Tune(ctx, d, j.options(&out), cmdbuf.DefaultTuning(d.Info()))
		return err
	})
	if err != nil {
		return err
	}
	r := newTuneReport(&device, &found)
	if !c.DryRun {
		saved := cmdbuf.SavedTuning{Tuning: found.Chosen, Comment: "vkbench tune, " + time.Now().Format(time.DateOnly) + ", " + verdict(&found)}
		if err := cmdbuf.SaveTuning(folder, device, saved); err != nil {
			return err
		}
		r.File = cmdbuf.TuningFile(folder, device)
	}
	s.progress.clear()
	return c.report(o, r, &found)
}

// report writes what was found, which is good even if some candidate was not: that is an
// error all the same, because a driver or a kernel is not.
func (c *tuneCommand) report(o output, r *tuneReport, found *suite.Tuned) error {
	return errors.Join(o.write(func(w io.Writer) error {
		if c.Format == "json" {
			e := json.NewEncoder(w)
			e.SetEscapeHTML(false)
			e.SetIndent("", "  ")
			return e.Encode(r)
		}
		return writeTuned(w, r, verdict(found))
	}), found.Wrong())
}

func newTuneReport(d *vk.DeviceInfo, t *suite.Tuned) *tuneReport {
	r := &tuneReport{Schema: 1, Device: d.Name, Driver: d.Driver, Default: t.Default, Chosen: t.Chosen, Gain: t.Gain}
	for _, k := range t.Kernels {
		r.Kernels = append(r.Kernels, tunedKernel{k.Name, k.Default.Median, k.Chosen.Median})
	}
	for _, x := range t.Tried {
		r.Trials = append(r.Trials, tuneTrial{x.Knob, x.Value, x.Time, x.Low, x.High, x.Rounds, x.Taken, x.Why})
	}
	return r
}

func verdict(t *suite.Tuned) string {
	if t.Chosen == t.Default {
		return "the default is best"
	}
	return fmt.Sprintf("%.2f times as fast as the default", t.Gain)
}

func writeTuned(w io.Writer, r *tuneReport, verdict string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "device   %s\ndriver   %s\n\n", r.Device, r.Driver)
	knobs := bench.NewTable(5, 1, 2, 5)
	knobs.AppendHeader(table.Row{"searched", "best candidate", "tried", "time", ""})
	for i := 0; i < len(r.Trials); {
		n, best := i, i
		for ; n < len(r.Trials) && r.Trials[n].Knob == r.Trials[i].Knob; n++ {
			if r.Trials[n].before(&r.Trials[best]) {
				best = n
			}
		}
		t := &r.Trials[best]
		why := t.Why
		if t.Taken {
			why = "taken"
		}
		knobs.AppendRow(table.Row{t.Knob, t.Value, n - i, fmt.Sprintf("×%.2f (%.2f … %.2f)", t.Time, t.Low, t.High), why})
		i = n
	}
	b.WriteString("tune: one value after the other; time is that of the kernels it concerns as a part of the best's until then, in the\nmiddle and in eight rounds of ten.\n")
	b.WriteString(knobs.Render() + "\n\n")
	kernels := bench.NewTable(4, 1)
	kernels.AppendHeader(table.Row{"kernel", "default", "chosen", "times as fast"})
	for _, k := range r.Kernels {
		scale, unit := bench.Scale(k.Default, "ns/launch")
		kernels.AppendRow(table.Row{k.Name, bench.Number(k.Default/scale) + " " + unit, bench.Number(k.Chosen/scale) + " " + unit, fmt.Sprintf("%.2f", k.Default/max(k.Chosen, 0.1))})
	}
	b.WriteString(kernels.Render() + "\n\n")
	fmt.Fprintf(&b, "chosen   %s: %s\n", tuningText(r.Chosen), verdict)
	if r.File != "" {
		fmt.Fprintf(&b, "written  %s\n", r.File)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// before tells which of two trials is shown for all: the one that was taken, or the fastest
// of those that were measured.
func (t *tuneTrial) before(u *tuneTrial) bool {
	switch {
	case t.Taken != u.Taken:
		return t.Taken
	case (t.Rounds > 0) != (u.Rounds > 0):
		return t.Rounds > 0
	}
	return t.Time > 0 && (u.Time == 0 || t.Time < u.Time)
}

// tuningText is a tuning in a line.
func tuningText(t shaders.Tuning) string {
	m := t.MatMulTile()
	groups, workgroup, rows := "1024", "the size that suits each kernel", "" // as the kernels take 0
	if t.Groups != 0 {
		groups = fmt.Sprint(t.Groups)
	}
	if t.Workgroup != 0 {
		workgroup = fmt.Sprint(t.Workgroup)
	}
	if t.Reads == shaders.Scattered {
		rows = fmt.Sprintf("vectors with %d rows at a time, ", cmp.Or(t.VectorRows, 8))
	}
	return fmt.Sprintf("reads %v, %s groups of %s, %smatrix product %v in groups of %d×%d with %d×%d results each", t.Reads, groups, workgroup, rows, m.Operands, m.Down, m.Across, m.Rows, m.Cols)
}
