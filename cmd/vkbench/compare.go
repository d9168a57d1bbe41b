package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"vkcompute/internal/bench"
)

type compareCommand struct {
	Old       string  `arg:"" help:"JSON report to compare with." type:"path"`
	New       string  `arg:"" help:"JSON report to compare." type:"path"`
	FailAbove float64 `help:"Exit with status 1 if a figure is for sure worse by more than this." placeholder:"PERCENT" default:"-1"`
	Format    string  `enum:"table,json" default:"table" help:"table or json."`
	Output    string  `short:"o" help:"File to write to instead of standard output." placeholder:"FILE" type:"path"`
}

// Validate is called by kong.
func (c *compareCommand) Validate() error {
	if math.IsNaN(c.FailAbove) || c.FailAbove < 0 && c.FailAbove != -1 {
		return fmt.Errorf("--fail-above %v: want 0 or more per cent", c.FailAbove)
	}
	return nil
}

func (c *compareCommand) Run(s *streams) error {
	o := output{c.Output, s.out}
	if err := o.check(); err != nil {
		return err
	}
	before, err := readReport(c.Old)
	if err != nil {
		return err
	}
	after, err := readReport(c.New)
	if err != nil {
		return err
	}
	found, err := bench.Compare(before, after)
	if err != nil {
		return err
	}
	err = o.write(func(w io.Writer) error {
		if c.Format == "json" {
			e := json.NewEncoder(w)
			e.SetEscapeHTML(false)
			e.SetIndent("", " ")
			return e.Encode(found)
		}
		return found.WriteTable(w)
	})
	if err != nil || c.FailAbove < 0 {
		return err
	}
	var worse []error
	for _, l := range found.Above(c.FailAbove) {
		worse = append(worse, fmt.Errorf("%s/%s %s: %.1f %% worse, which is more than %g %%", l.Workload, l.Case, l.Metric, l.Worse(), c.FailAbove))
	}
	return errors.Join(worse...)
}

// readReport reads a JSON report from a file.
func readReport(path string) (*bench.Report, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	defer f.Close()
	r, err := bench.ReadJSON(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; want what run --format json writes", path, err)
	}
	return r, nil
}
