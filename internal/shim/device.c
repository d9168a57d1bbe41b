#include "state.h"

#include <stdlib.h>
#include <string.h>

// How every function begins: on a dead handle it answers as a lost device would, on a
// device nobody emulates it does nothing but call the driver, and where a failure is
// planned it fails.
#define DEVICE(fn)                        \
    sh_device *d = sh_device_of(device);  \
    if (!d) {                             \
        sh_stray(#fn);                    \
        return VC_ERROR_DEVICE_LOST;      \
    }
#define OWNER(fn, kind, handle)           \
    sh_device *d = sh_owner(kind, handle); \
    if (!d) {                             \
        sh_stray(#fn);                    \
        return VC_ERROR_DEVICE_LOST;      \
    }
#define PASS(fn, args) \
    if (!d->driver) return d->real.fn args
#define INJECT(fn)                                                        \
    do {                                                                  \
        VcResult injected;                                                \
        if (sh_fault(d->driver, d, SH_FN_##fn, &injected)) return injected; \
    } while (0)
#define DEVICE_VOID(fn)                   \
    sh_device *d = sh_device_of(device);  \
    if (!d) {                             \
        sh_stray(#fn);                    \
        return;                           \
    }
#define COMMANDS_VOID(fn)                                            \
    sh_device *d = sh_owner(SH_COMMAND_BUFFER, commands);            \
    if (!d) {                                                        \
        sh_stray(#fn);                                               \
        return;                                                      \
    }
#define PASS_VOID(fn, args)   \
    if (!d->driver) {         \
        d->real.fn args;      \
        return;               \
    }

sh_device *sh_owner(uint32_t kind, VcObject handle) {
    sh_lock();
    sh_object *o = sh_find(kind, NULL, (uintptr_t)handle);
    sh_device *d = o ? o->owner : NULL;
    sh_unlock();
    return d;
}

sh_device *sh_device_of(VcObject device) { return sh_owner(SH_DEVICE, device); }

static sh_object *born(sh_device *d, uint32_t kind, uint64_t handle) { // with the lock held
    return sh_born(d->driver, kind, d, handle, d->object);
}

// Functions that only count, fail and pass on.
#define PLAIN(fn, params, args)                     \
    static VcResult VC_CALL w_##fn params {         \
        DEVICE(fn);                                 \
        PASS(fn, args);                             \
        INJECT(fn);                                 \
        return d->real.fn args;                     \
    }
#define CREATE(fn, kind)                                                                        \
    static VcResult VC_CALL w_##fn(VcObject device, const void *info, const void *alloc, VcHandle *out) { \
        DEVICE(fn);                                                                             \
        PASS(fn, (device, info, alloc, out));                                                   \
        INJECT(fn);                                                                             \
        VcResult r = d->real.fn(device, info, alloc, out);                                      \
        if (r < 0) return r;                                                                    \
        sh_lock();                                                                              \
        born(d, kind, *out);                                                                    \
        sh_unlock();                                                                            \
        return r;                                                                               \
    }
#define DESTROY(fn, kind)                                                                       \
    static void VC_CALL w_##fn(VcObject device, VcHandle handle, const void *alloc) {           \
        DEVICE_VOID(fn);                                                                        \
        if (d->driver && handle && !sh_kill(d, kind, handle, "vk" #fn)) return;                 \
        d->real.fn(device, handle, alloc);                                                      \
    }

// --- device and queue -----------------------------------------------------------------

static void VC_CALL w_DestroyDevice(VcObject device, const void *alloc) {
    if (!device) return;
    DEVICE_VOID(DestroyDevice);
    void(VC_CALL * real)(VcObject, const void *) = d->real.DestroyDevice;
    if (d->driver && d->deferred) {
        sh_violation(d->driver, "vkDestroyDevice: %u submissions are pending on its hung queue", d->deferred_count);
        sh_drop_deferred(d);
    }
    sh_lock();
    uint32_t alive[SH_KIND_COUNT] = {0};
    for (sh_object *o = d->object->children; o; o = o->next)
        if (o->kind < SH_KIND_COUNT) alive[o->kind]++;
    for (uint32_t k = 0; d->driver && k < SH_KIND_COUNT; k++)
        if (alive[k]) sh_violate(d->driver, "vkDestroyDevice: %u of its %s are alive", alive[k], sh_kind_name(k));
    if (d->driver) {
        sh_device **p = &d->driver->devices;
        while (*p && *p != d) p = &(*p)->next;
        if (*p) *p = d->next;
    }
    sh_died(d->driver, d->object);
    sh_unlock();
    SH_MUTEX_FREE(&d->submit);
    free(d);
    real(device, alloc);
}

static void VC_CALL w_GetDeviceQueue(VcObject device, uint32_t family, uint32_t index, VcObject *out) {
    DEVICE_VOID(GetDeviceQueue);
    d->real.GetDeviceQueue(device, family, index, out);
    sh_lock();
    if (!sh_find(SH_QUEUE, NULL, (uintptr_t)*out)) sh_born(NULL, SH_QUEUE, NULL, (uintptr_t)*out, d->object)->owner = d;
    sh_unlock();
}

static VcResult VC_CALL w_QueueSubmit(VcObject queue, uint32_t count, const VcSubmitInfo *submits, VcHandle fence) {
    OWNER(QueueSubmit, SH_QUEUE, queue);
    PASS(QueueSubmit, (queue, count, submits, fence));
    INJECT(QueueSubmit);
    return sh_submit(d, queue, count, submits, fence);
}

static VcResult VC_CALL w_QueueWaitIdle(VcObject queue) {
    OWNER(QueueWaitIdle, SH_QUEUE, queue);
    PASS(QueueWaitIdle, (queue));
    INJECT(QueueWaitIdle);
    return sh_idle(d, d->real.QueueWaitIdle, queue);
}

static VcResult VC_CALL w_DeviceWaitIdle(VcObject device) {
    DEVICE(DeviceWaitIdle);
    PASS(DeviceWaitIdle, (device));
    INJECT(DeviceWaitIdle);
    return sh_idle(d, d->real.DeviceWaitIdle, device);
}

PLAIN(SetDebugUtilsObjectNameEXT, (VcObject device, const void *info), (device, info))

// --- memory ---------------------------------------------------------------------------

enum { HOST_VISIBLE = 2, HOST_COHERENT = 4 };

static VcResult VC_CALL w_CreateBuffer(VcObject device, const void *info, const void *alloc, VcHandle *out) {
    DEVICE(CreateBuffer);
    PASS(CreateBuffer, (device, info, alloc, out));
    INJECT(CreateBuffer);
    VcResult r = d->real.CreateBuffer(device, info, alloc, out);
    if (r < 0) return r;
    sh_lock();
    born(d, SH_BUFFER, *out)->size = ((const ShBufferCreateInfo *)info)->size;
    sh_unlock();
    return r;
}
DESTROY(DestroyBuffer, SH_BUFFER)

// The presented types that a requirement in the driver's types allows.
static uint32_t presented_bits(const sh_physical *p, uint32_t real) {
    uint32_t bits = 0;
    for (uint32_t i = 0; i < p->memory.memoryTypeCount; i++) bits |= (real >> p->map[i] & 1) << i;
    return bits;
}

static void VC_CALL w_GetBufferMemoryRequirements(VcObject device, VcHandle buffer, ShMemoryRequirements *out) {
    DEVICE_VOID(GetBufferMemoryRequirements);
    d->real.GetBufferMemoryRequirements(device, buffer, out);
    if (d->driver) out->memoryTypeBits = presented_bits(d->physical, out->memoryTypeBits);
}

static void VC_CALL w_GetBufferMemoryRequirements2(VcObject device, const void *info, ShMemoryRequirements2 *out) {
    DEVICE_VOID(GetBufferMemoryRequirements2);
    d->real.GetBufferMemoryRequirements2(device, info, out);
    if (d->driver) out->memoryRequirements.memoryTypeBits = presented_bits(d->physical, out->memoryRequirements.memoryTypeBits);
}

static VcResult VC_CALL w_AllocateMemory(VcObject device, const VcMemoryAllocateInfo *info, const void *alloc, VcHandle *out) {
    DEVICE(AllocateMemory);
    PASS(AllocateMemory, (device, info, alloc, out));
    INJECT(AllocateMemory);
    const sh_physical *p = d->physical;
    const uint64_t size = info->allocationSize;
    if (info->memoryTypeIndex >= p->memory.memoryTypeCount) {
        sh_violation(d->driver, "vkAllocateMemory: memory type %u of %u", info->memoryTypeIndex, p->memory.memoryTypeCount);
        return SH_ERROR_OUT_OF_DEVICE_MEMORY;
    }
    const uint32_t heap = p->memory.memoryTypes[info->memoryTypeIndex].heapIndex;
    VcResult r = VC_SUCCESS;
    sh_lock();
    if (d->allocations >= p->limits.maxMemoryAllocationCount) {
        sh_violate(d->driver, "vkAllocateMemory: allocation %u, the device allows %u", d->allocations + 1, p->limits.maxMemoryAllocationCount);
        r = SH_ERROR_TOO_MANY_OBJECTS;
    } else if (p->max_allocation_size && size > p->max_allocation_size) {
        sh_violate(d->driver, "vkAllocateMemory: %llu bytes, the device allows %llu", (unsigned long long)size, (unsigned long long)p->max_allocation_size);
        r = SH_ERROR_OUT_OF_DEVICE_MEMORY;
    } else if (size > p->memory.memoryHeaps[heap].size || d->driver->heap_used[heap] > p->memory.memoryHeaps[heap].size - size) {
        r = SH_ERROR_OUT_OF_DEVICE_MEMORY; // no violation: others use a heap too, nobody can know
    } else {
        d->allocations++; // before the driver is asked, so that two threads cannot both have the last of it
        d->driver->heap_used[heap] += size;
    }
    sh_unlock();
    if (r < 0) return r;
    VcMemoryAllocateInfo passed = *info;
    passed.memoryTypeIndex = p->map[info->memoryTypeIndex];
    r = d->real.AllocateMemory(device, &passed, alloc, out);
    sh_lock();
    if (r < 0) {
        d->allocations--;
        d->driver->heap_used[heap] -= size;
    } else {
        sh_object *o = born(d, SH_MEMORY, *out);
        o->memory.size = size;
        o->memory.type = info->memoryTypeIndex;
    }
    sh_unlock();
    return r;
}
DESTROY(FreeMemory, SH_MEMORY)

PLAIN(BindBufferMemory, (VcObject device, VcHandle buffer, VcHandle memory, VcSize offset), (device, buffer, memory, offset))

// On memory that is not coherent the host gets a copy of its own, which begins with
// bytes that nobody wrote.
enum { POISON = 0xcb, SHADOW_ALIGNMENT = 4096 };

static VcResult VC_CALL w_MapMemory(VcObject device, VcHandle memory, VcSize offset, VcSize size, uint32_t flags, void **out) {
    DEVICE(MapMemory);
    PASS(MapMemory, (device, memory, offset, size, flags, out));
    INJECT(MapMemory);
    sh_lock();
    sh_object *o = sh_find(SH_MEMORY, d, memory);
    const char *wrong = NULL;
    uint32_t type = 0;
    if (!o) {
        wrong = "memory that is not alive";
    } else {
        type = d->physical->memory.memoryTypes[o->memory.type].propertyFlags;
        if (size == ~(VcSize)0) size = o->memory.size - offset;
        if (!(type & HOST_VISIBLE)) wrong = "memory that the host cannot see";
        else if (o->memory.mapped) wrong = "memory that is mapped already";
        else if (offset > o->memory.size || size > o->memory.size - offset) wrong = "more than was allocated";
    }
    if (wrong) sh_violate(d->driver, "vkMapMemory: %s", wrong);
    sh_unlock();
    if (wrong) return SH_ERROR_MEMORY_MAP_FAILED;
    const int shadow = !(type & HOST_COHERENT) && d->physical->remapped;
    void *p;
    // With a shadow all of the memory is mapped, so that both are at the same offsets.
    VcResult r = d->real.MapMemory(device, memory, shadow ? 0 : offset, shadow ? ~(VcSize)0 : size, flags, &p);
    if (r < 0) return r;
    char *block = NULL;
    if (shadow && !(block = malloc(o->memory.size + SHADOW_ALIGNMENT))) {
        d->real.UnmapMemory(device, memory);
        return VC_ERROR_OUT_OF_HOST_MEMORY;
    }
    sh_lock();
    o->memory.mapped = 1;
    o->memory.offset = offset;
    o->memory.length = size;
    o->memory.real = p;
    if (shadow) {
        o->memory.block = block;
        o->memory.shadow = (char *)(((uintptr_t)block + SHADOW_ALIGNMENT - 1) & ~(uintptr_t)(SHADOW_ALIGNMENT - 1));
        memset(o->memory.shadow, POISON, o->memory.size);
    }
    *out = shadow ? o->memory.shadow + offset : p;
    sh_unlock();
    return r;
}

static void VC_CALL w_UnmapMemory(VcObject device, VcHandle memory) {
    DEVICE_VOID(UnmapMemory);
    PASS_VOID(UnmapMemory, (device, memory));
    sh_lock();
    sh_object *o = sh_find(SH_MEMORY, d, memory);
    int mapped = o && o->memory.mapped;
    if (mapped) {
        free(o->memory.block);
        o->memory.block = o->memory.shadow = o->memory.real = NULL;
        o->memory.mapped = 0;
    } else {
        sh_violate(d->driver, "vkUnmapMemory: memory that is not mapped");
    }
    sh_unlock();
    if (mapped) d->real.UnmapMemory(device, memory);
}

// Checks the ranges and moves the bytes of those with a shadow. Returns whether all were right.
static int move(sh_device *d, const char *call, uint32_t count, const VcMappedMemoryRange *ranges, int to_device) {
    const uint64_t atom = d->physical->limits.nonCoherentAtomSize;
    int right = 1;
    sh_lock();
    for (uint32_t i = 0; i < count; i++) {
        const VcMappedMemoryRange *r = &ranges[i];
        sh_object *o = sh_find(SH_MEMORY, d, r->memory);
        if (!o || !o->memory.mapped) {
            sh_violate(d->driver, "%s: range %u is of memory that is not mapped", call, i);
            right = 0;
            continue;
        }
        const uint64_t end = o->memory.offset + o->memory.length;
        const uint64_t size = r->size == ~(VcSize)0 ? end - r->offset : r->size;
        if (r->offset < o->memory.offset || r->offset > end || size > end - r->offset) {
            sh_violate(d->driver, "%s: range %u, %llu bytes at %llu, is outside the %llu bytes mapped", call, i, (unsigned long long)size,
                       (unsigned long long)r->offset, (unsigned long long)o->memory.length);
            right = 0;
            continue;
        }
        if (r->offset % atom || (size % atom && r->offset + size != o->memory.size)) {
            sh_violate(d->driver, "%s: range %u, %llu bytes at %llu of %llu, is not made of whole atoms of %llu bytes", call, i,
                       (unsigned long long)size, (unsigned long long)r->offset, (unsigned long long)o->memory.size, (unsigned long long)atom);
            right = 0;
            continue;
        }
        if (!o->memory.shadow) continue;
        char *real = o->memory.real + r->offset, *shadow = o->memory.shadow + r->offset;
        memcpy(to_device ? real : shadow, to_device ? shadow : real, size);
    }
    sh_unlock();
    return right;
}

static VcResult VC_CALL w_FlushMappedMemoryRanges(VcObject device, uint32_t count, const VcMappedMemoryRange *ranges) {
    DEVICE(FlushMappedMemoryRanges);
    PASS(FlushMappedMemoryRanges, (device, count, ranges));
    INJECT(FlushMappedMemoryRanges);
    if (!move(d, "vkFlushMappedMemoryRanges", count, ranges, 1)) return VC_ERROR_OUT_OF_HOST_MEMORY;
    return d->real.FlushMappedMemoryRanges(device, count, ranges);
}

static VcResult VC_CALL w_InvalidateMappedMemoryRanges(VcObject device, uint32_t count, const VcMappedMemoryRange *ranges) {
    DEVICE(InvalidateMappedMemoryRanges);
    PASS(InvalidateMappedMemoryRanges, (device, count, ranges));
    INJECT(InvalidateMappedMemoryRanges);
    VcResult r = d->real.InvalidateMappedMemoryRanges(device, count, ranges);
    if (r < 0) return r;
    return move(d, "vkInvalidateMappedMemoryRanges", count, ranges, 0) ? r : VC_ERROR_OUT_OF_HOST_MEMORY;
}

// --- pipelines ------------------------------------------------------------------------

static VcResult VC_CALL w_CreateShaderModule(VcObject device, const void *info, const void *alloc, VcHandle *out) {
    DEVICE(CreateShaderModule);
    PASS(CreateShaderModule, (device, info, alloc, out));
    INJECT(CreateShaderModule);
    VcResult r = d->real.CreateShaderModule(device, info, alloc, out);
    if (r < 0) return r;
    const VcShaderModuleCreateInfo *s = info;
    uint32_t *code = malloc(s->codeSize);
    if (!code) abort();
    memcpy(code, s->pCode, s->codeSize);
    sh_lock();
    sh_object *o = born(d, SH_SHADER, *out);
    o->shader.code = code;
    o->shader.words = s->codeSize / 4;
    sh_unlock();
    return r;
}
DESTROY(DestroyShaderModule, SH_SHADER)

static VcResult VC_CALL w_CreateDescriptorSetLayout(VcObject device, const void *info, const void *alloc, VcHandle *out) {
    DEVICE(CreateDescriptorSetLayout);
    PASS(CreateDescriptorSetLayout, (device, info, alloc, out));
    INJECT(CreateDescriptorSetLayout);
    const VcDescriptorSetLayoutCreateInfo *s = info;
    const VcPhysicalDeviceLimits *l = &d->physical->limits;
    uint32_t storage = 0, dynamic = 0;
    for (uint32_t i = 0; i < s->bindingCount; i++) {
        if (s->pBindings[i].descriptorType == VC_DESCRIPTOR_TYPE_STORAGE_BUFFER) storage += s->pBindings[i].descriptorCount;
        if (s->pBindings[i].descriptorType == VC_DESCRIPTOR_TYPE_STORAGE_BUFFER_DYNAMIC) dynamic += s->pBindings[i].descriptorCount;
    }
    if (storage + dynamic > l->maxPerStageDescriptorStorageBuffers || storage + dynamic > l->maxDescriptorSetStorageBuffers || storage + dynamic > l->maxPerStageResources)
        sh_violation(d->driver, "vkCreateDescriptorSetLayout: %u storage buffers, the device allows %u a stage, %u a set and %u resources", storage + dynamic,
                     l->maxPerStageDescriptorStorageBuffers, l->maxDescriptorSetStorageBuffers, l->maxPerStageResources);
    if (dynamic > l->maxDescriptorSetStorageBuffersDynamic)
        sh_violation(d->driver, "vkCreateDescriptorSetLayout: %u dynamic storage buffers, the device allows %u", dynamic, l->maxDescriptorSetStorageBuffersDynamic);
    VcResult r = d->real.CreateDescriptorSetLayout(device, info, alloc, out);
    if (r < 0) return r;
    sh_lock();
    sh_object *o = born(d, SH_SET_LAYOUT, *out);
    o->layout.storage = storage;
    o->layout.dynamic = dynamic;
    sh_unlock();
    return r;
}
DESTROY(DestroyDescriptorSetLayout, SH_SET_LAYOUT)

static VcResult VC_CALL w_CreatePipelineLayout(VcObject device, const void *info, const void *alloc, VcHandle *out) {
    DEVICE(CreatePipelineLayout);
    PASS(CreatePipelineLayout, (device, info, alloc, out));
    INJECT(CreatePipelineLayout);
    const VcPipelineLayoutCreateInfo *s = info;
    const VcPhysicalDeviceLimits *l = &d->physical->limits;
    if (s->setLayoutCount > l->maxBoundDescriptorSets)
        sh_violation(d->driver, "vkCreatePipelineLayout: %u descriptor sets, the device allows %u", s->setLayoutCount, l->maxBoundDescriptorSets);
    for (uint32_t i = 0; i < s->pushConstantRangeCount; i++) {
        const VcPushConstantRange *p = &s->pPushConstantRanges[i];
        if (p->offset > l->maxPushConstantsSize || p->size > l->maxPushConstantsSize - p->offset)
            sh_violation(d->driver, "vkCreatePipelineLayout: %u bytes of push constants at %u, the device allows %u", p->size, p->offset, l->maxPushConstantsSize);
    }
    uint32_t storage = 0, dynamic = 0;
    sh_lock();
    for (uint32_t i = 0; i < s->setLayoutCount; i++) {
        sh_object *o = sh_find(SH_SET_LAYOUT, d, s->pSetLayouts[i]);
        if (!o) continue;
        storage += o->layout.storage;
        dynamic += o->layout.dynamic;
    }
    if (storage + dynamic > l->maxPerStageDescriptorStorageBuffers)
        sh_violate(d->driver, "vkCreatePipelineLayout: %u storage buffers, the device allows %u a stage", storage + dynamic, l->maxPerStageDescriptorStorageBuffers);
    sh_unlock();
    VcResult r = d->real.CreatePipelineLayout(device, info, alloc, out);
    if (r < 0) return r;
    sh_lock();
    born(d, SH_PIPELINE_LAYOUT, *out);
    sh_unlock();
    return r;
}
DESTROY(DestroyPipelineLayout, SH_PIPELINE_LAYOUT)

static void check_shader(sh_device *d, const VcPipelineShaderStageCreateInfo *stage) {
    const VcPhysicalDeviceLimits *l = &d->physical->limits;
    sh_lock();
    sh_object *o = sh_find(SH_SHADER, d, stage->module);
    if (!o) sh_violate(d->driver, "vkCreateComputePipelines: its shader module is not alive");
    uint32_t size[3];
    uint64_t shared;
    if (o && sh_measure(o->shader.code, o->shader.words, stage->pName, stage->pSpecializationInfo, size, &shared)) {
        uint64_t invocations = (uint64_t)size[0] * size[1] * size[2];
        for (int i = 0; i < 3; i++)
            if (size[i] > l->maxComputeWorkGroupSize[i])
                sh_violate(d->driver, "vkCreateComputePipelines: a workgroup of %u on axis %d, the device allows %u", size[i], i, l->maxComputeWorkGroupSize[i]);
        if (invocations > l->maxComputeWorkGroupInvocations)
            sh_violate(d->driver, "vkCreateComputePipelines: workgroups of %llu invocations, the device allows %u", (unsigned long long)invocations, l->maxComputeWorkGroupInvocations);
        if (shared > l->maxComputeSharedMemorySize)
            sh_violate(d->driver, "vkCreateComputePipelines: %llu bytes of shared memory, the device allows %u", (unsigned long long)shared, l->maxComputeSharedMemorySize);
    }
    sh_unlock();
}

static VcResult VC_CALL w_CreateComputePipelines(VcObject device, VcHandle cache, uint32_t count, const VcComputePipelineCreateInfo *infos, const void *alloc, VcHandle *out) {
    DEVICE(CreateComputePipelines);
    PASS(CreateComputePipelines, (device, cache, count, infos, alloc, out));
    VcResult injected;
    if (sh_fault(d->driver, d, SH_FN_CreateComputePipelines, &injected)) {
        for (uint32_t i = 0; i < count; i++) out[i] = 0; // as Vulkan wants it of those that were not made
        return injected;
    }
    for (uint32_t i = 0; i < count; i++) check_shader(d, &infos[i].stage);
    VcResult r = d->real.CreateComputePipelines(device, cache, count, infos, alloc, out);
    sh_lock();
    for (uint32_t i = 0; i < count; i++)
        if (out[i]) born(d, SH_PIPELINE, out[i]);
    sh_unlock();
    return r;
}
DESTROY(DestroyPipeline, SH_PIPELINE)

CREATE(CreatePipelineCache, SH_PIPELINE_CACHE)
DESTROY(DestroyPipelineCache, SH_PIPELINE_CACHE)
PLAIN(GetPipelineCacheData, (VcObject device, VcHandle cache, size_t *size, void *data), (device, cache, size, data))
PLAIN(MergePipelineCaches, (VcObject device, VcHandle to, uint32_t count, const VcHandle *from), (device, to, count, from))

// --- descriptors ----------------------------------------------------------------------

static VcResult VC_CALL w_CreateDescriptorPool(VcObject device, const void *info, const void *alloc, VcHandle *out) {
    DEVICE(CreateDescriptorPool);
    PASS(CreateDescriptorPool, (device, info, alloc, out));
    INJECT(CreateDescriptorPool);
    VcResult r = d->real.CreateDescriptorPool(device, info, alloc, out);
    if (r < 0) return r;
    const VcDescriptorPoolCreateInfo *s = info;
    sh_lock();
    sh_object *o = born(d, SH_DESCRIPTOR_POOL, *out);
    o->pool.sets = s->maxSets;
    for (uint32_t i = 0; i < s->poolSizeCount; i++) {
        if (s->pPoolSizes[i].type == VC_DESCRIPTOR_TYPE_STORAGE_BUFFER) o->pool.storage += s->pPoolSizes[i].descriptorCount;
        if (s->pPoolSizes[i].type == VC_DESCRIPTOR_TYPE_STORAGE_BUFFER_DYNAMIC) o->pool.dynamic += s->pPoolSizes[i].descriptorCount;
    }
    sh_unlock();
    return r;
}
DESTROY(DestroyDescriptorPool, SH_DESCRIPTOR_POOL)

static void give_back(sh_object *set) { // with the lock held
    set->parent->pool.sets++;
    set->parent->pool.storage += set->layout.storage;
    set->parent->pool.dynamic += set->layout.dynamic;
}

static VcResult VC_CALL w_ResetDescriptorPool(VcObject device, VcHandle pool, uint32_t flags) {
    DEVICE(ResetDescriptorPool);
    PASS(ResetDescriptorPool, (device, pool, flags));
    INJECT(ResetDescriptorPool);
    sh_lock();
    sh_object *o = sh_find(SH_DESCRIPTOR_POOL, d, pool);
    while (o && o->children) {
        give_back(o->children);
        sh_died(d->driver, o->children);
    }
    sh_unlock();
    return d->real.ResetDescriptorPool(device, pool, flags);
}

// Drivers of CPU devices let a pool overflow; here it holds what was asked for.
static VcResult VC_CALL w_AllocateDescriptorSets(VcObject device, const VcDescriptorSetAllocateInfo *info, VcHandle *out) {
    DEVICE(AllocateDescriptorSets);
    PASS(AllocateDescriptorSets, (device, info, out));
    INJECT(AllocateDescriptorSets);
    uint32_t storage = 0, dynamic = 0;
    VcResult r = VC_SUCCESS;
    sh_lock();
    sh_object *pool = sh_find(SH_DESCRIPTOR_POOL, d, info->descriptorPool);
    for (uint32_t i = 0; i < info->descriptorSetCount; i++) {
        sh_object *layout = sh_find(SH_SET_LAYOUT, d, info->pSetLayouts[i]);
        if (!layout) {
            sh_violate(d->driver, "vkAllocateDescriptorSets: the layout of set %u is not alive", i);
            r = SH_ERROR_OUT_OF_POOL_MEMORY;
            break;
        }
        storage += layout->layout.storage;
        dynamic += layout->layout.dynamic;
    }
    if (!pool) {
        sh_violate(d->driver, "vkAllocateDescriptorSets: its pool is not alive");
        r = SH_ERROR_OUT_OF_POOL_MEMORY;
    } else if (r >= 0 && (pool->pool.sets < info->descriptorSetCount || pool->pool.storage < storage || pool->pool.dynamic < dynamic)) {
        sh_violate(d->driver, "vkAllocateDescriptorSets: %u sets of %u storage buffers and %u dynamic ones, the pool has left %u, %u and %u",
                   info->descriptorSetCount, storage, dynamic, pool->pool.sets, pool->pool.storage, pool->pool.dynamic);
        r = SH_ERROR_OUT_OF_POOL_MEMORY;
    }
    sh_unlock();
    if (r < 0) return r;
    if ((r = d->real.AllocateDescriptorSets(device, info, out)) < 0) return r;
    sh_lock(); // a pool belongs to one thread at a time: what was free above is free still
    pool->pool.sets -= info->descriptorSetCount;
    pool->pool.storage -= storage;
    pool->pool.dynamic -= dynamic;
    for (uint32_t i = 0; i < info->descriptorSetCount; i++) {
        sh_object *set = sh_born(d->driver, SH_DESCRIPTOR_SET, d, out[i], pool);
        set->layout = sh_find(SH_SET_LAYOUT, d, info->pSetLayouts[i])->layout;
    }
    sh_unlock();
    return r;
}

static VcResult VC_CALL w_FreeDescriptorSets(VcObject device, VcHandle pool, uint32_t count, const VcHandle *sets) {
    DEVICE(FreeDescriptorSets);
    PASS(FreeDescriptorSets, (device, pool, count, sets));
    INJECT(FreeDescriptorSets);
    VcHandle *alive = calloc((size_t)count + 1, sizeof *alive);
    if (!alive) return VC_ERROR_OUT_OF_HOST_MEMORY;
    uint32_t n = 0;
    sh_lock();
    for (uint32_t i = 0; i < count; i++) {
        if (!sets[i]) continue;
        sh_object *o = sh_find(SH_DESCRIPTOR_SET, d, sets[i]);
        if (!o || o->parent->handle != pool) {
            sh_violate(d->driver, "vkFreeDescriptorSets: set %#llx is not one of this pool's: freed twice, or of another", (unsigned long long)sets[i]);
            continue;
        }
        give_back(o);
        sh_died(d->driver, o);
        alive[n++] = sets[i];
    }
    sh_unlock();
    VcResult r = n ? d->real.FreeDescriptorSets(device, pool, n, alive) : VC_SUCCESS;
    free(alive);
    return r;
}

static void VC_CALL w_UpdateDescriptorSets(VcObject device, uint32_t count, const VcWriteDescriptorSet *writes, uint32_t copies, const void *copied) {
    DEVICE_VOID(UpdateDescriptorSets);
    PASS_VOID(UpdateDescriptorSets, (device, count, writes, copies, copied));
    const VcPhysicalDeviceLimits *l = &d->physical->limits;
    sh_lock();
    for (uint32_t i = 0; i < count; i++) {
        const VcWriteDescriptorSet *w = &writes[i];
        if (w->descriptorType != VC_DESCRIPTOR_TYPE_STORAGE_BUFFER && w->descriptorType != VC_DESCRIPTOR_TYPE_STORAGE_BUFFER_DYNAMIC) continue;
        for (uint32_t k = 0; k < w->descriptorCount; k++) {
            const VcDescriptorBufferInfo *b = &w->pBufferInfo[k];
            sh_object *o = sh_find(SH_BUFFER, d, b->buffer);
            if (!o) {
                sh_violate(d->driver, "vkUpdateDescriptorSets: the buffer of binding %u is not alive", w->dstBinding);
                continue;
            }
            const uint64_t range = b->range == ~(VcSize)0 ? o->size - b->offset : b->range;
            if (range > l->maxStorageBufferRange)
                sh_violate(d->driver, "vkUpdateDescriptorSets: %llu bytes in binding %u, the device allows %u", (unsigned long long)range, w->dstBinding, l->maxStorageBufferRange);
            if (b->offset % l->minStorageBufferOffsetAlignment)
                sh_violate(d->driver, "vkUpdateDescriptorSets: binding %u begins at %llu, the device wants multiples of %llu", w->dstBinding,
                           (unsigned long long)b->offset, (unsigned long long)l->minStorageBufferOffsetAlignment);
            if (!range || b->offset > o->size || range > o->size - b->offset)
                sh_violate(d->driver, "vkUpdateDescriptorSets: binding %u covers %llu bytes at %llu of a buffer of %llu", w->dstBinding, (unsigned long long)range,
                           (unsigned long long)b->offset, (unsigned long long)o->size);
        }
    }
    sh_unlock();
    d->real.UpdateDescriptorSets(device, count, writes, copies, copied);
}

// --- commands -------------------------------------------------------------------------

// Pools are known on devices that are only passed through too: a pool takes its command
// buffers with it, and the driver gives their handles out again, perhaps on a watched device.
static VcResult VC_CALL w_CreateCommandPool(VcObject device, const void *info, const void *alloc, VcHandle *out) {
    DEVICE(CreateCommandPool);
    if (d->driver) INJECT(CreateCommandPool);
    VcResult r = d->real.CreateCommandPool(device, info, alloc, out);
    if (r < 0) return r;
    sh_lock();
    born(d, SH_COMMAND_POOL, *out);
    sh_unlock();
    return r;
}

static void VC_CALL w_DestroyCommandPool(VcObject device, VcHandle handle, const void *alloc) {
    DEVICE_VOID(DestroyCommandPool);
    if (handle && !sh_kill(d, SH_COMMAND_POOL, handle, "vkDestroyCommandPool")) return;
    d->real.DestroyCommandPool(device, handle, alloc);
}

PLAIN(ResetCommandPool, (VcObject device, VcHandle pool, uint32_t flags), (device, pool, flags))

static VcResult VC_CALL w_AllocateCommandBuffers(VcObject device, const ShCommandBufferAllocateInfo *info, VcObject *out) {
    DEVICE(AllocateCommandBuffers);
    if (d->driver) INJECT(AllocateCommandBuffers);
    VcResult r = d->real.AllocateCommandBuffers(device, info, out);
    if (r < 0) return r;
    sh_lock();
    sh_object *pool = sh_find(SH_COMMAND_POOL, d, info->commandPool);
    for (uint32_t i = 0; i < info->commandBufferCount; i++)
        sh_born(d->driver, SH_COMMAND_BUFFER, NULL, (uintptr_t)out[i], pool ? pool : d->object)->owner = d;
    sh_unlock();
    return r;
}

static void VC_CALL w_FreeCommandBuffers(VcObject device, VcHandle pool, uint32_t count, const VcObject *list) {
    DEVICE_VOID(FreeCommandBuffers);
    sh_lock();
    for (uint32_t i = 0; i < count; i++) {
        if (!list[i]) continue;
        sh_object *o = sh_find(SH_COMMAND_BUFFER, NULL, (uintptr_t)list[i]);
        if (o) sh_died(d->driver, o);
        else sh_violate(d->driver, "vkFreeCommandBuffers: a command buffer that is not alive");
    }
    sh_unlock();
    d->real.FreeCommandBuffers(device, pool, count, list);
}

#define COMMANDS(fn, params, args)                              \
    static VcResult VC_CALL w_##fn params {                     \
        OWNER(fn, SH_COMMAND_BUFFER, commands);                 \
        PASS(fn, args);                                         \
        INJECT(fn);                                             \
        return d->real.fn args;                                 \
    }
COMMANDS(BeginCommandBuffer, (VcObject commands, const VcCommandBufferBeginInfo *info), (commands, info))
COMMANDS(ResetCommandBuffer, (VcObject commands, uint32_t flags), (commands, flags))

// A failure leaves the command buffer invalid, so the driver's own must not stay in the middle of recording.
static VcResult VC_CALL w_EndCommandBuffer(VcObject commands) {
    OWNER(EndCommandBuffer, SH_COMMAND_BUFFER, commands);
    PASS(EndCommandBuffer, (commands));
    VcResult injected;
    int fails = sh_fault(d->driver, d, SH_FN_EndCommandBuffer, &injected);
    VcResult r = d->real.EndCommandBuffer(commands);
    return fails ? injected : r;
}

static void VC_CALL w_CmdBindDescriptorSets(VcObject commands, int32_t point, VcHandle layout, uint32_t first, uint32_t count, const VcHandle *sets,
                                            uint32_t offset_count, const uint32_t *offsets) {
    COMMANDS_VOID(CmdBindDescriptorSets);
    PASS_VOID(CmdBindDescriptorSets, (commands, point, layout, first, count, sets, offset_count, offsets));
    const VcPhysicalDeviceLimits *l = &d->physical->limits;
    if (first + count > l->maxBoundDescriptorSets)
        sh_violation(d->driver, "vkCmdBindDescriptorSets: set %u, the device allows %u", first + count - 1, l->maxBoundDescriptorSets);
    for (uint32_t i = 0; i < offset_count; i++)
        if (offsets[i] % l->minStorageBufferOffsetAlignment)
            sh_violation(d->driver, "vkCmdBindDescriptorSets: dynamic offset %u, the device wants multiples of %llu", offsets[i],
                         (unsigned long long)l->minStorageBufferOffsetAlignment);
    sh_lock();
    for (uint32_t i = 0; i < count; i++)
        if (!sh_find(SH_DESCRIPTOR_SET, d, sets[i])) sh_violate(d->driver, "vkCmdBindDescriptorSets: set %u is not alive", first + i);
    sh_unlock();
    d->real.CmdBindDescriptorSets(commands, point, layout, first, count, sets, offset_count, offsets);
}

static void VC_CALL w_CmdPushConstants(VcObject commands, VcHandle layout, uint32_t stages, uint32_t offset, uint32_t size, const void *data) {
    COMMANDS_VOID(CmdPushConstants);
    PASS_VOID(CmdPushConstants, (commands, layout, stages, offset, size, data));
    const uint32_t most = d->physical->limits.maxPushConstantsSize;
    if (offset > most || size > most - offset) sh_violation(d->driver, "vkCmdPushConstants: %u bytes at %u, the device allows %u", size, offset, most);
    d->real.CmdPushConstants(commands, layout, stages, offset, size, data);
}

static void VC_CALL w_CmdDispatch(VcObject commands, uint32_t x, uint32_t y, uint32_t z) {
    COMMANDS_VOID(CmdDispatch);
    PASS_VOID(CmdDispatch, (commands, x, y, z));
    const uint32_t *most = d->physical->limits.maxComputeWorkGroupCount;
    if (x > most[0] || y > most[1] || z > most[2])
        sh_violation(d->driver, "vkCmdDispatch: %u, %u, %u workgroups, the device allows %u, %u, %u", x, y, z, most[0], most[1], most[2]);
    d->real.CmdDispatch(commands, x, y, z);
}

static void VC_CALL w_CmdWriteTimestamp(VcObject commands, uint32_t stage, VcHandle pool, uint32_t query) {
    COMMANDS_VOID(CmdWriteTimestamp);
    if (!d->timestamps) sh_violation(d->driver, "vkCmdWriteTimestamp: the queue has no timestamps");
    d->real.CmdWriteTimestamp(commands, stage, pool, query);
}

// --- synchronisation and queries ------------------------------------------------------

CREATE(CreateSemaphore, SH_SEMAPHORE)
DESTROY(DestroySemaphore, SH_SEMAPHORE)
PLAIN(GetSemaphoreCounterValue, (VcObject device, VcHandle semaphore, uint64_t *value), (device, semaphore, value))
PLAIN(WaitSemaphores, (VcObject device, const VcSemaphoreWaitInfo *info, uint64_t timeout), (device, info, timeout))
PLAIN(SignalSemaphore, (VcObject device, const void *info), (device, info))
CREATE(CreateFence, SH_FENCE)
DESTROY(DestroyFence, SH_FENCE)
PLAIN(ResetFences, (VcObject device, uint32_t count, const VcHandle *fences), (device, count, fences))
PLAIN(GetFenceStatus, (VcObject device, VcHandle fence), (device, fence))
PLAIN(WaitForFences, (VcObject device, uint32_t count, const VcHandle *fences, VcBool all, uint64_t timeout), (device, count, fences, all, timeout))
CREATE(CreateQueryPool, SH_QUERY_POOL)
DESTROY(DestroyQueryPool, SH_QUERY_POOL)
PLAIN(GetQueryPoolResults, (VcObject device, VcHandle pool, uint32_t first, uint32_t count, size_t size, void *data, VcSize stride, uint32_t flags),
      (device, pool, first, count, size, data, stride, flags))

// --- lookup ---------------------------------------------------------------------------

VcFunction sh_device_function(const char *name) {
    static const struct { const char *name; VcFunction f; } list[] = {
#define F(name, result, args) {#name, (VcFunction)w_##name},
        SH_DEVICE_FUNCTIONS(F)
#undef F
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (!strcmp(list[i].name, name)) return list[i].f;
    return NULL;
}

void sh_load_device(sh_device *d, sh_get_proc get) {
#define F(name, result, args) d->real.name = (void *)get(d->handle, "vk" #name);
    SH_DEVICE_FUNCTIONS(F)
#undef F
}
