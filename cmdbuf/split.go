package cmdbuf

import (
	"context"
	"time"
)

// splitEvery is the number of operations of a segment when long submissions are split.
const splitEvery = 64

// maxHandles is about how many command buffers go in one submission.
const maxHandles = 4096

// submit sends n replays and returns the serial of the last.
func (g *Graph) submit(n int) (serial uint64, err error) {
	s := g.stream
	if g.profile == nil && (s.maxSubmit == 0 || len(g.segments) == 1) {
		for at := max(1, maxHandles/len(g.buffers)); n > 0; n -= at {
			if serial, err = s.submit(g.buffers, min(n, at)); err != nil {
				break
			}
		}
		return serial, err
	}
	for range n {
		switch {
		case s.maxSubmit == 0 || len(g.segments) == 1:
			serial, err = g.submitSegments(run{0, int32(len(g.segments))})
		case g.groups == nil:
			serial, err = g.measure()
		default:
			for _, r := range g.groups {
				if serial, err = g.submitSegments(r); err != nil {
					break
				}
			}
		}
		if err != nil {
			return serial, err
		}
	}
	return serial, nil
}

// submitSegments sends some of the segments; behind the last go the timestamps.
func (g *Graph) submitSegments(r run) (uint64, error) {
	g.list = append(g.list[:0], g.buffers[r.from:r.to]...)
	if p := g.profile; p != nil && int(r.to) == len(g.segments) {
		slot := &p.ring[p.next]
		g.list = append(g.list, slot.buffer)
		serial, err := g.stream.submit(g.list, 1)
		if err == nil {
			slot.serial = serial
			p.next = (p.next + 1) % profiled
		}
		return serial, err
	}
	return g.stream.submit(g.list, 1)
}

// measure replays segment by segment, waits for each, and groups them by the time they
// took.
func (g *Graph) measure() (serial uint64, err error) {
	s := g.stream
	ctx, cancel := context.WithTimeout(context.Background(), stuck)
	defer cancel()
	// What came before is not this graph's time.
	if err := s.flush(); err != nil {
		return 0, err
	}
	if err := s.timeline.Wait(ctx, s.timeline.Submitted()); err != nil {
		return 0, err
	}
	var groups []run
	var sum time.Duration
	for i := range int32(len(g.segments)) {
		start := time.Now()
		if serial, err = g.submitSegments(run{i, i + 1}); err != nil {
			return serial, err
		}
		if err := s.timeline.Wait(ctx, serial); err != nil {
			return serial, err
		}
		took := time.Since(start)
		if len(groups) == 0 || sum+took > s.maxSubmit {
			groups = append(groups, run{i, i})
			sum = 0
		}
		groups[len(groups)-1].to = i + 1
		sum += took
	}
	g.groups = groups
	return serial, nil
}
