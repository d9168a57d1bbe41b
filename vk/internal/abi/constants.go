package abi

// #include "abi.h"
import "C"

// Operations of a command stream (abi.h).
const (
	OpPipeline         = C.VC_OP_PIPELINE
	OpSet              = C.VC_OP_SET
	OpSetDynamic       = C.VC_OP_SET_DYNAMIC
	OpPush             = C.VC_OP_PUSH
	OpDispatch         = C.VC_OP_DISPATCH
	OpDispatchIndirect = C.VC_OP_DISPATCH_INDIRECT
	OpBarrier          = C.VC_OP_BARRIER
	OpCopy             = C.VC_OP_COPY
	OpFill             = C.VC_OP_FILL
	OpUpdate           = C.VC_OP_UPDATE
	OpTimestamp        = C.VC_OP_TIMESTAMP
	OpResetQueries     = C.VC_OP_RESET_QUERIES
	OpCopyQueries      = C.VC_OP_COPY_QUERIES
)

// MaxUpdate is the largest operand of OpUpdate, in bytes; Vulkan sets it.
const MaxUpdate = C.VC_MAX_UPDATE

// Bits of Message.Severity and Message.Types.
const (
	SeverityInfo    uint32 = C.VC_DEBUG_SEVERITY_INFO
	SeverityWarning uint32 = C.VC_DEBUG_SEVERITY_WARNING
	SeverityError   uint32 = C.VC_DEBUG_SEVERITY_ERROR
	TypeValidation  uint32 = C.VC_DEBUG_TYPE_VALIDATION
)

// Bounds of arrays that the C side keeps on its stack.
const (
	// MaxBindings bounds the bindings of a set and the specialisation constants of a pipeline.
	MaxBindings = C.VC_MAX_BINDINGS
	// MaxWaits bounds the timelines one submission waits for.
	MaxWaits = C.VC_MAX_WAITS
)

// UsageDeviceAddress is VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT and ErrorUnknown
// VK_ERROR_UNKNOWN; both are newer than the binding.
const (
	UsageDeviceAddress uint32 = C.VC_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT
	ErrorUnknown       int32  = C.VC_ERROR_UNKNOWN
)
