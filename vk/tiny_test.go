package vk_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/internal/shim"
	"vkcompute/internal/vktest"
	"vkcompute/shaders"
	"vkcompute/vk"
)

// On a device with the least of everything, each limit is met before the driver is asked;
// one step below it the driver agrees.
func TestEachLimitOfATinyDevice(t *testing.T) {
	d, driver := vktest.OpenProfile(t, shim.Tiny)
	l := d.Limits()
	pipeline := func(change func(*vk.PipelineSpec)) error {
		s := kernelSpec(shaders.Nop)
		change(&s)
		p, err := d.NewPipeline(s)
		if err == nil {
			p.Close()
		}
		return err
	}
	for _, c := range []struct {
		name   string
		max    uint64
		exceed func() error
	}{
		{"maxComputeWorkGroupSize[0]", 128, func() error { return pipeline(func(s *vk.PipelineSpec) { s.Workgroup[0] = 129 }) }},
		{"maxComputeWorkGroupSize[1]", 128, func() error { return pipeline(func(s *vk.PipelineSpec) { s.Workgroup[1] = 129 }) }},
		{"maxComputeWorkGroupSize[2]", 64, func() error { return pipeline(func(s *vk.PipelineSpec) { s.Workgroup[2] = 65 }) }},
		{"maxComputeWorkGroupInvocations", 128, func() error {
			return pipeline(func(s *vk.PipelineSpec) { s.Workgroup = [3]uint32{3, 43, 1} })
		}},
		{"maxComputeSharedMemorySize", 16 << 10, func() error { return pipeline(func(s *vk.PipelineSpec) { s.SharedMemory = 16<<10 + 1 }) }},
		{"maxPushConstantsSize", 128, func() error { return pipeline(func(s *vk.PipelineSpec) { s.PushSize = 132 }) }},
		{"maxDescriptorSetStorageBuffers", l.MaxStorageBuffers, func() error {
			return pipeline(func(s *vk.PipelineSpec) { s.Bindings = bindings(0, int(l.MaxStorageBuffers)+1, vk.StorageBuffer) })
		}},
		{"maxDescriptorSetStorageBuffersDynamic", 1, func() error {
			return pipeline(func(s *vk.PipelineSpec) { s.Bindings = bindings(0, 2, vk.StorageBufferDynamic) })
		}},
		{"maxMemoryAllocationSize", l.MaxMemoryAllocationSize, func() error {
			b, err := d.NewBuffer(vk.BufferSpec{Size: l.MaxMemoryAllocationSize + 1})
			if err == nil {
				b.Close()
			}
			return err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := d.Created()
			err := c.exceed()
			var e *vk.LimitError
			require.ErrorAs(t, err, &e)
			require.Equal(t, c.name, e.Name)
			require.Equal(t, c.max, e.Max)
			require.Greater(t, e.Want, e.Max)
			require.Equal(t, before, d.Created(), "the driver was not asked")
		})
	}
	require.LessOrEqual(t, l.MaxStorageBuffers, uint64(8))
	require.Equal(t, uint64(32<<20), l.MaxMemoryAllocationSize)
	require.NoError(t, pipeline(func(s *vk.PipelineSpec) { s.PushSize = 128 }))
	require.NoError(t, pipeline(func(s *vk.PipelineSpec) {
		s.Bindings = append(s.Bindings, bindings(100, int(l.MaxStorageBuffers)-len(s.Bindings), vk.StorageBuffer)...)
	}))
	require.Empty(t, driver.Violations())
}

// Each thing that Vulkan 1.2 leaves optional can be missing by itself.
func TestDevicesWithoutWhatIsOptional(t *testing.T) {
	require.NoError(t, shim.Install())
	for name, hide := range map[string]shim.Hide{
		"features": shim.HideFeatures, "extensions": shim.HideExtensions, "timestamps": shim.HideTimestamps,
		"all": shim.HideFeatures | shim.HideExtensions | shim.HideTimestamps,
	} {
		t.Run(name, func(t *testing.T) {
			o := vktest.Options(t)
			p, err := shim.ProfileNamed(shim.Plain)
			require.NoError(t, err)
			p.Name, p.Hide = "without "+name, hide
			driver, err := shim.NewProfile(p)
			require.NoError(t, err)
			defer func() { require.NoError(t, driver.Close()) }()
			d, err := driver.Open(o)
			require.NoError(t, err)
			defer func() { require.NoError(t, d.Close()) }()
			f := d.Info().Features
			if hide&shim.HideFeatures != 0 {
				require.Equal(t, vk.Features{RobustAccess: true, Subgroups: vk.SubgroupBasic, MemoryBudget: f.MemoryBudget, CreationFeedback: f.CreationFeedback}, f, "robust access and basic operations of subgroups are not optional")
			}
			if hide&shim.HideExtensions != 0 {
				require.False(t, f.MemoryBudget)
				require.False(t, f.RobustAccess2)
				require.False(t, f.CreationFeedback)
			}
			if hide&shim.HideTimestamps != 0 {
				require.Zero(t, d.Limits().TimestampBits)
				_, err := d.NewQueryPool(1)
				require.ErrorIs(t, err, vk.ErrUnsupported)
			}
			require.NoError(t, copyOnce(d, 1))
			b, err := d.NewBuffer(vk.BufferSpec{Size: 64, Name: "named"})
			require.NoError(t, err)
			require.Equal(t, f.DeviceAddress, b.Address() != 0)
			b.Close()
			for _, h := range d.HeapUsages() {
				require.NotZero(t, h.Budget)
				require.LessOrEqual(t, h.Budget, h.Size)
			}
			require.Empty(t, driver.Violations())
		})
	}
}
