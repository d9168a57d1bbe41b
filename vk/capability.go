package vk

import (
	"fmt"
	"slices"
	"strings"
)

// SubgroupOps is a set of operations that the invocations of a subgroup do together, in
// compute shaders. They need no enabling: a device has them or not.
type SubgroupOps uint32

// The bits are those of VkSubgroupFeatureFlagBits.
const (
	SubgroupBasic SubgroupOps = 1 << iota // elect, barriers
	SubgroupVote
	SubgroupArithmetic // sums and the like, also of a prefix
	SubgroupBallot
	SubgroupShuffle
	SubgroupShuffleRelative
	SubgroupClustered
	SubgroupQuad

	subgroupAll = SubgroupQuad<<1 - 1
)

var subgroupNames = [...]string{"basic", "vote", "arithmetic", "ballot", "shuffle", "shuffle-relative", "clustered", "quad"}

func (o SubgroupOps) String() string {
	if o == 0 {
		return "none"
	}
	var list []string
	for i, name := range subgroupNames {
		if o>>i&1 != 0 {
			list = append(list, name)
		}
	}
	if rest := o &^ subgroupAll; rest != 0 {
		list = append(list, fmt.Sprintf("%#x", uint32(rest)))
	}
	return strings.Join(list, " ")
}

// shaderStageCompute is VK_SHADER_STAGE_COMPUTE_BIT.
const shaderStageCompute = 0x20

// subgroupOps are the operations of a device in compute shaders.
func subgroupOps(operations, stages uint32) SubgroupOps {
	if stages&shaderStageCompute == 0 {
		return 0
	}
	return SubgroupOps(operations) & subgroupAll
}

// capability is one of SPIR-V that compute shaders declare.
type capability struct {
	number uint32
	name   string
	has    func(*Features) bool // nil: no device is opened with it
}

func always(*Features) bool { return true }

func subgroup(o SubgroupOps) func(*Features) bool {
	return func(f *Features) bool { return f.Subgroups&o != 0 }
}

func capabilities() []capability {
	return []capability{
		{0, "Matrix", always},
		{1, "Shader", always},
		{9, "Float16", func(f *Features) bool { return f.Float16 }},
		{10, "Float64", func(f *Features) bool { return f.Float64 }},
		{11, "Int64", func(f *Features) bool { return f.Int64 }},
		{12, "Int64Atomics", nil},
		{22, "Int16", func(f *Features) bool { return f.Int16 }},
		{39, "Int8", func(f *Features) bool { return f.Int8 }},
		{61, "GroupNonUniform", subgroup(SubgroupBasic)},
		{62, "GroupNonUniformVote", subgroup(SubgroupVote)},
		{63, "GroupNonUniformArithmetic", subgroup(SubgroupArithmetic)},
		{64, "GroupNonUniformBallot", subgroup(SubgroupBallot)},
		{65, "GroupNonUniformShuffle", subgroup(SubgroupShuffle)},
		{66, "GroupNonUniformShuffleRelative", subgroup(SubgroupShuffleRelative)},
		{67, "GroupNonUniformClustered", subgroup(SubgroupClustered)},
		{68, "GroupNonUniformQuad", subgroup(SubgroupQuad)},
		{4433, "StorageBuffer16BitAccess", func(f *Features) bool { return f.Storage16 }},
		{4434, "UniformAndStorageBuffer16BitAccess", nil},
		{4435, "StoragePushConstant16", nil},
		{4441, "VariablePointersStorageBuffer", nil},
		{4442, "VariablePointers", nil},
		{4448, "StorageBuffer8BitAccess", func(f *Features) bool { return f.Storage8 }},
		{5345, "VulkanMemoryModel", nil},
		{5347, "PhysicalStorageBufferAddresses", func(f *Features) bool { return f.DeviceAddress }},
		{6033, "AtomicFloat32AddEXT", nil},
	}
}

// Lacks names the first of some SPIR-V capabilities that shaders on the device cannot have,
// and is empty if they can have all. It speaks of a device that this package opened: with
// all of these features that there are, and with nothing else that is optional.
func (f *Features) Lacks(spirv ...uint32) string {
	list := capabilities()
	for _, n := range spirv {
		i := slices.IndexFunc(list, func(c capability) bool { return c.number == n })
		switch {
		case i < 0:
			return fmt.Sprintf("capability %d", n)
		case list[i].has == nil || !list[i].has(f):
			return list[i].name
		}
	}
	return ""
}
