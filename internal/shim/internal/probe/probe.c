#include "probe.h"

#include <stdlib.h>

typedef VcFunction(VC_CALL *get_proc)(VcObject, const char *);

static void *find(const probe *p, const char *name) {
    get_proc get = (get_proc)p->get, device = (get_proc)get(p->instance, "vkGetDeviceProcAddr");
    return (void *)device(p->device, name);
}

#define CREATE(name, info, out)                                                                                          \
    ((VcResult(VC_CALL *)(VcObject, const void *, const void *, uint64_t *))find(p, name))(p->device, info, NULL, out)

VcResult pr_allocate(const probe *p, uint64_t size, uint32_t type, uint64_t *out) {
    const VcMemoryAllocateInfo info = {.sType = VC_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .allocationSize = size, .memoryTypeIndex = type};
    return CREATE("vkAllocateMemory", &info, out);
}

VcResult pr_map(const probe *p, uint64_t memory, uint64_t offset, uint64_t size, void **out) {
    VcResult(VC_CALL * f)(VcObject, VcHandle, VcSize, VcSize, uint32_t, void **) = find(p, "vkMapMemory");
    return f(p->device, memory, offset, size, 0, out);
}

void pr_unmap(const probe *p, uint64_t memory) {
    void(VC_CALL * f)(VcObject, VcHandle) = find(p, "vkUnmapMemory");
    f(p->device, memory);
}

VcResult pr_move(const probe *p, const char *function, uint64_t memory, uint64_t offset, uint64_t size) {
    const VcMappedMemoryRange range = {.sType = VC_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE, .memory = memory, .offset = offset, .size = size};
    VcResult(VC_CALL * f)(VcObject, uint32_t, const VcMappedMemoryRange *) = find(p, function);
    return f(p->device, 1, &range);
}

void pr_destroy(const probe *p, const char *function, uint64_t handle) {
    void(VC_CALL * f)(VcObject, VcHandle, const void *) = find(p, function);
    f(p->device, handle, NULL);
}

VcResult pr_set_layout(const probe *p, uint32_t storage, uint32_t dynamic, uint64_t *out) {
    VcDescriptorSetLayoutBinding *list = calloc((size_t)storage + dynamic + 1, sizeof *list);
    for (uint32_t i = 0; i < storage + dynamic; i++)
        list[i] = (VcDescriptorSetLayoutBinding){
            .binding = i,
            .descriptorType = i < storage ? VC_DESCRIPTOR_TYPE_STORAGE_BUFFER : VC_DESCRIPTOR_TYPE_STORAGE_BUFFER_DYNAMIC,
            .descriptorCount = 1,
            .stageFlags = VC_SHADER_STAGE_COMPUTE_BIT,
        };
    const VcDescriptorSetLayoutCreateInfo info = {
        .sType = VC_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO, .bindingCount = storage + dynamic, .pBindings = list};
    VcResult r = CREATE("vkCreateDescriptorSetLayout", &info, out);
    free(list);
    return r;
}

VcResult pr_pipeline_layout(const probe *p, uint64_t set_layout, uint32_t push, uint64_t *out) {
    const VcPushConstantRange range = {.stageFlags = VC_SHADER_STAGE_COMPUTE_BIT, .size = push};
    const VcPipelineLayoutCreateInfo info = {
        .sType = VC_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO, .setLayoutCount = set_layout ? 1 : 0, .pSetLayouts = &set_layout,
        .pushConstantRangeCount = push ? 1 : 0, .pPushConstantRanges = &range};
    return CREATE("vkCreatePipelineLayout", &info, out);
}

VcResult pr_shader(const probe *p, const uint32_t *words, size_t count, uint64_t *out) {
    const VcShaderModuleCreateInfo info = {.sType = VC_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .codeSize = count * 4, .pCode = words};
    return CREATE("vkCreateShaderModule", &info, out);
}

VcResult pr_pipeline(const probe *p, uint64_t module, const char *entry, uint64_t layout, const uint32_t *spec, uint32_t spec_count, uint64_t *out) {
    VcSpecializationMapEntry entries[16];
    for (uint32_t i = 0; i < spec_count && i < 16; i++)
        entries[i] = (VcSpecializationMapEntry){.constantID = spec[2 * i], .offset = 8 * i + 4, .size = 4};
    const VcSpecializationInfo constants = {.mapEntryCount = spec_count, .pMapEntries = entries, .dataSize = 8 * (size_t)spec_count, .pData = spec};
    const VcComputePipelineCreateInfo info = {
        .sType = VC_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VC_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO, .stage = VC_SHADER_STAGE_COMPUTE_BIT, .module = module,
                  .pName = entry, .pSpecializationInfo = &constants},
        .layout = layout, .basePipelineIndex = -1};
    VcResult(VC_CALL * f)(VcObject, VcHandle, uint32_t, const VcComputePipelineCreateInfo *, const void *, VcHandle *) = find(p, "vkCreateComputePipelines");
    return f(p->device, 0, 1, &info, NULL, out);
}

VcResult pr_timestamp(const probe *p, uint64_t command_buffer, uint64_t *pool) {
    const struct { int32_t sType; const void *pNext; uint32_t flags, type, count, statistics; } info = {.sType = 11, .type = 2, .count = 1};
    VcResult r = CREATE("vkCreateQueryPool", &info, pool);
    if (r < 0) return r;
    const VcObject cb = (VcObject)(uintptr_t)command_buffer;
    const VcCommandBufferBeginInfo begin = {.sType = VC_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    if ((r = ((VcResult(VC_CALL *)(VcObject, const void *))find(p, "vkBeginCommandBuffer"))(cb, &begin)) < 0) return r;
    ((void(VC_CALL *)(VcObject, VcHandle, uint32_t, uint32_t))find(p, "vkCmdResetQueryPool"))(cb, *pool, 0, 1);
    ((void(VC_CALL *)(VcObject, uint32_t, VcHandle, uint32_t))find(p, "vkCmdWriteTimestamp"))(cb, VC_PIPELINE_STAGE_ALL_COMMANDS_BIT, *pool, 0);
    return ((VcResult(VC_CALL *)(VcObject))find(p, "vkEndCommandBuffer"))(cb);
}

VcResult pr_create_device(const probe *p, uint32_t feature, const char *extension) {
    get_proc get = (get_proc)p->get;
    VcResult(VC_CALL * list)(VcObject, uint32_t *, VcObject *) = (void *)get(p->instance, "vkEnumeratePhysicalDevices");
    VcObject physical;
    uint32_t one = 1;
    VcResult r = list(p->instance, &one, &physical);
    if (r < 0) return r;
    VcResult(VC_CALL * create)(VcObject, const VcDeviceCreateInfo *, const void *, VcObject *) = (void *)get(p->instance, "vkCreateDevice");
    const float priority = 1;
    const VcDeviceQueueCreateInfo queue = {.sType = VC_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, .queueCount = 1, .pQueuePriorities = &priority};
    VcPhysicalDeviceVulkan12Features f12 = {.sType = VC_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
    f12.features[VC_FEATURE12_TIMELINE_SEMAPHORE] = 1;
    if (feature < VC_FEATURE12_COUNT) f12.features[feature] = 1;
    const VcDeviceCreateInfo info = {
        .sType = VC_STRUCTURE_TYPE_DEVICE_CREATE_INFO, .pNext = &f12, .queueCreateInfoCount = 1, .pQueueCreateInfos = &queue,
        .enabledExtensionCount = extension ? 1 : 0, .ppEnabledExtensionNames = &extension};
    VcObject device;
    r = create(physical, &info, NULL, &device);
    if (r < 0) return r;
    get_proc from = (get_proc)get(p->instance, "vkGetDeviceProcAddr");
    ((void(VC_CALL *)(VcObject, const void *))from(device, "vkDestroyDevice"))(device, NULL);
    return r;
}
