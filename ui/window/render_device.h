// The device a window is drawn with: its own instance and logical device, so that a model may run
// on the same card or on another. Of the window's thread alone.
#pragma once

#include <memory>
#include <string>

#include "runtime/instance.h"
#include "runtime/result.h"
#include "ui/window/vulkan_table.h"

struct GLFWwindow;

namespace hearth {

struct RenderDeviceOptions {
  std::string device;  // index or part of its name; empty: the best that can show the window
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
  const DeviceCaps& caps() const { return instance_->devices()[position_]; }

 private:
  RenderDevice() = default;
  Status open(GLFWwindow* window, const RenderDeviceOptions& options);
  // A queue family that draws and shows, or nothing.
  bool find_family(VkPhysicalDevice device, uint32_t& family) const;
  Status choose(const std::string& wanted);

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
