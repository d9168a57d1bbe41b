#include "floor.h"

#include <stdlib.h>
#include <string.h>

#define CF_FUNCTIONS(F)                                                                                                 \
    F(AllocateDescriptorSets, VcResult, (VcObject, const VcDescriptorSetAllocateInfo *, VcHandle *))                     \
    F(AllocateMemory, VcResult, (VcObject, const VcMemoryAllocateInfo *, const void *, VcHandle *))                      \
    F(BeginCommandBuffer, VcResult, (VcObject, const VcCommandBufferBeginInfo *))                                        \
    F(BindBufferMemory, VcResult, (VcObject, VcHandle, VcHandle, VcSize))                                               \
    F(CmdBindDescriptorSets, void,                                                                                      \
      (VcObject, int32_t, VcHandle, uint32_t, uint32_t, const VcHandle *, uint32_t, const uint32_t *))                   \
    F(CmdBindPipeline, void, (VcObject, int32_t, VcHandle))                                                             \
    F(CmdDispatch, void, (VcObject, uint32_t, uint32_t, uint32_t))                                                      \
    F(CmdPipelineBarrier, void,                                                                                         \
      (VcObject, uint32_t, uint32_t, uint32_t, uint32_t, const VcMemoryBarrier *, uint32_t, const void *, uint32_t,      \
       const void *))                                                                                                   \
    F(CreateBuffer, VcResult, (VcObject, const VcBufferCreateInfo *, const void *, VcHandle *))                          \
    F(CreateDescriptorPool, VcResult, (VcObject, const VcDescriptorPoolCreateInfo *, const void *, VcHandle *))          \
    F(CreateSemaphore, VcResult, (VcObject, const VcSemaphoreCreateInfo *, const void *, VcHandle *))                    \
    F(DestroyBuffer, void, (VcObject, VcHandle, const void *))                                                          \
    F(DestroyDescriptorPool, void, (VcObject, VcHandle, const void *))                                                  \
    F(DestroySemaphore, void, (VcObject, VcHandle, const void *))                                                       \
    F(EndCommandBuffer, VcResult, (VcObject))                                                                           \
    F(FlushMappedMemoryRanges, VcResult, (VcObject, uint32_t, const VcMappedMemoryRange *))                              \
    F(FreeDescriptorSets, VcResult, (VcObject, VcHandle, uint32_t, const VcHandle *))                                    \
    F(FreeMemory, void, (VcObject, VcHandle, const void *))                                                             \
    F(GetBufferMemoryRequirements, void, (VcObject, VcHandle, VcMemoryRequirements *))                                   \
    F(MapMemory, VcResult, (VcObject, VcHandle, VcSize, VcSize, uint32_t, void **))                                      \
    F(QueueSubmit, VcResult, (VcObject, uint32_t, const VcSubmitInfo *, VcHandle))                                       \
    F(UpdateDescriptorSets, void, (VcObject, uint32_t, const VcWriteDescriptorSet *, uint32_t, const void *))            \
    F(WaitSemaphores, VcResult, (VcObject, const VcSemaphoreWaitInfo *, uint64_t))

typedef struct { uint64_t binding, buffer, offset, range; } tensor;

struct cf_floor {
    cf_spec s;
    tensor *tensors;
    uint64_t *infos;
    VcHandle semaphore, pool;
    uint64_t value;
    VcHandle arena, arena_memory; // infos: a slot for each step, then one for each launch
    char *mapped;                 // the arena
    VcHandle *sets;               // of the steps, then of the launches
    VcHandle *buffers, *memory;   // fresh ones, by launch
    uint32_t made_sets, made_buffers; // by the launches of the shot under way
    uint32_t dispatches, barriers;
    int stuck;
#define F(name, result, args) result(VC_CALL *name) args;
    CF_FUNCTIONS(F)
#undef F
};

static VcObject object(uint64_t handle) { return (VcObject)(uintptr_t)handle; }

#define DEVICE(f) object((f)->s.device)

// Evaluates to the result of a call and notes its name when it fails.
#define TRY(f, what, call, ...)                             \
    do {                                                    \
        VcResult r_ = (f)->call(__VA_ARGS__);               \
        if (r_ < 0) {                                       \
            *(what) = "vk" #call;                           \
            return r_;                                      \
        }                                                   \
    } while (0)

static void barrier(cf_floor *f, VcObject cb, const cf_barrier *b) {
    if (!b->src_stages) return;
    const VcMemoryBarrier m = {.sType = VC_STRUCTURE_TYPE_MEMORY_BARRIER, .srcAccessMask = b->src_access, .dstAccessMask = b->dst_access};
    f->CmdPipelineBarrier(cb, b->src_stages, b->dst_stages, 0, 1, &m, 0, NULL, 0, NULL);
    f->barriers++;
}

static VcResult begin(cf_floor *f, VcObject cb, uint32_t flags, const char **what) {
    const VcCommandBufferBeginInfo info = {.sType = VC_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, .flags = flags};
    f->dispatches = f->barriers = 0;
    TRY(f, what, BeginCommandBuffer, cb, &info);
    barrier(f, cb, &f->s.begin);
    return VC_SUCCESS;
}

static void launch(cf_floor *f, VcObject cb, uint32_t i, VcHandle set, uint32_t offset) {
    if (i) barrier(f, cb, &f->s.between);
    if (i == 0 || f->s.bind_each) f->CmdBindPipeline(cb, VC_PIPELINE_BIND_POINT_COMPUTE, f->s.pipeline);
    if (f->s.has_set) f->CmdBindDescriptorSets(cb, VC_PIPELINE_BIND_POINT_COMPUTE, f->s.layout, 0, 1, &set, 1, &offset);
    f->CmdDispatch(cb, f->s.groups[0], f->s.groups[1], f->s.groups[2]);
    f->dispatches++;
}

static VcResult end(cf_floor *f, VcObject cb, const char **what) {
    barrier(f, cb, &f->s.end);
    TRY(f, what, EndCommandBuffer, cb);
    return VC_SUCCESS;
}

static VcResult submit_and_wait(cf_floor *f, VcObject cb, const char **what) {
    const uint64_t value = f->value + 1;
    const VcTimelineSemaphoreSubmitInfo timeline = {
        .sType = VC_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO, .signalSemaphoreValueCount = 1, .pSignalSemaphoreValues = &value};
    const VcSubmitInfo info = {.sType = VC_STRUCTURE_TYPE_SUBMIT_INFO,
                               .pNext = &timeline,
                               .commandBufferCount = 1,
                               .pCommandBuffers = &cb,
                               .signalSemaphoreCount = 1,
                               .pSignalSemaphores = &f->semaphore};
    TRY(f, what, QueueSubmit, object(f->s.queue), 1, &info, 0);
    f->value = value;
    const VcSemaphoreWaitInfo wait = {
        .sType = VC_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO, .semaphoreCount = 1, .pSemaphores = &f->semaphore, .pValues = &value};
    const uint64_t patience = 20ull * 1000 * 1000 * 1000;
    VcResult r = f->WaitSemaphores(DEVICE(f), &wait, patience);
    if (r == VC_SUCCESS) return r;
    // Nothing may be freed that the device might still read; a lost one reads no more.
    f->stuck = r != VC_ERROR_DEVICE_LOST;
    *what = "vkWaitSemaphores";
    return r < 0 ? r : CF_STUCK;
}

static void write_info(cf_floor *f, void *to, uint32_t step) {
    memcpy(to, f->infos + (size_t)step * f->s.info_words, (size_t)f->s.info_words * 8);
}

// Allocates and writes the set of a step with its info in buffer.
static VcResult make_set(cf_floor *f, uint32_t step, VcHandle info_buffer, uint64_t info_range, VcHandle *out, const char **what) {
    const VcDescriptorSetAllocateInfo info = {.sType = VC_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                              .descriptorPool = f->pool,
                                              .descriptorSetCount = 1,
                                              .pSetLayouts = &f->s.set_layout};
    TRY(f, what, AllocateDescriptorSets, DEVICE(f), &info, out);
    VcDescriptorBufferInfo buffers[CF_MAX_TENSORS + 1];
    VcWriteDescriptorSet writes[CF_MAX_TENSORS + 1];
    buffers[0] = (VcDescriptorBufferInfo){info_buffer, 0, info_range};
    writes[0] = (VcWriteDescriptorSet){.sType = VC_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                       .dstSet = *out,
                                       .descriptorCount = 1,
                                       .descriptorType = VC_DESCRIPTOR_TYPE_STORAGE_BUFFER_DYNAMIC,
                                       .pBufferInfo = &buffers[0]};
    for (uint32_t i = 0; i < f->s.tensors; i++) {
        const tensor *t = &f->tensors[(size_t)step * f->s.tensors + i];
        buffers[i + 1] = (VcDescriptorBufferInfo){t->buffer, t->offset, t->range};
        writes[i + 1] = (VcWriteDescriptorSet){.sType = VC_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                               .dstSet = *out,
                                               .dstBinding = (uint32_t)t->binding,
                                               .descriptorCount = 1,
                                               .descriptorType = VC_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                               .pBufferInfo = &buffers[i + 1]};
    }
    f->UpdateDescriptorSets(DEVICE(f), f->s.tensors + 1, writes, 0, NULL);
    return VC_SUCCESS;
}

// A mapped buffer with memory of its own. What was made before a failure is left in *buffer and *memory.
static VcResult make_buffer(cf_floor *f, VcSize size, VcHandle *buffer, VcHandle *memory, void **mapped, const char **what) {
    const VcBufferCreateInfo info = {.sType = CF_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = size, .usage = CF_USAGE_STORAGE_BUFFER};
    TRY(f, what, CreateBuffer, DEVICE(f), &info, NULL, buffer);
    VcMemoryRequirements need;
    f->GetBufferMemoryRequirements(DEVICE(f), *buffer, &need);
    const VcMemoryAllocateInfo allocate = {
        .sType = VC_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .allocationSize = need.size, .memoryTypeIndex = f->s.memory_type};
    TRY(f, what, AllocateMemory, DEVICE(f), &allocate, NULL, memory);
    TRY(f, what, BindBufferMemory, DEVICE(f), *buffer, *memory, 0);
    TRY(f, what, MapMemory, DEVICE(f), *memory, 0, ~(VcSize)0, 0, mapped);
    return VC_SUCCESS;
}

static VcResult flush(cf_floor *f, VcHandle memory, VcSize offset, VcSize size, const char **what) {
    if (f->s.coherent) return VC_SUCCESS;
    const VcMappedMemoryRange range = {
        .sType = VC_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE, .memory = memory, .offset = offset, .size = size};
    TRY(f, what, FlushMappedMemoryRanges, DEVICE(f), 1, &range);
    return VC_SUCCESS;
}

// A buffer for the info of launch i alone.
static VcResult fresh_buffer(cf_floor *f, uint32_t i, uint32_t step, const char **what) {
    void *mapped;
    f->buffers[i] = f->memory[i] = 0;
    f->made_buffers = i + 1;
    VcResult r = make_buffer(f, (VcSize)f->s.info_words * 8, &f->buffers[i], &f->memory[i], &mapped, what);
    if (r < 0) return r;
    write_info(f, mapped, step);
    return flush(f, f->memory[i], 0, ~(VcSize)0, what);
}

static VcResult record_prebuilt(cf_floor *f, VcObject cb, uint32_t flags, const char **what) {
    VcResult r = begin(f, cb, flags, what);
    if (r < 0) return r;
    for (uint32_t i = 0; i < f->s.launches; i++) {
        const uint32_t step = i % f->s.steps;
        launch(f, cb, i, f->sets[step], step * f->s.slot);
    }
    return end(f, cb, what);
}

static VcResult record_rebuilt(cf_floor *f, VcObject cb, cf_mode mode, const char **what) {
    const uint32_t one_time = 1;
    VcResult r = begin(f, cb, one_time, what);
    if (r < 0) return r;
    VcHandle *sets = f->sets + f->s.steps;
    for (uint32_t i = 0; i < f->s.launches; i++) {
        const uint32_t step = i % f->s.steps;
        uint32_t offset = 0;
        if (f->s.has_set) {
            VcHandle buffer = f->arena;
            uint64_t range = f->s.info_range;
            if (mode == CF_REBUILD) {
                offset = (f->s.steps + i) * f->s.slot;
                write_info(f, f->mapped + offset, step);
            } else {
                if ((r = fresh_buffer(f, i, step, what)) < 0) break;
                buffer = f->buffers[i];
                range = (uint64_t)f->s.info_words * 8;
            }
            if ((r = make_set(f, step, buffer, range, &sets[i], what)) < 0) break;
            f->made_sets = i + 1;
        }
        launch(f, cb, i, sets[i], offset);
    }
    if (r >= 0 && f->s.has_set && mode == CF_REBUILD)
        r = flush(f, f->arena_memory, (VcSize)f->s.steps * f->s.slot, (VcSize)f->s.launches * f->s.slot, what);
    if (r < 0) {
        f->EndCommandBuffer(cb); // what it holds is never submitted
        return r;
    }
    return end(f, cb, what);
}

// Frees what the launches of a shot made.
static void release(cf_floor *f) {
    if (f->made_sets) f->FreeDescriptorSets(DEVICE(f), f->pool, f->made_sets, f->sets + f->s.steps);
    for (uint32_t i = 0; i < f->made_buffers; i++) {
        f->DestroyBuffer(DEVICE(f), f->buffers[i], NULL);
        f->FreeMemory(DEVICE(f), f->memory[i], NULL);
    }
    f->made_sets = f->made_buffers = 0;
}

static VcResult shot(cf_floor *f, cf_mode mode, const char **what) {
    const VcObject cb = object(f->s.command_buffer);
    VcResult r;
    switch (mode) {
    case CF_REBUILD:
    case CF_REBUILD_BUFFER:
        r = record_rebuilt(f, cb, mode, what);
        if (r >= 0) r = submit_and_wait(f, cb, what);
        if (!f->stuck) release(f);
        return r;
    case CF_CACHED:
        r = record_prebuilt(f, cb, 1, what);
        return r < 0 ? r : submit_and_wait(f, cb, what);
    case CF_REPLAY: return submit_and_wait(f, object(f->s.replay_buffer), what);
    case CF_EMPTY: return submit_and_wait(f, object(f->s.empty_buffer), what);
    }
    *what = "an unknown mode";
    return VC_ERROR_INITIALIZATION_FAILED;
}

VcResult cf_run(cf_floor *f, cf_mode mode, uint32_t shots, const char **what) {
    if (f->stuck) {
        *what = "an earlier wait";
        return CF_STUCK;
    }
    for (uint32_t i = 0; i < shots; i++) {
        VcResult r = shot(f, mode, what);
        if (r < 0) return r;
    }
    return VC_SUCCESS;
}

void cf_recorded(const cf_floor *f, uint32_t *dispatches, uint32_t *barriers) {
    *dispatches = f->dispatches;
    *barriers = f->barriers;
}

typedef VcFunction(VC_CALL *get_proc)(VcObject, const char *);

static VcResult load(cf_floor *f, void *get_instance_proc_addr, uint64_t instance, const char **what) {
    const get_proc instance_function = (get_proc)get_instance_proc_addr;
    const get_proc device_function = (get_proc)instance_function(object(instance), "vkGetDeviceProcAddr");
    *what = "vkGetDeviceProcAddr";
    if (!device_function) return VC_ERROR_INITIALIZATION_FAILED;
#define F(name, result, args)                                          \
    f->name = (void *)device_function(DEVICE(f), "vk" #name);          \
    if (!f->name) {                                                    \
        *what = "vk" #name;                                            \
        return VC_ERROR_INITIALIZATION_FAILED;                         \
    }
    CF_FUNCTIONS(F)
#undef F
    return VC_SUCCESS;
}

static VcResult set_up(cf_floor *f, const char **what) {
    const uint32_t simultaneous = 4;
    const VcSemaphoreTypeCreateInfo type = {.sType = VC_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO, .semaphoreType = VC_SEMAPHORE_TYPE_TIMELINE};
    const VcSemaphoreCreateInfo semaphore = {.sType = VC_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type};
    TRY(f, what, CreateSemaphore, DEVICE(f), &semaphore, NULL, &f->semaphore);
    if (f->s.has_set) {
        const uint32_t sets = f->s.steps + f->s.launches;
        const VcDescriptorPoolSize sizes[2] = {{VC_DESCRIPTOR_TYPE_STORAGE_BUFFER_DYNAMIC, sets},
                                               {VC_DESCRIPTOR_TYPE_STORAGE_BUFFER, sets * f->s.tensors}};
        const uint32_t free_singly = 1;
        const VcDescriptorPoolCreateInfo pool = {.sType = VC_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                                 .flags = free_singly,
                                                 .maxSets = sets,
                                                 .poolSizeCount = f->s.tensors ? 2 : 1,
                                                 .pPoolSizes = sizes};
        TRY(f, what, CreateDescriptorPool, DEVICE(f), &pool, NULL, &f->pool);
        // The last slot's binding covers info_range from its start too.
        void *mapped;
        VcResult r = make_buffer(f, (VcSize)sets * f->s.slot + f->s.info_range, &f->arena, &f->arena_memory, &mapped, what);
        if (r < 0) return r;
        f->mapped = mapped;
        for (uint32_t i = 0; i < f->s.steps; i++) {
            write_info(f, f->mapped + (size_t)i * f->s.slot, i);
            if ((r = make_set(f, i, f->arena, f->s.info_range, &f->sets[i], what)) < 0) return r;
        }
        if ((r = flush(f, f->arena_memory, 0, (VcSize)f->s.steps * f->s.slot, what)) < 0) return r;
    }
    const VcCommandBufferBeginInfo nothing = {.sType = VC_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, .flags = simultaneous};
    TRY(f, what, BeginCommandBuffer, object(f->s.empty_buffer), &nothing);
    TRY(f, what, EndCommandBuffer, object(f->s.empty_buffer));
    return record_prebuilt(f, object(f->s.replay_buffer), simultaneous, what);
}

VcResult cf_new(void *get_instance_proc_addr, uint64_t instance, const cf_spec *spec, const uint64_t *tensors, const uint64_t *infos,
                cf_floor **out, const char **what) {
    *out = NULL;
    *what = "allocating host memory";
    cf_floor *f = calloc(1, sizeof *f);
    if (!f) return CF_OUT_OF_MEMORY;
    f->s = *spec;
    const size_t cells = (size_t)spec->steps * spec->tensors, words = (size_t)spec->steps * spec->info_words;
    f->tensors = calloc(cells + 1, sizeof *f->tensors);
    f->infos = calloc(words + 1, sizeof *f->infos);
    f->sets = calloc((size_t)spec->steps + spec->launches, sizeof *f->sets);
    f->buffers = calloc(spec->launches, sizeof *f->buffers);
    f->memory = calloc(spec->launches, sizeof *f->memory);
    VcResult r = CF_OUT_OF_MEMORY;
    if (f->tensors && f->infos && f->sets && f->buffers && f->memory) {
        if (cells) memcpy(f->tensors, tensors, cells * sizeof *f->tensors);
        if (words) memcpy(f->infos, infos, words * sizeof *f->infos);
        r = load(f, get_instance_proc_addr, instance, what);
        if (r >= 0) r = set_up(f, what);
    }
    if (r < 0) {
        cf_free(f);
        return r;
    }
    *out = f;
    return VC_SUCCESS;
}

int cf_free(cf_floor *f) {
    const int finished = !f->stuck;
    if (finished) {
        if (f->pool) f->DestroyDescriptorPool(DEVICE(f), f->pool, NULL);
        if (f->arena) f->DestroyBuffer(DEVICE(f), f->arena, NULL);
        if (f->arena_memory) f->FreeMemory(DEVICE(f), f->arena_memory, NULL);
        if (f->semaphore) f->DestroySemaphore(DEVICE(f), f->semaphore, NULL);
    }
    free(f->tensors);
    free(f->infos);
    free(f->sets);
    free(f->buffers);
    free(f->memory);
    free(f);
    return finished;
}
