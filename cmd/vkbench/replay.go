package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"vkcompute/cmdbuf"
	"vkcompute/internal/bench"
	"vkcompute/shaders"
)

type replayCommand struct {
	deviceFlags
	File    string `arg:"" help:"Graph, as vkbench graph --save or Graph.Save wrote it." type:"path"`
	Count   int    `default:"20" help:"Number of replays timed." placeholder:"N"`
	Checked bool   `name:"validate" help:"Run under the validation layer; its messages fail the command."`
	Format  string `enum:"table,json" default:"table" help:"table or json."`
	Output  string `short:"o" help:"File to write to instead of standard output." placeholder:"FILE" type:"path"`
}

// Validate is called by kong.
func (c *replayCommand) Validate() error {
	if c.Count < 1 || c.Count > bench.MaxRounds {
		return fmt.Errorf("--count %d: want 1 to %d", c.Count, bench.MaxRounds)
	}
	return c.deviceFlags.check()
}

// replayed is the JSON form.
type replayed struct {
	Schema    int       `json:"schema"`
	Device    string    `json:"device"`
	Driver    string    `json:"driver"`
	SavedOn   string    `json:"saved_on"`
	Comment   string    `json:"comment"`
	Launches  int       `json:"launches"`
	Transfers int       `json:"transfers"`
	Barriers  int       `json:"barriers"`
	First     float64   `json:"first_ns"`
	Samples   []float64 `json:"samples_ns"`
	Median    float64   `json:"median_ns"`
	P10       float64   `json:"p10_ns"`
	P90       float64   `json:"p90_ns"`
	// Digest is the SHA-256 of what the graph writes, after its first replay.
	Digest string `json:"digest"`
}

func (c *replayCommand) Run(s *streams, ctx *runContext) error {
	o := output{c.Output, s.out}
	if err := o.check(); err != nil {
		return err
	}
	f, err := os.Open(c.File)
	if err != nil {
		return fmt.Errorf("graph: %w", err)
	}
	defer f.Close()
	_, device, _, err := c.choose()
	if err != nil {
		return err
	}
	r := replayed{Schema: 1, Device: device.Name, Driver: device.Driver}
	var own []*shaders.Kernel
	for _, w := range workloads() {
		if w.kernels == nil {
			continue
		}
		list, err := w.kernels()
		if err != nil {
			return err
		}
		own = append(own, list...)
	}
	err = withStream(job{device: device, validate: c.Checked, emulated: c.emulated}, cmdbuf.Options{}, func(stream *cmdbuf.Stream) error {
		g, err := cmdbuf.Load(ctx, stream, f, cmdbuf.LoadOptions{Kernels: own})
		if err != nil {
			return fmt.Errorf("%s: %w", c.File, err)
		}
		run := func() (float64, error) {
			begin := time.Now()
			err := errors.Join(g.Replay(), stream.Sync(ctx))
			return float64(time.Since(begin)), err
		}
		err = func() error {
			// The digest is of one replay, so that runs of any count compare.
			if r.First, err = run(); err != nil {
				return err
			}
			digest, err := g.Digest(ctx)
			if err != nil {
				return err
			}
			r.Digest = fmt.Sprintf("%x", digest)
			for range c.Count {
				took, err := run()
				if err != nil {
					return err
				}
				r.Samples = append(r.Samples, took)
			}
			return nil
		}()
		st := g.Stats()
		r.SavedOn, r.Comment, r.Launches, r.Transfers, r.Barriers = g.SavedOn, g.Comment, st.Launches, st.Transfers, st.Barriers
		return errors.Join(err, g.Close())
	})
	if err != nil {
		return err
	}
	sum := bench.Summarise(r.Samples)
	r.Median, r.P10, r.P90 = sum.Median, sum.P10, sum.P90
	return o.write(func(w io.Writer) error {
		if c.Format == "json" {
			e := json.NewEncoder(w)
			e.SetEscapeHTML(false)
			e.SetIndent("", " ")
			return e.Encode(&r)
		}
		return r.write(w)
	})
}

func (r *replayed) write(w io.Writer) error {
	scale, unit := bench.Scale(r.Median, "ns")
	by, first := bench.Scale(r.First, "ns")
	_, err := fmt.Fprintf(w, "graph    %s\nsaved on %s\ndevice   %s, %s\nholds    %d launches, %d transfers, %d barriers\nfirst    %s %s\nreplay   %s %s (median of %d, waited for each; 10 to 90 %%: %s … %s)\ndigest   %s\n",
		r.Comment, r.SavedOn, r.Device, r.Driver, r.Launches, r.Transfers, r.Barriers, bench.Number(r.First/by), first,
		bench.Number(r.Median/scale), unit, len(r.Samples), bench.Number(r.P10/scale), bench.Number(r.P90/scale), r.Digest)
	return err
}
