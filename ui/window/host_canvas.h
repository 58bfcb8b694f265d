// The window's pixels in host memory, for devices that are the CPU themselves: there, drawing them
// here costs the model a tenth of what Vulkan's rasterizer takes. Only draw lists that differ from
// the last frame's are drawn again. Call only from the window's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <imgui.h>

#include "runtime/result.h"
#include "ui/data/painter.h"
#include "ui/window/swapchain.h"

namespace hearth {

class HostCanvas {
 public:
  // REQUIRES: the swapchain is writable.
  static Result<std::unique_ptr<HostCanvas>> create(const RenderDevice& device,
                                                    const Swapchain& swapchain);
  ~HostCanvas();
  HostCanvas(const HostCanvas&) = delete;
  HostCanvas& operator=(const HostCanvas&) = delete;

  // Tells ImGui that it may use textures of its own, which are read where they are.
  static void announce();
  // REQUIRES: the copies recorded so far have completed.
  void paint(const ImDrawData& data, ImU32 background);
  // Records a copy of everything. REQUIRES: the image is in layout TRANSFER_DST_OPTIMAL.
  void record(VkCommandBuffer commands, VkImage image) const;

 private:
  // What was drawn of a draw list.
  struct Drawn {
    uint64_t hash = 0;
    PaintBox box;
  };

  explicit HostCanvas(const RenderDevice& device) : device_(device) {}
  Status open(const Swapchain& swapchain);
  PaintBox clip_of(const ImDrawData& data, const ImDrawCmd& command) const;
  Drawn look_at(const ImDrawData& data, const ImDrawList& list) const;
  std::vector<PaintBox> changed_boxes(const ImDrawData& data, ImU32 background);

  const RenderDevice& device_;
  VkBuffer buffer_ = VK_NULL_HANDLE;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
  PaintTarget target_;
  std::vector<Drawn> drawn_;  // of the last frame; empty: nothing was drawn yet
  ImU32 background_ = 0;
};

}  // namespace hearth
