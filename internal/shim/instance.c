#include "state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The driver's own vkGetInstanceProcAddr.
static sh_get_proc get;

#define ENTER(driver, device, fn)                                             \
    do {                                                                      \
        VcResult injected;                                                    \
        if (sh_fault(driver, device, SH_FN_##fn, &injected)) return injected; \
    } while (0)

// --- before there is an instance ------------------------------------------------------

static VcResult VC_CALL w_EnumerateInstanceVersion(uint32_t *version) {
    ENTER(sh_current(), NULL, EnumerateInstanceVersion);
    VcResult(VC_CALL * real)(uint32_t *) = (void *)get(NULL, "vkEnumerateInstanceVersion");
    return real(version);
}

static VcResult VC_CALL w_EnumerateInstanceLayerProperties(uint32_t *count, VcLayerProperties *out) {
    ENTER(sh_current(), NULL, EnumerateInstanceLayerProperties);
    VcResult(VC_CALL * real)(uint32_t *, VcLayerProperties *) = (void *)get(NULL, "vkEnumerateInstanceLayerProperties");
    return real(count, out);
}

static VcResult VC_CALL w_EnumerateInstanceExtensionProperties(const char *layer, uint32_t *count, VcExtensionProperties *out) {
    sh_driver *driver = sh_current();
    ENTER(driver, NULL, EnumerateInstanceExtensionProperties);
    if (driver && !layer && driver->profile.flags & SH_HIDE_EXTENSIONS) { // those of layers are not the driver's
        *count = 0;
        return VC_SUCCESS;
    }
    VcResult(VC_CALL * real)(const char *, uint32_t *, VcExtensionProperties *) = (void *)get(NULL, "vkEnumerateInstanceExtensionProperties");
    return real(layer, count, out);
}

static VcResult VC_CALL w_CreateInstance(const VcInstanceCreateInfo *info, const void *alloc, VcObject *out) {
    sh_driver *driver = sh_current();
    ENTER(driver, NULL, CreateInstance);
    VcResult(VC_CALL * real)(const VcInstanceCreateInfo *, const void *, VcObject *) = (void *)get(NULL, "vkCreateInstance");
    VcResult r = real(info, alloc, out);
    if (r < 0) return r;
    sh_instance *in = calloc(1, sizeof *in);
    if (!in) abort();
    in->driver = driver;
    in->handle = *out;
#define F(name, result, args) in->real.name = (void *)get(*out, "vk" #name);
    SH_INSTANCE_FUNCTIONS(F)
#undef F
    sh_lock();
    in->object = sh_born(driver, SH_INSTANCE, NULL, (uintptr_t)*out, NULL);
    in->object->owner = in;
    if (driver) driver->instances++;
    sh_unlock();
    return r;
}

// --- instances ------------------------------------------------------------------------

static void *owner(uint32_t kind, VcObject handle, const char *call) {
    sh_lock();
    sh_object *o = sh_find(kind, NULL, (uintptr_t)handle);
    void *found = o ? o->owner : NULL;
    sh_unlock();
    if (!found) sh_stray(call);
    return found;
}

static void VC_CALL w_DestroyInstance(VcObject handle, const void *alloc) {
    if (!handle) return;
    sh_instance *in = owner(SH_INSTANCE, handle, "DestroyInstance");
    if (!in) return;
    void(VC_CALL * real)(VcObject, const void *) = in->real.DestroyInstance;
    sh_lock();
    for (sh_object *o = in->object->children; o; o = o->next)
        if (o->kind < SH_KIND_COUNT) sh_violate(in->driver, "vkDestroyInstance: one of its %s is alive", sh_kind_name(o->kind));
    sh_died(in->driver, in->object);
    if (in->driver) in->driver->instances--;
    sh_unlock();
    real(handle, alloc);
    free(in);
}

static VcResult VC_CALL w_CreateDebugUtilsMessengerEXT(VcObject handle, const void *info, const void *alloc, VcHandle *out) {
    sh_instance *in = owner(SH_INSTANCE, handle, "CreateDebugUtilsMessengerEXT");
    if (!in) return VC_ERROR_INITIALIZATION_FAILED;
    ENTER(in->driver, NULL, CreateDebugUtilsMessengerEXT);
    VcResult r = in->real.CreateDebugUtilsMessengerEXT(handle, info, alloc, out);
    if (r >= 0 && in->driver) {
        sh_lock();
        sh_born(in->driver, SH_MESSENGER, NULL, *out, in->object);
        sh_unlock();
    }
    return r;
}

static void VC_CALL w_DestroyDebugUtilsMessengerEXT(VcObject handle, VcHandle messenger, const void *alloc) {
    sh_instance *in = owner(SH_INSTANCE, handle, "DestroyDebugUtilsMessengerEXT");
    if (!in) return;
    if (in->driver && messenger) {
        sh_lock();
        sh_object *o = sh_find(SH_MESSENGER, NULL, messenger);
        if (o) sh_died(in->driver, o);
        else sh_violate(in->driver, "vkDestroyDebugUtilsMessengerEXT: %#llx is not alive", (unsigned long long)messenger);
        sh_unlock();
        if (!o) return;
    }
    in->real.DestroyDebugUtilsMessengerEXT(handle, messenger, alloc);
}

static VcResult VC_CALL w_EnumeratePhysicalDevices(VcObject handle, uint32_t *count, VcObject *out) {
    sh_instance *in = owner(SH_INSTANCE, handle, "EnumeratePhysicalDevices");
    if (!in) return VC_ERROR_INITIALIZATION_FAILED;
    ENTER(in->driver, NULL, EnumeratePhysicalDevices);
    VcResult r = in->real.EnumeratePhysicalDevices(handle, count, out);
    for (uint32_t i = 0; r >= 0 && out && i < *count; i++) {
        sh_lock();
        sh_object *o = sh_find(SH_PHYSICAL, NULL, (uintptr_t)out[i]);
        int known = o && ((sh_physical *)o->owner)->in == in;
        sh_unlock();
        if (known) continue;
        sh_physical *p = calloc(1, sizeof *p);
        if (!p) abort();
        p->in = in;
        p->handle = out[i];
        if (in->driver) sh_present(p);
        sh_lock();
        sh_born(in->driver, SH_PHYSICAL, NULL, (uintptr_t)out[i], in->object)->owner = p;
        sh_unlock();
    }
    return r;
}

// --- physical devices -----------------------------------------------------------------

#define PHYSICAL(fn) sh_physical *p = owner(SH_PHYSICAL, handle, #fn)

static const char budget_extension[] = "VK_EXT_memory_budget";

// The presented list of extensions, to be freed.
static VcResult extensions(sh_physical *p, VcExtensionProperties **list, uint32_t *count) {
    const sh_profile *profile = &p->in->driver->profile;
    *list = NULL;
    *count = 0;
    if (profile->flags & SH_HIDE_EXTENSIONS) return VC_SUCCESS;
    uint32_t n = 0;
    VcResult r = p->in->real.EnumerateDeviceExtensionProperties(p->handle, NULL, &n, NULL);
    if (r < 0) return r;
    if (!(*list = calloc((size_t)n + 1, sizeof **list))) return VC_ERROR_OUT_OF_HOST_MEMORY;
    if ((r = p->in->real.EnumerateDeviceExtensionProperties(p->handle, NULL, &n, *list)) < 0) return r;
    int has = 0;
    for (uint32_t i = 0; i < n; i++) has |= !strcmp((*list)[i].extensionName, budget_extension);
    if (profile->flags & SH_BUDGET && !has) {
        snprintf((*list)[n].extensionName, sizeof (*list)[n].extensionName, "%s", budget_extension);
        (*list)[n++].specVersion = 1;
    }
    p->real_budget = has;
    *count = n;
    return VC_SUCCESS;
}

static VcResult VC_CALL w_EnumerateDeviceExtensionProperties(VcObject handle, const char *layer, uint32_t *count, VcExtensionProperties *out) {
    PHYSICAL(EnumerateDeviceExtensionProperties);
    if (!p) return VC_ERROR_INITIALIZATION_FAILED;
    ENTER(p->in->driver, NULL, EnumerateDeviceExtensionProperties);
    if (!p->in->driver || layer) return p->in->real.EnumerateDeviceExtensionProperties(handle, layer, count, out);
    VcExtensionProperties *list;
    uint32_t n;
    VcResult r = extensions(p, &list, &n);
    if (r >= 0 && !out) {
        *count = n;
    } else if (r >= 0) {
        if (*count < n) r = VC_INCOMPLETE;
        else *count = n;
        if (*count) memcpy(out, list, *count * sizeof *list);
    }
    free(list);
    return r;
}

static void present_base(sh_physical *p, VcPhysicalDeviceProperties *out) {
    const sh_profile *profile = &p->in->driver->profile;
    out->limits = p->limits;
    if (profile->api_version && out->apiVersion > profile->api_version) out->apiVersion = profile->api_version;
    if (profile->has_type) out->deviceType = profile->device_type;
    if (*profile->name) {
        const size_t n = strlen(out->deviceName);
        snprintf(out->deviceName + n, sizeof out->deviceName - n, " as %s", profile->name);
    }
}

static void VC_CALL w_GetPhysicalDeviceProperties(VcObject handle, VcPhysicalDeviceProperties *out) {
    PHYSICAL(GetPhysicalDeviceProperties);
    if (!p) return;
    p->in->real.GetPhysicalDeviceProperties(handle, out);
    if (p->in->driver) present_base(p, out);
}

static void VC_CALL w_GetPhysicalDeviceProperties2(VcObject handle, VcPhysicalDeviceProperties2 *out) {
    PHYSICAL(GetPhysicalDeviceProperties2);
    if (!p) return;
    p->in->real.GetPhysicalDeviceProperties2(handle, out);
    if (!p->in->driver) return;
    present_base(p, &out->properties);
    for (VcChain *c = out->pNext; c; c = (VcChain *)c->pNext) {
        if (c->sType != VC_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES) continue;
        VcPhysicalDeviceVulkan11Properties *v11 = (VcPhysicalDeviceVulkan11Properties *)c;
        if (p->max_allocation_size) v11->maxMemoryAllocationSize = p->max_allocation_size;
        // Of the operations of subgroups Vulkan obliges every device to the basic ones.
        if (p->in->driver->profile.flags & SH_HIDE_FEATURES) v11->subgroupSupportedOperations &= 1;
    }
}

static void VC_CALL w_GetPhysicalDeviceFeatures(VcObject handle, VcBool *out) {
    PHYSICAL(GetPhysicalDeviceFeatures);
    if (!p) return;
    p->in->real.GetPhysicalDeviceFeatures(handle, out);
    if (!p->in->driver) return;
    VcPhysicalDeviceFeatures2 f = {.sType = VC_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
    memcpy(f.features, out, sizeof f.features);
    sh_hide_features(&p->in->driver->profile, &f);
    memcpy(out, f.features, sizeof f.features);
}

static void VC_CALL w_GetPhysicalDeviceFeatures2(VcObject handle, VcPhysicalDeviceFeatures2 *out) {
    PHYSICAL(GetPhysicalDeviceFeatures2);
    if (!p) return;
    p->in->real.GetPhysicalDeviceFeatures2(handle, out);
    if (p->in->driver) sh_hide_features(&p->in->driver->profile, out);
}

static void VC_CALL w_GetPhysicalDeviceMemoryProperties(VcObject handle, VcPhysicalDeviceMemoryProperties *out) {
    PHYSICAL(GetPhysicalDeviceMemoryProperties);
    if (!p) return;
    if (p->in->driver) *out = p->memory;
    else p->in->real.GetPhysicalDeviceMemoryProperties(handle, out);
}

static void VC_CALL w_GetPhysicalDeviceMemoryProperties2(VcObject handle, VcPhysicalDeviceMemoryProperties2 *out) {
    PHYSICAL(GetPhysicalDeviceMemoryProperties2);
    if (!p) return;
    p->in->real.GetPhysicalDeviceMemoryProperties2(handle, out);
    sh_driver *driver = p->in->driver;
    if (!driver) return;
    out->memoryProperties = p->memory;
    for (VcChain *c = out->pNext; c; c = (VcChain *)c->pNext) {
        if (c->sType != VC_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT) continue;
        VcPhysicalDeviceMemoryBudgetProperties *b = (void *)c;
        if (!(driver->profile.flags & SH_BUDGET)) {
            if (!p->remapped && !(driver->profile.flags & SH_HIDE_EXTENSIONS)) continue; // the driver's own
            memset(b->heapBudget, 0, sizeof b->heapBudget);
            memset(b->heapUsage, 0, sizeof b->heapUsage);
            continue;
        }
        sh_lock();
        for (uint32_t i = 0; i < p->memory.memoryHeapCount; i++) {
            b->heapBudget[i] = driver->budget[i];
            b->heapUsage[i] = driver->heap_used[i];
            const uint64_t least = driver->profile.budget_least[i], step = driver->profile.budget_step;
            if (driver->budget[i] > least) driver->budget[i] -= driver->budget[i] - least < step ? driver->budget[i] - least : step;
        }
        sh_unlock();
    }
}

static void VC_CALL w_GetPhysicalDeviceQueueFamilyProperties(VcObject handle, uint32_t *count, VcQueueFamilyProperties *out) {
    PHYSICAL(GetPhysicalDeviceQueueFamilyProperties);
    if (!p) return;
    p->in->real.GetPhysicalDeviceQueueFamilyProperties(handle, count, out);
    for (uint32_t i = 0; p->in->driver && out && i < *count; i++)
        if (p->in->driver->profile.flags & SH_HIDE_TIMESTAMPS) out[i].timestampValidBits = 0;
}

// --- devices --------------------------------------------------------------------------

static VcResult check_extensions(sh_physical *p, const VcDeviceCreateInfo *info) {
    VcExtensionProperties *list;
    uint32_t n;
    VcResult r = extensions(p, &list, &n);
    for (uint32_t i = 0; r >= 0 && i < info->enabledExtensionCount; i++) {
        int found = 0;
        for (uint32_t k = 0; k < n; k++) found |= !strcmp(list[k].extensionName, info->ppEnabledExtensionNames[i]);
        if (!found) r = SH_ERROR_EXTENSION_NOT_PRESENT;
    }
    free(list);
    return r;
}

static VcResult VC_CALL w_CreateDevice(VcObject handle, const VcDeviceCreateInfo *info, const void *alloc, VcObject *out) {
    PHYSICAL(CreateDevice);
    if (!p) return VC_ERROR_INITIALIZATION_FAILED;
    sh_driver *driver = p->in->driver;
    ENTER(driver, NULL, CreateDevice);
    VcDeviceCreateInfo passed = *info;
    const char **names = NULL;
    VcResult r = VC_SUCCESS;
    if (driver) {
        if ((r = check_extensions(p, info)) < 0 || (r = sh_check_features(&driver->profile, info)) < 0) return r;
        if (!(names = calloc((size_t)info->enabledExtensionCount + 1, sizeof *names))) return VC_ERROR_OUT_OF_HOST_MEMORY;
        passed.enabledExtensionCount = 0;
        passed.ppEnabledExtensionNames = names;
        for (uint32_t i = 0; i < info->enabledExtensionCount; i++) {
            const char *name = info->ppEnabledExtensionNames[i];
            if (!strcmp(name, budget_extension) && !p->real_budget) continue; // ours alone
            names[passed.enabledExtensionCount++] = name;
        }
    }
    r = p->in->real.CreateDevice(handle, &passed, alloc, out);
    free(names);
    if (r < 0) return r;
    sh_device *d = calloc(1, sizeof *d);
    if (!d) abort();
    d->driver = driver;
    d->physical = p;
    d->handle = *out;
    d->timestamps = !driver || !(driver->profile.flags & SH_HIDE_TIMESTAMPS);
    d->deferred_end = &d->deferred;
    SH_MUTEX_INIT(&d->submit);
    sh_load_device(d, p->in->real.GetDeviceProcAddr);
    sh_lock();
    d->object = sh_born(driver, SH_DEVICE, NULL, (uintptr_t)*out, p->in->object);
    d->object->owner = d;
    if (driver) {
        d->next = driver->devices;
        driver->devices = d;
    }
    sh_unlock();
    return r;
}

static VcFunction VC_CALL w_GetDeviceProcAddr(VcObject handle, const char *name) {
    sh_device *d = sh_device_of(handle);
    if (!d) {
        sh_stray("GetDeviceProcAddr");
        return NULL;
    }
    VcFunction real = d->physical->in->real.GetDeviceProcAddr(handle, name);
    // Without a driver to emulate a device costs nothing: its functions are the real ones.
    if (!real || !d->driver || strncmp(name, "vk", 2)) return real;
    if (!strcmp(name, "vkGetDeviceProcAddr")) return (VcFunction)w_GetDeviceProcAddr;
    VcFunction ours = sh_device_function(name + 2);
    return ours ? ours : real;
}

// --- the door -------------------------------------------------------------------------

static VcFunction VC_CALL w_GetInstanceProcAddr(VcObject instance, const char *name) {
    if (!get || !name) return NULL;
    VcFunction real = get(instance, name);
    if (!real || strncmp(name, "vk", 2)) return real;
    VcFunction ours = sh_instance_function(name + 2);
    if (!ours) ours = sh_device_function(name + 2);
    return ours ? ours : real;
}

VcFunction sh_instance_function(const char *name) {
    static const struct { const char *name; VcFunction f; } list[] = {
        {"GetInstanceProcAddr", (VcFunction)w_GetInstanceProcAddr},
        {"EnumerateInstanceVersion", (VcFunction)w_EnumerateInstanceVersion},
        {"EnumerateInstanceLayerProperties", (VcFunction)w_EnumerateInstanceLayerProperties},
        {"EnumerateInstanceExtensionProperties", (VcFunction)w_EnumerateInstanceExtensionProperties},
        {"CreateInstance", (VcFunction)w_CreateInstance},
#define F(name, result, args) {#name, (VcFunction)w_##name},
        SH_INSTANCE_FUNCTIONS(F)
#undef F
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (!strcmp(list[i].name, name)) return list[i].f;
    return NULL;
}

void *sh_install(void *get_instance_proc_addr) {
    get = (sh_get_proc)get_instance_proc_addr;
    return (void *)w_GetInstanceProcAddr;
}

int sh_wraps(const char *name) { return !strncmp(name, "vk", 2) && (sh_instance_function(name + 2) || sh_device_function(name + 2)); }
