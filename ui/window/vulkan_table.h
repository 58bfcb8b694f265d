// The Vulkan functions the window calls, loaded for its own instance. The runtime's functions are
// global and belong to whichever instance was created last.
#pragma once

#include <imgui_impl_vulkan.h>

#include "runtime/result.h"

namespace hearth {

#define HEARTH_WINDOW_FUNCTIONS(X)             \
  X(vkAcquireNextImageKHR)                     \
  X(vkAllocateCommandBuffers)                  \
  X(vkAllocateMemory)                          \
  X(vkBeginCommandBuffer)                      \
  X(vkBindBufferMemory)                        \
  X(vkCmdBeginRendering)                       \
  X(vkCmdCopyBufferToImage)                    \
  X(vkCmdCopyImageToBuffer)                    \
  X(vkCmdEndRendering)                         \
  X(vkCmdPipelineBarrier2)                     \
  X(vkCreateBuffer)                            \
  X(vkCreateCommandPool)                       \
  X(vkCreateDevice)                            \
  X(vkCreateFence)                             \
  X(vkCreateImageView)                         \
  X(vkCreateSemaphore)                         \
  X(vkCreateSwapchainKHR)                      \
  X(vkDestroyBuffer)                           \
  X(vkDestroyCommandPool)                      \
  X(vkDestroyDevice)                           \
  X(vkDestroyFence)                            \
  X(vkDestroyImageView)                        \
  X(vkDestroySemaphore)                        \
  X(vkDestroySurfaceKHR)                       \
  X(vkDestroySwapchainKHR)                     \
  X(vkDeviceWaitIdle)                          \
  X(vkEndCommandBuffer)                        \
  X(vkFreeMemory)                              \
  X(vkGetBufferMemoryRequirements)             \
  X(vkGetDeviceQueue)                          \
  X(vkGetPhysicalDeviceMemoryProperties)       \
  X(vkGetPhysicalDeviceQueueFamilyProperties)  \
  X(vkGetPhysicalDeviceSurfaceCapabilitiesKHR) \
  X(vkGetPhysicalDeviceSurfaceFormatsKHR)      \
  X(vkGetPhysicalDeviceSurfaceSupportKHR)      \
  X(vkGetSwapchainImagesKHR)                   \
  X(vkMapMemory)                               \
  X(vkQueuePresentKHR)                         \
  X(vkQueueSubmit2)                            \
  X(vkResetCommandPool)                        \
  X(vkResetFences)                             \
  X(vkWaitForFences)

struct VulkanTable {
#define HEARTH_DECLARE(name) PFN_##name name = nullptr;
  HEARTH_WINDOW_FUNCTIONS(HEARTH_DECLARE)
#undef HEARTH_DECLARE

  // REQUIRES: GLFW has been started.
  static Result<VulkanTable> load(VkInstance instance);
};

// An error such as "creating a fence failed: Vulkan error -1" unless the call succeeded.
Status check_vulkan(VkResult result, const char* what);

}  // namespace hearth
