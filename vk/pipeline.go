package vk

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	vulkan "github.com/vulkan-go/vulkan"

	"vkcompute/vk/internal/abi"
)

// DescriptorKind is the kind of a binding.
type DescriptorKind uint32

const (
	StorageBuffer        = DescriptorKind(vulkan.DescriptorTypeStorageBuffer)
	StorageBufferDynamic = DescriptorKind(vulkan.DescriptorTypeStorageBufferDynamic)
)

// Binding is one descriptor of set 0.
type Binding struct {
	Number uint32
	Kind   DescriptorKind
}

// SpecConstant gives a specialisation constant its 32-bit value.
type SpecConstant struct{ ID, Value uint32 }

// PipelineSpec describes a compute pipeline.
type PipelineSpec struct {
	Code      []uint32 // SPIR-V
	Entry     string
	Bindings  []Binding // of set 0
	PushSize  uint32    // bytes of push constants
	Constants []SpecConstant
	// Workgroup is the size the shader has once specialised, to be checked against the
	// device's limits.
	Workgroup    [3]uint32
	SharedMemory uint32 // bytes the shader uses, as far as is known
	Name         string
}

// Pipeline is a reference on a compiled compute shader with its layouts. Whoever asks for
// the same one, on the same device, gets the same compiled shader.
type Pipeline struct {
	*compiled
	closed atomic.Bool
}

// compiled is what pipelines made from equal specs share.
type compiled struct {
	d         *Device
	key       pipelineKey
	refs      int           // guarded by the device's pipelineMu
	ready     chan struct{} // closed when err and the rest are set
	err       error
	pipeline  vulkan.Pipeline
	layout    vulkan.PipelineLayout
	setLayout vulkan.DescriptorSetLayout
	bindings  []Binding
	storage   uint32 // descriptors by kind
	dynamic   uint32
	push      uint32 // bytes
	workgroup [3]uint32
}

// pipelineKey tells specs apart by all that compiling them depends on.
type pipelineKey [sha256.Size]byte

func (s *PipelineSpec) key() (k pipelineKey) {
	h := sha256.New()
	number := func(list ...uint32) {
		for _, n := range list {
			h.Write(binary.LittleEndian.AppendUint32(nil, n))
		}
	}
	number(uint32(len(s.Code)), uint32(len(s.Entry)), uint32(len(s.Bindings)), uint32(len(s.Constants)), s.PushSize, s.Workgroup[0], s.Workgroup[1], s.Workgroup[2])
	number(s.Code...)
	io.WriteString(h, s.Entry)
	for _, b := range s.Bindings {
		number(b.Number, uint32(b.Kind))
	}
	for _, c := range s.Constants {
		number(c.ID, c.Value)
	}
	h.Sum(k[:0])
	return k
}

// maxBindingNumber bounds what drivers use as the length of an array; those of CPU
// devices crash on 2^32-1.
const maxBindingNumber = 1023

func (i *DeviceInfo) checkPipeline(s *PipelineSpec) error {
	l := &i.Limits
	what := fmt.Sprintf("pipeline %q", s.Name)
	invocations := uint64(1)
	for axis, n := range s.Workgroup {
		if n == 0 {
			return fmt.Errorf("vk: %s: workgroup size %v: want at least 1 on each axis", what, s.Workgroup)
		}
		if err := checkLimit(fmt.Sprintf("maxComputeWorkGroupSize[%d]", axis), uint64(n), uint64(l.MaxWorkgroupSize[axis]), what); err != nil {
			return err
		}
		// Checked at each step, so that the product cannot wrap.
		invocations *= uint64(n)
		if err := checkLimit("maxComputeWorkGroupInvocations", invocations, l.MaxWorkgroupInvocations, what); err != nil {
			return err
		}
	}
	storage, dynamic, largest := uint64(0), uint64(0), uint64(0)
	seen := make(map[uint32]bool, len(s.Bindings))
	for _, b := range s.Bindings {
		switch b.Kind {
		case StorageBufferDynamic:
			dynamic++
		case StorageBuffer:
		default:
			return fmt.Errorf("vk: %s: binding %d has descriptor kind %d: want a storage buffer, plain (%d) or dynamic (%d)", what, b.Number, b.Kind, StorageBuffer, StorageBufferDynamic)
		}
		if seen[b.Number] {
			return fmt.Errorf("vk: %s: binding %d is there twice: want each number once", what, b.Number)
		}
		seen[b.Number] = true
		storage++
		largest = max(largest, uint64(b.Number))
	}
	for _, c := range []struct {
		name      string
		want, max uint64
	}{
		{"maxComputeSharedMemorySize", uint64(s.SharedMemory), l.MaxSharedMemory},
		{"maxPushConstantsSize", uint64(s.PushSize), l.MaxPushConstantsSize},
		{"maxDescriptorSetStorageBuffers", storage, l.MaxStorageBuffers},
		{"maxDescriptorSetStorageBuffersDynamic", dynamic, l.MaxDynamicStorageBuffers},
		{"dynamic bindings of one set", dynamic, 1}, // commands carry one offset
		{"bindings of one set", storage, abi.MaxBindings},
		{"largest binding number", largest, maxBindingNumber},
		{"specialisation constants", uint64(len(s.Constants)), abi.MaxBindings},
	} {
		if err := checkLimit(c.name, c.want, c.max, what); err != nil {
			return err
		}
	}
	if s.PushSize%4 != 0 {
		return fmt.Errorf("vk: %s: %d bytes of push constants: want a multiple of 4", what, s.PushSize)
	}
	for n, c := range s.Constants {
		if slices.ContainsFunc(s.Constants[:n], func(o SpecConstant) bool { return o.ID == c.ID }) {
			return fmt.Errorf("vk: %s: specialisation constant %d is there twice: want each once", what, c.ID)
		}
	}
	return checkShader(s, &i.Features, what)
}

// NewPipeline compiles a shader. Limits are checked first, since drivers accept shaders
// beyond them, and so is what would end the process: see spirv.go. A module is not
// validated in full; one from elsewhere should have passed spirv-val. Errors:
// *LimitError, *Error, and others that match ErrInvalidShader or ErrUnsupported.
func (d *Device) NewPipeline(s PipelineSpec) (*Pipeline, error) {
	if err := d.usable("vkCreateComputePipelines"); err != nil {
		return nil, err
	}
	if err := d.info.checkPipeline(&s); err != nil {
		return nil, err
	}
	key := s.key()
	d.pipelineMu.Lock()
	c := d.pipelines[key]
	first := c == nil
	if first {
		c = &compiled{d: d, key: key, ready: make(chan struct{}), workgroup: s.Workgroup, bindings: slices.Clone(s.Bindings), push: s.PushSize}
		if d.pipelines == nil {
			d.pipelines = map[pipelineKey]*compiled{}
		}
		d.pipelines[key] = c
	}
	c.refs++
	d.pipelineMu.Unlock()
	if first {
		// Outside the lock: others compile other shaders meanwhile, and wait for this one.
		c.err = c.compile(&s)
		if c.err != nil {
			d.pipelineMu.Lock()
			delete(d.pipelines, key)
			d.pipelineMu.Unlock()
		}
		close(c.ready)
	}
	<-c.ready
	if c.err != nil {
		return nil, c.err
	}
	return &Pipeline{compiled: c}, nil
}

func (p *compiled) compile(s *PipelineSpec) error {
	d := p.d
	defer d.in.drain()
	numbers, kinds := make([]uint32, len(s.Bindings)), make([]uint32, len(s.Bindings))
	for i, b := range s.Bindings {
		numbers[i], kinds[i] = b.Number, uint32(b.Kind)
		if b.Kind == StorageBufferDynamic {
			p.dynamic++
		} else {
			p.storage++
		}
	}
	fail := func(r int32, call string) error {
		p.destroy()
		return d.result(r, call, "pipeline %q", s.Name)
	}
	setLayout, r := d.c.SetLayout(numbers, kinds)
	if r < 0 {
		return fail(r, "vkCreateDescriptorSetLayout")
	}
	d.born(kindSetLayout)
	p.setLayout = handle[vulkan.DescriptorSetLayout](setLayout)
	layout, r := d.c.PipelineLayout(setLayout, s.PushSize)
	if r < 0 {
		return fail(r, "vkCreatePipelineLayout")
	}
	d.born(kindPipelineLayout)
	p.layout = handle[vulkan.PipelineLayout](layout)
	module, r := d.c.ShaderModule(s.Code)
	if r < 0 {
		return fail(r, "vkCreateShaderModule")
	}
	d.born(kindShader)
	constants := make([]uint32, 0, 2*len(s.Constants))
	for _, c := range s.Constants {
		constants = append(constants, c.ID, c.Value)
	}
	var cached abi.Cached
	start := time.Now()
	pipeline, r := d.c.ComputePipeline(d.cache.handle(), module, s.Entry, layout, constants, d.cache.feedback(&cached))
	vulkan.DestroyShaderModule(d.device, handle[vulkan.ShaderModule](module), nil)
	d.died(kindShader)
	if r < 0 {
		return fail(r, "vkCreateComputePipelines")
	}
	d.born(kindPipeline)
	p.pipeline = handle[vulkan.Pipeline](pipeline)
	d.cache.made(s.Name, cached, time.Since(start))
	d.name(vulkan.ObjectTypePipeline, pipeline, s.Name)
	return nil
}

// Close gives the reference back; the last one destroys the pipeline. No command that
// uses it may be pending. Closing twice does nothing.
func (p *Pipeline) Close() {
	if p.closed.Swap(true) {
		return
	}
	d := p.d
	d.pipelineMu.Lock()
	p.refs--
	last := p.refs == 0
	if last {
		delete(d.pipelines, p.key)
	}
	d.pipelineMu.Unlock()
	if last {
		p.destroy()
	}
}

func (p *compiled) destroy() {
	if p.pipeline != handle[vulkan.Pipeline](0) {
		vulkan.DestroyPipeline(p.d.device, p.pipeline, nil)
		p.d.died(kindPipeline)
	}
	if p.layout != handle[vulkan.PipelineLayout](0) {
		vulkan.DestroyPipelineLayout(p.d.device, p.layout, nil)
		p.d.died(kindPipelineLayout)
	}
	if p.setLayout != handle[vulkan.DescriptorSetLayout](0) {
		vulkan.DestroyDescriptorSetLayout(p.d.device, p.setLayout, nil)
		p.d.died(kindSetLayout)
	}
}

// Handle is the VkPipeline.
func (p *Pipeline) Handle() uint64 { return bits(p.pipeline) }

// Layout is the VkPipelineLayout.
func (p *Pipeline) Layout() uint64 { return bits(p.layout) }

// SetLayout is the VkDescriptorSetLayout of set 0.
func (p *Pipeline) SetLayout() uint64 { return bits(p.setLayout) }

// Workgroup is the size of a workgroup.
func (p *Pipeline) Workgroup() [3]uint32 { return p.workgroup }

// Descriptors counts the storage buffers of a set, plain and dynamic.
func (p *Pipeline) Descriptors() (storage, dynamic uint32) { return p.storage, p.dynamic }
