// What the parts of the shim share. One lock guards all of it; no call of the driver
// happens while it is held.
#ifndef VKCOMPUTE_SHIM_STATE_H
#define VKCOMPUTE_SHIM_STATE_H

#include "shim.h"

#if defined(_WIN32)
#include <windows.h>
typedef SRWLOCK sh_mutex;
#define SH_MUTEX_INIT(m) InitializeSRWLock(m)
#define SH_MUTEX_STATIC SRWLOCK_INIT
#define SH_MUTEX_LOCK(m) AcquireSRWLockExclusive(m)
#define SH_MUTEX_UNLOCK(m) ReleaseSRWLockExclusive(m)
#define SH_MUTEX_FREE(m) (void)(m)
#define SH_SLEEP_MS(n) Sleep(n)
#else
#include <pthread.h>
#include <unistd.h>
typedef pthread_mutex_t sh_mutex;
#define SH_MUTEX_INIT(m) pthread_mutex_init(m, NULL)
#define SH_MUTEX_STATIC PTHREAD_MUTEX_INITIALIZER
#define SH_MUTEX_LOCK(m) pthread_mutex_lock(m)
#define SH_MUTEX_UNLOCK(m) pthread_mutex_unlock(m)
#define SH_MUTEX_FREE(m) pthread_mutex_destroy(m)
#define SH_SLEEP_MS(n) usleep((n) * 1000)
#endif

void sh_lock(void);
void sh_unlock(void);

enum {
    SH_ERROR_OUT_OF_DEVICE_MEMORY = -2,
    SH_ERROR_MEMORY_MAP_FAILED = -5,
    SH_ERROR_EXTENSION_NOT_PRESENT = -7,
    SH_ERROR_FEATURE_NOT_PRESENT = -8,
    SH_ERROR_TOO_MANY_OBJECTS = -10,
    SH_ERROR_OUT_OF_POOL_MEMORY = -1000069000,
};

// Structures that the library's own header has no use for.
typedef struct { VcSize size, alignment; uint32_t memoryTypeBits; } ShMemoryRequirements;
typedef struct { int32_t sType; void *pNext; ShMemoryRequirements memoryRequirements; } ShMemoryRequirements2;
typedef struct { int32_t sType; const void *pNext; uint32_t flags; VcSize size; uint32_t usage; int32_t sharingMode; uint32_t familyCount; const uint32_t *families; } ShBufferCreateInfo;
typedef struct { int32_t sType; const void *pNext; VcHandle commandPool; int32_t level; uint32_t commandBufferCount; } ShCommandBufferAllocateInfo;

typedef VcFunction(VC_CALL *sh_get_proc)(VcObject, const char *);

// --- functions of the driver beneath ---------------------------------------------------

#define SH_INSTANCE_FUNCTIONS(F)                                                                                             \
    F(DestroyInstance, void, (VcObject, const void *))                                                                        \
    F(EnumeratePhysicalDevices, VcResult, (VcObject, uint32_t *, VcObject *))                                                 \
    F(EnumerateDeviceExtensionProperties, VcResult, (VcObject, const char *, uint32_t *, VcExtensionProperties *))            \
    F(GetPhysicalDeviceProperties, void, (VcObject, VcPhysicalDeviceProperties *))                                            \
    F(GetPhysicalDeviceProperties2, void, (VcObject, VcPhysicalDeviceProperties2 *))                                          \
    F(GetPhysicalDeviceFeatures, void, (VcObject, VcBool *))                                                                  \
    F(GetPhysicalDeviceFeatures2, void, (VcObject, VcPhysicalDeviceFeatures2 *))                                              \
    F(GetPhysicalDeviceMemoryProperties, void, (VcObject, VcPhysicalDeviceMemoryProperties *))                                \
    F(GetPhysicalDeviceMemoryProperties2, void, (VcObject, VcPhysicalDeviceMemoryProperties2 *))                              \
    F(GetPhysicalDeviceQueueFamilyProperties, void, (VcObject, uint32_t *, VcQueueFamilyProperties *))                        \
    F(CreateDevice, VcResult, (VcObject, const VcDeviceCreateInfo *, const void *, VcObject *))                               \
    F(GetDeviceProcAddr, VcFunction, (VcObject, const char *))                                                                \
    F(CreateDebugUtilsMessengerEXT, VcResult, (VcObject, const void *, const void *, VcHandle *))                             \
    F(DestroyDebugUtilsMessengerEXT, void, (VcObject, VcHandle, const void *))

#define SH_CREATE_ARGS (VcObject, const void *, const void *, VcHandle *)
#define SH_DESTROY_ARGS (VcObject, VcHandle, const void *)
#define SH_DEVICE_FUNCTIONS(F)                                                                                               \
    F(DestroyDevice, void, (VcObject, const void *))                                                                          \
    F(GetDeviceQueue, void, (VcObject, uint32_t, uint32_t, VcObject *))                                                       \
    F(SetDebugUtilsObjectNameEXT, VcResult, (VcObject, const void *))                                                         \
    F(CreateBuffer, VcResult, SH_CREATE_ARGS)                                                                                 \
    F(DestroyBuffer, void, SH_DESTROY_ARGS)                                                                                   \
    F(GetBufferMemoryRequirements, void, (VcObject, VcHandle, ShMemoryRequirements *))                                        \
    F(GetBufferMemoryRequirements2, void, (VcObject, const void *, ShMemoryRequirements2 *))                                  \
    F(AllocateMemory, VcResult, (VcObject, const VcMemoryAllocateInfo *, const void *, VcHandle *))                           \
    F(FreeMemory, void, SH_DESTROY_ARGS)                                                                                      \
    F(BindBufferMemory, VcResult, (VcObject, VcHandle, VcHandle, VcSize))                                                     \
    F(MapMemory, VcResult, (VcObject, VcHandle, VcSize, VcSize, uint32_t, void **))                                           \
    F(UnmapMemory, void, (VcObject, VcHandle))                                                                                \
    F(FlushMappedMemoryRanges, VcResult, (VcObject, uint32_t, const VcMappedMemoryRange *))                                   \
    F(InvalidateMappedMemoryRanges, VcResult, (VcObject, uint32_t, const VcMappedMemoryRange *))                              \
    F(CreateShaderModule, VcResult, SH_CREATE_ARGS)                                                                           \
    F(DestroyShaderModule, void, SH_DESTROY_ARGS)                                                                             \
    F(CreateDescriptorSetLayout, VcResult, SH_CREATE_ARGS)                                                                    \
    F(DestroyDescriptorSetLayout, void, SH_DESTROY_ARGS)                                                                      \
    F(CreatePipelineLayout, VcResult, SH_CREATE_ARGS)                                                                         \
    F(DestroyPipelineLayout, void, SH_DESTROY_ARGS)                                                                           \
    F(CreateComputePipelines, VcResult,                                                                                      \
      (VcObject, VcHandle, uint32_t, const VcComputePipelineCreateInfo *, const void *, VcHandle *))                          \
    F(DestroyPipeline, void, SH_DESTROY_ARGS)                                                                                 \
    F(CreatePipelineCache, VcResult, SH_CREATE_ARGS)                                                                          \
    F(DestroyPipelineCache, void, SH_DESTROY_ARGS)                                                                            \
    F(GetPipelineCacheData, VcResult, (VcObject, VcHandle, size_t *, void *))                                                 \
    F(MergePipelineCaches, VcResult, (VcObject, VcHandle, uint32_t, const VcHandle *))                                        \
    F(CreateDescriptorPool, VcResult, SH_CREATE_ARGS)                                                                         \
    F(DestroyDescriptorPool, void, SH_DESTROY_ARGS)                                                                           \
    F(ResetDescriptorPool, VcResult, (VcObject, VcHandle, uint32_t))                                                          \
    F(AllocateDescriptorSets, VcResult, (VcObject, const VcDescriptorSetAllocateInfo *, VcHandle *))                          \
    F(FreeDescriptorSets, VcResult, (VcObject, VcHandle, uint32_t, const VcHandle *))                                         \
    F(UpdateDescriptorSets, void, (VcObject, uint32_t, const VcWriteDescriptorSet *, uint32_t, const void *))                 \
    F(CreateCommandPool, VcResult, SH_CREATE_ARGS)                                                                            \
    F(DestroyCommandPool, void, SH_DESTROY_ARGS)                                                                              \
    F(ResetCommandPool, VcResult, (VcObject, VcHandle, uint32_t))                                                             \
    F(AllocateCommandBuffers, VcResult, (VcObject, const ShCommandBufferAllocateInfo *, VcObject *))                          \
    F(FreeCommandBuffers, void, (VcObject, VcHandle, uint32_t, const VcObject *))                                             \
    F(BeginCommandBuffer, VcResult, (VcObject, const VcCommandBufferBeginInfo *))                                             \
    F(EndCommandBuffer, VcResult, (VcObject))                                                                                 \
    F(ResetCommandBuffer, VcResult, (VcObject, uint32_t))                                                                     \
    F(CmdBindDescriptorSets, void,                                                                                           \
      (VcObject, int32_t, VcHandle, uint32_t, uint32_t, const VcHandle *, uint32_t, const uint32_t *))                        \
    F(CmdPushConstants, void, (VcObject, VcHandle, uint32_t, uint32_t, uint32_t, const void *))                               \
    F(CmdDispatch, void, (VcObject, uint32_t, uint32_t, uint32_t))                                                            \
    F(CmdWriteTimestamp, void, (VcObject, uint32_t, VcHandle, uint32_t))                                                      \
    F(CreateSemaphore, VcResult, SH_CREATE_ARGS)                                                                              \
    F(DestroySemaphore, void, SH_DESTROY_ARGS)                                                                                \
    F(GetSemaphoreCounterValue, VcResult, (VcObject, VcHandle, uint64_t *))                                                   \
    F(WaitSemaphores, VcResult, (VcObject, const VcSemaphoreWaitInfo *, uint64_t))                                            \
    F(SignalSemaphore, VcResult, (VcObject, const void *))                                                                    \
    F(CreateFence, VcResult, SH_CREATE_ARGS)                                                                                  \
    F(DestroyFence, void, SH_DESTROY_ARGS)                                                                                    \
    F(ResetFences, VcResult, (VcObject, uint32_t, const VcHandle *))                                                          \
    F(GetFenceStatus, VcResult, (VcObject, VcHandle))                                                                         \
    F(WaitForFences, VcResult, (VcObject, uint32_t, const VcHandle *, VcBool, uint64_t))                                      \
    F(CreateQueryPool, VcResult, SH_CREATE_ARGS)                                                                              \
    F(DestroyQueryPool, void, SH_DESTROY_ARGS)                                                                                \
    F(GetQueryPoolResults, VcResult, (VcObject, VcHandle, uint32_t, uint32_t, size_t, void *, VcSize, uint32_t))              \
    F(QueueSubmit, VcResult, (VcObject, uint32_t, const VcSubmitInfo *, VcHandle))                                            \
    F(QueueWaitIdle, VcResult, (VcObject))                                                                                    \
    F(DeviceWaitIdle, VcResult, (VcObject))

#define F(name, result, args) result(VC_CALL *name) args;
typedef struct { SH_INSTANCE_FUNCTIONS(F) } sh_instance_functions;
typedef struct { SH_DEVICE_FUNCTIONS(F) } sh_device_functions;
#undef F

// --- objects ---------------------------------------------------------------------------

// Kinds that are known but not counted: they are not created.
enum { SH_PHYSICAL = SH_KIND_COUNT, SH_QUEUE };

typedef struct sh_instance sh_instance;
typedef struct sh_physical sh_physical;
typedef struct sh_device sh_device;
typedef struct sh_object sh_object;

// An object is found by kind, device and handle: drivers that count hand out the same
// number for objects of different kinds and devices. Destroying one destroys its children.
struct sh_object {
    uint32_t kind;
    sh_device *device; // NULL for those above a device, and for dispatchable ones
    uint64_t handle;
    sh_object *chain; // of the hash table
    sh_object *parent, *children, *next, **link;
    void *owner; // of dispatchable ones: sh_instance, sh_physical or sh_device
    union {
        uint64_t size; // of a buffer
        struct {
            uint64_t size;
            uint32_t type;
            char *real;   // what the driver mapped, from offset 0
            char *shadow; // what the host sees instead; NULL on coherent memory
            void *block;  // that shadow lies in
            int mapped;
            uint64_t offset, length; // of the mapping
        } memory;
        struct { uint32_t storage, dynamic; } layout; // descriptors of a set
        struct { uint32_t sets, storage, dynamic; } pool; // still free
        struct { uint32_t *code; size_t words; } shader;
    };
};

struct sh_instance {
    sh_driver *driver; // NULL: pass everything through
    VcObject handle;
    sh_object *object;
    sh_instance_functions real;
};

struct sh_physical {
    sh_instance *in;
    VcObject handle;
    VcPhysicalDeviceLimits limits;           // as presented
    uint64_t max_allocation_size;            // as presented, 0 if unknown
    VcPhysicalDeviceMemoryProperties memory; // as presented
    uint32_t map[SH_MAX_TYPES];              // the driver's type of each presented
    int remapped;
    int real_budget; // the driver has VK_EXT_memory_budget
};

// A submission that a hung queue has taken and not run.
typedef struct sh_deferred sh_deferred;

struct sh_device {
    sh_driver *driver;
    sh_physical *physical;
    VcObject handle;
    sh_object *object;
    sh_device_functions real;
    sh_device *next; // of the driver
    uint32_t allocations;
    int lost;
    int timestamps;
    sh_mutex submit; // queues are externally synchronised, also against what the shim does by itself
    sh_deferred *deferred, **deferred_end;
    uint32_t deferred_count; // under the global lock
};

enum { SH_MAX_FAULTS = 16, SH_MAX_VIOLATIONS = 64, SH_VIOLATION_SIZE = 320 };

struct sh_driver {
    sh_profile profile;
    char name[64];
    sh_driver *next;
    sh_device *devices;
    uint32_t instances;
    uint64_t heap_used[SH_MAX_HEAPS];
    uint64_t budget[SH_MAX_HEAPS];
    uint64_t calls[SH_FN_COUNT], created[SH_KIND_COUNT], destroyed[SH_KIND_COUNT];
    struct { int32_t function, result; uint64_t left; } faults[SH_MAX_FAULTS];
    uint32_t fault_count;
    int hung;
    uint64_t watchdog_ms;
    char violations[SH_MAX_VIOLATIONS][SH_VIOLATION_SIZE];
    uint32_t violation_first, violation_count;
    uint64_t violations_dropped;
};

// Of objects.c; all with the lock held.
sh_object *sh_find(uint32_t kind, sh_device *device, uint64_t handle);
sh_object *sh_born(sh_driver *driver, uint32_t kind, sh_device *device, uint64_t handle, sh_object *parent);
void sh_died(sh_driver *driver, sh_object *o); // and its children
// Takes the lock: removes an object that is to be destroyed. 0, with a violation, if there is none.
int sh_kill(sh_device *d, uint32_t kind, uint64_t handle, const char *call);

sh_driver *sh_current(void);
void sh_violate(sh_driver *d, const char *format, ...) __attribute__((format(printf, 2, 3))); // lock held
void sh_violation(sh_driver *d, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sh_stray(const char *call); // a call on a handle that is not alive; tells every driver

// Counts a call and returns 1 with *r where it is to fail.
int sh_fault(sh_driver *driver, sh_device *d, uint32_t function, VcResult *r);
void sh_lose(sh_device *d);
VcResult sh_idle(sh_device *d, VcResult(VC_CALL *wait)(VcObject), VcObject object);
VcResult sh_submit(sh_device *d, VcObject queue, uint32_t count, const VcSubmitInfo *submits, VcHandle fence);
void sh_drop_deferred(sh_device *d);

sh_device *sh_device_of(VcObject device);          // takes the lock
sh_device *sh_owner(uint32_t kind, VcObject handle); // of a queue or command buffer; takes the lock

// Of profile.c.
void sh_present(sh_physical *p);
void sh_present_limits(const sh_profile *p, VcPhysicalDeviceLimits *l);
void sh_hide_features(const sh_profile *p, void *chain);
VcResult sh_check_features(const sh_profile *p, const VcDeviceCreateInfo *info);

// Of spirv.c: workgroup size and bytes of shared memory of a compute shader, without
// variables whose size it cannot evaluate. Returns 0 if the workgroup is one of those.
int sh_measure(const uint32_t *code, size_t words, const char *entry, const VcSpecializationInfo *spec, uint32_t size[3], uint64_t *shared);

// Of instance.c and device.c: the shim's function of a name without vk, or NULL.
VcFunction sh_instance_function(const char *name);
VcFunction sh_device_function(const char *name);
void sh_load_device(sh_device *d, sh_get_proc get);

#endif
