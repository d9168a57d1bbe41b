#include "abi.h"

#include <stdlib.h>

VcResult vc_name(vc_device *d, int32_t type, uint64_t handle, const char *name) {
    if (!d->SetDebugUtilsObjectName) return VC_SUCCESS;
    const VcDebugUtilsObjectNameInfo info = {
        .sType = VC_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT, .objectType = type, .objectHandle = handle, .pObjectName = name};
    return d->SetDebugUtilsObjectName(d->handle, &info);
}

VcResult vc_memory_alloc(vc_device *d, uint64_t size, uint32_t type, uint32_t address, uint64_t *out) {
    const VcMemoryAllocateFlagsInfo flags = {
        .sType = VC_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO, .flags = VC_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
    const VcMemoryAllocateInfo info = {
        .sType = VC_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .pNext = address ? &flags : NULL, .allocationSize = size, .memoryTypeIndex = type};
    return d->call.AllocateMemory(d->handle, &info, NULL, out);
}

uint64_t vc_buffer_address(vc_device *d, uint64_t buffer) {
    const VcBufferDeviceAddressInfo info = {.sType = VC_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO, .buffer = buffer};
    return d->call.GetBufferDeviceAddress(d->handle, &info);
}

VcResult vc_shader_module(vc_device *d, const uint32_t *words, size_t count, uint64_t *out) {
    const VcShaderModuleCreateInfo info = {.sType = VC_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .codeSize = count * 4, .pCode = words};
    return d->call.CreateShaderModule(d->handle, &info, NULL, out);
}

VcResult vc_set_layout(vc_device *d, const uint32_t *numbers, const uint32_t *kinds, uint32_t count, uint64_t *out) {
    VcDescriptorSetLayoutBinding bindings[VC_MAX_BINDINGS];
    if (count > VC_MAX_BINDINGS) return VC_BAD_ARGUMENT;
    for (uint32_t i = 0; i < count; i++)
        bindings[i] = (VcDescriptorSetLayoutBinding){
            .binding = numbers[i], .descriptorType = kinds[i], .descriptorCount = 1, .stageFlags = VC_SHADER_STAGE_COMPUTE_BIT};
    const VcDescriptorSetLayoutCreateInfo info = {
        .sType = VC_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO, .bindingCount = count, .pBindings = bindings};
    return d->call.CreateDescriptorSetLayout(d->handle, &info, NULL, out);
}

VcResult vc_pipeline_layout(vc_device *d, uint64_t set_layout, uint32_t push_size, uint64_t *out) {
    const VcPushConstantRange range = {.stageFlags = VC_SHADER_STAGE_COMPUTE_BIT, .size = push_size};
    const VcPipelineLayoutCreateInfo info = {
        .sType = VC_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
        .setLayoutCount = 1,
        .pSetLayouts = &set_layout,
        .pushConstantRangeCount = push_size ? 1 : 0,
        .pPushConstantRanges = &range,
    };
    return d->call.CreatePipelineLayout(d->handle, &info, NULL, out);
}

VcResult vc_pipeline_cache(vc_device *d, const void *data, size_t size, uint64_t *out) {
    const VcPipelineCacheCreateInfo info = {
        .sType = VC_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO, .initialDataSize = size, .pInitialData = data};
    return d->call.CreatePipelineCache(d->handle, &info, NULL, out);
}

VcResult vc_compute_pipeline(vc_device *d, uint64_t cache, uint64_t module, const char *entry, uint64_t layout, const uint32_t *spec,
                             uint32_t spec_count, uint32_t *cached, uint64_t *out) {
    VcSpecializationMapEntry entries[VC_MAX_BINDINGS];
    if (spec_count > VC_MAX_BINDINGS) return VC_BAD_ARGUMENT;
    for (uint32_t i = 0; i < spec_count; i++)
        entries[i] = (VcSpecializationMapEntry){.constantID = spec[2 * i], .offset = (2 * i + 1) * 4, .size = 4};
    const VcSpecializationInfo constants = {
        .mapEntryCount = spec_count, .pMapEntries = entries, .dataSize = (size_t)spec_count * 8, .pData = spec};
    VcPipelineCreationFeedback whole = {0}, stage = {0}; // there must be one for each stage
    const VcPipelineCreationFeedbackCreateInfo feedback = {
        .sType = VC_STRUCTURE_TYPE_PIPELINE_CREATION_FEEDBACK_CREATE_INFO_EXT,
        .pPipelineCreationFeedback = &whole,
        .pipelineStageCreationFeedbackCount = 1,
        .pPipelineStageCreationFeedbacks = &stage,
    };
    const VcComputePipelineCreateInfo info = {
        .sType = VC_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .pNext = cached ? &feedback : NULL,
        .stage = {.sType = VC_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .stage = VC_SHADER_STAGE_COMPUTE_BIT,
                  .module = module,
                  .pName = entry,
                  .pSpecializationInfo = spec_count ? &constants : NULL},
        .layout = layout,
        .basePipelineIndex = -1,
    };
    VcResult r = d->call.CreateComputePipelines(d->handle, cache, 1, &info, NULL, out);
    if (cached) {
        const uint32_t hit = VC_PIPELINE_CREATION_FEEDBACK_APPLICATION_PIPELINE_CACHE_HIT_BIT_EXT;
        const int said = (whole.flags & VC_PIPELINE_CREATION_FEEDBACK_VALID_BIT_EXT) != 0;
        *cached = !said ? VC_CACHE_UNKNOWN : whole.flags & hit ? VC_CACHE_HIT : VC_CACHE_MISS;
    }
    return r;
}

VcResult vc_timeline(vc_device *d, uint64_t initial, uint64_t *out) {
    const VcSemaphoreTypeCreateInfo type = {
        .sType = VC_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO, .semaphoreType = VC_SEMAPHORE_TYPE_TIMELINE, .initialValue = initial};
    const VcSemaphoreCreateInfo info = {.sType = VC_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type};
    return d->call.CreateSemaphore(d->handle, &info, NULL, out);
}

VcResult vc_timeline_value(vc_device *d, uint64_t semaphore, uint64_t *out) {
    return d->call.GetSemaphoreCounterValue(d->handle, semaphore, out);
}

VcResult vc_timeline_wait(vc_device *d, uint64_t semaphore, uint64_t value, uint64_t timeout_ns) {
    const VcSemaphoreWaitInfo info = {
        .sType = VC_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO, .semaphoreCount = 1, .pSemaphores = &semaphore, .pValues = &value};
    return d->call.WaitSemaphores(d->handle, &info, timeout_ns);
}

VcResult vc_query_results(vc_device *d, uint64_t pool, uint32_t first, uint32_t count, uint64_t *out) {
    const uint32_t result_64 = 1;
    return d->call.GetQueryPoolResults(d->handle, pool, first, count, (size_t)count * 8, out, 8, result_64);
}

VcResult vc_descriptor_pool(vc_device *d, uint32_t sets, uint32_t storage, uint32_t dynamic, uint32_t flags, uint64_t *out) {
    VcDescriptorPoolSize sizes[2];
    uint32_t n = 0;
    if (storage) sizes[n++] = (VcDescriptorPoolSize){VC_DESCRIPTOR_TYPE_STORAGE_BUFFER, storage};
    if (dynamic) sizes[n++] = (VcDescriptorPoolSize){VC_DESCRIPTOR_TYPE_STORAGE_BUFFER_DYNAMIC, dynamic};
    const VcDescriptorPoolCreateInfo info = {
        .sType = VC_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO, .flags = flags, .maxSets = sets, .poolSizeCount = n, .pPoolSizes = sizes};
    return d->call.CreateDescriptorPool(d->handle, &info, NULL, out);
}

VcResult vc_descriptor_sets(vc_device *d, uint64_t pool, const uint64_t *program, size_t words, uint64_t *out, uint32_t capacity,
                            uint32_t *made) {
    VcWriteDescriptorSet writes[VC_MAX_BINDINGS];
    VcDescriptorBufferInfo buffers[VC_MAX_BINDINGS];
    size_t at = 0;
    for (*made = 0; at < words; ++*made) {
        if (words - at < 2 || *made == capacity) return VC_BAD_STREAM;
        const uint64_t layout = program[at], count = program[at + 1];
        at += 2;
        if (count > VC_MAX_BINDINGS || (words - at) / 4 < count) return VC_BAD_STREAM;
        const VcDescriptorSetAllocateInfo info = {
            .sType = VC_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO, .descriptorPool = pool, .descriptorSetCount = 1, .pSetLayouts = &layout};
        VcHandle set;
        VcResult r = d->call.AllocateDescriptorSets(d->handle, &info, &set);
        if (r < 0) return r;
        out[*made] = set;
        for (uint32_t i = 0; i < count; i++, at += 4) {
            buffers[i] = (VcDescriptorBufferInfo){program[at + 1], program[at + 2], program[at + 3]};
            writes[i] = (VcWriteDescriptorSet){
                .sType = VC_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                .dstSet = set,
                .dstBinding = (uint32_t)program[at],
                .descriptorCount = 1,
                .descriptorType = (uint32_t)(program[at] >> 32),
                .pBufferInfo = &buffers[i],
            };
        }
        d->call.UpdateDescriptorSets(d->handle, (uint32_t)count, writes, 0, NULL);
    }
    return VC_SUCCESS;
}

VcResult vc_descriptor_sets_free(vc_device *d, uint64_t pool, const uint64_t *sets, uint32_t count) {
    return d->call.FreeDescriptorSets(d->handle, pool, count, sets);
}
