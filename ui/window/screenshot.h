// Copies the window's image into a PNG file. Call only from the window's thread.
#pragma once

#include <filesystem>
#include <memory>

#include "runtime/result.h"
#include "ui/window/swapchain.h"

namespace hearth {

// Holds a host buffer for one image.
class Screenshot {
 public:
  static Result<std::unique_ptr<Screenshot>> create(const RenderDevice& device,
                                                    const Swapchain& swapchain);
  ~Screenshot();
  Screenshot(const Screenshot&) = delete;
  Screenshot& operator=(const Screenshot&) = delete;

  // Records the copy. REQUIRES: the image is in layout TRANSFER_SRC_OPTIMAL.
  void record(VkCommandBuffer commands, VkImage image) const;
  // REQUIRES: the recorded copy has completed.
  Status write(const std::filesystem::path& path) const;

 private:
  explicit Screenshot(const RenderDevice& device) : device_(device) {}
  Status open(const Swapchain& swapchain);

  const RenderDevice& device_;
  VkBuffer buffer_ = VK_NULL_HANDLE;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
  void* pixels_ = nullptr;
  VkExtent2D extent_ = {};
  bool blue_first_ = true;
};

}  // namespace hearth
