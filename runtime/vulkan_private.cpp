// The implementation of volk is in this translation unit.
#define VOLK_IMPLEMENTATION
#include "runtime/vulkan_private.h"

#include <fmt/format.h>

namespace hearth {

std::string_view vulkan_result_name(VkResult result) {
  switch (result) {
    case VK_SUCCESS:
      return "VK_SUCCESS";
    case VK_NOT_READY:
      return "VK_NOT_READY";
    case VK_TIMEOUT:
      return "VK_TIMEOUT";
    case VK_INCOMPLETE:
      return "VK_INCOMPLETE";
    case VK_ERROR_OUT_OF_HOST_MEMORY:
      return "VK_ERROR_OUT_OF_HOST_MEMORY";
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
      return "VK_ERROR_OUT_OF_DEVICE_MEMORY";
    case VK_ERROR_INITIALIZATION_FAILED:
      return "VK_ERROR_INITIALIZATION_FAILED";
    case VK_ERROR_DEVICE_LOST:
      return "VK_ERROR_DEVICE_LOST";
    case VK_ERROR_MEMORY_MAP_FAILED:
      return "VK_ERROR_MEMORY_MAP_FAILED";
    case VK_ERROR_LAYER_NOT_PRESENT:
      return "VK_ERROR_LAYER_NOT_PRESENT";
    case VK_ERROR_EXTENSION_NOT_PRESENT:
      return "VK_ERROR_EXTENSION_NOT_PRESENT";
    case VK_ERROR_FEATURE_NOT_PRESENT:
      return "VK_ERROR_FEATURE_NOT_PRESENT";
    case VK_ERROR_INCOMPATIBLE_DRIVER:
      return "VK_ERROR_INCOMPATIBLE_DRIVER";
    case VK_ERROR_TOO_MANY_OBJECTS:
      return "VK_ERROR_TOO_MANY_OBJECTS";
    case VK_ERROR_UNKNOWN:
      return "VK_ERROR_UNKNOWN";
    default:
      return "an unexpected Vulkan error";
  }
}

Error vulkan_error(VkResult result, std::string_view what) {
  ErrorKind kind = ErrorKind::kInternal;
  switch (result) {
    case VK_ERROR_OUT_OF_HOST_MEMORY:
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
      kind = ErrorKind::kOutOfMemory;
      break;
    case VK_ERROR_DEVICE_LOST:
      kind = ErrorKind::kDeviceLost;
      break;
    case VK_ERROR_LAYER_NOT_PRESENT:
      kind = ErrorKind::kNotFound;
      break;
    case VK_ERROR_EXTENSION_NOT_PRESENT:
    case VK_ERROR_FEATURE_NOT_PRESENT:
    case VK_ERROR_INCOMPATIBLE_DRIVER:
      kind = ErrorKind::kUnsupported;
      break;
    default:
      break;
  }
  return {kind, fmt::format("{} failed: {} ({})", what, vulkan_result_name(result),
                            static_cast<int>(result))};
}

Status load_vulkan() {
  static const VkResult result = volkInitialize();
  if (result != VK_SUCCESS)
    return Error{ErrorKind::kNotFound,
                 "no Vulkan loader (libvulkan.so.1) found; install the package libvulkan1"};
  return {};
}

}  // namespace hearth
