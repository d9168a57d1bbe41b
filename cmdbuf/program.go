package cmdbuf

import (
	"fmt"
	"sync/atomic"

	"vkcompute/shaders"
	"vkcompute/vk"
)

// program is a kernel compiled for the device. The stream and each graph that recorded
// it hold a reference; the pipeline goes with the last.
type program struct {
	id       uint64
	kernel   *shaders.Kernel
	pipeline *vk.Pipeline
	env      shaders.Env
	info     bool                     // the shader has the info binding
	address  []shaders.BindingAddress // buffers go by address, in the push constants
	pushSize int                      // of the pipeline, addresses included
	set      bool                     // the shader has bindings at all
	storage  uint32
	dynamic  uint32
	// On a device for untrusted shaders, of a kernel that is not built in.
	ownInfo bool   // infos are not shared
	alone   bool   // nothing on its buffers is anybody else's
	device  string // for messages
	refs    atomic.Int32
}

var programIDs atomic.Uint64

// compile makes the pipeline of a kernel.
// With addresses, a kernel whose module can take its buffers by address does; the others
// keep their descriptors.
func compile(d *vk.Device, k *shaders.Kernel, addresses bool, tuning shaders.Tuning) (*program, error) {
	if k == nil {
		return nil, fmt.Errorf("cmdbuf: launch: want a kernel, found nil")
	}
	if err := k.Err(); err != nil {
		return nil, fmt.Errorf("cmdbuf: launch %s: %w", k.Name, err)
	}
	deviceInfo := d.Info()
	for _, c := range k.Module.Capabilities {
		if lacks := deviceInfo.Features.Lacks(uint32(c)); lacks != "" {
			return nil, &CapabilityError{Kernel: k.Name, Capability: lacks, Device: deviceInfo.Name}
		}
	}
	confined := untrusted(d, k)
	if confined {
		if err := confinable(k.Module); err != nil {
			return nil, fmt.Errorf("cmdbuf: launch %s: %w", k.Name, err)
		}
		addresses = false
	}
	limits := d.Limits()
	constants, workgroup := k.Spec(maxWorkgroup(limits, tuning))
	p := &program{id: programIDs.Add(1), kernel: k, env: shaders.Env{WorkgroupSize: workgroup, Tuning: tuning},
		ownInfo: confined, alone: confined && d.Robustness() == vk.RobustBuffer, device: deviceInfo.Name}
	spec := vk.PipelineSpec{
		Code: k.Module.Words, Entry: k.Entry, PushSize: uint32(k.Module.PushSize), Workgroup: workgroup, Name: k.Name,
		SharedMemory: uint32(k.Module.SharedBytes),
	}
	for _, c := range constants {
		spec.Constants = append(spec.Constants, vk.SpecConstant{ID: c.ID, Value: c.Value})
	}
	p.pushSize = k.Module.PushSize
	bindings := k.Module.Bindings
	if addresses {
		if a, err := k.Module.Addressed(); err == nil && a.Module.PushSize <= int(limits.MaxPushConstantsSize) {
			spec.Code, spec.PushSize = a.Module.Words, uint32(a.Module.PushSize)
			p.address, p.pushSize = a.Addresses, a.Module.PushSize
			for _, b := range bindings {
				p.info = p.info || b.Binding == shaders.InfoBinding
			}
			bindings = nil
		}
	}
	for _, b := range bindings {
		if b.Set != 0 || b.Kind != shaders.StorageBuffer || b.Count != 1 {
			return nil, fmt.Errorf("cmdbuf: launch %s: binding %d of set %d is a %v of %d: want single storage buffers in set 0", k.Name, b.Binding, b.Set, b.Kind, b.Count)
		}
		kind := vk.StorageBuffer
		if b.Binding == shaders.InfoBinding {
			kind, p.info = vk.StorageBufferDynamic, true
		}
		p.set = true
		spec.Bindings = append(spec.Bindings, vk.Binding{Number: b.Binding, Kind: kind})
	}
	pipeline, err := d.NewPipeline(spec)
	if err != nil {
		return nil, fmt.Errorf("cmdbuf: compiling kernel %s: %w", k.Name, err)
	}
	p.pipeline = pipeline
	p.storage, p.dynamic = pipeline.Descriptors()
	p.refs.Store(1)
	return p, nil
}

func (p *program) retain() { p.refs.Add(1) }

func (p *program) release() {
	if p.refs.Add(-1) == 0 {
		p.pipeline.Close()
	}
}

// program returns the stream's compiled form of a kernel.
func (s *Stream) program(k *shaders.Kernel) (*program, error) {
	if p := s.programs[k]; p != nil {
		return p, nil
	}
	p, err := compile(s.dev, k, s.addresses, s.tuning)
	if err != nil {
		return nil, err
	}
	s.programs[k] = p
	return p, nil
}
