#include "state.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static sh_mutex mutex = SH_MUTEX_STATIC;
void sh_lock(void) { SH_MUTEX_LOCK(&mutex); }
void sh_unlock(void) { SH_MUTEX_UNLOCK(&mutex); }

static const char *const kinds[] = {
#define K(kind, name) name,
    SH_KINDS(K)
#undef K
};

const char *sh_kind_name(uint32_t kind) { return kind < SH_KIND_COUNT ? kinds[kind] : "?"; }

// --- the table ------------------------------------------------------------------------

static struct {
    sh_object **buckets;
    size_t count, capacity; // a power of two
} table;

static size_t hash(uint32_t kind, sh_device *device, uint64_t handle) {
    uint64_t h = handle * 0x9e3779b97f4a7c15u ^ (uint64_t)(uintptr_t)device * 0xc2b2ae3d27d4eb4fu ^ kind;
    h ^= h >> 29;
    return (size_t)(h * 0xbf58476d1ce4e5b9u >> 17);
}

sh_object *sh_find(uint32_t kind, sh_device *device, uint64_t handle) {
    if (!table.capacity) return NULL;
    sh_object *o = table.buckets[hash(kind, device, handle) & (table.capacity - 1)];
    while (o && (o->kind != kind || o->device != device || o->handle != handle)) o = o->chain;
    return o;
}

static void grow(void) {
    size_t capacity = table.capacity ? table.capacity * 2 : 1024;
    sh_object **buckets = calloc(capacity, sizeof *buckets);
    if (!buckets) abort(); // a test's process without memory has nothing left to say
    for (size_t i = 0; i < table.capacity; i++)
        for (sh_object *o = table.buckets[i], *next; o; o = next) {
            next = o->chain;
            sh_object **bucket = &buckets[hash(o->kind, o->device, o->handle) & (capacity - 1)];
            o->chain = *bucket;
            *bucket = o;
        }
    free(table.buckets);
    table.buckets = buckets;
    table.capacity = capacity;
}

sh_object *sh_born(sh_driver *driver, uint32_t kind, sh_device *device, uint64_t handle, sh_object *parent) {
    sh_object *old = sh_find(kind, device, handle);
    if (old) { // the driver reuses a handle that nobody saw destroyed
        if (driver && kind < SH_KIND_COUNT) sh_violate(driver, "%s: handle %#llx is given out twice", sh_kind_name(kind), (unsigned long long)handle);
        sh_died(NULL, old);
    }
    if (table.count >= table.capacity) grow();
    sh_object *o = calloc(1, sizeof *o);
    if (!o) abort();
    o->kind = kind;
    o->device = device;
    o->handle = handle;
    sh_object **bucket = &table.buckets[hash(kind, device, handle) & (table.capacity - 1)];
    o->chain = *bucket;
    *bucket = o;
    table.count++;
    if (parent) {
        o->parent = parent;
        o->next = parent->children;
        o->link = &parent->children;
        if (o->next) o->next->link = &o->next;
        parent->children = o;
    }
    if (driver && kind < SH_KIND_COUNT) driver->created[kind]++;
    return o;
}

void sh_died(sh_driver *driver, sh_object *o) {
    while (o->children) sh_died(driver, o->children);
    sh_object **p = &table.buckets[hash(o->kind, o->device, o->handle) & (table.capacity - 1)];
    while (*p != o) p = &(*p)->chain;
    *p = o->chain;
    table.count--;
    if (o->link) {
        *o->link = o->next;
        if (o->next) o->next->link = o->link;
    }
    if (driver && o->kind < SH_KIND_COUNT) driver->destroyed[o->kind]++;
    switch (o->kind) {
    case SH_MEMORY:
        if (driver && o->device) {
            driver->heap_used[o->device->physical->memory.memoryTypes[o->memory.type].heapIndex] -= o->memory.size;
            o->device->allocations--;
        }
        free(o->memory.block);
        break;
    case SH_SHADER:
        free(o->shader.code);
        break;
    case SH_PHYSICAL:
        free(o->owner);
        break;
    }
    free(o);
}

int sh_kill(sh_device *d, uint32_t kind, uint64_t handle, const char *call) {
    sh_lock();
    sh_object *o = sh_find(kind, d, handle);
    if (o)
        sh_died(d->driver, o);
    else
        sh_violate(d->driver, "%s: %#llx is not alive: destroyed twice, or of another device", call, (unsigned long long)handle);
    sh_unlock();
    return o != NULL;
}

// --- violations -----------------------------------------------------------------------

static void note(sh_driver *d, const char *format, va_list args) {
    if (!d) return;
    if (d->violation_count == SH_MAX_VIOLATIONS) {
        d->violations_dropped++;
        return;
    }
    char *out = d->violations[(d->violation_first + d->violation_count++) % SH_MAX_VIOLATIONS];
    vsnprintf(out, SH_VIOLATION_SIZE, format, args);
}

void sh_violate(sh_driver *d, const char *format, ...) {
    va_list args;
    va_start(args, format);
    note(d, format, args);
    va_end(args);
}

void sh_violation(sh_driver *d, const char *format, ...) {
    va_list args;
    va_start(args, format);
    sh_lock();
    note(d, format, args);
    sh_unlock();
    va_end(args);
}

int sh_violation_take(sh_driver *d, char *out, size_t size, uint64_t *dropped) {
    sh_lock();
    int some = d->violation_count > 0;
    if (some) {
        snprintf(out, size, "%s", d->violations[d->violation_first]);
        d->violation_first = (d->violation_first + 1) % SH_MAX_VIOLATIONS;
        d->violation_count--;
    }
    *dropped = d->violations_dropped;
    d->violations_dropped = 0;
    sh_unlock();
    return some;
}
