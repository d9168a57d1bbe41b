#include "abi.h"

#include <stdlib.h>
#include <string.h>

#if defined(_WIN32)
#include <windows.h>
typedef SRWLOCK vc_lock;
#define LOCK_INIT(l) InitializeSRWLock(l)
#define LOCK(l) AcquireSRWLockExclusive(l)
#define UNLOCK(l) ReleaseSRWLockExclusive(l)
#define LOCK_FREE(l) (void)(l)
#else
#include <pthread.h>
typedef pthread_mutex_t vc_lock;
#define LOCK_INIT(l) pthread_mutex_init(l, NULL)
#define LOCK(l) pthread_mutex_lock(l)
#define UNLOCK(l) pthread_mutex_unlock(l)
#define LOCK_FREE(l) pthread_mutex_destroy(l)
#endif

typedef VcFunction(VC_CALL *get_instance_proc)(VcObject instance, const char *name);

struct vc_instance {
    VcObject handle;
    get_instance_proc get;
    VcHandle messenger;
    int names; // VK_EXT_debug_utils is enabled

    vc_lock lock; // guards the ring
    uint32_t pending, head, dropped, slots;
    vc_message *ring;

    VcResult(VC_CALL *EnumeratePhysicalDevices)(VcObject, uint32_t *, VcObject *);
    VcResult(VC_CALL *EnumerateDeviceExtensionProperties)(VcObject, const char *, uint32_t *, VcExtensionProperties *);
    void(VC_CALL *GetPhysicalDeviceProperties)(VcObject, VcPhysicalDeviceProperties *);
    void(VC_CALL *GetPhysicalDeviceProperties2)(VcObject, VcPhysicalDeviceProperties2 *);
    void(VC_CALL *GetPhysicalDeviceFeatures2)(VcObject, VcPhysicalDeviceFeatures2 *);
    void(VC_CALL *GetPhysicalDeviceMemoryProperties)(VcObject, VcPhysicalDeviceMemoryProperties *);
    void(VC_CALL *GetPhysicalDeviceMemoryProperties2)(VcObject, VcPhysicalDeviceMemoryProperties2 *);
    void(VC_CALL *GetPhysicalDeviceQueueFamilyProperties)(VcObject, uint32_t *, VcQueueFamilyProperties *);
    VcResult(VC_CALL *CreateDevice)(VcObject, const VcDeviceCreateInfo *, const void *, VcObject *);
    VcFunction(VC_CALL *GetDeviceProcAddr)(VcObject, const char *);
};

// --- names --------------------------------------------------------------------------

static int append_name(char *out, size_t size, size_t *used, const char *name) {
    size_t n = strlen(name) + 1;
    if (*used + n > size) return 0;
    memcpy(out + *used, name, n);
    *used += n;
    return 1;
}

// Points each of count pointers at the next of the NUL separated names.
static void split_names(const char *names, const char **out, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        out[i] = names;
        names += strlen(names) + 1;
    }
}

static VcResult pack_extensions(VcExtensionProperties *props, uint32_t n, char *out, size_t size, uint32_t *count) {
    size_t used = 0;
    for (*count = 0; *count < n; ++*count)
        if (!append_name(out, size, &used, props[*count].extensionName)) return VC_INCOMPLETE;
    return VC_SUCCESS;
}

VcResult vc_instance_version(void *get, uint32_t *version) {
    VcResult(VC_CALL * enumerate)(uint32_t *) = (void *)((get_instance_proc)get)(NULL, "vkEnumerateInstanceVersion");
    *version = 1u << 22;
    return enumerate ? enumerate(version) : VC_SUCCESS;
}

VcResult vc_instance_layers(void *get, char *out, size_t size, uint32_t *count) {
    VcResult(VC_CALL * enumerate)(uint32_t *, VcLayerProperties *) = (void *)((get_instance_proc)get)(NULL, "vkEnumerateInstanceLayerProperties");
    uint32_t n = 0;
    *count = 0;
    if (!enumerate) return VC_ERROR_INITIALIZATION_FAILED;
    VcResult r = enumerate(&n, NULL);
    if (r < 0 || n == 0) return r;
    VcLayerProperties *props = calloc(n, sizeof *props);
    if (!props) return VC_ERROR_OUT_OF_HOST_MEMORY;
    r = enumerate(&n, props);
    size_t used = 0;
    for (; r >= 0 && *count < n; ++*count)
        if (!append_name(out, size, &used, props[*count].layerName)) { r = VC_INCOMPLETE; break; }
    free(props);
    return r;
}

VcResult vc_instance_extensions(void *get, const char *layer, char *out, size_t size, uint32_t *count) {
    VcResult(VC_CALL * enumerate)(const char *, uint32_t *, VcExtensionProperties *) =
        (void *)((get_instance_proc)get)(NULL, "vkEnumerateInstanceExtensionProperties");
    uint32_t n = 0;
    *count = 0;
    if (!enumerate) return VC_ERROR_INITIALIZATION_FAILED;
    if (layer && !*layer) layer = NULL;
    VcResult r = enumerate(layer, &n, NULL);
    if (r < 0 || n == 0) return r;
    VcExtensionProperties *props = calloc(n, sizeof *props);
    if (!props) return VC_ERROR_OUT_OF_HOST_MEMORY;
    r = enumerate(layer, &n, props);
    if (r >= 0) r = pack_extensions(props, n, out, size, count);
    free(props);
    return r;
}

// --- messages -----------------------------------------------------------------------

static void copy_text(char *out, size_t size, const char *text) {
    size_t n = text ? strlen(text) : 0;
    if (n >= size) n = size - 1;
    if (n) memcpy(out, text, n);
    out[n] = 0;
}

static VcBool VC_CALL on_message(uint32_t severity, uint32_t types, const VcDebugUtilsMessengerCallbackData *data, void *user) {
    vc_instance *in = user;
    // Of what is no warning, only what shaders print is worth the room.
    if (severity < VC_DEBUG_SEVERITY_WARNING && !(data->pMessageIdName && strstr(data->pMessageIdName, "DEBUG-PRINTF"))) return 0;
    const char *object = NULL;
    for (uint32_t i = 0; i < data->objectCount && !object; i++) {
        const int32_t type = data->pObjects[i].objectType;
        if (type == VC_OBJECT_TYPE_PIPELINE || type == VC_OBJECT_TYPE_SHADER_MODULE) object = data->pObjects[i].pObjectName;
    }
    LOCK(&in->lock);
    uint32_t pending = __atomic_load_n(&in->pending, __ATOMIC_RELAXED);
    if (pending == in->slots) {
        in->dropped++;
    } else {
        vc_message *m = &in->ring[(in->head + pending) % in->slots];
        m->severity = severity;
        m->types = types;
        m->id = data->messageIdNumber;
        copy_text(m->name, sizeof m->name, data->pMessageIdName);
        copy_text(m->object, sizeof m->object, object);
        copy_text(m->text, sizeof m->text, data->pMessage);
        __atomic_store_n(&in->pending, pending + 1, __ATOMIC_RELEASE);
    }
    UNLOCK(&in->lock);
    return 0;
}

uint32_t *vc_messages_pending(vc_instance *in) { return &in->pending; }

uint32_t vc_messages_take(vc_instance *in, vc_message *out, uint32_t n, uint32_t *dropped) {
    LOCK(&in->lock);
    uint32_t pending = __atomic_load_n(&in->pending, __ATOMIC_RELAXED), taken = 0;
    for (; taken < n && taken < pending; taken++) {
        out[taken] = in->ring[in->head];
        in->head = (in->head + 1) % in->slots;
    }
    __atomic_store_n(&in->pending, pending - taken, __ATOMIC_RELEASE);
    *dropped = in->dropped;
    in->dropped = 0;
    UNLOCK(&in->lock);
    return taken;
}

// --- instance -----------------------------------------------------------------------

static int load_instance_functions(vc_instance *in) {
#define LOAD(name) in->name = (void *)in->get(in->handle, "vk" #name)
    LOAD(EnumeratePhysicalDevices);
    LOAD(EnumerateDeviceExtensionProperties);
    LOAD(GetPhysicalDeviceProperties);
    LOAD(GetPhysicalDeviceProperties2);
    LOAD(GetPhysicalDeviceFeatures2);
    LOAD(GetPhysicalDeviceMemoryProperties);
    LOAD(GetPhysicalDeviceMemoryProperties2);
    LOAD(GetPhysicalDeviceQueueFamilyProperties);
    LOAD(CreateDevice);
    LOAD(GetDeviceProcAddr);
#undef LOAD
    return in->EnumeratePhysicalDevices && in->EnumerateDeviceExtensionProperties && in->GetPhysicalDeviceProperties &&
           in->GetPhysicalDeviceMemoryProperties && in->GetPhysicalDeviceQueueFamilyProperties && in->CreateDevice && in->GetDeviceProcAddr;
}

VcResult vc_instance_new(void *get, const vc_instance_spec *spec, const char *layers, uint32_t layer_count, const char *extensions,
                         uint32_t extension_count, vc_instance **out) {
    *out = NULL;
    VcResult r = VC_ERROR_OUT_OF_HOST_MEMORY;
    vc_instance *in = calloc(1, sizeof *in);
    const char **names = calloc((size_t)layer_count + extension_count + 1, sizeof *names);
    if (!in || !names) goto fail_memory;
    in->slots = spec->prints ? VC_PRINT_RING : VC_RING;
    if (spec->messages && !(in->ring = calloc(in->slots, sizeof *in->ring))) goto fail_memory;
    in->get = (get_instance_proc)get;
    LOCK_INIT(&in->lock);
    split_names(layers, names, layer_count);
    split_names(extensions, names + layer_count, extension_count);

    const void *chain = NULL;
    VcDebugUtilsMessengerCreateInfo messenger = {
        .sType = VC_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
        .messageSeverity = (spec->prints ? VC_DEBUG_SEVERITY_INFO : 0) | VC_DEBUG_SEVERITY_WARNING | VC_DEBUG_SEVERITY_ERROR,
        .messageType = VC_DEBUG_TYPE_GENERAL | VC_DEBUG_TYPE_VALIDATION | VC_DEBUG_TYPE_PERFORMANCE,
        .pfnUserCallback = on_message,
        .pUserData = in,
    };
    if (spec->messages) chain = &messenger; // also covers the creation and the destruction of the instance

    const int sync = spec->validation == VC_VALIDATE_SYNC;
    uint32_t enabled[2], enabled_count = 0;
    if (sync) enabled[enabled_count++] = VC_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT;
    if (spec->prints) enabled[enabled_count++] = VC_VALIDATION_FEATURE_ENABLE_DEBUG_PRINTF_EXT;
    VcValidationFeatures features = {
        .sType = VC_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT, .enabledValidationFeatureCount = enabled_count, .pEnabledValidationFeatures = enabled};
    // Two generations of one switch. Layers that know layer settings take the storage-buffer heuristic
    // with it, without which no hazard between storage buffers is reported, and lift the limit of ten
    // messages of one kind. The extension of the settings must not be enabled: loaders that do not know
    // it refuse the instance, and the layer reads the structure all the same.
    const VcBool yes = 1, no = 0;
    // For all that one submission prints. The layer's own choice of 1 KiB holds some 25 lines.
    const uint32_t print_bytes = 256 << 10;
    static const char layer[] = "VK_LAYER_KHRONOS_validation";
    VcLayerSetting settings[8];
    uint32_t setting_count = 0;
#define SETTING(kind, name, value) settings[setting_count++] = (VcLayerSetting){layer, name, VC_LAYER_SETTING_TYPE_##kind##_EXT, 1, value}
    SETTING(BOOL32, "enable_message_limit", &no);
    if (sync) {
        SETTING(BOOL32, "validate_sync", &yes);
        SETTING(BOOL32, "syncval_shader_accesses_heuristic", &yes);
    }
    if (spec->prints) {
        SETTING(BOOL32, "printf_enable", &yes);
        SETTING(BOOL32, "printf_to_stdout", &no);
        SETTING(BOOL32, "printf_verbose", &yes); // with the invocation
        SETTING(UINT32, "printf_buffer_size", &print_bytes);
        if (spec->validation == VC_VALIDATE_OFF) SETTING(BOOL32, "printf_only_preset", &yes);
    }
#undef SETTING
    VcLayerSettingsCreateInfo layer_settings = {
        .sType = VC_STRUCTURE_TYPE_LAYER_SETTINGS_CREATE_INFO_EXT, .settingCount = setting_count, .pSettings = settings};
    if (enabled_count && spec->layer_settings) {
        layer_settings.pNext = chain;
        chain = &layer_settings;
    } else if (enabled_count && spec->validation_features) {
        features.pNext = chain;
        chain = &features;
    }

    const VcApplicationInfo app = {
        .sType = VC_STRUCTURE_TYPE_APPLICATION_INFO, .pEngineName = "vkcompute", .apiVersion = spec->api_version};
    const VcInstanceCreateInfo info = {
        .sType = VC_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
        .pNext = chain,
        .flags = spec->portability ? VC_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT : 0,
        .pApplicationInfo = &app,
        .enabledLayerCount = layer_count,
        .ppEnabledLayerNames = names,
        .enabledExtensionCount = extension_count,
        .ppEnabledExtensionNames = names + layer_count,
    };
    VcResult(VC_CALL * create)(const VcInstanceCreateInfo *, const void *, VcObject *) = (void *)in->get(NULL, "vkCreateInstance");
    r = create ? create(&info, NULL, &in->handle) : VC_ERROR_INITIALIZATION_FAILED;
    if (r < 0) goto fail;
    if (!load_instance_functions(in)) {
        r = VC_ERROR_INITIALIZATION_FAILED;
        goto fail;
    }
    in->names = spec->names != 0;
    if (spec->messages) {
        VcResult(VC_CALL * make)(VcObject, const VcDebugUtilsMessengerCreateInfo *, const void *, VcHandle *) =
            (void *)in->get(in->handle, "vkCreateDebugUtilsMessengerEXT");
        r = make ? make(in->handle, &messenger, NULL, &in->messenger) : VC_ERROR_INITIALIZATION_FAILED;
        if (r < 0) goto fail;
    }
    free(names);
    *out = in;
    return VC_SUCCESS;

fail:
    free(names);
    vc_instance_free(in);
    return r;
fail_memory:
    free(names);
    if (in) free(in->ring);
    free(in);
    return r;
}

void vc_instance_free(vc_instance *in) {
    if (in->handle) {
        void(VC_CALL * drop)(VcObject, VcHandle, const void *) = (void *)in->get(in->handle, "vkDestroyDebugUtilsMessengerEXT");
        if (drop && in->messenger) drop(in->handle, in->messenger, NULL);
        void(VC_CALL * destroy)(VcObject, const void *) = (void *)in->get(in->handle, "vkDestroyInstance");
        if (destroy) destroy(in->handle, NULL);
    }
    LOCK_FREE(&in->lock);
    free(in->ring);
    free(in);
}

void *vc_instance_handle(const vc_instance *in) { return in->handle; }

// --- physical devices ---------------------------------------------------------------

static VcObject object(uint64_t handle) { return (VcObject)(uintptr_t)handle; }

VcResult vc_physical_list(vc_instance *in, uint64_t *out, uint32_t *count) {
    uint32_t n = *count;
    VcObject *list = calloc(n ? n : 1, sizeof *list);
    if (!list) return VC_ERROR_OUT_OF_HOST_MEMORY;
    VcResult r = in->EnumeratePhysicalDevices(in->handle, &n, list);
    *count = r < 0 ? 0 : n;
    for (uint32_t i = 0; i < *count; i++) out[i] = (uintptr_t)list[i];
    free(list);
    return r;
}

VcResult vc_physical_extensions(vc_instance *in, uint64_t physical, char *out, size_t size, uint32_t *count) {
    uint32_t n = 0;
    *count = 0;
    VcResult r = in->EnumerateDeviceExtensionProperties(object(physical), NULL, &n, NULL);
    if (r < 0 || n == 0) return r;
    VcExtensionProperties *props = calloc(n, sizeof *props);
    if (!props) return VC_ERROR_OUT_OF_HOST_MEMORY;
    r = in->EnumerateDeviceExtensionProperties(object(physical), NULL, &n, props);
    if (r >= 0) r = pack_extensions(props, n, out, size, count);
    free(props);
    return r;
}

void vc_physical_query(vc_instance *in, uint64_t physical, VcBool robustness2, vc_physical *out) {
    memset(out, 0, sizeof *out);
    in->GetPhysicalDeviceProperties(object(physical), &out->base);
    in->GetPhysicalDeviceMemoryProperties(object(physical), &out->memory);
    out->family_count = VC_MAX_FAMILIES;
    in->GetPhysicalDeviceQueueFamilyProperties(object(physical), &out->family_count, out->families);
    // An older device must not see structures it does not know.
    const uint32_t v12 = 1u << 22 | 2u << 12;
    if ((out->base.apiVersion & 0x1fffffffu) < v12 || !in->GetPhysicalDeviceProperties2 || !in->GetPhysicalDeviceFeatures2) return;

    out->v12.sType = VC_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES;
    out->v11.sType = VC_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES;
    out->v11.pNext = &out->v12;
    VcPhysicalDeviceProperties2 properties = {.sType = VC_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &out->v11};
    in->GetPhysicalDeviceProperties2(object(physical), &properties);
    out->v11.pNext = out->v12.pNext = NULL;

    VcPhysicalDeviceRobustness2Features robust = {.sType = VC_STRUCTURE_TYPE_PHYSICAL_DEVICE_ROBUSTNESS_2_FEATURES_EXT};
    VcPhysicalDeviceVulkan12Features f12 = {.sType = VC_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES, .pNext = robustness2 ? &robust : NULL};
    VcPhysicalDeviceVulkan11Features f11 = {.sType = VC_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES, .pNext = &f12};
    VcPhysicalDeviceFeatures2 f10 = {.sType = VC_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &f11};
    in->GetPhysicalDeviceFeatures2(object(physical), &f10);
    out->robust_buffer_access = f10.features[VC_FEATURE_ROBUST_BUFFER_ACCESS];
    out->float64 = f10.features[VC_FEATURE_FLOAT64];
    out->int64 = f10.features[VC_FEATURE_INT64];
    out->int16 = f10.features[VC_FEATURE_INT16];
    out->storage_16bit = f11.features[VC_FEATURE11_STORAGE_16BIT];
    out->storage_8bit = f12.features[VC_FEATURE12_STORAGE_8BIT];
    out->float16 = f12.features[VC_FEATURE12_FLOAT16];
    out->int8 = f12.features[VC_FEATURE12_INT8];
    out->host_query_reset = f12.features[VC_FEATURE12_HOST_QUERY_RESET];
    out->timeline_semaphore = f12.features[VC_FEATURE12_TIMELINE_SEMAPHORE];
    out->buffer_device_address = f12.features[VC_FEATURE12_BUFFER_DEVICE_ADDRESS];
    out->robust_buffer_access2 = robust.robustBufferAccess2;
}

void vc_physical_budget(vc_instance *in, uint64_t physical, uint64_t budget[16], uint64_t usage[16]) {
    VcPhysicalDeviceMemoryBudgetProperties b = {.sType = VC_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
    VcPhysicalDeviceMemoryProperties2 p = {.sType = VC_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2, .pNext = &b};
    if (in->GetPhysicalDeviceMemoryProperties2) in->GetPhysicalDeviceMemoryProperties2(object(physical), &p);
    memcpy(budget, b.heapBudget, sizeof b.heapBudget);
    memcpy(usage, b.heapUsage, sizeof b.heapUsage);
}

// --- device -------------------------------------------------------------------------

VcResult vc_device_new(vc_instance *in, uint64_t physical, uint32_t family, uint32_t queues, const char *extensions,
                       uint32_t extension_count, uint32_t enable, vc_device **out, const char **missing) {
    *out = NULL;
    *missing = NULL;
    vc_device *d = calloc(1, sizeof *d);
    const char **names = calloc((size_t)extension_count + 1, sizeof *names);
    float *priorities = calloc((size_t)queues + 1, sizeof *priorities);
    VcResult r = VC_ERROR_OUT_OF_HOST_MEMORY;
    if (!d || !names || !priorities) goto fail;
    split_names(extensions, names, extension_count);
    for (uint32_t i = 0; i < queues; i++) priorities[i] = 1;

#define ENABLED(bit) ((enable & (bit)) != 0)
    VcPhysicalDeviceRobustness2Features robust = {
        .sType = VC_STRUCTURE_TYPE_PHYSICAL_DEVICE_ROBUSTNESS_2_FEATURES_EXT, .robustBufferAccess2 = ENABLED(VC_ENABLE_ROBUST2)};
    VcPhysicalDeviceVulkan12Features f12 = {
        .sType = VC_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES, .pNext = ENABLED(VC_ENABLE_ROBUST2) ? &robust : NULL};
    f12.features[VC_FEATURE12_TIMELINE_SEMAPHORE] = 1;
    f12.features[VC_FEATURE12_STORAGE_8BIT] = ENABLED(VC_ENABLE_STORAGE8);
    f12.features[VC_FEATURE12_FLOAT16] = ENABLED(VC_ENABLE_FLOAT16);
    f12.features[VC_FEATURE12_INT8] = ENABLED(VC_ENABLE_INT8);
    f12.features[VC_FEATURE12_BUFFER_DEVICE_ADDRESS] = ENABLED(VC_ENABLE_ADDRESS);
    f12.features[VC_FEATURE12_HOST_QUERY_RESET] = ENABLED(VC_ENABLE_HOST_QUERY_RESET);
    VcPhysicalDeviceVulkan11Features f11 = {.sType = VC_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES, .pNext = &f12};
    f11.features[VC_FEATURE11_STORAGE_16BIT] = ENABLED(VC_ENABLE_STORAGE16);
    VcPhysicalDeviceFeatures2 f10 = {.sType = VC_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &f11};
    f10.features[VC_FEATURE_ROBUST_BUFFER_ACCESS] = ENABLED(VC_ENABLE_ROBUST) || ENABLED(VC_ENABLE_ROBUST2);
    f10.features[VC_FEATURE_FLOAT64] = ENABLED(VC_ENABLE_FLOAT64);
    f10.features[VC_FEATURE_INT64] = ENABLED(VC_ENABLE_INT64);
    f10.features[VC_FEATURE_INT16] = ENABLED(VC_ENABLE_INT16);
#undef ENABLED

    const VcDeviceQueueCreateInfo queue = {
        .sType = VC_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, .queueFamilyIndex = family, .queueCount = queues, .pQueuePriorities = priorities};
    const VcDeviceCreateInfo info = {
        .sType = VC_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
        .pNext = &f10,
        .queueCreateInfoCount = 1,
        .pQueueCreateInfos = &queue,
        .enabledExtensionCount = extension_count,
        .ppEnabledExtensionNames = names,
    };
    r = in->CreateDevice(object(physical), &info, NULL, &d->handle);
    if (r < 0) goto fail;

#define F(name, result, args)                                            \
    d->call.name = (void *)in->GetDeviceProcAddr(d->handle, "vk" #name); \
    if (!d->call.name && !*missing) *missing = "vk" #name;
    VC_DEVICE_FUNCTIONS(F)
#undef F
    if (*missing) {
        void(VC_CALL * destroy)(VcObject, const void *) = (void *)in->GetDeviceProcAddr(d->handle, "vkDestroyDevice");
        if (destroy) destroy(d->handle, NULL);
        r = VC_ERROR_INITIALIZATION_FAILED;
        goto fail;
    }
    d->SetDebugUtilsObjectName = in->names ? (void *)in->GetDeviceProcAddr(d->handle, "vkSetDebugUtilsObjectNameEXT") : NULL;
    free(names);
    free(priorities);
    *out = d;
    return VC_SUCCESS;

fail:
    free(d);
    free(names);
    free(priorities);
    return r;
}

void vc_device_free(vc_device *d) { free(d); }
