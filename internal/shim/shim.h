// C side of package shim as Go sees it.
#ifndef VKCOMPUTE_SHIM_H
#define VKCOMPUTE_SHIM_H

#include "vulkan_abi.h"

enum { SH_MAX_TYPES = 32, SH_MAX_HEAPS = 16 };

enum {
    SH_HIDE_FEATURES = 1 << 0,   // nothing but what Vulkan 1.2 obliges every device to
    SH_HIDE_EXTENSIONS = 1 << 1, // neither instance nor device extensions
    SH_HIDE_TIMESTAMPS = 1 << 2,
    SH_BUDGET = 1 << 3, // VK_EXT_memory_budget, emulated
};

// What an emulated device presents. A zero leaves the driver's own value; a limit
// presented is never looser than the driver's.
typedef struct {
    const char *name; // appended to the device's
    uint32_t flags, api_version, has_type, device_type;
    uint32_t max_storage_range, max_push, max_allocations;
    uint32_t max_storage_per_stage, max_storage_per_set, max_dynamic, max_resources;
    uint32_t max_shared, max_invocations, max_count[3], max_size[3];
    uint64_t alignment, atom, max_allocation_size;
    uint32_t type_count, heap_count; // of memory; 0: the driver's
    VcMemoryType types[SH_MAX_TYPES];
    VcMemoryHeap heaps[SH_MAX_HEAPS];
    uint64_t budget[SH_MAX_HEAPS];       // with SH_BUDGET: at first
    uint64_t budget_least[SH_MAX_HEAPS]; // where it stops shrinking
    uint64_t budget_step;                // bytes it shrinks at each query
} sh_profile;

typedef struct sh_driver sh_driver;

// Kinds of objects that are counted.
#define SH_KINDS(K)                                                                                                          \
    K(INSTANCE, "instances") K(DEVICE, "devices") K(BUFFER, "buffers") K(MEMORY, "memory allocations")                         \
    K(SHADER, "shader modules") K(PIPELINE, "pipelines") K(PIPELINE_LAYOUT, "pipeline layouts")                                \
    K(SET_LAYOUT, "descriptor set layouts") K(DESCRIPTOR_POOL, "descriptor pools") K(DESCRIPTOR_SET, "descriptor sets")        \
    K(COMMAND_POOL, "command pools") K(COMMAND_BUFFER, "command buffers") K(SEMAPHORE, "semaphores") K(FENCE, "fences")        \
    K(QUERY_POOL, "query pools") K(PIPELINE_CACHE, "pipeline caches") K(MESSENGER, "messengers")

// Functions that return a VkResult: what can be made to fail, and is counted.
#define SH_FUNCTIONS(F)                                                                                                      \
    F(EnumerateInstanceVersion) F(EnumerateInstanceLayerProperties) F(EnumerateInstanceExtensionProperties)                    \
    F(CreateInstance) F(EnumeratePhysicalDevices) F(EnumerateDeviceExtensionProperties) F(CreateDevice)                        \
    F(CreateDebugUtilsMessengerEXT) F(SetDebugUtilsObjectNameEXT)                                                              \
    F(CreateBuffer) F(AllocateMemory) F(BindBufferMemory) F(MapMemory) F(FlushMappedMemoryRanges)                              \
    F(InvalidateMappedMemoryRanges) F(CreateShaderModule) F(CreateDescriptorSetLayout) F(CreatePipelineLayout)                 \
    F(CreateComputePipelines) F(CreatePipelineCache) F(GetPipelineCacheData) F(MergePipelineCaches)                            \
    F(CreateDescriptorPool) F(ResetDescriptorPool) F(AllocateDescriptorSets) F(FreeDescriptorSets)                             \
    F(CreateCommandPool) F(ResetCommandPool) F(AllocateCommandBuffers) F(BeginCommandBuffer) F(EndCommandBuffer)               \
    F(ResetCommandBuffer) F(CreateSemaphore) F(GetSemaphoreCounterValue) F(WaitSemaphores) F(SignalSemaphore)                  \
    F(CreateFence) F(ResetFences) F(GetFenceStatus) F(WaitForFences) F(CreateQueryPool) F(GetQueryPoolResults)                 \
    F(QueueSubmit) F(QueueWaitIdle) F(DeviceWaitIdle)

enum {
#define K(kind, name) SH_##kind,
    SH_KINDS(K)
#undef K
    SH_KIND_COUNT
};
enum {
#define F(name) SH_FN_##name,
    SH_FUNCTIONS(F)
#undef F
    SH_FN_COUNT
};

const char *sh_kind_name(uint32_t kind);
const char *sh_function_name(uint32_t function); // with the prefix vk
int32_t sh_function_index(const char *name);     // -1: none of them

// Puts the shim before a vkGetInstanceProcAddr and returns its own. Once per process.
void *sh_install(void *get_instance_proc_addr);

sh_driver *sh_driver_new(const sh_profile *profile);
// Frees the driver. Returns 0, freeing nothing, while instances of it are alive.
int sh_driver_free(sh_driver *d);

// The driver of instances that are created next: the thread's if it has one, else the
// process's, else none and everything passes through untouched. Each returns the former.
sh_driver *sh_use_thread(sh_driver *d);
sh_driver *sh_use_process(sh_driver *d);

// The k-th call from now of a function (or, with -1, of any) returns result. Returns 0 if too many are planned.
int sh_fail(sh_driver *d, int32_t function, uint64_t k, int32_t result);
// Number of planned failures that have not happened yet.
uint32_t sh_planned(sh_driver *d);
void sh_unplan(sh_driver *d);
void sh_calls(sh_driver *d, uint64_t calls[SH_FN_COUNT]);
void sh_hang(sh_driver *d);
void sh_release(sh_driver *d);
void sh_watchdog(sh_driver *d, uint64_t ms); // after which a wait for a hung queue loses the device
void sh_budget(sh_driver *d, uint32_t heap, uint64_t bytes);
void sh_objects(sh_driver *d, uint64_t created[SH_KIND_COUNT], uint64_t destroyed[SH_KIND_COUNT]);
// Takes the oldest violation; 0 if there is none. *dropped counts those that found no room.
int sh_violation_take(sh_driver *d, char *out, size_t size, uint64_t *dropped);
// Whether the shim stands before a function, and the names of the library's own
// functions that return a VkResult, NUL separated, for the test that it misses none.
int sh_wraps(const char *name);
const char *sh_library_functions(void);

#endif
