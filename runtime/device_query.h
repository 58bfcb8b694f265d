// Reads DeviceCaps from a driver, and turns DeviceCaps back into the features that vkCreateDevice
// enables, so that reported and enabled features cannot diverge. For runtime/ only.
#pragma once

#include <vector>

#include "runtime/device_caps.h"
#include "runtime/vulkan_private.h"

namespace hearth {

DeviceCaps query_device(VkPhysicalDevice device, uint32_t index);

// All feature structs that Hearth knows, linked by pNext. Not copyable, because they point at each
// other.
struct FeatureChain {
  explicit FeatureChain(const std::vector<const char*>& extensions);
  FeatureChain(const FeatureChain&) = delete;
  FeatureChain& operator=(const FeatureChain&) = delete;

  VkPhysicalDeviceFeatures2 core{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
  VkPhysicalDeviceVulkan11Features v11{.sType =
                                           VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES};
  VkPhysicalDeviceVulkan12Features v12{.sType =
                                           VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
  VkPhysicalDeviceVulkan13Features v13{.sType =
                                           VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES};
  VkPhysicalDeviceCooperativeMatrixFeaturesKHR coopmat{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR};
  VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR executable{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR};
};

// The extensions of this device that Hearth uses.
std::vector<const char*> useful_extensions(VkPhysicalDevice device);

// Requests the features that `features` lists, and no others.
void enable_features(const DeviceFeatures& features, FeatureChain& chain);

}  // namespace hearth
