package cmdbuf

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/internal/vktest"
	"vkcompute/shaders"
	"vkcompute/vk"
)

// No validation layer sees a missing barrier to the host, and drivers that run on the CPU
// need none: only the commands themselves can show it.

// commandsOf cuts encoded commands apart. The first word of each holds its length in words
// from bit 8 on; a word of zeros is no command and ends the sequence.
func commandsOf(words []uint64) (list [][]uint64) {
	for len(words) > 0 && words[0] != 0 {
		n := words[0] >> 8 & 0xffffff
		list = append(list, words[:n])
		words = words[n:]
	}
	return list
}

// reachesHost tells whether a command is a barrier that makes whatever shaders and
// transfers wrote before it visible to reads of the host.
func reachesHost(command []uint64) bool {
	var model vk.Commands
	model.Barrier(vk.Scope{}, vk.Scope{})
	if len(command) != 3 || command[0] != model.Words()[0] {
		return false
	}
	has := func(word uint64, bits uint32) bool { return uint32(word)&bits == bits }
	return has(command[1], vk.StageCompute|vk.StageTransfer) && has(command[2], vk.AccessShaderWrite|vk.AccessTransferWrite) &&
		has(command[1]>>32, vk.StageHost) && has(command[2]>>32, vk.AccessHostRead)
}

// endsForHost tells whether the last of encoded commands is such a barrier.
func endsForHost(words []uint64) bool {
	list := commandsOf(words)
	return len(list) > 0 && reachesHost(list[len(list)-1])
}

func TestReachesHostTellsBarriersApart(t *testing.T) {
	encode := func(from, to vk.Scope) []uint64 {
		var c vk.Commands
		c.Fill(1, 0, 4, 0)
		c.Barrier(from, to)
		return c.Words()
	}
	writes := vk.Scope{Stages: vk.StageCompute | vk.StageTransfer, Access: vk.AccessShaderWrite | vk.AccessTransferWrite}
	host := vk.Scope{Stages: vk.StageHost, Access: vk.AccessHostRead}
	require.True(t, endsForHost(encode(writes, host)))
	require.True(t, endsForHost(append(encode(writes, host), 0, 0)))
	for _, words := range [][]uint64{
		nil,
		encode(vk.Scope{Stages: writes.Stages, Access: vk.AccessShaderWrite}, host),
		encode(vk.Scope{Stages: vk.StageCompute, Access: writes.Access}, host),
		encode(writes, vk.Scope{Stages: vk.StageHost, Access: vk.AccessHostWrite}),
		encode(writes, vk.Scope{Stages: vk.StageCompute, Access: vk.AccessHostRead}),
		append(encode(writes, host), encode(writes, writes)...), // not the last
		encode(writes, host)[:4], // none at all
	} {
		require.False(t, endsForHost(words), "%x", words)
	}
}

// submissions looks at what a stream submits.
type submissions struct {
	t      *testing.T
	s      *Stream
	graphs map[vk.CommandBuffer]bool // that end with the barrier
	seen   uint64                    // of Stats.Submissions
}

// unused is the memory behind the commands of the batch, where those of the last one still
// stand after it was submitted.
func (w *submissions) unused() []uint64 {
	words := w.s.batch.commands.Words()
	return words[len(words):cap(words)]
}

// recorded notes what a graph has just recorded of its own: its last segment, unless that
// stayed as it was. Segments are recorded in their order.
func (w *submissions) recorded(g *Graph) {
	w.t.Helper()
	last := g.buffers[len(g.buffers)-1]
	if words := g.scratch.Words(); len(words) > 0 && !w.graphs[last] {
		w.graphs[last] = endsForHost(words)
		require.True(w.t, w.graphs[last], "a graph ends with a barrier to the host, found %x", words)
	}
	g.scratch.Reset()
}

// during does something that submits once, and looks at that.
func (w *submissions) during(name string, g *Graph, do func() error) {
	w.t.Helper()
	clear(w.unused())
	require.NoError(w.t, do(), name)
	if g != nil {
		w.recorded(g)
	}
	require.Equal(w.t, w.seen+1, w.s.stats.Submissions, "%s submits once", name)
	w.seen++
	sub := &w.s.batch.submission
	require.NotEmpty(w.t, sub.Buffers, name)
	if sub.Record != 0 {
		words := w.s.batch.commands.Words()
		require.Empty(w.t, words, "%s: what was submitted is gone", name)
		require.True(w.t, endsForHost(w.unused()), "%s: a batch ends with a barrier to the host, found %x", name, commandsOf(w.unused()))
	}
	if last := sub.Buffers[len(sub.Buffers)-1]; last != sub.Record {
		require.True(w.t, w.graphs[last], "%s: the submission ends with a command buffer that does not end for the host", name)
	}
}

func TestWhateverIsSubmittedEndsForTheHost(t *testing.T) {
	for name, o := range map[string]Options{"by level": {}, "as called": {Order: AsCalled}, "split": {MaxSubmitTime: 1}, "profiling": {Profile: true}} {
		t.Run(name, func(t *testing.T) {
			d := vktest.Open(t)
			if o.Profile && d.Limits().TimestampBits == 0 {
				return // a stream cannot profile there
			}
			o.BatchLimit = 3
			submitsForTheHost(t, d, o)
		})
	}
}

func submitsForTheHost(t *testing.T, d *vk.Device, o Options) {
	ctx := context.Background()
	s, err := NewStream(d, o)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close(ctx)) }()
	other, err := NewStream(d, Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, other.Close(ctx)) }()
	var tensors [4]*Tensor[float32]
	for i := range tensors {
		tensors[i], err = Upload(s, []float32{1, 2, 3, 4}, 4)
		require.NoError(t, err)
		defer tensors[i].Close()
	}
	x, y, z, spare := tensors[0], tensors[1], tensors[2], tensors[3]
	add := func() error { return s.Launch(shaders.Add, x, y, y) }
	require.NoError(t, s.Sync(ctx))
	w := &submissions{t: t, s: s, graphs: map[vk.CommandBuffer]bool{}, seen: s.stats.Submissions}

	require.NoError(t, add())
	w.during("a flush", nil, s.Flush)
	require.NoError(t, s.Copy(y, x))
	w.during("a sync", nil, func() error { return s.Sync(ctx) })
	require.NoError(t, add())
	require.NoError(t, add())
	w.during("a batch that is full", nil, add)
	require.NoError(t, add())
	w.during("a read", nil, func() error { _, err := y.Read(ctx); return err })
	require.NoError(t, add())
	w.during("a read in the background", nil, func() error { return <-y.ReadAsync(ctx, make([]float32, 4)) })
	require.NoError(t, add())
	w.during("an event", nil, func() error { _, err := s.Record(); return err })
	require.NoError(t, other.Launch(shaders.Add, z, spare, z))
	e, err := other.Record()
	require.NoError(t, err)
	require.NoError(t, add())
	w.during("a batch before a wait", nil, func() error { return s.WaitFor(e) })
	require.NoError(t, s.Launch(shaders.Add, z, y, y))
	w.during("a batch that waits", nil, s.Flush)

	g, err := s.Capture(ctx, func(c *Capture) error {
		return errors.Join(WriteIn(c, z, []float32{9, 9, 9, 9}), c.Launch(shaders.Fill, Param("v", Float32(1)), y),
			c.Launch(shaders.Add, y, z, Param("out", x)))
	})
	require.NoError(t, err)
	defer g.Close()
	w.recorded(g)
	require.Greater(t, g.Stats().Segments, 1)
	if g.profile != nil {
		w.recordedTimes(g)
	}
	require.NoError(t, add())
	if o.MaxSubmitTime > 0 {
		require.NoError(t, s.Flush())
		for range 2 { // measured, and then split by that: its last piece ends it
			require.NoError(t, g.Replay())
			list := s.batch.submission.Buffers
			require.True(t, w.graphs[list[len(list)-1]], "the last piece of a replay ends for the host")
		}
		return
	}
	w.during("a replay behind a batch", g, g.Replay)
	w.during("a replay", g, g.Replay)
	require.NoError(t, g.Set("v", Float32(2)))
	w.during("a replay with an update", g, g.Replay)
	require.NoError(t, g.Set("out", spare))
	require.True(t, g.segments[len(g.segments)-1].stale)
	before := g.buffers[len(g.buffers)-1]
	w.during("a replay recorded again", g, g.Replay)
	require.NotEqual(t, before, g.buffers[len(g.buffers)-1])
}

// recordedTimes notes the command buffers that run behind a graph and copy its timestamps.
// A capture records them before the segments, so it is done once more, to look at.
func (w *submissions) recordedTimes(g *Graph) {
	p := g.profile
	require.NoError(w.t, g.newProfile(len(g.ops.list)))
	again := g.profile
	g.profile = p
	require.True(w.t, endsForHost(g.scratch.Words()), "timestamps are copied for the host, found %x", g.scratch.Words())
	g.scratch.Reset()
	again.release(g)
	again.queries.Close()
	for i := range p.ring {
		w.graphs[p.ring[i].buffer] = true
	}
}
