package shaders

import "strconv"

// Capability is a SPIR-V capability that a module declares.
type Capability uint32

// Capabilities that devices differ in and a launch is checked for.
const (
	CapMatrix                 Capability = 0
	CapShader                 Capability = 1
	CapFloat16                Capability = 9
	CapFloat64                Capability = 10
	CapInt64                  Capability = 11
	CapInt64Atomics           Capability = 12
	CapInt16                  Capability = 22
	CapInt8                   Capability = 39
	CapGroupNonUniform        Capability = 61
	CapStorageBuffer16        Capability = 4433
	CapStorageUniform16       Capability = 4434
	CapStoragePushConstant16  Capability = 4435
	CapVariablePointersSB     Capability = 4441
	CapVariablePointers       Capability = 4442
	CapStorageBuffer8         Capability = 4448
	CapVulkanMemoryModel      Capability = 5345
	CapPhysicalStorageAddress Capability = 5347
	CapAtomicFloat32Add       Capability = 6033
)

func (c Capability) String() string {
	switch c {
	case CapMatrix:
		return "Matrix"
	case CapShader:
		return "Shader"
	case CapFloat16:
		return "Float16"
	case CapFloat64:
		return "Float64"
	case CapInt64:
		return "Int64"
	case CapInt64Atomics:
		return "Int64Atomics"
	case CapInt16:
		return "Int16"
	case CapInt8:
		return "Int8"
	case CapGroupNonUniform:
		return "GroupNonUniform"
	case CapStorageBuffer16:
		return "StorageBuffer16BitAccess"
	case CapStorageUniform16:
		return "UniformAndStorageBuffer16BitAccess"
	case CapStoragePushConstant16:
		return "StoragePushConstant16"
	case CapVariablePointersSB:
		return "VariablePointersStorageBuffer"
	case CapVariablePointers:
		return "VariablePointers"
	case CapStorageBuffer8:
		return "StorageBuffer8BitAccess"
	case CapVulkanMemoryModel:
		return "VulkanMemoryModel"
	case CapPhysicalStorageAddress:
		return "PhysicalStorageBufferAddresses"
	case CapAtomicFloat32Add:
		return "AtomicFloat32AddEXT"
	default:
		return "capability " + strconv.FormatUint(uint64(c), 10)
	}
}
