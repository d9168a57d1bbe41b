#include "abi.h"

#include <stdlib.h>

static VcObject object(uint64_t handle) { return (VcObject)(uintptr_t)handle; }

// Decodes one command of n words (n >= 1, all readable). Returns 0 when its length does not fit its operation.
static int decode(const vc_functions *call, VcObject cb, const uint64_t *w, uint32_t n) {
    const uint32_t operation = (uint32_t)(w[0] & 0xff), a = (uint32_t)(w[0] >> 32);
    switch (operation) {
    case VC_OP_PIPELINE:
        if (n != 2) return 0;
        call->CmdBindPipeline(cb, VC_PIPELINE_BIND_POINT_COMPUTE, w[1]);
        return 1;
    case VC_OP_SET:
    case VC_OP_SET_DYNAMIC:
        if (n != 3) return 0;
        call->CmdBindDescriptorSets(cb, VC_PIPELINE_BIND_POINT_COMPUTE, w[1], 0, 1, &w[2], operation == VC_OP_SET_DYNAMIC, &a);
        return 1;
    case VC_OP_PUSH:
        if (n < 3 || a == 0 || a % 4 || a > (n - 2) * 8) return 0;
        call->CmdPushConstants(cb, w[1], VC_SHADER_STAGE_COMPUTE_BIT, 0, a, &w[2]);
        return 1;
    case VC_OP_DISPATCH:
        if (n != 2) return 0;
        call->CmdDispatch(cb, a, (uint32_t)w[1], (uint32_t)(w[1] >> 32));
        return 1;
    case VC_OP_DISPATCH_INDIRECT:
        if (n != 3) return 0;
        call->CmdDispatchIndirect(cb, w[1], w[2]);
        return 1;
    case VC_OP_BARRIER: {
        if (n != 3) return 0;
        const VcMemoryBarrier barrier = {
            .sType = VC_STRUCTURE_TYPE_MEMORY_BARRIER, .srcAccessMask = (uint32_t)w[2], .dstAccessMask = (uint32_t)(w[2] >> 32)};
        call->CmdPipelineBarrier(cb, (uint32_t)w[1], (uint32_t)(w[1] >> 32), 0, 1, &barrier, 0, NULL, 0, NULL);
        return 1;
    }
    case VC_OP_COPY: {
        if (n != 6) return 0;
        const VcBufferCopy region = {w[3], w[4], w[5]};
        call->CmdCopyBuffer(cb, w[1], w[2], 1, &region);
        return 1;
    }
    case VC_OP_FILL:
        if (n != 4) return 0;
        call->CmdFillBuffer(cb, w[1], w[2], w[3], a);
        return 1;
    case VC_OP_UPDATE:
        if (n < 4 || a == 0 || a % 4 || a > VC_MAX_UPDATE || a > (n - 3) * 8) return 0;
        call->CmdUpdateBuffer(cb, w[1], w[2], a, &w[3]);
        return 1;
    case VC_OP_TIMESTAMP:
        if (n != 3) return 0;
        call->CmdWriteTimestamp(cb, (uint32_t)w[2], w[1], a);
        return 1;
    case VC_OP_RESET_QUERIES:
        if (n != 3) return 0;
        call->CmdResetQueryPool(cb, w[1], a, (uint32_t)w[2]);
        return 1;
    case VC_OP_COPY_QUERIES: {
        if (n != 5) return 0;
        const uint32_t result_64 = 1, result_wait = 2;
        call->CmdCopyQueryPoolResults(cb, w[1], a, (uint32_t)w[2], w[3], w[4], 8, result_64 | result_wait);
        return 1;
    }
    }
    return 0;
}

VcResult vc_record(vc_device *d, uint64_t command_buffer, uint32_t flags, const uint64_t *words, size_t count, uint64_t *at) {
    const VcObject cb = object(command_buffer);
    const VcCommandBufferBeginInfo begin = {.sType = VC_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, .flags = flags};
    VcResult r = d->call.BeginCommandBuffer(cb, &begin);
    if (r < 0) return r;
    for (size_t i = 0; i < count;) {
        const uint32_t n = (uint32_t)(words[i] >> 8) & 0xffffff;
        if (n == 0 || n > count - i || !decode(&d->call, cb, words + i, n)) {
            *at = i;
            // Half a stream must not run. Beginning again drops what was recorded.
            d->call.EndCommandBuffer(cb);
            if (d->call.BeginCommandBuffer(cb, &begin) >= 0) d->call.EndCommandBuffer(cb);
            return VC_BAD_STREAM;
        }
        i += n;
    }
    return d->call.EndCommandBuffer(cb);
}

typedef VcResult(VC_CALL *move_ranges)(VcObject, uint32_t, const VcMappedMemoryRange *);

static VcResult move(vc_device *d, move_ranges call, const uint64_t *ranges, uint32_t count) {
    VcMappedMemoryRange batch[64];
    while (count) {
        uint32_t n = count < 64 ? count : 64;
        for (uint32_t i = 0; i < n; i++, ranges += 3)
            batch[i] = (VcMappedMemoryRange){
                .sType = VC_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE, .memory = ranges[0], .offset = ranges[1], .size = ranges[2]};
        VcResult r = call(d->handle, n, batch);
        if (r < 0) return r;
        count -= n;
    }
    return VC_SUCCESS;
}

VcResult vc_flush(vc_device *d, const uint64_t *ranges, uint32_t count) { return move(d, d->call.FlushMappedMemoryRanges, ranges, count); }
VcResult vc_invalidate(vc_device *d, const uint64_t *ranges, uint32_t count) { return move(d, d->call.InvalidateMappedMemoryRanges, ranges, count); }

enum { MAX_COMMAND_BUFFERS = 64 };

VcResult vc_submit(vc_device *d, vc_submission *s, const uint64_t *words, size_t word_count, const uint64_t *command_buffers,
                   uint32_t command_buffer_count, const uint64_t *flushes, uint32_t flush_count, const uint64_t *waits, uint32_t wait_count) {
    VcResult r;
    if (s->record) {
        const uint32_t one_time = 1;
        s->stage = VC_STAGE_RECORD;
        if ((r = vc_record(d, s->record, one_time, words, word_count, &s->at)) < 0) return r;
    }
    if (flush_count) {
        s->stage = VC_STAGE_FLUSH;
        if ((r = vc_flush(d, flushes, flush_count)) < 0) return r;
    }
    s->stage = VC_STAGE_SUBMIT;
    VcHandle wait_semaphores[VC_MAX_WAITS];
    uint64_t wait_values[VC_MAX_WAITS];
    uint32_t wait_stages[VC_MAX_WAITS];
    if (wait_count > VC_MAX_WAITS) return VC_BAD_ARGUMENT;
    for (uint32_t i = 0; i < wait_count; i++) {
        wait_semaphores[i] = waits[2 * i];
        wait_values[i] = waits[2 * i + 1];
        wait_stages[i] = VC_PIPELINE_STAGE_ALL_COMMANDS_BIT;
    }
    VcObject few[MAX_COMMAND_BUFFERS], *list = few;
    if (sizeof(VcObject) == sizeof(uint64_t)) {
        list = (VcObject *)command_buffers;
    } else {
        if (command_buffer_count > MAX_COMMAND_BUFFERS && !(list = calloc(command_buffer_count, sizeof *list))) return VC_ERROR_OUT_OF_HOST_MEMORY;
        for (uint32_t i = 0; i < command_buffer_count; i++) list[i] = object(command_buffers[i]);
    }
    const VcTimelineSemaphoreSubmitInfo timeline = {
        .sType = VC_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
        .waitSemaphoreValueCount = wait_count,
        .pWaitSemaphoreValues = wait_values,
        .signalSemaphoreValueCount = 1,
        .pSignalSemaphoreValues = &s->value,
    };
    const VcSubmitInfo info = {
        .sType = VC_STRUCTURE_TYPE_SUBMIT_INFO,
        .pNext = &timeline,
        .waitSemaphoreCount = wait_count,
        .pWaitSemaphores = wait_semaphores,
        .pWaitDstStageMask = wait_stages,
        .commandBufferCount = command_buffer_count,
        .pCommandBuffers = list,
        .signalSemaphoreCount = 1,
        .pSignalSemaphores = &s->signal,
    };
    r = d->call.QueueSubmit(object(s->queue), 1, &info, 0);
    if (list != few && sizeof(VcObject) != sizeof(uint64_t)) free(list);
    if (r < 0) return r;
    // The submission stands whatever this query says; a lost device shows at the next wait.
    if (s->poll && d->call.GetSemaphoreCounterValue(d->handle, s->signal, &s->completed) < 0) s->completed = 0;
    return r;
}
