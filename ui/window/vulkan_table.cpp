#include "ui/window/vulkan_table.h"

#include <GLFW/glfw3.h>
#include <fmt/format.h>

namespace hearth {

Result<VulkanTable> VulkanTable::load(VkInstance instance) {
  VulkanTable table;
#define HEARTH_LOAD(name)                                                                 \
  table.name = reinterpret_cast<PFN_##name>(glfwGetInstanceProcAddress(instance, #name)); \
  if (table.name == nullptr)                                                              \
    return Error{ErrorKind::kUnsupported,                                                 \
                 "the window needs the Vulkan function " #name ", which the driver lacks"};
  HEARTH_WINDOW_FUNCTIONS(HEARTH_LOAD)
#undef HEARTH_LOAD
  return table;
}

Status check_vulkan(VkResult result, const char* what) {
  if (result == VK_SUCCESS) return {};
  const ErrorKind kind =
      result == VK_ERROR_DEVICE_LOST ? ErrorKind::kDeviceLost : ErrorKind::kInternal;
  return Error{kind, fmt::format("{} failed: Vulkan error {}", what, static_cast<int>(result))};
}

}  // namespace hearth
