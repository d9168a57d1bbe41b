#ifndef VKCOMPUTE_PROBE_H
#define VKCOMPUTE_PROBE_H

#include "vulkan_abi.h"

typedef struct { void *get; VcObject instance, device; } probe;

VcResult pr_allocate(const probe *p, uint64_t size, uint32_t type, uint64_t *out);
VcResult pr_map(const probe *p, uint64_t memory, uint64_t offset, uint64_t size, void **out);
VcResult pr_move(const probe *p, const char *function, uint64_t memory, uint64_t offset, uint64_t size);
void pr_unmap(const probe *p, uint64_t memory);
void pr_destroy(const probe *p, const char *function, uint64_t handle);
VcResult pr_set_layout(const probe *p, uint32_t storage, uint32_t dynamic, uint64_t *out);
VcResult pr_pipeline_layout(const probe *p, uint64_t set_layout, uint32_t push, uint64_t *out);
VcResult pr_shader(const probe *p, const uint32_t *words, size_t count, uint64_t *out);
VcResult pr_pipeline(const probe *p, uint64_t module, const char *entry, uint64_t layout, const uint32_t *spec, uint32_t spec_count, uint64_t *out);
VcResult pr_timestamp(const probe *p, uint64_t command_buffer, uint64_t *pool);
VcResult pr_create_device(const probe *p, uint32_t feature, const char *extension);

#endif
