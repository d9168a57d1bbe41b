// The plain C floor: the loops a careful C program would write around the same
// commands, on the device the library uses.
#ifndef VKCOMPUTE_CFLOOR_H
#define VKCOMPUTE_CFLOOR_H

#include "vulkan_abi.h"

// What only this floor needs of the binary interface.
typedef struct {
    int32_t sType; const void *pNext; uint32_t flags; VcSize size; uint32_t usage, sharingMode;
    uint32_t queueFamilyIndexCount; const uint32_t *pQueueFamilyIndices;
} VcBufferCreateInfo;
typedef struct { VcSize size, alignment; uint32_t memoryTypeBits; } VcMemoryRequirements;

enum { CF_STRUCTURE_TYPE_BUFFER_CREATE_INFO = 12, CF_USAGE_STORAGE_BUFFER = 0x20 };

enum { CF_MAX_TENSORS = 8 };

typedef enum { CF_REBUILD, CF_REBUILD_BUFFER, CF_CACHED, CF_REPLAY, CF_EMPTY } cf_mode;

// Results of our own, outside the range of VkResult.
enum { CF_STUCK = -2000000101, CF_OUT_OF_MEMORY = -2000000102 };

typedef struct { uint32_t src_stages, dst_stages, src_access, dst_access; } cf_barrier; // no stages: none

typedef struct {
    uint64_t device, queue;
    uint64_t pipeline, layout, set_layout;
    uint64_t command_buffer, replay_buffer, empty_buffer;
    uint32_t launches, steps, tensors; // launch i is step i % steps
    uint32_t groups[3];
    uint32_t has_set;          // 0: the pipeline has no descriptors
    uint32_t info_words;       // 64-bit words of one info
    uint32_t slot;             // bytes from one info slot of the arena to the next; whole atoms
    uint32_t memory_type;      // of infos: host-visible
    uint32_t coherent;         // whether it needs no flushes
    uint32_t bind_each;        // 1: the pipeline is bound again for every launch
    uint64_t info_range;       // bytes that binding 0 covers
    cf_barrier begin, between, end;
} cf_spec;

typedef struct cf_floor cf_floor;

// tensors: steps × tensors times [binding, buffer, offset, range]. infos: steps × info_words.
// On failure *what names the call.
VcResult cf_new(void *get_instance_proc_addr, uint64_t instance, const cf_spec *spec, const uint64_t *tensors, const uint64_t *infos,
                cf_floor **out, const char **what);
// Runs the launches and waits for them, shots times.
VcResult cf_run(cf_floor *f, cf_mode mode, uint32_t shots, const char **what);
// What the last recording of a mode contained.
void cf_recorded(const cf_floor *f, uint32_t *dispatches, uint32_t *barriers);
// Frees everything and returns 1; returns 0 and leaves it all where the device never finished.
int cf_free(cf_floor *f);

#endif
