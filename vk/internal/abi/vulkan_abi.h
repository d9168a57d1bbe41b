// The part of the Vulkan 1.2 binary interface that this package calls, spelled out
// here so that building the library needs no Vulkan headers.
//
// Names follow the specification with the prefix Vc in place of Vk, so that a test
// can include this file and the system's <vulkan/vulkan.h> side by side and assert
// that every size, offset and constant agrees (layout_test.go does). Fields the
// library never reads are folded into arrays named _unused….
#ifndef VKCOMPUTE_VULKAN_ABI_H
#define VKCOMPUTE_VULKAN_ABI_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define VC_CALL __stdcall
#else
#define VC_CALL
#endif

// Dispatchable handles are pointers; all others are 64 bits wide on every platform.
typedef void *VcObject;
typedef uint64_t VcHandle;
typedef uint64_t VcSize;
typedef uint32_t VcBool;
typedef int32_t VcResult;
typedef void (*VcFunction)(void);

enum {
    VC_SUCCESS = 0,
    VC_NOT_READY = 1,
    VC_TIMEOUT = 2,
    VC_INCOMPLETE = 5,
    VC_ERROR_OUT_OF_HOST_MEMORY = -1,
    VC_ERROR_INITIALIZATION_FAILED = -3,
    VC_ERROR_DEVICE_LOST = -4,
    VC_ERROR_UNKNOWN = -13,
};

enum {
    VC_STRUCTURE_TYPE_APPLICATION_INFO = 0,
    VC_STRUCTURE_TYPE_INSTANCE_CREATE_INFO = 1,
    VC_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO = 2,
    VC_STRUCTURE_TYPE_DEVICE_CREATE_INFO = 3,
    VC_STRUCTURE_TYPE_SUBMIT_INFO = 4,
    VC_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO = 5,
    VC_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE = 6,
    VC_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO = 9,
    VC_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO = 16,
    VC_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO = 17,
    VC_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO = 18,
    VC_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO = 29,
    VC_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO = 30,
    VC_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO = 32,
    VC_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO = 33,
    VC_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO = 34,
    VC_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET = 35,
    VC_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO = 42,
    VC_STRUCTURE_TYPE_MEMORY_BARRIER = 46,
    VC_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES = 49,
    VC_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES = 50,
    VC_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES = 51,
    VC_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES = 52,
    VC_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2 = 1000059000,
    VC_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2 = 1000059001,
    VC_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2 = 1000059006,
    VC_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO = 1000060000,
    VC_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT = 1000128000,
    VC_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT = 1000128004,
    VC_STRUCTURE_TYPE_PIPELINE_CREATION_FEEDBACK_CREATE_INFO_EXT = 1000192000,
    VC_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO = 1000207002,
    VC_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO = 1000207003,
    VC_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO = 1000207004,
    VC_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT = 1000237000,
    VC_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO = 1000244001,
    VC_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT = 1000247000,
    VC_STRUCTURE_TYPE_PHYSICAL_DEVICE_ROBUSTNESS_2_FEATURES_EXT = 1000286000,
    VC_STRUCTURE_TYPE_LAYER_SETTINGS_CREATE_INFO_EXT = 1000496000,
};

enum {
    VC_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT = 0x20000,
    VC_DESCRIPTOR_TYPE_STORAGE_BUFFER = 7,
    VC_DESCRIPTOR_TYPE_STORAGE_BUFFER_DYNAMIC = 9,
    VC_SHADER_STAGE_COMPUTE_BIT = 0x20,
    VC_PIPELINE_BIND_POINT_COMPUTE = 1,
    VC_PIPELINE_STAGE_COMPUTE_SHADER_BIT = 0x800,
    VC_PIPELINE_STAGE_ALL_COMMANDS_BIT = 0x10000,
    VC_PIPELINE_CREATION_FEEDBACK_VALID_BIT_EXT = 1,
    VC_PIPELINE_CREATION_FEEDBACK_APPLICATION_PIPELINE_CACHE_HIT_BIT_EXT = 2,
    VC_SEMAPHORE_TYPE_TIMELINE = 1,
    VC_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT = 2,
    VC_VALIDATION_FEATURE_ENABLE_DEBUG_PRINTF_EXT = 3,
    VC_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT = 4,
    VC_LAYER_SETTING_TYPE_BOOL32_EXT = 0,
    VC_LAYER_SETTING_TYPE_UINT32_EXT = 3,
    VC_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT = 1,
    VC_OBJECT_TYPE_SHADER_MODULE = 15,
    VC_OBJECT_TYPE_PIPELINE = 19,
    VC_DEBUG_SEVERITY_INFO = 0x10,
    VC_DEBUG_SEVERITY_WARNING = 0x100,
    VC_DEBUG_SEVERITY_ERROR = 0x1000,
    VC_DEBUG_TYPE_GENERAL = 1,
    VC_DEBUG_TYPE_VALIDATION = 2,
    VC_DEBUG_TYPE_PERFORMANCE = 4,
};

// Every extensible structure begins so.
typedef struct { int32_t sType; const void *pNext; } VcChain;

typedef struct {
    int32_t sType; const void *pNext;
    const char *pApplicationName; uint32_t applicationVersion;
    const char *pEngineName; uint32_t engineVersion;
    uint32_t apiVersion;
} VcApplicationInfo;

typedef struct {
    int32_t sType; const void *pNext; uint32_t flags;
    const VcApplicationInfo *pApplicationInfo;
    uint32_t enabledLayerCount; const char *const *ppEnabledLayerNames;
    uint32_t enabledExtensionCount; const char *const *ppEnabledExtensionNames;
} VcInstanceCreateInfo;

typedef struct { char layerName[256]; uint32_t specVersion, implementationVersion; char description[256]; } VcLayerProperties;
typedef struct { char extensionName[256]; uint32_t specVersion; } VcExtensionProperties;

typedef struct { int32_t sType; const void *pNext; int32_t objectType; uint64_t objectHandle; const char *pObjectName; } VcDebugUtilsObjectNameInfo;

typedef struct {
    int32_t sType; const void *pNext; uint32_t flags;
    const char *pMessageIdName; int32_t messageIdNumber; const char *pMessage;
    uint32_t queueLabelCount; const void *pQueueLabels;
    uint32_t cmdBufLabelCount; const void *pCmdBufLabels;
    uint32_t objectCount; const VcDebugUtilsObjectNameInfo *pObjects;
} VcDebugUtilsMessengerCallbackData;

typedef VcBool(VC_CALL *VcDebugCallback)(uint32_t severity, uint32_t types, const VcDebugUtilsMessengerCallbackData *data, void *user);

typedef struct {
    int32_t sType; const void *pNext; uint32_t flags;
    uint32_t messageSeverity, messageType; VcDebugCallback pfnUserCallback; void *pUserData;
} VcDebugUtilsMessengerCreateInfo;

typedef struct {
    int32_t sType; const void *pNext;
    uint32_t enabledValidationFeatureCount; const uint32_t *pEnabledValidationFeatures;
    uint32_t disabledValidationFeatureCount; const uint32_t *pDisabledValidationFeatures;
} VcValidationFeatures;

typedef struct { const char *pLayerName, *pSettingName; int32_t type; uint32_t valueCount; const void *pValues; } VcLayerSetting;
typedef struct { int32_t sType; const void *pNext; uint32_t settingCount; const VcLayerSetting *pSettings; } VcLayerSettingsCreateInfo;

typedef struct {
    uint32_t _unusedImages[6], maxUniformBufferRange, maxStorageBufferRange, maxPushConstantsSize, maxMemoryAllocationCount, maxSamplerAllocationCount;
    VcSize bufferImageGranularity, sparseAddressSpaceSize;
    uint32_t maxBoundDescriptorSets, _unusedPerStageSamplers, _unusedPerStageUniform, maxPerStageDescriptorStorageBuffers, _unusedPerStageImages[3], maxPerStageResources;
    uint32_t _unusedSetUniform[3], maxDescriptorSetStorageBuffers, maxDescriptorSetStorageBuffersDynamic, _unusedSetImages[3];
    uint32_t _unusedGraphics[22];
    uint32_t maxComputeSharedMemorySize, maxComputeWorkGroupCount[3], maxComputeWorkGroupInvocations, maxComputeWorkGroupSize[3];
    uint32_t _unusedRaster[13];
    size_t minMemoryMapAlignment;
    VcSize minTexelBufferOffsetAlignment, minUniformBufferOffsetAlignment, minStorageBufferOffsetAlignment;
    uint32_t _unusedTexel[21];
    VcBool timestampComputeAndGraphics; float timestampPeriod;
    uint32_t _unusedClip[12];
    VcSize optimalBufferCopyOffsetAlignment, optimalBufferCopyRowPitchAlignment, nonCoherentAtomSize;
} VcPhysicalDeviceLimits;

typedef struct {
    uint32_t apiVersion, driverVersion, vendorID, deviceID, deviceType;
    char deviceName[256]; uint8_t pipelineCacheUUID[16];
    VcPhysicalDeviceLimits limits; VcBool _unusedSparse[5];
} VcPhysicalDeviceProperties;

typedef struct { int32_t sType; void *pNext; VcPhysicalDeviceProperties properties; } VcPhysicalDeviceProperties2;

typedef struct {
    int32_t sType; void *pNext;
    uint8_t deviceUUID[16], driverUUID[16], deviceLUID[8]; uint32_t deviceNodeMask; VcBool deviceLUIDValid;
    uint32_t subgroupSize, subgroupSupportedStages, subgroupSupportedOperations; uint32_t _unused[5];
    uint32_t maxPerSetDescriptors; VcSize maxMemoryAllocationSize;
} VcPhysicalDeviceVulkan11Properties;

typedef struct {
    int32_t sType; void *pNext;
    uint32_t driverID; char driverName[256], driverInfo[256]; uint8_t conformanceVersion[4];
    uint32_t _unused[46]; VcSize maxTimelineSemaphoreValueDifference; uint32_t _unusedSamples; 
} VcPhysicalDeviceVulkan12Properties;

enum { VC_FEATURE_ROBUST_BUFFER_ACCESS = 0, VC_FEATURE_FLOAT64 = 39, VC_FEATURE_INT64 = 40, VC_FEATURE_INT16 = 41, VC_FEATURE_COUNT = 55 };
typedef struct { int32_t sType; void *pNext; VcBool features[VC_FEATURE_COUNT]; } VcPhysicalDeviceFeatures2;

enum { VC_FEATURE11_STORAGE_16BIT = 0, VC_FEATURE11_COUNT = 12 };
typedef struct { int32_t sType; void *pNext; VcBool features[VC_FEATURE11_COUNT]; } VcPhysicalDeviceVulkan11Features;

enum {
    VC_FEATURE12_STORAGE_8BIT = 2, VC_FEATURE12_FLOAT16 = 7, VC_FEATURE12_INT8 = 8,
    VC_FEATURE12_HOST_QUERY_RESET = 36, VC_FEATURE12_TIMELINE_SEMAPHORE = 37, VC_FEATURE12_BUFFER_DEVICE_ADDRESS = 38, VC_FEATURE12_COUNT = 47
};
typedef struct { int32_t sType; void *pNext; VcBool features[VC_FEATURE12_COUNT]; } VcPhysicalDeviceVulkan12Features;

typedef struct { int32_t sType; void *pNext; VcBool robustBufferAccess2, robustImageAccess2, nullDescriptor; } VcPhysicalDeviceRobustness2Features;

typedef struct { uint32_t propertyFlags, heapIndex; } VcMemoryType;
typedef struct { VcSize size; uint32_t flags; } VcMemoryHeap;
typedef struct {
    uint32_t memoryTypeCount; VcMemoryType memoryTypes[32];
    uint32_t memoryHeapCount; VcMemoryHeap memoryHeaps[16];
} VcPhysicalDeviceMemoryProperties;
typedef struct { int32_t sType; void *pNext; VcPhysicalDeviceMemoryProperties memoryProperties; } VcPhysicalDeviceMemoryProperties2;
typedef struct { int32_t sType; void *pNext; VcSize heapBudget[16], heapUsage[16]; } VcPhysicalDeviceMemoryBudgetProperties;

typedef struct { uint32_t queueFlags, queueCount, timestampValidBits, minImageTransferGranularity[3]; } VcQueueFamilyProperties;

typedef struct { int32_t sType; const void *pNext; uint32_t flags, queueFamilyIndex, queueCount; const float *pQueuePriorities; } VcDeviceQueueCreateInfo;
typedef struct {
    int32_t sType; const void *pNext; uint32_t flags;
    uint32_t queueCreateInfoCount; const VcDeviceQueueCreateInfo *pQueueCreateInfos;
    uint32_t enabledLayerCount; const char *const *ppEnabledLayerNames;
    uint32_t enabledExtensionCount; const char *const *ppEnabledExtensionNames;
    const void *pEnabledFeatures;
} VcDeviceCreateInfo;

typedef struct { int32_t sType; const void *pNext; VcSize allocationSize; uint32_t memoryTypeIndex; } VcMemoryAllocateInfo;
typedef struct { int32_t sType; const void *pNext; uint32_t flags, deviceMask; } VcMemoryAllocateFlagsInfo;
typedef struct { int32_t sType; const void *pNext; VcHandle memory; VcSize offset, size; } VcMappedMemoryRange;
typedef struct { int32_t sType; const void *pNext; VcHandle buffer; } VcBufferDeviceAddressInfo;

typedef struct { int32_t sType; const void *pNext; int32_t semaphoreType; uint64_t initialValue; } VcSemaphoreTypeCreateInfo;
typedef struct { int32_t sType; const void *pNext; uint32_t flags; } VcSemaphoreCreateInfo;
typedef struct {
    int32_t sType; const void *pNext; uint32_t flags, semaphoreCount;
    const VcHandle *pSemaphores; const uint64_t *pValues;
} VcSemaphoreWaitInfo;

typedef struct { int32_t sType; const void *pNext; uint32_t flags; size_t codeSize; const uint32_t *pCode; } VcShaderModuleCreateInfo;
typedef struct { int32_t sType; const void *pNext; uint32_t flags; size_t initialDataSize; const void *pInitialData; } VcPipelineCacheCreateInfo;
typedef struct { uint32_t constantID, offset; size_t size; } VcSpecializationMapEntry;
typedef struct { uint32_t mapEntryCount; const VcSpecializationMapEntry *pMapEntries; size_t dataSize; const void *pData; } VcSpecializationInfo;
typedef struct {
    int32_t sType; const void *pNext; uint32_t flags, stage; VcHandle module;
    const char *pName; const VcSpecializationInfo *pSpecializationInfo;
} VcPipelineShaderStageCreateInfo;
typedef struct {
    int32_t sType; const void *pNext; uint32_t flags; VcPipelineShaderStageCreateInfo stage;
    VcHandle layout, basePipelineHandle; int32_t basePipelineIndex;
} VcComputePipelineCreateInfo;
typedef struct { uint32_t flags; uint64_t duration; } VcPipelineCreationFeedback;
typedef struct {
    int32_t sType; const void *pNext; VcPipelineCreationFeedback *pPipelineCreationFeedback;
    uint32_t pipelineStageCreationFeedbackCount; VcPipelineCreationFeedback *pPipelineStageCreationFeedbacks;
} VcPipelineCreationFeedbackCreateInfo;
typedef struct { uint32_t stageFlags, offset, size; } VcPushConstantRange;
typedef struct {
    int32_t sType; const void *pNext; uint32_t flags;
    uint32_t setLayoutCount; const VcHandle *pSetLayouts;
    uint32_t pushConstantRangeCount; const VcPushConstantRange *pPushConstantRanges;
} VcPipelineLayoutCreateInfo;

typedef struct { uint32_t binding, descriptorType, descriptorCount, stageFlags; const VcHandle *pImmutableSamplers; } VcDescriptorSetLayoutBinding;
typedef struct { int32_t sType; const void *pNext; uint32_t flags, bindingCount; const VcDescriptorSetLayoutBinding *pBindings; } VcDescriptorSetLayoutCreateInfo;
typedef struct { uint32_t type, descriptorCount; } VcDescriptorPoolSize;
typedef struct { int32_t sType; const void *pNext; uint32_t flags, maxSets, poolSizeCount; const VcDescriptorPoolSize *pPoolSizes; } VcDescriptorPoolCreateInfo;
typedef struct { int32_t sType; const void *pNext; VcHandle descriptorPool; uint32_t descriptorSetCount; const VcHandle *pSetLayouts; } VcDescriptorSetAllocateInfo;
typedef struct { VcHandle buffer; VcSize offset, range; } VcDescriptorBufferInfo;
typedef struct {
    int32_t sType; const void *pNext; VcHandle dstSet; uint32_t dstBinding, dstArrayElement, descriptorCount, descriptorType;
    const void *pImageInfo; const VcDescriptorBufferInfo *pBufferInfo; const void *pTexelBufferView;
} VcWriteDescriptorSet;

typedef struct { int32_t sType; const void *pNext; uint32_t flags; const void *pInheritanceInfo; } VcCommandBufferBeginInfo;
typedef struct { int32_t sType; const void *pNext; uint32_t srcAccessMask, dstAccessMask; } VcMemoryBarrier;
typedef struct { VcSize srcOffset, dstOffset, size; } VcBufferCopy;
typedef struct {
    int32_t sType; const void *pNext;
    uint32_t waitSemaphoreCount; const VcHandle *pWaitSemaphores; const uint32_t *pWaitDstStageMask;
    uint32_t commandBufferCount; const VcObject *pCommandBuffers;
    uint32_t signalSemaphoreCount; const VcHandle *pSignalSemaphores;
} VcSubmitInfo;
typedef struct {
    int32_t sType; const void *pNext;
    uint32_t waitSemaphoreValueCount; const uint64_t *pWaitSemaphoreValues;
    uint32_t signalSemaphoreValueCount; const uint64_t *pSignalSemaphoreValues;
} VcTimelineSemaphoreSubmitInfo;

#endif
