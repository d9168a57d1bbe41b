package suite

import (
	"context"
	"errors"
	"fmt"
	"io"

	"vkcompute/internal/bench"
	"vkcompute/internal/poolbench"
)

const poolName = "pool"

// holes is how many free ranges the page has on which requests fail.
const holes = 2048

// drawnLive is how many slices the pages have that are drawn.
const drawnLive = 1024

// Pool measures the allocator by itself: one slice of many is released and one
// allocated, and a request that no hole of a page is large enough for. It needs no
// device: what is measured is the bookkeeping, not the driver's memory. If picture is
// not nil, the pages are drawn there.
func Pool(ctx context.Context, o Options, picture func(func(io.Writer) error) error) (list []bench.Result, err error) {
	defer func() {
		switch {
		case errors.Is(err, poolbench.ErrNotMeasured):
			err = fmt.Errorf("pool: %w: %w", ErrWrong, err)
		case err != nil:
			err = fmt.Errorf("pool: %w", err)
		}
	}()
	var groups []bench.Group
	var drawn *poolbench.Cycle
	for _, live := range poolbench.Lives() {
		o.say(fmt.Sprintf("allocating %d slices", live), 0)
		c, bad := poolbench.NewCycle(live)
		if bad != nil {
			return nil, bad
		}
		defer closing(&err, c)
		if live == drawnLive {
			drawn = c
		}
		// A turn through the slices first, as of a program that does nothing else.
		groups = append(groups, bench.Group{Cases: []bench.Case{{Name: fmt.Sprintf("cycle/live=%d", live), Run: c.Run, Warm: live}}})
	}
	var requests bench.Group
	for _, x := range []struct {
		name string
		what poolbench.Request
	}{{"succeed", poolbench.Fits}, {"pass-over", poolbench.FitsNowhere}, {"behind", poolbench.FitsBehind}, {"refused", poolbench.Refused}} {
		h, bad := poolbench.NewHoles(holes, x.what)
		if bad != nil {
			return nil, bad
		}
		defer closing(&err, h)
		requests.Cases = append(requests.Cases, bench.Case{Name: fmt.Sprintf("%s/holes=%d", x.name, holes), Run: h.Run})
	}
	groups = append(groups, requests)
	samples, err := o.measure(ctx, groups)
	if err != nil {
		return nil, err
	}
	row := func(name string, s bench.Samples) *bench.Result {
		list = append(list, bench.NewResult(poolName, name, "wall", "ns/op", s, 1))
		return &list[len(list)-1]
	}
	for i := range len(groups) - 1 {
		row(groups[i].Cases[0].Name, samples[i])
	}
	samples = samples[len(groups)-1:]
	succeed := *row(requests.Cases[0].Name, samples[0])
	fail := row(fmt.Sprintf("fail/holes=%d", holes), beyond(samples[1], samples[2]))
	fail.Against("succeed", succeed)
	fail.Note = "on the page: pass-over less behind; succeed includes giving back"
	row(requests.Cases[1].Name, samples[1]).Note = "fails on the page of holes, comes from one behind it"
	row(requests.Cases[2].Name, samples[2]).Note = "control: comes from the same page, that of holes is not asked"
	row(requests.Cases[3].Name, samples[3]).Note = "control: no page can be made either; drains, retries and makes its error"
	if picture != nil {
		err = picture(drawn.Map().WriteSVG)
	}
	return list, err
}

// beyond is what one thing takes longer than another in the same round. Where noise has it take less it takes the least
// that a figure can tell.
func beyond(long, short bench.Samples) bench.Samples {
	d := make(bench.Samples, len(long))
	for i := range d {
		d[i] = max(long[i]-short[i], 0.1)
	}
	return d
}
