package cmdbuf

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
	"unsafe"

	"vkcompute/pool"
	"vkcompute/vk"
)

// profiled is how many replays of a graph keep their timestamps; older ones are
// overwritten.
const profiled = 8

// profile takes the times of a graph's operations on the device. The graph's command
// buffer writes timestamps into one query pool; behind each replay runs one of a ring of
// short command buffers that copies them out, so that replays in flight do not overwrite
// each other's.
type profile struct {
	queries *vk.QueryPool
	ring    [profiled]profileSlot
	next    int
}

type profileSlot struct {
	buffer vk.CommandBuffer
	slice  pool.Slice
	serial uint64 // of the replay whose times it holds, 0 for none
}

// newProfile makes the queries and the ring for n operations.
func (g *Graph) newProfile(n int) error {
	s := g.stream
	p := &profile{}
	g.profile = p
	var err error
	if p.queries, err = s.dev.NewQueryPool(uint32(2 * n)); err != nil {
		return err
	}
	for i := range p.ring {
		slot := &p.ring[i]
		if slot.slice, err = s.pools.AllocRole(uint64(2*n)*8, vk.ReadbackMemory); err != nil {
			return err
		}
		if err := slot.slice.HandOver(pool.User, pool.Graph); err != nil {
			return err
		}
		if slot.buffer, err = g.commands.New(); err != nil {
			return err
		}
		buffer, offset, _, _ := slot.slice.Range()
		c := &g.scratch
		c.Reset()
		c.Barrier(graphBegin, barrierTo)
		c.CopyQueries(p.queries, 0, uint32(2*n), buffer.Handle(), offset)
		c.Barrier(barrierFrom, graphEnd)
		if err := g.commands.Record(slot.buffer, vk.Simultaneous, c); err != nil {
			return err
		}
	}
	return nil
}

// release gives back the ring's memory, which the last replay may still write.
func (p *profile) release(g *Graph) {
	for i := range p.ring {
		if p.ring[i].slice.Valid() {
			g.drop(p.ring[i].slice)
		}
	}
}

// Span is the time of one operation of a replay on the device.
type Span struct {
	Operation int // in the graph's order
	Name      string
	Replay    uint64 // serial of the submission, of a replay or a batch
	Start     time.Duration
	Duration  time.Duration
}

// Profile waits for the replays submitted so far and returns the times of the last ones,
// oldest first, at most eight; starts count from the first span. The stream must have
// been made with Options.Profile.
func (g *Graph) Profile(ctx context.Context) ([]Span, error) {
	s := g.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.idle("profile"); err != nil {
		return nil, err
	}
	if g.closed {
		return nil, fmt.Errorf("cmdbuf: profile: graph %d: %w", g.id, ErrClosed)
	}
	p := g.profile
	if p == nil {
		return nil, errNotProfiling
	}
	if err := s.wait(ctx, g.last); err != nil {
		return nil, err
	}
	if g.closed {
		return nil, fmt.Errorf("cmdbuf: profile: graph %d: %w", g.id, ErrClosed)
	}
	var list []Span
	limits := s.dev.Limits()
	first, any := uint64(0), false
	for i := range p.ring {
		slot := &p.ring[(p.next+i)%profiled]
		if slot.serial == 0 || slot.serial > s.timeline.Completed() {
			continue
		}
		size := slot.slice.Size()
		if err := s.visible(slot.slice, 0, size); err != nil {
			return nil, err
		}
		ticks := unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(slot.slice.Mapped()))), size/8)
		for op := range g.ops.list {
			from, to := ticks[2*op], ticks[2*op+1]
			if !any {
				first, any = from, true
			}
			list = append(list, Span{Operation: op, Name: g.ops.list[op].name(), Replay: slot.serial,
				Start: limits.Elapsed(first, from), Duration: limits.Elapsed(from, to)})
		}
	}
	return list, nil
}

var errNotProfiling = errors.New("cmdbuf: profile: the stream was made without Options.Profile")

// WriteTrace writes spans in the trace event format that chrome://tracing and Perfetto
// read: one complete event each, times in microseconds.
func WriteTrace(w io.Writer, spans []Span) error {
	type event struct {
		Name  string         `json:"name"`
		Phase string         `json:"ph"`
		Start float64        `json:"ts"`
		Time  float64        `json:"dur"`
		PID   int            `json:"pid"`
		TID   int            `json:"tid"`
		Args  map[string]any `json:"args"`
	}
	trace := struct {
		Events []event `json:"traceEvents"`
		Unit   string  `json:"displayTimeUnit"`
	}{[]event{}, "ns"}
	for _, s := range spans {
		trace.Events = append(trace.Events, event{
			Name: s.Name, Phase: "X", Start: s.Start.Seconds() * 1e6, Time: s.Duration.Seconds() * 1e6, PID: 1, TID: 1,
			Args: map[string]any{"operation": s.Operation, "replay": s.Replay},
		})
	}
	if err := json.NewEncoder(w).Encode(trace); err != nil {
		return fmt.Errorf("cmdbuf: trace: %w", err)
	}
	return nil
}
