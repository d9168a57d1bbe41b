package launch

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"vkcompute/cmdbuf"
	"vkcompute/internal/cfloor"
	"vkcompute/shaders"
	"vkcompute/vk"
)

// The barriers of the library, to be emitted by plain C in the same places: see package
// cmdbuf.
var (
	writes = vk.Scope{Stages: vk.StageCompute | vk.StageTransfer, Access: vk.AccessShaderWrite | vk.AccessTransferWrite}
	later  = vk.Scope{Stages: vk.StageCompute | vk.StageTransfer | vk.StageIndirect,
		Access: vk.AccessShaderRead | vk.AccessShaderWrite | vk.AccessTransferRead | vk.AccessTransferWrite | vk.AccessIndirectRead}
	host = vk.Scope{Stages: vk.StageHost, Access: vk.AccessHostRead}

	betweenLaunches = cfloor.Barrier{From: writes, To: later}
	batchEnd        = cfloor.Barrier{From: writes, To: host}
	graphBegin      = cfloor.Barrier{From: vk.Scope{Stages: later.Stages, Access: writes.Access}, To: later}
	graphEnd        = cfloor.Barrier{From: writes, To: vk.Scope{Stages: later.Stages | host.Stages, Access: later.Access | host.Access}}
)

// plain is what the C loops of all sizes share: a pipeline made as the library makes it,
// and tensors.
type plain struct {
	d        *vk.Device
	pipeline *vk.Pipeline
	plan     *shaders.Plan
	staging  *vk.Buffer // this and the tensors are nil for a kernel without any
	buffers  [tensors]*vk.Buffer
	floors   []*cfloor.Floor
}

func newPlain(d *vk.Device, k *shaders.Kernel) (*plain, error) {
	tuning, err := tuningOf(d)
	if err != nil {
		return nil, err
	}
	l := d.Limits()
	constants, workgroup := k.Spec(shaders.MaxWorkgroup{Invocations: uint32(l.MaxWorkgroupInvocations), Size: l.MaxWorkgroupSize, SharedBytes: uint32(l.MaxSharedMemory), Tuning: tuning})
	spec := vk.PipelineSpec{Code: k.Module.Words, Entry: k.Entry, PushSize: uint32(k.Module.PushSize), Workgroup: workgroup, Name: k.Name + " (plain C)"}
	for _, c := range constants {
		spec.Constants = append(spec.Constants, vk.SpecConstant{ID: c.ID, Value: c.Value})
	}
	for _, b := range k.Module.Bindings {
		kind := vk.StorageBuffer
		if b.Binding == shaders.InfoBinding {
			kind = vk.StorageBufferDynamic
		}
		spec.Bindings = append(spec.Bindings, vk.Binding{Number: b.Binding, Kind: kind})
	}
	p := &plain{d: d}
	if p.plan, err = plan(k, shaders.Env{WorkgroupSize: workgroup, Tuning: tuning}); err != nil {
		return nil, err
	}
	if p.pipeline, err = d.NewPipeline(spec); err != nil {
		return nil, err
	}
	if len(spec.Bindings) == 0 {
		return p, nil
	}
	specs := []vk.BufferSpec{{Size: tensors * length * 4, Role: vk.ReadbackMemory, Fallback: vk.FallbackAny, Name: "plain C staging"}}
	for t := range p.buffers {
		specs = append(specs, vk.BufferSpec{Size: length * 4, Role: vk.DeviceMemory, Fallback: vk.FallbackAny, Name: fmt.Sprintf("plain C %c", 'a'+t)})
	}
	for i, s := range specs {
		b, err := d.NewBuffer(s)
		if err != nil {
			p.close()
			return nil, err
		}
		if i == 0 {
			p.staging = b
		} else {
			p.buffers[i-1] = b
		}
	}
	return p, nil
}

// tuningOf is what the library's streams are tuned by, so that both do the same work.
func tuningOf(d *vk.Device) (shaders.Tuning, error) {
	s, err := cmdbuf.NewStream(d, cmdbuf.Options{})
	if err != nil {
		return shaders.Tuning{}, err
	}
	return s.Tuning(), s.Close(context.Background())
}

// chain prepares a chain of n with the barriers of a batch or of a graph.
func (p *plain) chain(n int, begin, end cfloor.Barrier) (*cfloor.Floor, error) {
	spec := cfloor.Spec{
		Pipeline: p.pipeline, Launches: n, InfoRange: uint64(len(p.plan.Info)) * 8,
		Groups: [3]uint32{uint32(p.plan.Groups[0]), uint32(p.plan.Groups[1]), uint32(p.plan.Groups[2])},
		Begin:  begin, End: end,
	}
	if p.staging == nil {
		spec.Steps = []cfloor.Step{{}} // nothing bound, so nothing to order
	} else {
		spec.Between = betweenLaunches
		for i := range 2 {
			from, to := step(i)
			s := cfloor.Step{Info: p.plan.Info}
			for at, t := range []int{from, tensorB, to} {
				s.Tensors = append(s.Tensors, cfloor.Tensor{Binding: uint32(at + 1), Buffer: p.buffers[t].Handle(), Range: touched})
			}
			spec.Steps = append(spec.Steps, s)
		}
	}
	f, err := cfloor.New(p.d, spec)
	if err == nil {
		p.floors = append(p.floors, f)
	}
	return f, err
}

// move copies between the tensors and the staging buffer and waits.
func (p *plain) move(copies func(c *vk.Commands, t int)) error {
	pool, err := p.d.NewCommandPool()
	if err != nil {
		return err
	}
	defer pool.Close()
	timeline, err := p.d.NewTimeline()
	if err != nil {
		return err
	}
	defer timeline.Close()
	buffer, err := pool.New()
	if err != nil {
		return err
	}
	var c vk.Commands
	c.Barrier(writes, later)
	for t := range p.buffers {
		copies(&c, t)
	}
	c.Barrier(writes, graphEnd.To)
	s := vk.Submission{Record: buffer, Commands: &c, Buffers: []vk.CommandBuffer{buffer}, Flushes: []vk.FlushRange{{Buffer: p.staging, Size: p.staging.Size()}}}
	_, err = p.d.Submit(&s, timeline)
	// Idle or lost, nothing is pending afterwards.
	return errors.Join(err, p.d.WaitIdle())
}

func (p *plain) set(s *state) error {
	for t := range p.buffers {
		for i, v := range s[t] {
			binary.NativeEndian.PutUint32(p.staging.Mapped()[4*(t*length+i):], math.Float32bits(v))
		}
	}
	return p.move(func(c *vk.Commands, t int) {
		c.Copy(p.staging.Handle(), uint64(4*t*length), p.buffers[t].Handle(), 0, 4*length)
	})
}

func (p *plain) get() (*state, error) {
	err := p.move(func(c *vk.Commands, t int) {
		c.Copy(p.buffers[t].Handle(), 0, p.staging.Handle(), uint64(4*t*length), 4*length)
	})
	if err == nil {
		err = p.d.Invalidate(vk.FlushRange{Buffer: p.staging, Size: p.staging.Size()})
	}
	if err != nil {
		return nil, err
	}
	var s state
	for t := range s {
		s[t] = make([]float32, length)
		for i := range s[t] {
			s[t][i] = math.Float32frombits(binary.NativeEndian.Uint32(p.staging.Mapped()[4*(t*length+i):]))
		}
	}
	return &s, nil
}

func (p *plain) close() {
	for _, f := range p.floors {
		f.Close()
	}
	for _, b := range append(p.buffers[:], p.staging) {
		if b != nil {
			b.Close()
		}
	}
	p.pipeline.Close()
}
