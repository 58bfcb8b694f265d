// Vulkan for the runtime's own source files. Include it in .cpp files of runtime/ only.
#pragma once

#include <string>
#include <string_view>

#include <volk.h>

#include "runtime/result.h"
#include "runtime/vulkan_handles.h"

namespace hearth {

// The Vulkan name of a result code: "VK_ERROR_DEVICE_LOST".
std::string_view vulkan_result_name(VkResult result);

// "<what> failed: VK_...", with the kind that fits the code.
Error vulkan_error(VkResult result, std::string_view what);

// Loads the Vulkan loader, once per process.
Status load_vulkan();

}  // namespace hearth
