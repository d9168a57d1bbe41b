package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"vkcompute/cmd/vkbench/internal/drawing"
	"vkcompute/cmdbuf"
	"vkcompute/vk"
)

// recordedFlags name the workload whose graph is wanted.
type recordedFlags struct {
	deviceFlags
	Workload string `arg:"" help:"Workload that records a graph."`
	Checked  bool   `name:"validate" help:"Run under the validation layer; its messages fail the command."`
	Output   string `short:"o" help:"File to write to instead of standard output." placeholder:"FILE" type:"path"`
}

func (f *recordedFlags) check() error {
	switch w := find(f.Workload); {
	case w == nil:
		return fmt.Errorf("unknown workload %q: want %s", f.Workload, strings.Join(recorded(), " or "))
	case w.record == nil:
		return fmt.Errorf("workload %q records no graph: want %s", f.Workload, strings.Join(recorded(), " or "))
	}
	return f.deviceFlags.check()
}

// record calls use with the workload's graph on a stream of its own.
func (f *recordedFlags) record(ctx context.Context, o cmdbuf.Options, use func(*cmdbuf.Stream, *cmdbuf.Graph) error) error {
	_, device, _, err := f.choose()
	if err != nil {
		return err
	}
	j := job{device: device, validate: f.Checked, emulated: f.emulated}
	return withStream(j, o, func(s *cmdbuf.Stream) error {
		g, err := find(f.Workload).record(ctx, s)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Workload, err)
		}
		return errors.Join(use(s, g), g.Close())
	})
}

// withStream opens the job's device and a stream on it, and closes both.
func withStream(j job, o cmdbuf.Options, f func(*cmdbuf.Stream) error) error {
	return withDevice(j, func(d *vk.Device) error {
		s, err := cmdbuf.NewStream(d, o)
		if err != nil {
			return err
		}
		err = f(s)
		// No deadline: closing is what makes leaving safe.
		return errors.Join(err, s.Close(context.Background()))
	})
}

type graphCommand struct {
	recordedFlags
	Format string `enum:"svg,dot,json,text" default:"svg" help:"svg, dot (for graphviz), json or text."`
	Save   string `help:"Write the graph itself too, for vkbench replay." placeholder:"FILE" type:"path"`
}

// Validate is called by kong.
func (c *graphCommand) Validate() error { return c.recordedFlags.check() }

func (c *graphCommand) Run(s *streams, ctx *runContext) error {
	o, saved := output{c.Output, s.out}, output{path: c.Save}
	for _, f := range []output{o, saved} {
		if err := f.check(); err != nil {
			return err
		}
	}
	return c.record(ctx, cmdbuf.Options{}, func(_ *cmdbuf.Stream, g *cmdbuf.Graph) error {
		d := drawing.Graph{Title: c.Workload, Explain: g.Explain(), Stats: g.Stats()}
		err := o.write(func(w io.Writer) error {
			switch c.Format {
			case "dot":
				return d.DOT(w)
			case "json":
				return d.JSON(w)
			case "text":
				_, err := io.WriteString(w, d.Explain.String())
				return err
			}
			return d.SVG(w)
		})
		if err != nil || c.Save == "" {
			return err
		}
		return saved.write(func(w io.Writer) error {
			return g.Save(ctx, w, cmdbuf.SaveOptions{Contents: true, Comment: "workload " + c.Workload})
		})
	})
}
