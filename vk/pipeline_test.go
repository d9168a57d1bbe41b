package vk_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/internal/vktest"
	"vkcompute/shaders"
	"vkcompute/vk"
)

var kernels = []*shaders.Kernel{shaders.Add, shaders.Mul, shaders.Sum, shaders.MatMul, shaders.Fill, shaders.Nop}

// someDevice has limits that are all different.
func someDevice() vk.DeviceInfo {
	return vk.DeviceInfo{Limits: vk.Limits{
		MaxPushConstantsSize: 136, MaxStorageBuffers: 30, MaxDynamicStorageBuffers: 4, MaxSharedMemory: 32768,
		MaxWorkgroupInvocations: 512, MaxWorkgroupSize: [3]uint32{500, 200, 64},
	}}
}

func bindings(first, n int, kind vk.DescriptorKind) (list []vk.Binding) {
	for i := range n {
		list = append(list, vk.Binding{Number: uint32(first + i), Kind: kind})
	}
	return list
}

// Every limit is checked before a driver could see the shader, and allows what is equal
// to it.
func TestPipelineLimits(t *testing.T) {
	type spec = vk.PipelineSpec
	for _, c := range []struct {
		name      string
		want, max uint64
		set       func(s *spec, n uint64)
	}{
		{"maxComputeWorkGroupSize[0]", 501, 500, func(s *spec, n uint64) { s.Workgroup = [3]uint32{uint32(n), 1, 1} }},
		{"maxComputeWorkGroupSize[1]", 201, 200, func(s *spec, n uint64) { s.Workgroup = [3]uint32{1, uint32(n), 1} }},
		{"maxComputeWorkGroupSize[2]", 65, 64, func(s *spec, n uint64) { s.Workgroup = [3]uint32{1, 1, uint32(n)} }},
		{"maxComputeWorkGroupInvocations", 520, 512, func(s *spec, n uint64) { s.Workgroup = [3]uint32{2, uint32(n / 8), 4} }},
		{"maxComputeSharedMemorySize", 32769, 32768, func(s *spec, n uint64) { s.SharedMemory = uint32(n) }},
		{"maxPushConstantsSize", 137, 136, func(s *spec, n uint64) { s.PushSize = uint32(n) }},
		{"maxDescriptorSetStorageBuffers", 31, 30, func(s *spec, n uint64) { s.Bindings = bindings(0, int(n), vk.StorageBuffer) }},
		{"maxDescriptorSetStorageBuffersDynamic", 5, 4, func(s *spec, n uint64) { s.Bindings = bindings(0, int(n), vk.StorageBufferDynamic) }},
		{"dynamic bindings of one set", 2, 1, func(s *spec, n uint64) {
			s.Bindings = append(bindings(0, int(n), vk.StorageBufferDynamic), bindings(int(n), 3, vk.StorageBuffer)...)
		}},
		{"largest binding number", vk.MaxBindingNumber + 1, vk.MaxBindingNumber, func(s *spec, n uint64) {
			s.Bindings = append(s.Bindings, vk.Binding{Number: uint32(n), Kind: vk.StorageBuffer})
		}},
		{"largest binding number", math.MaxUint32, vk.MaxBindingNumber, func(s *spec, n uint64) {
			s.Bindings = append(s.Bindings, vk.Binding{Number: uint32(n), Kind: vk.StorageBuffer})
		}},
		{"specialisation constants", vk.MaxBindings + 1, vk.MaxBindings, func(s *spec, n uint64) {
			for i := range uint32(n) - uint32(len(s.Constants)) {
				s.Constants = append(s.Constants, vk.SpecConstant{ID: 1000 + i})
			}
		}},
	} {
		t.Run(fmt.Sprint(c.name, " ", c.want), func(t *testing.T) {
			s := kernelSpec(shaders.Nop)
			s.Name = "the name"
			c.set(&s, c.want)
			var e *vk.LimitError
			require.ErrorAs(t, vk.CheckPipeline(someDevice(), s), &e)
			require.Equal(t, vk.LimitError{Name: c.name, Want: c.want, Max: c.max, What: `pipeline "the name"`}, *e)
			require.ErrorContains(t, e, "the name")

			s = kernelSpec(shaders.Nop)
			if c.set(&s, c.max); c.max != 4 { // one dynamic binding is all that commands can bind
				err := vk.CheckPipeline(someDevice(), s)
				if !slices.Equal(s.Workgroup[:], kernelSpecWorkgroup(shaders.Nop)) {
					require.ErrorContains(t, err, "its workgroup size is", "past the limits, the shader is read")
				} else {
					require.NoError(t, err)
				}
			}
		})
	}
	// More than the C side's arrays hold, on a device without limits.
	big := someDevice()
	big.Limits.MaxStorageBuffers = 1000
	s := kernelSpec(shaders.Nop)
	s.Bindings = bindings(0, vk.MaxBindings+1, vk.StorageBuffer)
	var e *vk.LimitError
	require.ErrorAs(t, vk.CheckPipeline(big, s), &e)
	require.Equal(t, "bindings of one set", e.Name)
	// Sizes whose product wraps to something small.
	big.Limits.MaxWorkgroupSize, big.Limits.MaxWorkgroupInvocations = [3]uint32{1 << 31, 1 << 31, 1 << 31}, 1<<32-1
	s = kernelSpec(shaders.Nop)
	s.Workgroup = [3]uint32{1 << 31, 1 << 31, 4}
	require.ErrorAs(t, vk.CheckPipeline(big, s), &e)
	require.Equal(t, "maxComputeWorkGroupInvocations", e.Name)
}

func kernelSpecWorkgroup(k *shaders.Kernel) []uint32 {
	w := kernelSpec(k).Workgroup
	return w[:]
}

// What is refused, is refused by NewPipeline, on the driver, and leaves nothing behind:
// several of these end the process when a driver sees them.
func TestPipelineRefusals(t *testing.T) {
	d := vktest.Open(t)
	limits := d.Limits()
	for name, c := range map[string]struct {
		spoil   func(s *vk.PipelineSpec)
		matches error
		says    string
	}{
		"no code":           {func(s *vk.PipelineSpec) { s.Code = nil }, vk.ErrInvalidShader, "0x07230203"},
		"not SPIR-V":        {func(s *vk.PipelineSpec) { s.Code = make([]uint32, 100) }, vk.ErrInvalidShader, "0x07230203"},
		"other byte order":  {func(s *vk.PipelineSpec) { s.Code[0] = 0x03022307 }, vk.ErrInvalidShader, "0x07230203"},
		"a header only":     {func(s *vk.PipelineSpec) { s.Code = s.Code[:5] }, vk.ErrInvalidShader, "no compute entry point"},
		"half of it":        {func(s *vk.PipelineSpec) { s.Code = s.Code[:len(s.Code)/2] }, vk.ErrInvalidShader, ""},
		"one word less":     {func(s *vk.PipelineSpec) { s.Code = s.Code[:len(s.Code)-1] }, vk.ErrInvalidShader, ""},
		"too new":           {func(s *vk.PipelineSpec) { s.Code[1] = 0x10600 }, vk.ErrInvalidShader, "SPIR-V 1.6"},
		"unknown entry":     {func(s *vk.PipelineSpec) { s.Entry = "nope" }, vk.ErrInvalidShader, `"nope"; there are ["main"]`},
		"no entry":          {func(s *vk.PipelineSpec) { s.Entry = "" }, vk.ErrInvalidShader, "main"},
		"entry with a NUL":  {func(s *vk.PipelineSpec) { s.Entry = "main\x00x" }, vk.ErrInvalidShader, "main"},
		"a binding is left": {func(s *vk.PipelineSpec) { s.Bindings = s.Bindings[:2] }, vk.ErrInvalidShader, "of set 0"},
		"no bindings":       {func(s *vk.PipelineSpec) { s.Bindings = nil }, vk.ErrInvalidShader, "of set 0"},
		"other workgroup":   {func(s *vk.PipelineSpec) { s.Workgroup[0]-- }, vk.ErrInvalidShader, "workgroup size is [128 1 1]"},
		"a binding twice":   {func(s *vk.PipelineSpec) { s.Bindings = append(s.Bindings, s.Bindings[1]) }, nil, "binding 1 is there twice"},
		"a constant twice":  {func(s *vk.PipelineSpec) { s.Constants = append(s.Constants, s.Constants[0]) }, nil, "is there twice"},
		"workgroup of none": {func(s *vk.PipelineSpec) { s.Workgroup[1] = 0 }, nil, "at least 1"},
		"push of 2 bytes":   {func(s *vk.PipelineSpec) { s.PushSize = 2 }, nil, "multiple of 4"},
		"a uniform buffer":  {func(s *vk.PipelineSpec) { s.Bindings[1].Kind = 6 }, nil, "descriptor kind 6"},
		"workgroup too big": {func(s *vk.PipelineSpec) { s.Workgroup[0] = uint32(limits.MaxWorkgroupInvocations) + 1 }, nil, "maxComputeWorkGroup"},
	} {
		t.Run(name, func(t *testing.T) {
			s := kernelSpec(shaders.Add)
			s.Code, s.Bindings = slices.Clone(s.Code), slices.Clone(s.Bindings)
			c.spoil(&s)
			_, err := d.NewPipeline(s)
			require.ErrorContains(t, err, c.says)
			if c.matches != nil {
				require.ErrorIs(t, err, c.matches)
			}
			require.Empty(t, d.Alive())
		})
	}
	require.Zero(t, d.Created()["shader modules"], "no driver has seen any")
}

func TestPipelinesOfAllKernels(t *testing.T) {
	d := vktest.Open(t)
	for _, k := range kernels {
		s := kernelSpec(k)
		p, err := d.NewPipeline(s)
		require.NoError(t, err, k.Name)
		require.Equal(t, s.Workgroup, p.Workgroup())
		storage, dynamic := p.Descriptors()
		require.Equal(t, len(s.Bindings), int(storage+dynamic))
		for _, h := range []uint64{p.Handle(), p.Layout(), p.SetLayout()} {
			require.NotZero(t, h)
		}
		p.Close()
		p.Close()
		require.Empty(t, d.Alive())
	}
}

// A pipeline keeps nothing of what it was made from.
func TestPipelineSpecMayBeReused(t *testing.T) {
	d := vktest.Open(t)
	s := kernelSpec(shaders.Add)
	s.Code, s.Bindings = slices.Clone(s.Code), slices.Clone(s.Bindings)
	p, err := d.NewPipeline(s)
	require.NoError(t, err)
	defer p.Close()
	clear(s.Code)
	clear(s.Bindings)
	var program vk.SetProgram
	program.Set(p)
	for n := range uint32(4) {
		kind := vk.StorageBuffer
		if n == shaders.InfoBinding {
			kind = vk.StorageBufferDynamic
		}
		program.Write(n, kind, 1, 0, 4)
	}
	_, fault := program.Words()
	require.Empty(t, fault)
}
