// Fills DeviceCaps from a driver, and turns DeviceCaps back into what vkCreateDevice is asked for,
// so that what is reported and what is enabled cannot drift apart. For runtime/ only.
#pragma once

#include <vector>

#include "runtime/device_caps.h"
#include "runtime/vulkan_private.h"

namespace hearth {

DeviceCaps query_device(VkPhysicalDevice device, uint32_t index);

// The feature structs Hearth knows, chained. Not copyable: the chain points into itself.
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
#ifdef VK_NV_cooperative_matrix2
  VkPhysicalDeviceCooperativeMatrix2FeaturesNV coopmat2{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_FEATURES_NV};
#endif
#ifdef VK_KHR_shader_bfloat16
  VkPhysicalDeviceShaderBfloat16FeaturesKHR bfloat16{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR};
#endif
};

// The extensions of this device that Hearth makes use of.
std::vector<const char*> useful_extensions(VkPhysicalDevice device);

// Asks for what `features` says is there and nothing else.
void enable_features(const DeviceFeatures& features, FeatureChain& chain);

}  // namespace hearth
