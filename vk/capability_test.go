package vk_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/internal/shim"
	"vkcompute/internal/vktest"
	"vkcompute/vk"
)

func TestSubgroupOpsString(t *testing.T) {
	require.Equal(t, "none", vk.SubgroupOps(0).String())
	require.Equal(t, "basic arithmetic quad", (vk.SubgroupBasic | vk.SubgroupArithmetic | vk.SubgroupQuad).String())
	require.Equal(t, "vote 0x300", (vk.SubgroupVote | 0x300).String())
}

// Each capability depends on one feature and no other. The numbers are those of SPIR-V.
func TestCapabilitiesOfFeatures(t *testing.T) {
	for name, c := range map[string]struct {
		number uint32
		has    vk.Features
	}{
		"Float16": {9, vk.Features{Float16: true}}, "Float64": {10, vk.Features{Float64: true}}, "Int64": {11, vk.Features{Int64: true}},
		"Int16": {22, vk.Features{Int16: true}}, "Int8": {39, vk.Features{Int8: true}},
		"StorageBuffer16BitAccess": {4433, vk.Features{Storage16: true}}, "StorageBuffer8BitAccess": {4448, vk.Features{Storage8: true}},
		"PhysicalStorageBufferAddresses": {5347, vk.Features{DeviceAddress: true}},
		"GroupNonUniform":                {61, vk.Features{Subgroups: vk.SubgroupBasic}},
		"GroupNonUniformVote":            {62, vk.Features{Subgroups: vk.SubgroupVote}},
		"GroupNonUniformArithmetic":      {63, vk.Features{Subgroups: vk.SubgroupArithmetic}},
		"GroupNonUniformBallot":          {64, vk.Features{Subgroups: vk.SubgroupBallot}},
		"GroupNonUniformShuffle":         {65, vk.Features{Subgroups: vk.SubgroupShuffle}},
		"GroupNonUniformShuffleRelative": {66, vk.Features{Subgroups: vk.SubgroupShuffleRelative}},
		"GroupNonUniformClustered":       {67, vk.Features{Subgroups: vk.SubgroupClustered}},
		"GroupNonUniformQuad":            {68, vk.Features{Subgroups: vk.SubgroupQuad}},
	} {
		require.Empty(t, c.has.Lacks(0, c.number, 1), name)
		all := vk.Features{Float64: true, Float16: true, Int64: true, Int16: true, Int8: true, Storage16: true, Storage8: true,
			DeviceAddress: true, Subgroups: 1<<8 - 1, RobustAccess: true, RobustAccess2: true}
		require.Empty(t, all.Lacks(c.number), name)
		without := all
		without.Float64, without.Float16, without.Int64 = !c.has.Float64, !c.has.Float16, !c.has.Int64
		without.Int16, without.Int8, without.Storage16 = !c.has.Int16, !c.has.Int8, !c.has.Storage16
		without.Storage8, without.DeviceAddress = !c.has.Storage8, !c.has.DeviceAddress
		without.Subgroups &^= c.has.Subgroups
		require.Equal(t, name, without.Lacks(1, c.number), name)
		require.Equal(t, "VulkanMemoryModel", all.Lacks(5345), "no device is opened with it")
		require.Equal(t, "capability 7777", all.Lacks(7777))
	}
	require.Empty(t, (&vk.Features{}).Lacks())
}

// A device has the basic operations in compute shaders at least: Vulkan 1.1 obliges it.
func TestSubgroupsOfDevices(t *testing.T) {
	d := vktest.Open(t)
	require.NotZero(t, d.Info().Features.Subgroups&vk.SubgroupBasic)
	require.Positive(t, d.Limits().SubgroupSize)
	bare, _ := vktest.OpenProfile(t, shim.Bare)
	require.Equal(t, vk.SubgroupBasic, bare.Info().Features.Subgroups)
}
