#include "state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICE_LOCAL = 1, HOST_VISIBLE = 2, HOST_COHERENT = 4 };

#define LOWER(field, value)                                   \
    do {                                                      \
        if ((value) && (field) > (value)) (field) = (value);  \
    } while (0)
#define RAISE(field, value)                        \
    do {                                           \
        if ((field) < (value)) (field) = (value);  \
    } while (0)

void sh_present_limits(const sh_profile *p, VcPhysicalDeviceLimits *l) {
    LOWER(l->maxStorageBufferRange, p->max_storage_range);
    LOWER(l->maxPushConstantsSize, p->max_push);
    LOWER(l->maxMemoryAllocationCount, p->max_allocations);
    LOWER(l->maxPerStageDescriptorStorageBuffers, p->max_storage_per_stage);
    LOWER(l->maxDescriptorSetStorageBuffers, p->max_storage_per_set);
    LOWER(l->maxDescriptorSetStorageBuffersDynamic, p->max_dynamic);
    LOWER(l->maxPerStageResources, p->max_resources);
    LOWER(l->maxComputeSharedMemorySize, p->max_shared);
    LOWER(l->maxComputeWorkGroupInvocations, p->max_invocations);
    for (int i = 0; i < 3; i++) {
        LOWER(l->maxComputeWorkGroupCount[i], p->max_count[i]);
        LOWER(l->maxComputeWorkGroupSize[i], p->max_size[i]);
    }
    RAISE(l->minStorageBufferOffsetAlignment, p->alignment);
    RAISE(l->nonCoherentAtomSize, p->atom);
    if (p->flags & SH_HIDE_TIMESTAMPS) l->timestampComputeAndGraphics = 0;
}

// The driver's type that stands for a presented one: mappable and coherent if the host
// is to see it, since the shim's own copies are ordered by nothing else.
static uint32_t stand_in(const VcPhysicalDeviceMemoryProperties *real, uint32_t flags) {
    uint32_t best = 0;
    int score = -1;
    for (uint32_t i = 0; i < real->memoryTypeCount; i++) {
        const uint32_t f = real->memoryTypes[i].propertyFlags, known = 15;
        if (f & ~known) continue;
        if (flags & HOST_VISIBLE && (f & (HOST_VISIBLE | HOST_COHERENT)) != (HOST_VISIBLE | HOST_COHERENT)) continue;
        int s = 2 * ((f & DEVICE_LOCAL) == (flags & DEVICE_LOCAL)) + ((f & HOST_VISIBLE) == (flags & HOST_VISIBLE));
        if (s > score) {
            score = s;
            best = i;
        }
    }
    return best;
}

void sh_present(sh_physical *p) {
    const sh_instance_functions *real = &p->in->real;
    const sh_profile *profile = &p->in->driver->profile;
    VcPhysicalDeviceProperties base;
    memset(&base, 0, sizeof base);
    real->GetPhysicalDeviceProperties(p->handle, &base);
    p->limits = base.limits;
    sh_present_limits(profile, &p->limits);
    if ((base.apiVersion & 0x1fffffffu) >= (1u << 22 | 1u << 12) && real->GetPhysicalDeviceProperties2) {
        VcPhysicalDeviceVulkan11Properties v11 = {.sType = VC_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES};
        VcPhysicalDeviceProperties2 properties = {.sType = VC_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &v11};
        if ((base.apiVersion & 0x1fffffffu) >= (1u << 22 | 2u << 12)) real->GetPhysicalDeviceProperties2(p->handle, &properties);
        p->max_allocation_size = v11.maxMemoryAllocationSize;
    }
    if (profile->max_allocation_size && (!p->max_allocation_size || p->max_allocation_size > profile->max_allocation_size))
        p->max_allocation_size = profile->max_allocation_size;

    VcPhysicalDeviceMemoryProperties memory;
    memset(&memory, 0, sizeof memory);
    real->GetPhysicalDeviceMemoryProperties(p->handle, &memory);
    p->memory = memory;
    for (uint32_t i = 0; i < SH_MAX_TYPES; i++) p->map[i] = i;
    if (!profile->type_count) return;
    p->remapped = 1;
    p->memory.memoryTypeCount = profile->type_count;
    p->memory.memoryHeapCount = profile->heap_count;
    memcpy(p->memory.memoryTypes, profile->types, sizeof profile->types);
    memcpy(p->memory.memoryHeaps, profile->heaps, sizeof profile->heaps);
    for (uint32_t i = 0; i < profile->type_count; i++) {
        p->map[i] = stand_in(&memory, profile->types[i].propertyFlags);
        VcMemoryHeap *heap = &p->memory.memoryHeaps[profile->types[i].heapIndex];
        LOWER(heap->size, memory.memoryHeaps[memory.memoryTypes[p->map[i]].heapIndex].size);
    }
}

// --- features -------------------------------------------------------------------------

// What Vulkan obliges every device to, of the features the library looks at.
static int obligatory10(int i) { return i == VC_FEATURE_ROBUST_BUFFER_ACCESS; }
static int obligatory12(int i) { return i == VC_FEATURE12_TIMELINE_SEMAPHORE; }
static int obligatory11(int i) { (void)i; return 0; }

static int each_feature(void *chain, int (*visit)(VcBool *features, int count, int (*obligatory)(int))) {
    for (VcChain *c = chain; c; c = (VcChain *)c->pNext) {
        int ok = 1;
        switch (c->sType) {
        case VC_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2:
            ok = visit(((VcPhysicalDeviceFeatures2 *)c)->features, VC_FEATURE_COUNT, obligatory10);
            break;
        case VC_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES:
            ok = visit(((VcPhysicalDeviceVulkan11Features *)c)->features, VC_FEATURE11_COUNT, obligatory11);
            break;
        case VC_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES:
            ok = visit(((VcPhysicalDeviceVulkan12Features *)c)->features, VC_FEATURE12_COUNT, obligatory12);
            break;
        case VC_STRUCTURE_TYPE_PHYSICAL_DEVICE_ROBUSTNESS_2_FEATURES_EXT:
            ok = visit(&((VcPhysicalDeviceRobustness2Features *)c)->robustBufferAccess2, 3, obligatory11);
            break;
        }
        if (!ok) return 0;
    }
    return 1;
}

static int hide(VcBool *features, int count, int (*obligatory)(int)) {
    for (int i = 0; i < count; i++)
        if (!obligatory(i)) features[i] = 0;
    return 1;
}

static int check(VcBool *features, int count, int (*obligatory)(int)) {
    for (int i = 0; i < count; i++)
        if (features[i] && !obligatory(i)) return 0;
    return 1;
}

void sh_hide_features(const sh_profile *p, void *chain) {
    if (p->flags & SH_HIDE_FEATURES) each_feature(chain, hide);
}

VcResult sh_check_features(const sh_profile *p, const VcDeviceCreateInfo *info) {
    if (!(p->flags & SH_HIDE_FEATURES)) return VC_SUCCESS;
    if (!each_feature((void *)info->pNext, check)) return SH_ERROR_FEATURE_NOT_PRESENT;
    if (info->pEnabledFeatures && !check((VcBool *)info->pEnabledFeatures, VC_FEATURE_COUNT, obligatory10)) return SH_ERROR_FEATURE_NOT_PRESENT;
    return VC_SUCCESS;
}
