// The Vulkan device that draws the window. It has its own instance and logical device, so the model
// may run on the same GPU or on another one. Call only from the window's thread.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "runtime/instance.h"
#include "runtime/result.h"
#include "ui/window/vulkan_table.h"

struct GLFWwindow;

namespace hearth {

struct RenderDeviceOptions {
  std::string device;  // index or part of a name; empty: the best device that can show the window
  Validation validation = Validation::kOff;
};

class RenderDevice {
 public:
  static Result<std::unique_ptr<RenderDevice>> create(GLFWwindow* window,
                                                      const RenderDeviceOptions& options);
  ~RenderDevice();
  RenderDevice(const RenderDevice&) = delete;
  RenderDevice& operator=(const RenderDevice&) = delete;

  const VulkanTable& vk() const { return vk_; }
  Instance& instance() const { return *instance_; }
  VkSurfaceKHR surface() const { return surface_; }
  VkPhysicalDevice physical() const { return physical_; }
  VkDevice handle() const { return device_; }
  VkQueue queue() const { return queue_; }
  uint32_t queue_family() const { return family_; }
  // A kind of memory among these that the host can write, if there is one.
  std::optional<uint32_t> host_memory_type(uint32_t allowed) const;
  const DeviceCaps& caps() const { return instance_->devices()[position_]; }

 private:
  RenderDevice() = default;
  Status open(GLFWwindow* window, const RenderDeviceOptions& options);
  // Finds a queue family that can draw and present. Returns false if there is none.
  bool find_family(VkPhysicalDevice device, uint32_t& family) const;
  Status choose(const std::string& requested);

  std::unique_ptr<Instance> instance_;
  VulkanTable vk_;
  VkSurfaceKHR surface_ = VK_NULL_HANDLE;
  size_t position_ = 0;
  VkPhysicalDevice physical_ = VK_NULL_HANDLE;
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  uint32_t family_ = 0;
};

}  // namespace hearth
