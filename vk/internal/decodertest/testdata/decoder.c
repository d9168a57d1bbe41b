// The decoders of package abi behind a pipe, with a driver that writes down what it is
// told. Words lie between pages that cannot be touched, so that reading one too many ends
// the program; so does writing one handle too many.
#include "commands.c"
#include "device.c"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static uint32_t failing; // the call with a result that fails, counted from 1; 0: none

static VcResult outcome(void) { return failing && --failing == 0 ? VC_ERROR_OUT_OF_HOST_MEMORY : VC_SUCCESS; }

// Reads everything it is given, as a driver does.
static void print_bytes(const void *data, size_t n) {
    for (size_t i = 0; i < n; i++) printf("%02x", ((const uint8_t *)data)[i]);
    printf("\n");
}

#define H(h) ((uint64_t)(uintptr_t)(h))

static VcResult begin(VcObject cb, const VcCommandBufferBeginInfo *info) {
    printf("Begin %" PRIx64 " %u\n", H(cb), info->flags);
    return outcome();
}
static VcResult end(VcObject cb) {
    printf("End %" PRIx64 "\n", H(cb));
    return outcome();
}
static void bind_pipeline(VcObject cb, int32_t point, VcHandle p) { printf("BindPipeline %" PRIx64 " %d %" PRIx64 "\n", H(cb), point, p); }
static void bind_sets(VcObject cb, int32_t point, VcHandle layout, uint32_t first, uint32_t n, const VcHandle *sets, uint32_t offsets,
                      const uint32_t *offset) {
    printf("BindSets %" PRIx64 " %d %" PRIx64 " %u", H(cb), point, layout, first);
    for (uint32_t i = 0; i < n; i++) printf(" %" PRIx64, sets[i]);
    for (uint32_t i = 0; i < offsets; i++) printf(" +%u", offset[i]);
    printf("\n");
}
static void push(VcObject cb, VcHandle layout, uint32_t stages, uint32_t offset, uint32_t size, const void *data) {
    printf("Push %" PRIx64 " %" PRIx64 " %x %u ", H(cb), layout, stages, offset);
    print_bytes(data, size);
}
static void dispatch(VcObject cb, uint32_t x, uint32_t y, uint32_t z) { printf("Dispatch %" PRIx64 " %u %u %u\n", H(cb), x, y, z); }
static void dispatch_indirect(VcObject cb, VcHandle b, VcSize o) { printf("DispatchIndirect %" PRIx64 " %" PRIx64 " %" PRIu64 "\n", H(cb), b, o); }
static void barrier(VcObject cb, uint32_t from, uint32_t to, uint32_t flags, uint32_t n, const VcMemoryBarrier *b, uint32_t buffers,
                    const void *bp, uint32_t images, const void *ip) {
    printf("Barrier %" PRIx64 " %x %x %u", H(cb), from, to, flags);
    for (uint32_t i = 0; i < n; i++) printf(" %x %x", b[i].srcAccessMask, b[i].dstAccessMask);
    if (buffers || bp || images || ip) printf(" more");
    printf("\n");
}
static void copy(VcObject cb, VcHandle from, VcHandle to, uint32_t n, const VcBufferCopy *r) {
    printf("Copy %" PRIx64 " %" PRIx64 " %" PRIx64, H(cb), from, to);
    for (uint32_t i = 0; i < n; i++) printf(" %" PRIu64 " %" PRIu64 " %" PRIu64, r[i].srcOffset, r[i].dstOffset, r[i].size);
    printf("\n");
}
static void fill(VcObject cb, VcHandle b, VcSize o, VcSize n, uint32_t v) { printf("Fill %" PRIx64 " %" PRIx64 " %" PRIu64 " %" PRIu64 " %u\n", H(cb), b, o, n, v); }
static void update(VcObject cb, VcHandle b, VcSize o, VcSize n, const void *data) {
    printf("Update %" PRIx64 " %" PRIx64 " %" PRIu64 " ", H(cb), b, o);
    print_bytes(data, n);
}
static void timestamp(VcObject cb, uint32_t stage, VcHandle p, uint32_t q) { printf("Timestamp %" PRIx64 " %x %" PRIx64 " %u\n", H(cb), stage, p, q); }
static void reset_queries(VcObject cb, VcHandle p, uint32_t first, uint32_t n) { printf("ResetQueries %" PRIx64 " %" PRIx64 " %u %u\n", H(cb), p, first, n); }
static void copy_queries(VcObject cb, VcHandle p, uint32_t first, uint32_t n, VcHandle b, VcSize o, VcSize stride, uint32_t flags) {
    printf("CopyQueries %" PRIx64 " %" PRIx64 " %u %u %" PRIx64 " %" PRIu64 " %" PRIu64 " %u\n", H(cb), p, first, n, b, o, stride, flags);
}
static VcResult allocate_sets(VcObject d, const VcDescriptorSetAllocateInfo *info, VcHandle *out) {
    static VcHandle last;
    VcResult r = outcome();
    (void)d;
    printf("AllocateSets %" PRIx64, info->descriptorPool);
    for (uint32_t i = 0; i < info->descriptorSetCount; i++) printf(" %" PRIx64, info->pSetLayouts[i]);
    printf("\n");
    for (uint32_t i = 0; i < info->descriptorSetCount && r >= 0; i++) out[i] = ++last;
    return r;
}
static void update_sets(VcObject d, uint32_t n, const VcWriteDescriptorSet *w, uint32_t copies, const void *c) {
    (void)d;
    printf("UpdateSets %u%s", n, copies || c ? " copies" : "");
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < w[i].descriptorCount; j++)
            printf(" [%u+%u %u %" PRIx64 " %" PRIu64 " %" PRIu64 "]", w[i].dstBinding, w[i].dstArrayElement, w[i].descriptorType,
                   w[i].pBufferInfo[j].buffer, w[i].pBufferInfo[j].offset, w[i].pBufferInfo[j].range);
    printf("\n");
}

// Memory of n words that ends where memory ends.
typedef struct { uint8_t *all; size_t length; uint64_t *words; } guarded;

static guarded guard(size_t n) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), used = (n * 8 + page - 1) / page * page;
    guarded g = {.length = used + 2 * page};
    g.all = mmap(NULL, g.length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (g.all == MAP_FAILED || (used && mprotect(g.all + page, used, PROT_READ | PROT_WRITE))) exit(3);
    g.words = (uint64_t *)(g.all + page + used) - n;
    return g;
}

int main(void) {
    vc_device d = {.call = {
        .BeginCommandBuffer = begin, .EndCommandBuffer = end, .CmdBindPipeline = bind_pipeline, .CmdBindDescriptorSets = bind_sets,
        .CmdPushConstants = push, .CmdDispatch = dispatch, .CmdDispatchIndirect = dispatch_indirect, .CmdPipelineBarrier = barrier,
        .CmdCopyBuffer = copy, .CmdFillBuffer = fill, .CmdUpdateBuffer = update, .CmdWriteTimestamp = timestamp,
        .CmdResetQueryPool = reset_queries, .CmdCopyQueryPoolResults = copy_queries,
        .AllocateDescriptorSets = allocate_sets, .UpdateDescriptorSets = update_sets}};
    static char out[1 << 20];
    setvbuf(stdout, out, _IOFBF, sizeof out);
    // A request: what (0 stream, 1 sets), failing, capacity or flags, number of words; the words.
    uint64_t request[4];
    while (fread(request, sizeof request, 1, stdin) == 1) {
        guarded words = guard(request[3]);
        if (fread(words.words, 8, request[3], stdin) != request[3]) return 4;
        mprotect(words.all, words.length, PROT_READ); // the decoder may not write them
        const size_t page = (size_t)sysconf(_SC_PAGESIZE);
        mprotect(words.all, page, PROT_NONE);
        mprotect(words.all + words.length - page, page, PROT_NONE);
        failing = (uint32_t)request[1];
        if (request[0] == 0) {
            uint64_t at = 0;
            VcResult r = vc_record(&d, 0xcb, (uint32_t)request[2], words.words, request[3], &at);
            printf("= %d %" PRIu64 "\n", r, at);
        } else {
            guarded handles = guard(request[2]);
            uint32_t made = 0;
            VcResult r = vc_descriptor_sets(&d, 0xb001, words.words, request[3], handles.words, (uint32_t)request[2], &made);
            printf("= %d %u\n", r, made);
            munmap(handles.all, handles.length);
        }
        munmap(words.all, words.length);
        fflush(stdout);
    }
    return 0;
}
