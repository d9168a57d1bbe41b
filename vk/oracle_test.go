package vk_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/internal/testenv"
	"vkcompute/internal/vktest"
	"vkcompute/shaders"
	"vkcompute/vk"
)

// The oracle is the validation layer with its storage-buffer heuristic. A silent run
// means nothing unless it would have spoken, so each kind of missing barrier is
// committed here on purpose: read after write, write after write, write after read in
// one command buffer, and a write seen by a later submission without a dependency.
func TestOracleSeesHazards(t *testing.T) {
	if !testenv.Require(t).Oracle {
		t.Skip("the oracle was switched off on purpose")
	}
	for _, h := range []struct {
		name, want string
		record     func(r *rig)
	}{
		{"read after write", "SYNC-HAZARD-READ-AFTER-WRITE", func(r *rig) { r.copy(0, 1); r.copy(1, 2) }},
		{"write after write", "SYNC-HAZARD-WRITE-AFTER-WRITE", func(r *rig) { r.copy(0, 1); r.copy(2, 1) }},
		{"write after read", "SYNC-HAZARD-WRITE-AFTER-READ", func(r *rig) { r.copy(0, 1); r.copy(2, 0) }},
		{"across submissions", "SYNC-HAZARD-READ-AFTER-WRITE", func(r *rig) { r.copy(0, 1); r.submit(); r.copy(1, 2) }},
	} {
		t.Run(h.name, func(t *testing.T) {
			r := newRig(t)
			h.record(r)
			r.submit()
			r.wait()
			found := r.d.Messages()
			require.NotEmpty(t, found, "the layer saw nothing")
			for _, m := range found {
				require.Equal(t, h.want, m.ID, m.Text)
			}
		})
		t.Run(h.name+", with a barrier", func(t *testing.T) {
			r := newRig(t)
			r.barriers = true
			h.record(r)
			r.submit()
			r.wait()
			require.Empty(t, r.d.Messages())
		})
	}
}

// rig records single-element additions between three buffers.
type rig struct {
	t        *testing.T
	d        *vk.Device
	pipeline *vk.Pipeline
	buffers  [4]*vk.Buffer // the last holds the info
	pool     *vk.DescriptorPool
	commands *vk.CommandPool
	timeline *vk.Timeline
	c        vk.Commands
	barriers bool
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t, d: vktest.Open(t)}
	k := shaders.Add
	spec := kernelSpec(k)
	workgroup := spec.Workgroup
	var err error
	r.pipeline, err = r.d.NewPipeline(spec)
	require.NoError(t, err)
	t.Cleanup(r.pipeline.Close)
	for i := range r.buffers {
		r.buffers[i], err = r.d.NewBuffer(vk.BufferSpec{Size: 4096, Role: vk.InfoMemory, Name: "test"})
		require.NoError(t, err)
		t.Cleanup(r.buffers[i].Close)
	}
	var plan shaders.Plan
	one := shaders.Operand{DType: shaders.Float32, Layout: shaders.Layout{Rank: 1, Shape: [shaders.MaxRank]int{1}, Stride: [shaders.MaxRank]int{1}}}
	require.NoError(t, k.Plan(shaders.Env{WorkgroupSize: workgroup}, []shaders.Operand{one, one, one}, &plan))
	info := r.buffers[3].Mapped()
	for i, w := range plan.Info {
		for b := range 8 {
			info[8*i+b] = byte(w >> (8 * b))
		}
	}
	r.pool, err = r.d.NewDescriptorPool(vk.PoolSize{Sets: 16, Storage: 48, Dynamic: 16})
	require.NoError(t, err)
	t.Cleanup(r.pool.Close)
	r.commands, err = r.d.NewCommandPool()
	require.NoError(t, err)
	t.Cleanup(r.commands.Close)
	r.timeline, err = r.d.NewTimeline()
	require.NoError(t, err)
	t.Cleanup(r.timeline.Close)
	return r
}

// copy adds buffer 'from' to itself into buffer 'to'.
func (r *rig) copy(from, to int) {
	var p vk.SetProgram
	p.Set(r.pipeline)
	p.Write(0, vk.StorageBufferDynamic, r.buffers[3].Handle(), 0, 4096)
	p.Write(1, vk.StorageBuffer, r.buffers[from].Handle(), 0, 4)
	p.Write(2, vk.StorageBuffer, r.buffers[from].Handle(), 0, 4)
	p.Write(3, vk.StorageBuffer, r.buffers[to].Handle(), 0, 4)
	sets, err := r.pool.Make(&p, nil)
	require.NoError(r.t, err)
	if r.barriers {
		all := vk.AccessShaderRead | vk.AccessShaderWrite
		r.c.Barrier(vk.Scope{Stages: vk.StageCompute, Access: all}, vk.Scope{Stages: vk.StageCompute, Access: all})
	}
	r.c.BindPipeline(r.pipeline)
	r.c.BindSet(r.pipeline, sets[0], 0)
	r.c.Dispatch(1, 1, 1)
}

func (r *rig) submit() {
	b, err := r.commands.New()
	require.NoError(r.t, err)
	before := r.d.Crossings()
	_, err = r.d.Submit(&vk.Submission{Record: b, Commands: &r.c, Buffers: []vk.CommandBuffer{b}}, r.timeline)
	require.NoError(r.t, err)
	require.Equal(r.t, before+1, r.d.Crossings(), "recording and submitting is one crossing")
	r.c.Reset()
}

func (r *rig) wait() {
	require.NoError(r.t, r.timeline.Wait(context.Background(), r.timeline.Submitted()))
	require.False(r.t, strings.Contains(r.d.Info().Name, "\x00"))
}
