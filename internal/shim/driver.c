#include "state.h"

#include <stdlib.h>
#include <string.h>

// --- drivers --------------------------------------------------------------------------

static sh_driver *drivers, *process_driver;
static __thread sh_driver *thread_driver;

sh_driver *sh_current(void) { return thread_driver ? thread_driver : __atomic_load_n(&process_driver, __ATOMIC_ACQUIRE); }

sh_driver *sh_use_thread(sh_driver *d) {
    sh_driver *former = thread_driver;
    thread_driver = d;
    return former;
}

sh_driver *sh_use_process(sh_driver *d) { return __atomic_exchange_n(&process_driver, d, __ATOMIC_ACQ_REL); }

sh_driver *sh_driver_new(const sh_profile *profile) {
    sh_driver *d = calloc(1, sizeof *d);
    if (!d) return NULL;
    d->profile = *profile;
    strncpy(d->name, profile->name ? profile->name : "", sizeof d->name - 1);
    d->profile.name = d->name;
    memcpy(d->budget, profile->budget, sizeof d->budget);
    d->watchdog_ms = 2000;
    sh_lock();
    d->next = drivers;
    drivers = d;
    sh_unlock();
    return d;
}

int sh_driver_free(sh_driver *d) {
    sh_lock();
    if (d->instances) {
        sh_unlock();
        return 0;
    }
    sh_driver **p = &drivers;
    while (*p != d) p = &(*p)->next;
    *p = d->next;
    sh_unlock();
    free(d);
    return 1;
}

void sh_stray(const char *call) {
    sh_lock();
    for (sh_driver *d = drivers; d; d = d->next) sh_violate(d, "vk%s: called on a handle that is not alive", call);
    sh_unlock();
}

// --- counting and failing -------------------------------------------------------------

static const char *const functions[] = {
#define F(name) "vk" #name,
    SH_FUNCTIONS(F)
#undef F
};

const char *sh_function_name(uint32_t function) { return function < SH_FN_COUNT ? functions[function] : ""; }

int32_t sh_function_index(const char *name) {
    for (int32_t i = 0; i < SH_FN_COUNT; i++)
        if (!strcmp(functions[i], name)) return i;
    return -1;
}

int sh_fail(sh_driver *d, int32_t function, uint64_t k, int32_t result) {
    sh_lock();
    int room = d->fault_count < SH_MAX_FAULTS;
    if (room) {
        d->faults[d->fault_count].function = function;
        d->faults[d->fault_count].left = k;
        d->faults[d->fault_count++].result = result;
    }
    sh_unlock();
    return room;
}

uint32_t sh_planned(sh_driver *d) {
    sh_lock();
    uint32_t n = d->fault_count;
    sh_unlock();
    return n;
}

void sh_unplan(sh_driver *d) {
    sh_lock();
    d->fault_count = 0;
    sh_unlock();
}

void sh_calls(sh_driver *d, uint64_t calls[SH_FN_COUNT]) {
    sh_lock();
    memcpy(calls, d->calls, sizeof d->calls);
    sh_unlock();
}

void sh_objects(sh_driver *d, uint64_t created[SH_KIND_COUNT], uint64_t destroyed[SH_KIND_COUNT]) {
    sh_lock();
    memcpy(created, d->created, sizeof d->created);
    memcpy(destroyed, d->destroyed, sizeof d->destroyed);
    sh_unlock();
}

void sh_budget(sh_driver *d, uint32_t heap, uint64_t bytes) {
    sh_lock();
    if (heap < SH_MAX_HEAPS) {
        d->budget[heap] = bytes;
        d->profile.budget_least[heap] = bytes; // and stays
    }
    sh_unlock();
}

int sh_fault(sh_driver *driver, sh_device *d, uint32_t function, VcResult *r) {
    if (!driver) return 0;
    int hit = 0, lose = 0;
    sh_lock();
    driver->calls[function]++;
    for (uint32_t i = 0; i < driver->fault_count;) {
        if (driver->faults[i].function >= 0 && driver->faults[i].function != (int32_t)function) {
            i++;
            continue;
        }
        if (--driver->faults[i].left > 0) {
            i++;
            continue;
        }
        if (!hit) *r = driver->faults[i].result;
        hit = 1;
        driver->faults[i] = driver->faults[--driver->fault_count];
    }
    if (d && d->lost) {
        *r = VC_ERROR_DEVICE_LOST;
        hit = 1;
    } else if (d && hit && *r == VC_ERROR_DEVICE_LOST) {
        lose = 1;
    }
    sh_unlock();
    if (lose) sh_lose(d);
    return hit;
}

// --- queues ---------------------------------------------------------------------------

struct sh_deferred {
    sh_deferred *next;
    VcObject queue;
    VcHandle fence;
    VcSubmitInfo info;
    VcTimelineSemaphoreSubmitInfo timeline;
};

static void *copy_of(const void *p, size_t size) {
    if (!p || !size) return NULL;
    void *c = malloc(size);
    if (!c) abort();
    memcpy(c, p, size);
    return c;
}

static sh_deferred *deferred_new(VcObject queue, const VcSubmitInfo *s, VcHandle fence) {
    sh_deferred *d = calloc(1, sizeof *d);
    if (!d) abort();
    d->queue = queue;
    d->fence = fence;
    if (!s) return d;
    d->info = *s;
    d->info.pNext = NULL;
    d->info.pWaitSemaphores = copy_of(s->pWaitSemaphores, s->waitSemaphoreCount * sizeof *s->pWaitSemaphores);
    d->info.pWaitDstStageMask = copy_of(s->pWaitDstStageMask, s->waitSemaphoreCount * sizeof *s->pWaitDstStageMask);
    d->info.pCommandBuffers = copy_of(s->pCommandBuffers, s->commandBufferCount * sizeof *s->pCommandBuffers);
    d->info.pSignalSemaphores = copy_of(s->pSignalSemaphores, s->signalSemaphoreCount * sizeof *s->pSignalSemaphores);
    for (const VcChain *c = s->pNext; c; c = c->pNext) {
        if (c->sType != VC_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO) continue; // the library chains nothing else
        const VcTimelineSemaphoreSubmitInfo *t = (const void *)c;
        d->timeline = *t;
        d->timeline.pNext = NULL;
        d->timeline.pWaitSemaphoreValues = copy_of(t->pWaitSemaphoreValues, t->waitSemaphoreValueCount * sizeof *t->pWaitSemaphoreValues);
        d->timeline.pSignalSemaphoreValues = copy_of(t->pSignalSemaphoreValues, t->signalSemaphoreValueCount * sizeof *t->pSignalSemaphoreValues);
        d->info.pNext = &d->timeline;
    }
    return d;
}

static void deferred_free(sh_deferred *d) {
    free((void *)d->info.pWaitSemaphores);
    free((void *)d->info.pWaitDstStageMask);
    free((void *)d->info.pCommandBuffers);
    free((void *)d->info.pSignalSemaphores);
    free((void *)d->timeline.pWaitSemaphoreValues);
    free((void *)d->timeline.pSignalSemaphoreValues);
    free(d);
}

static void defer(sh_device *d, sh_deferred *s) {
    *d->deferred_end = s;
    d->deferred_end = &s->next;
    sh_lock();
    d->deferred_count++;
    sh_unlock();
}

static void drop(sh_device *d) {
    for (sh_deferred *s = d->deferred, *next; s; s = next) {
        next = s->next;
        deferred_free(s);
    }
    d->deferred = NULL;
    d->deferred_end = &d->deferred;
    sh_lock();
    d->deferred_count = 0;
    sh_unlock();
}

void sh_drop_deferred(sh_device *d) {
    SH_MUTEX_LOCK(&d->submit);
    drop(d);
    SH_MUTEX_UNLOCK(&d->submit);
}

VcResult sh_submit(sh_device *d, VcObject queue, uint32_t count, const VcSubmitInfo *submits, VcHandle fence) {
    VcResult r = VC_SUCCESS;
    SH_MUTEX_LOCK(&d->submit);
    sh_lock();
    int hung = d->driver->hung || d->deferred_count > 0, lost = d->lost;
    sh_unlock();
    if (lost) {
        r = VC_ERROR_DEVICE_LOST;
    } else if (!hung) {
        r = d->real.QueueSubmit(queue, count, submits, fence);
    } else {
        for (uint32_t i = 0; i < count; i++) defer(d, deferred_new(queue, &submits[i], i + 1 == count ? fence : 0));
        if (!count) defer(d, deferred_new(queue, NULL, fence));
    }
    SH_MUTEX_UNLOCK(&d->submit);
    return r;
}

void sh_hang(sh_driver *d) {
    sh_lock();
    d->hung = 1;
    sh_unlock();
}

void sh_watchdog(sh_driver *d, uint64_t ms) {
    sh_lock();
    d->watchdog_ms = ms;
    sh_unlock();
}

// What a hung queue had taken runs now, in order. Devices must not be destroyed meanwhile.
void sh_release(sh_driver *driver) {
    sh_lock();
    driver->hung = 0;
    sh_device *d = driver->devices;
    sh_unlock();
    while (d) {
        SH_MUTEX_LOCK(&d->submit);
        for (sh_deferred *s = d->deferred; s; s = s->next) {
            VcResult r = d->real.QueueSubmit(s->queue, s->info.sType ? 1 : 0, &s->info, s->fence);
            if (r < 0) sh_violation(driver, "vkQueueSubmit: a submission that the hung queue had taken fails with %d once it runs", r);
        }
        drop(d);
        SH_MUTEX_UNLOCK(&d->submit);
        sh_lock();
        d = d->next;
        sh_unlock();
    }
}

// A device that is lost runs nothing any more. The driver beneath is not, so its work is
// waited for: whoever sees the loss may destroy everything at once.
void sh_lose(sh_device *d) {
    SH_MUTEX_LOCK(&d->submit);
    sh_lock();
    d->lost = 1;
    sh_unlock();
    drop(d);
    d->real.DeviceWaitIdle(d->handle);
    SH_MUTEX_UNLOCK(&d->submit);
}

VcResult sh_idle(sh_device *d, VcResult(VC_CALL *wait)(VcObject), VcObject object) {
    for (uint64_t ms = 0;; ms++) {
        sh_lock();
        int pending = d->deferred_count > 0, lost = d->lost;
        uint64_t limit = d->driver->watchdog_ms;
        sh_unlock();
        if (lost) return VC_ERROR_DEVICE_LOST;
        if (!pending) break;
        if (ms >= limit) { // as the watchdog of a desktop does
            sh_lose(d);
            return VC_ERROR_DEVICE_LOST;
        }
        SH_SLEEP_MS(1);
    }
    SH_MUTEX_LOCK(&d->submit);
    VcResult r = wait(object);
    SH_MUTEX_UNLOCK(&d->submit);
    return r;
}
