package launch

import (
	"context"
	"errors"
	"fmt"

	"vkcompute/cmdbuf"
	"vkcompute/metacache"
	"vkcompute/shaders"
	"vkcompute/vk"
)

// mode is a way to launch.
type mode int

const (
	rebuild mode = iota
	cached
	replay
	addressed // replay, with buffers by device address in place of descriptors
	modeCount
)

func (m mode) String() string { return [...]string{"rebuild", "cached", "replay", "addressed"}[m] }

// recorded tells whether the mode replays a graph.
func (m mode) recorded() bool { return m >= replay }

// modesOf are the ways to launch on a device.
func modesOf(d *vk.Device) []mode {
	list := []mode{rebuild, cached, replay}
	if d.Info().Features.DeviceAddress {
		list = append(list, addressed)
	}
	return list
}

// library is a stream with the tensors of the chain. There is one for each mode, so that
// none leaves something behind that another profits from.
type library struct {
	kernel *shaders.Kernel
	stream *cmdbuf.Stream
	whole  [tensors]*cmdbuf.Tensor[float32]
	view   [tensors]*cmdbuf.Tensor[float32]
}

// newLibrary makes a stream whose batches hold up to most launches.
func newLibrary(d *vk.Device, k *shaders.Kernel, m mode, most int) (*library, error) {
	o := cmdbuf.Options{BatchLimit: most + 1}
	if m == rebuild {
		o.Cache, o.Sets = &metacache.Policy{}, cmdbuf.RebuildSets
	}
	o.Addresses = m == addressed
	s, err := cmdbuf.NewStream(d, o)
	if err != nil {
		return nil, err
	}
	l := &library{kernel: k, stream: s}
	for t := range l.whole {
		if l.whole[t], err = cmdbuf.New[float32](s, length); err == nil {
			l.view[t], err = l.whole[t].Range(0, 0, length, stride)
		}
		if err != nil {
			return nil, errors.Join(err, l.close())
		}
	}
	return l, nil
}

// eager launches a chain of n and waits, shots times.
func (l *library) eager(ctx context.Context, n, shots int) error {
	for range shots {
		for i := range n {
			from, to := step(i)
			if err := l.stream.Launch(l.kernel, l.view[from], l.view[tensorB], l.view[to]); err != nil {
				return err
			}
		}
		if err := l.stream.Sync(ctx); err != nil {
			return err
		}
	}
	return nil
}

// record makes a graph of a chain of n.
func (l *library) record(ctx context.Context, n int) (*cmdbuf.Graph, error) {
	return l.stream.Capture(ctx, func(c *cmdbuf.Capture) error {
		for i := range n {
			from, to := step(i)
			if err := c.Launch(l.kernel, l.view[from], l.view[tensorB], l.view[to]); err != nil {
				return err
			}
		}
		return nil
	})
}

// replay submits a graph and waits, shots times.
func (l *library) replay(ctx context.Context, g *cmdbuf.Graph, shots int) error {
	for range shots {
		if err := g.Replay(); err != nil {
			return err
		}
		if err := l.stream.Sync(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (l *library) set(s *state) error {
	for t := range s {
		if err := l.whole[t].Write(s[t]); err != nil {
			return err
		}
	}
	return nil
}

func (l *library) get(ctx context.Context) (*state, error) {
	var s state
	for t := range s {
		var err error
		if s[t], err = l.whole[t].Read(ctx); err != nil {
			return nil, err
		}
	}
	return &s, nil
}

// barriers counts those that f, a batch, makes the stream emit, with the one at the
// batch's end.
func (l *library) barriers(f func() error) (int, error) {
	before := l.stream.Stats()
	if err := f(); err != nil {
		return 0, err
	}
	after := l.stream.Stats()
	if n := after.Submissions - before.Submissions; n != 1 {
		return 0, fmt.Errorf("launch: %d submissions where one was meant", n)
	}
	return int(after.Barriers-before.Barriers) + 1, nil
}

// graphBarriers counts those of a graph with the ones at its ends.
func graphBarriers(g *cmdbuf.Graph) int { return g.Stats().Barriers + 2 }

func (l *library) close() error {
	var err error
	for _, t := range l.whole {
		if t != nil {
			err = errors.Join(err, t.Close())
		}
	}
	// No deadline: closing is what makes leaving safe.
	return errors.Join(err, l.stream.Close(context.Background()))
}

// Record makes the graph of a chain of n launches on a stream, with tensors of its own.
func Record(ctx context.Context, s *cmdbuf.Stream, n int) (g *cmdbuf.Graph, err error) {
	k, err := oneGroup(shaders.Add)
	if err != nil {
		return nil, err
	}
	l := &library{kernel: k, stream: s}
	begin := start()
	for t := range l.whole {
		if l.whole[t], err = cmdbuf.Upload(s, begin[t], length); err != nil {
			return nil, err
		}
		// The graph keeps the memory.
		defer func() { err = errors.Join(err, l.whole[t].Close()) }()
		if l.view[t], err = l.whole[t].Range(0, 0, length, stride); err != nil {
			return nil, err
		}
	}
	return l.record(ctx, n)
}
