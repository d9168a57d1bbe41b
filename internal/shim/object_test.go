package shim_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/internal/shim"
	"vkcompute/internal/shim/internal/probe"
	"vkcompute/internal/vktest"
	"vkcompute/vk"
)

func newDriver(t *testing.T, profile string) *shim.Driver {
	t.Helper()
	require.NoError(t, shim.Install())
	d, err := shim.New(profile)
	require.NoError(t, err)
	return d
}

func TestLeaksAndDoubleDestructionAreSeen(t *testing.T) {
	driver := newDriver(t, shim.Plain)
	d, err := driver.Open(vk.Options{}) // without the validation layer, which would see the leak as well
	require.NoError(t, err)
	var memory uint64
	ask(t, d, func(p *probe.Probe) {
		layout, r := p.SetLayout(1, 0)
		require.Zero(t, r)
		p.Destroy("vkDestroyDescriptorSetLayout", layout)
		p.Destroy("vkDestroyDescriptorSetLayout", layout)
		violated(t, driver, "vkDestroyDescriptorSetLayout: ")
		p.Destroy("vkDestroyDescriptorSetLayout", 0) // is fine
		memory, r = p.Allocate(4096, 0)
		require.Zero(t, r)
		p.Destroy("vkDestroyBuffer", memory) // another kind
		violated(t, driver, "is not alive")
	})
	require.ErrorIs(t, driver.Close(), shim.ErrInUse)
	require.Equal(t, "1 instances, 1 devices, 1 memory allocations", driver.Alive())
	require.NoError(t, d.Close())
	violated(t, driver, "vkDestroyDevice: 1 of its memory allocations are alive")
	require.NoError(t, driver.Close())
	require.NoError(t, driver.Close())
}

func TestCloseReportsWhatNobodyTook(t *testing.T) {
	driver := newDriver(t, shim.Plain)
	d, err := driver.Open(vk.Options{})
	require.NoError(t, err)
	ask(t, d, func(p *probe.Probe) { p.Destroy("vkDestroyBuffer", 4711) })
	require.NoError(t, d.Close())
	err = driver.Close()
	require.ErrorIs(t, err, shim.ErrViolated)
	require.ErrorContains(t, err, "vkDestroyBuffer: 0x1267")
}

// What comes and goes with its pool is counted as well.
func TestObjectsAreCounted(t *testing.T) {
	driver := newDriver(t, shim.Plain)
	d, err := driver.Open(vk.Options{})
	require.NoError(t, err)
	pool, err := d.NewCommandPool()
	require.NoError(t, err)
	for range 3 {
		_, err = pool.New()
		require.NoError(t, err)
	}
	b, err := d.NewBuffer(vk.BufferSpec{Size: 64})
	require.NoError(t, err)
	require.Equal(t, []shim.Count{
		{Kind: "instances", Created: 1}, {Kind: "devices", Created: 1}, {Kind: "buffers", Created: 1},
		{Kind: "memory allocations", Created: 1}, {Kind: "command pools", Created: 1}, {Kind: "command buffers", Created: 3},
	}, driver.Objects())
	b.Close()
	pool.Close()
	require.NoError(t, d.Close())
	for _, c := range driver.Objects() {
		require.Equal(t, c.Created, c.Destroyed, c.Kind)
	}
	require.NoError(t, driver.Close())
}

// Devices of different profiles live in one process, and others are left alone.
func TestSeveralDriversAtOnce(t *testing.T) {
	discrete, _ := vktest.OpenProfile(t, shim.DiscreteGPU)
	tiny, driver := vktest.OpenProfile(t, shim.Tiny)
	alone, err := vk.Open(vk.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, alone.Close()) }()
	require.Greater(t, discrete.Limits().MaxStorageBufferRange, tiny.Limits().MaxStorageBufferRange)
	require.Equal(t, vk.DiscreteGPU, discrete.Info().Type)
	require.NotContains(t, alone.Info().Name, " as ")

	restore := driver.Use()
	list, err := vk.Devices()
	require.NoError(t, err)
	require.Contains(t, list[0].Name, " as tiny")
	other := newDriver(t, shim.Bare)
	list, err = other.Devices()
	require.NoError(t, err)
	require.Contains(t, list[0].Name, " as bare", "With goes before Use")
	require.NoError(t, other.Close())
	restore()
	restore()
	list, err = vk.Devices()
	require.NoError(t, err)
	require.NotContains(t, list[0].Name, " as ")
}

// A device that belongs to no driver calls the real functions on the path of a launch.
func TestUntouchedDevicesAreCountedNowhere(t *testing.T) {
	driver := newDriver(t, shim.Plain)
	d, err := vk.Open(vk.Options{})
	require.NoError(t, err)
	b, err := d.NewBuffer(vk.BufferSpec{Size: 64, Role: vk.UploadMemory})
	require.NoError(t, err)
	b.Close()
	require.NoError(t, d.Close())
	require.Empty(t, driver.Objects())
	require.Empty(t, driver.Calls())
	require.NoError(t, driver.Close())
}

// A device that nobody watches gives a pool back, and the driver hands its command buffers'
// memory to one that is watched: that is no handle given out twice.
func TestUnwatchedDevicesGiveBackWhatTheirPoolsHeld(t *testing.T) {
	driver := newDriver(t, shim.Plain)
	plain, err := vk.Open(vktest.Options(t))
	require.NoError(t, err)
	watched, err := driver.Open(vktest.Options(t))
	require.NoError(t, err)
	for range 20 {
		for _, d := range []*vk.Device{plain, watched} {
			pool, err := d.NewCommandPool()
			require.NoError(t, err)
			_, err = pool.New()
			require.NoError(t, err)
			pool.Close()
		}
	}
	require.NoError(t, watched.Close())
	require.NoError(t, plain.Close())
	require.NoError(t, driver.Close())
}
