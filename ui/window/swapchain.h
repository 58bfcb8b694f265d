// The images the window shows in turn. Call only from the window's thread.
#pragma once

#include <memory>
#include <vector>

#include "runtime/result.h"
#include "ui/window/render_device.h"

namespace hearth {

class Swapchain {
 public:
  // Replaces and destroys `old`. REQUIRES: the device is idle.
  static Result<std::unique_ptr<Swapchain>> create(const RenderDevice& device, uint32_t width,
                                                   uint32_t height, std::unique_ptr<Swapchain> old);
  ~Swapchain();
  Swapchain(const Swapchain&) = delete;
  Swapchain& operator=(const Swapchain&) = delete;

  struct Image {
    VkImage image = VK_NULL_HANDLE;
    VkImageView view = VK_NULL_HANDLE;
    VkSemaphore drawn = VK_NULL_HANDLE;  // presentation waits for it
  };

  VkSwapchainKHR handle() const { return handle_; }
  VkFormat format() const { return format_; }
  VkExtent2D extent() const { return extent_; }
  bool readable() const { return readable_; }  // can be copied for a screenshot
  bool writable() const { return writable_; }  // can be copied to
  const std::vector<Image>& images() const { return images_; }

 private:
  explicit Swapchain(const RenderDevice& device) : device_(device) {}
  Status open(uint32_t width, uint32_t height, VkSwapchainKHR old);
  Status choose_format();
  Status make_images();

  const RenderDevice& device_;
  VkSwapchainKHR handle_ = VK_NULL_HANDLE;
  VkFormat format_ = VK_FORMAT_UNDEFINED;
  VkColorSpaceKHR color_space_ = VK_COLOR_SPACE_SRGB_NONLINEAR_KHR;
  VkExtent2D extent_ = {};
  bool readable_ = false, writable_ = false;
  std::vector<Image> images_;
};

}  // namespace hearth
