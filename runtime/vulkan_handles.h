// The Vulkan handles that runtime headers mention, declared without the Vulkan headers, so that
// code above the runtime never includes those. vulkan_private.h checks that the declarations agree.
#pragma once

using VkInstance = struct VkInstance_T*;
using VkPhysicalDevice = struct VkPhysicalDevice_T*;
using VkDevice = struct VkDevice_T*;
using VkQueue = struct VkQueue_T*;
using VkCommandBuffer = struct VkCommandBuffer_T*;

// On 64-bit platforms Vulkan's other handles are pointers, too; Hearth supports 64-bit only.
static_assert(sizeof(void*) == 8, "Hearth needs a 64-bit platform");
using VkSemaphore = struct VkSemaphore_T*;
using VkBuffer = struct VkBuffer_T*;
using VkDeviceMemory = struct VkDeviceMemory_T*;
using VkCommandPool = struct VkCommandPool_T*;
using VkPipeline = struct VkPipeline_T*;
using VkPipelineLayout = struct VkPipelineLayout_T*;
using VkPipelineCache = struct VkPipelineCache_T*;
using VkQueryPool = struct VkQueryPool_T*;
using VkDebugUtilsMessengerEXT = struct VkDebugUtilsMessengerEXT_T*;

using VmaAllocator = struct VmaAllocator_T*;
using VmaAllocation = struct VmaAllocation_T*;
