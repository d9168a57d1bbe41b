package main

import (
	"errors"
	"fmt"
	"io"

	"vkcompute/cmdbuf"
	"vkcompute/vk"
)

type traceCommand struct{ recordedFlags }

// Validate is called by kong.
func (c *traceCommand) Validate() error { return c.recordedFlags.check() }

// traceWarm is how many replays go before the one that is shown.
const traceWarm = 3

func (c *traceCommand) Run(s *streams, ctx *runContext) error {
	o := output{c.Output, s.out}
	if err := o.check(); err != nil {
		return err
	}
	err := c.record(ctx, cmdbuf.Options{Profile: true}, func(stream *cmdbuf.Stream, g *cmdbuf.Graph) error {
		for range traceWarm + 1 {
			if err := errors.Join(g.Replay(), stream.Sync(ctx)); err != nil {
				return err
			}
		}
		all, err := g.Profile(ctx)
		if err != nil {
			return err
		}
		spans := lastReplay(all)
		if len(spans) == 0 {
			return fmt.Errorf("%s: the device gave no times", c.Workload)
		}
		return o.write(func(w io.Writer) error { return cmdbuf.WriteTrace(w, spans) })
	})
	if errors.Is(err, vk.ErrUnsupported) {
		return fmt.Errorf("trace needs a device that writes timestamps: %w", err)
	}
	return err
}

// lastReplay keeps the spans of the last replay, with times from its beginning.
func lastReplay(all []cmdbuf.Span) []cmdbuf.Span {
	var list []cmdbuf.Span
	for _, s := range all {
		if len(list) > 0 && s.Replay != list[0].Replay {
			list = list[:0]
		}
		list = append(list, s)
	}
	if len(list) > 0 {
		begin := list[0].Start
		for _, s := range list {
			begin = min(begin, s.Start)
		}
		for i := range list {
			list[i].Start -= begin
		}
	}
	return list
}
