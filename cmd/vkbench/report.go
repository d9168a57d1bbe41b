package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"vkcompute/internal/bench/page"
)

type reportCommand struct {
	Files  []string `arg:"" name:"file" help:"JSON reports, one to six." type:"path"`
	Output string   `short:"o" help:"File to write to instead of standard output." placeholder:"FILE" type:"path"`
}

// Validate is called by kong.
func (c *reportCommand) Validate() error {
	if len(c.Files) > 6 {
		return fmt.Errorf("%d reports: want 1 to 6", len(c.Files))
	}
	return nil
}

func (c *reportCommand) Run(s *streams) error {
	o := output{c.Output, s.out}
	if err := o.check(); err != nil {
		return err
	}
	var sources []page.Source
	for _, f := range c.Files {
		r, err := readReport(f)
		if err != nil {
			return err
		}
		name := filepath.Base(f)
		sources = append(sources, page.Source{Name: strings.TrimSuffix(name, filepath.Ext(name)), Report: r})
	}
	return o.write(func(w io.Writer) error { return page.Write(w, sources) })
}
