package vk_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/internal/shim"
	"vkcompute/internal/vktest"
	"vkcompute/vk"
)

// A crossing costs more than most commands: however much a submission holds, it is one, and
// so is one that repeats what was recorded.
func TestASubmissionIsOneCrossing(t *testing.T) {
	for _, profile := range []string{shim.Plain, shim.NonCoherent} { // with nothing to flush, and with
		t.Run(profile, func(t *testing.T) {
			d, _ := vktest.OpenProfile(t, profile)
			l := labOn(t, d)
			other, err := d.NewTimeline()
			require.NoError(t, err)
			t.Cleanup(other.Close)
			first, err := d.Submit(&vk.Submission{}, other)
			require.NoError(t, err)
			from, to := l.buffer(vk.BufferSpec{Size: 4096, Role: vk.UploadMemory}), l.buffer(vk.BufferSpec{Size: 4096, Role: vk.ReadbackMemory})
			recorded, fresh := l.commandBuffer(), l.commandBuffer()
			var graph, batch vk.Commands
			for i := range uint64(1000) {
				batch.Copy(from.Handle(), 0, to.Handle(), 0, 4*(1+i%1000))
				batch.Barrier(transferWrite, transfers)
			}
			batch.Barrier(transferWrite, hostRead)
			graph.Barrier(transferWrite, transfers)
			graph.Fill(to.Handle(), 0, 16, 7)
			graph.Barrier(transferWrite, transfers)
			require.NoError(t, l.pool.Record(recorded, vk.Simultaneous, &graph))

			before := d.Crossings()
			serial, err := d.Submit(&vk.Submission{
				Record: fresh, Commands: &batch, Buffers: []vk.CommandBuffer{fresh, recorded},
				Flushes: []vk.FlushRange{whole(from), {Buffer: from, Offset: 8, Size: 8}}, Waits: []vk.Wait{{Timeline: other, Serial: first}}, Poll: true,
			}, l.timeline)
			require.NoError(t, err)
			require.Equal(t, before+1, d.Crossings(), "a batch")
			l.wait(serial)

			before = d.Crossings()
			serial, err = d.Submit(&vk.Submission{Buffers: []vk.CommandBuffer{recorded}, Poll: true}, l.timeline)
			require.NoError(t, err)
			require.Equal(t, before+1, d.Crossings(), "a replay")
			l.wait(serial)
		})
	}
}
