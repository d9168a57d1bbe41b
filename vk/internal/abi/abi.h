// C side of package abi: everything the library asks of a Vulkan driver that must not
// go through Go memory piecemeal. Handles cross the border as uint64_t, arrays are
// flat and belong to the caller for the length of the call only.
#ifndef VKCOMPUTE_ABI_H
#define VKCOMPUTE_ABI_H

#include "vulkan_abi.h"

// --- loader -------------------------------------------------------------------------

// vc_loader_open finds the Vulkan loader by trying names (NUL separated, ended by an
// empty name) in order and returns its vkGetInstanceProcAddr, or NULL with the reasons
// in error.
void *vc_loader_open(const char *names, char *error, size_t error_size, char *found, size_t found_size);

// --- instance -----------------------------------------------------------------------

typedef struct vc_instance vc_instance;

enum { VC_VALIDATE_OFF = 0, VC_VALIDATE_CORE = 1, VC_VALIDATE_SYNC = 2 };

typedef struct {
    uint32_t api_version;     // what the application asks for
    uint32_t validation;      // VC_VALIDATE_…
    uint32_t messages;        // 1: collect debug-utils messages in the ring
    uint32_t names;           // 1: the extensions hold VK_EXT_debug_utils, so objects can be named
    uint32_t portability;     // 1: list devices that are not fully conformant (MoltenVK)
    uint32_t layer_settings;  // 1: the validation layer takes VK_EXT_layer_settings
    uint32_t validation_features; // 1: the validation layer takes VK_EXT_validation_features
    uint32_t prints;          // 1: the validation layer collects what shaders print
} vc_instance_spec;

// Names are written NUL separated into out; the result is the VkResult, *count the number.
VcResult vc_instance_layers(void *get_instance_proc_addr, char *out, size_t size, uint32_t *count);
VcResult vc_instance_extensions(void *get_instance_proc_addr, const char *layer, char *out, size_t size, uint32_t *count);
VcResult vc_instance_version(void *get_instance_proc_addr, uint32_t *version);

VcResult vc_instance_new(void *get_instance_proc_addr, const vc_instance_spec *spec, const char *layers, uint32_t layer_count,
                         const char *extensions, uint32_t extension_count, vc_instance **out);
void vc_instance_free(vc_instance *in);
void *vc_instance_handle(const vc_instance *in);

// --- messages -----------------------------------------------------------------------

// The messenger runs inside driver calls, on any thread, where calling Go is forbidden.
// It copies each message into a ring guarded by a lock; Go drains the ring afterwards.
enum { VC_MESSAGE_TEXT = 3072, VC_MESSAGE_NAME = 128, VC_RING = 64, VC_PRINT_RING = 2048 };

// object is the name of the first pipeline or shader module that the message is about.
typedef struct {
    uint32_t severity, types;
    int32_t id;
    char name[VC_MESSAGE_NAME], object[VC_MESSAGE_NAME], text[VC_MESSAGE_TEXT];
} vc_message;

// Number of messages waiting; the address may be read atomically without a call.
uint32_t *vc_messages_pending(vc_instance *in);
// Takes up to n messages, oldest first. *dropped counts those that found the ring full.
uint32_t vc_messages_take(vc_instance *in, vc_message *out, uint32_t n, uint32_t *dropped);

// --- physical devices ---------------------------------------------------------------

enum { VC_MAX_FAMILIES = 16 };

typedef struct {
    VcPhysicalDeviceProperties base;
    VcPhysicalDeviceVulkan11Properties v11; // zero below Vulkan 1.2
    VcPhysicalDeviceVulkan12Properties v12; // zero below Vulkan 1.2
    VcPhysicalDeviceMemoryProperties memory;
    VcQueueFamilyProperties families[VC_MAX_FAMILIES];
    uint32_t family_count;
    VcBool robust_buffer_access, float64, int64, int16, storage_16bit, storage_8bit, float16, int8;
    VcBool timeline_semaphore, buffer_device_address, host_query_reset, robust_buffer_access2;
} vc_physical;

VcResult vc_physical_list(vc_instance *in, uint64_t *out, uint32_t *count);
VcResult vc_physical_extensions(vc_instance *in, uint64_t physical, char *out, size_t size, uint32_t *count);
void vc_physical_query(vc_instance *in, uint64_t physical, VcBool robustness2, vc_physical *out);
void vc_physical_budget(vc_instance *in, uint64_t physical, uint64_t budget[16], uint64_t usage[16]);

// --- device -------------------------------------------------------------------------

// Feature bits of vc_device_new.
enum {
    VC_ENABLE_ROBUST = 1 << 0, VC_ENABLE_ROBUST2 = 1 << 1, VC_ENABLE_FLOAT64 = 1 << 2, VC_ENABLE_INT64 = 1 << 3,
    VC_ENABLE_INT16 = 1 << 4, VC_ENABLE_STORAGE16 = 1 << 5, VC_ENABLE_STORAGE8 = 1 << 6, VC_ENABLE_FLOAT16 = 1 << 7,
    VC_ENABLE_INT8 = 1 << 8, VC_ENABLE_ADDRESS = 1 << 9, VC_ENABLE_HOST_QUERY_RESET = 1 << 10
};

// Functions of a device, from vkGetDeviceProcAddr, so that a call skips the loader's dispatch.
#define VC_DEVICE_FUNCTIONS(F)                                                                                          \
    F(AllocateDescriptorSets, VcResult, (VcObject, const VcDescriptorSetAllocateInfo *, VcHandle *))                     \
    F(AllocateMemory, VcResult, (VcObject, const VcMemoryAllocateInfo *, const void *, VcHandle *))                      \
    F(BeginCommandBuffer, VcResult, (VcObject, const VcCommandBufferBeginInfo *))                                        \
    F(CmdBindDescriptorSets, void,                                                                                      \
      (VcObject, int32_t, VcHandle, uint32_t, uint32_t, const VcHandle *, uint32_t, const uint32_t *))                   \
    F(CmdBindPipeline, void, (VcObject, int32_t, VcHandle))                                                             \
    F(CmdCopyBuffer, void, (VcObject, VcHandle, VcHandle, uint32_t, const VcBufferCopy *))                               \
    F(CmdCopyQueryPoolResults, void, (VcObject, VcHandle, uint32_t, uint32_t, VcHandle, VcSize, VcSize, uint32_t))       \
    F(CmdDispatch, void, (VcObject, uint32_t, uint32_t, uint32_t))                                                      \
    F(CmdDispatchIndirect, void, (VcObject, VcHandle, VcSize))                                                          \
    F(CmdFillBuffer, void, (VcObject, VcHandle, VcSize, VcSize, uint32_t))                                              \
    F(CmdPipelineBarrier, void,                                                                                         \
      (VcObject, uint32_t, uint32_t, uint32_t, uint32_t, const VcMemoryBarrier *, uint32_t, const void *, uint32_t,      \
       const void *))                                                                                                   \
    F(CmdPushConstants, void, (VcObject, VcHandle, uint32_t, uint32_t, uint32_t, const void *))                          \
    F(CmdResetQueryPool, void, (VcObject, VcHandle, uint32_t, uint32_t))                                                \
    F(CmdUpdateBuffer, void, (VcObject, VcHandle, VcSize, VcSize, const void *))                                        \
    F(CmdWriteTimestamp, void, (VcObject, uint32_t, VcHandle, uint32_t))                                                \
    F(CreateComputePipelines, VcResult,                                                                                 \
      (VcObject, VcHandle, uint32_t, const VcComputePipelineCreateInfo *, const void *, VcHandle *))                     \
    F(CreateDescriptorPool, VcResult, (VcObject, const VcDescriptorPoolCreateInfo *, const void *, VcHandle *))          \
    F(CreateDescriptorSetLayout, VcResult, (VcObject, const VcDescriptorSetLayoutCreateInfo *, const void *, VcHandle *)) \
    F(CreatePipelineCache, VcResult, (VcObject, const VcPipelineCacheCreateInfo *, const void *, VcHandle *))            \
    F(CreatePipelineLayout, VcResult, (VcObject, const VcPipelineLayoutCreateInfo *, const void *, VcHandle *))          \
    F(CreateSemaphore, VcResult, (VcObject, const VcSemaphoreCreateInfo *, const void *, VcHandle *))                    \
    F(CreateShaderModule, VcResult, (VcObject, const VcShaderModuleCreateInfo *, const void *, VcHandle *))              \
    F(EndCommandBuffer, VcResult, (VcObject))                                                                           \
    F(FlushMappedMemoryRanges, VcResult, (VcObject, uint32_t, const VcMappedMemoryRange *))                              \
    F(FreeDescriptorSets, VcResult, (VcObject, VcHandle, uint32_t, const VcHandle *))                                    \
    F(GetBufferDeviceAddress, uint64_t, (VcObject, const VcBufferDeviceAddressInfo *))                                   \
    F(GetQueryPoolResults, VcResult, (VcObject, VcHandle, uint32_t, uint32_t, size_t, void *, VcSize, uint32_t))         \
    F(GetSemaphoreCounterValue, VcResult, (VcObject, VcHandle, uint64_t *))                                             \
    F(InvalidateMappedMemoryRanges, VcResult, (VcObject, uint32_t, const VcMappedMemoryRange *))                         \
    F(QueueSubmit, VcResult, (VcObject, uint32_t, const VcSubmitInfo *, VcHandle))                                       \
    F(UpdateDescriptorSets, void, (VcObject, uint32_t, const VcWriteDescriptorSet *, uint32_t, const void *))            \
    F(WaitSemaphores, VcResult, (VcObject, const VcSemaphoreWaitInfo *, uint64_t))

typedef struct {
#define F(name, result, args) result(VC_CALL *name) args;
    VC_DEVICE_FUNCTIONS(F)
#undef F
} vc_functions;

typedef struct {
    VcObject handle;
    VcResult(VC_CALL *SetDebugUtilsObjectName)(VcObject, const VcDebugUtilsObjectNameInfo *); // NULL without debug utils
    vc_functions call;
} vc_device;

// On VC_ERROR_INITIALIZATION_FAILED *missing may name a function the driver does not have.
VcResult vc_device_new(vc_instance *in, uint64_t physical, uint32_t family, uint32_t queues, const char *extensions,
                       uint32_t extension_count, uint32_t enable, vc_device **out, const char **missing);
void vc_device_free(vc_device *d); // frees the table only; the VkDevice is destroyed by the caller

VcResult vc_name(vc_device *d, int32_t type, uint64_t handle, const char *name);
VcResult vc_memory_alloc(vc_device *d, uint64_t size, uint32_t type, uint32_t address, uint64_t *out);
uint64_t vc_buffer_address(vc_device *d, uint64_t buffer);
VcResult vc_shader_module(vc_device *d, const uint32_t *words, size_t count, uint64_t *out);
// kinds: one VkDescriptorType per binding, at bindings 0…n-1 unless numbers says otherwise.
VcResult vc_set_layout(vc_device *d, const uint32_t *numbers, const uint32_t *kinds, uint32_t count, uint64_t *out);
VcResult vc_pipeline_layout(vc_device *d, uint64_t set_layout, uint32_t push_size, uint64_t *out);
// data: what a pipeline cache of the same device and driver held once, or none.
VcResult vc_pipeline_cache(vc_device *d, const void *data, size_t size, uint64_t *out);
// spec: pairs of constant id and 32-bit value. cached, if not NULL, receives what the driver says of the
// cache, with VK_EXT_pipeline_creation_feedback.
enum { VC_CACHE_UNKNOWN = 0, VC_CACHE_MISS = 1, VC_CACHE_HIT = 2 };
VcResult vc_compute_pipeline(vc_device *d, uint64_t cache, uint64_t module, const char *entry, uint64_t layout, const uint32_t *spec,
                             uint32_t spec_count, uint32_t *cached, uint64_t *out);
VcResult vc_timeline(vc_device *d, uint64_t initial, uint64_t *out);
VcResult vc_timeline_value(vc_device *d, uint64_t semaphore, uint64_t *out);
VcResult vc_timeline_wait(vc_device *d, uint64_t semaphore, uint64_t value, uint64_t timeout_ns);
VcResult vc_query_results(vc_device *d, uint64_t pool, uint32_t first, uint32_t count, uint64_t *out);

// --- descriptors --------------------------------------------------------------------

VcResult vc_descriptor_pool(vc_device *d, uint32_t sets, uint32_t storage, uint32_t dynamic, uint32_t flags, uint64_t *out);

// A descriptor program is a sequence of sets: [layout, n] followed by n writes of four words
// [binding | type << 32, buffer, offset, range]. Each set is allocated from pool and written;
// handles go to out. On failure *made says how many sets were made before it.
// A program of more sets than capacity is malformed.
enum { VC_MAX_BINDINGS = 64 };
VcResult vc_descriptor_sets(vc_device *d, uint64_t pool, const uint64_t *program, size_t words, uint64_t *out, uint32_t capacity,
                            uint32_t *made);
VcResult vc_descriptor_sets_free(vc_device *d, uint64_t pool, const uint64_t *sets, uint32_t count);

// --- commands -----------------------------------------------------------------------

// A command stream is a sequence of commands, each a head word (operation in bits 0–7, length
// in words, head included, in bits 8–31, operand a in bits 32–63) and its operands.
enum {
    VC_OP_PIPELINE = 1,      // pipeline
    VC_OP_SET = 2,           // layout, set
    VC_OP_SET_DYNAMIC = 3,   // a: dynamic offset; layout, set
    VC_OP_PUSH = 4,          // a: bytes; layout, data…
    VC_OP_DISPATCH = 5,      // a: x; y | z << 32
    VC_OP_DISPATCH_INDIRECT = 6, // buffer, offset
    VC_OP_BARRIER = 7,       // source stages | destination stages << 32, source access | destination access << 32
    VC_OP_COPY = 8,          // source, destination, source offset, destination offset, size
    VC_OP_FILL = 9,          // a: value; buffer, offset, size
    VC_OP_UPDATE = 10,       // a: bytes; buffer, offset, data…
    VC_OP_TIMESTAMP = 11,    // a: query; pool, stage
    VC_OP_RESET_QUERIES = 12, // a: first; pool, count
    VC_OP_COPY_QUERIES = 13, // a: first; pool, count, buffer, offset
};

enum { VC_MAX_UPDATE = 65536 }; // of vkCmdUpdateBuffer, in bytes

// Results of our own, outside the range of VkResult.
enum { VC_BAD_STREAM = -2000000001, VC_BAD_ARGUMENT = -2000000002 };

// Records the stream into the command buffer, begun with flags and ended. *at is the word at fault for VC_BAD_STREAM;
// the command buffer is empty then.
VcResult vc_record(vc_device *d, uint64_t command_buffer, uint32_t flags, const uint64_t *words, size_t count, uint64_t *at);

// One submission. Optional parts are empty: record (command buffer, words) first records a one-time
// stream; flushes are triples memory, offset, size; waits are pairs timeline, value; the submission
// executes command_buffers in order and then sets signal to value. With poll, completed receives the
// signalled timeline's value afterwards, which saves the caller a crossing; it is not read always, because
// whoever has seen a value has synchronised with it, and the validation layer then no longer reports a
// dependency that was forgotten. stage says what failed.
enum { VC_MAX_WAITS = 64 };
enum { VC_STAGE_RECORD = 1, VC_STAGE_FLUSH = 2, VC_STAGE_SUBMIT = 3 };
typedef struct {
    uint64_t queue, record, signal, value;
    uint64_t completed, at;
    uint32_t stage, poll;
} vc_submission;
VcResult vc_submit(vc_device *d, vc_submission *s, const uint64_t *words, size_t word_count, const uint64_t *command_buffers,
                   uint32_t command_buffer_count, const uint64_t *flushes, uint32_t flush_count, const uint64_t *waits,
                   uint32_t wait_count);

VcResult vc_flush(vc_device *d, const uint64_t *ranges, uint32_t count);
VcResult vc_invalidate(vc_device *d, const uint64_t *ranges, uint32_t count);

#endif
