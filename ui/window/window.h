// A window that shows what Dear ImGui draws, through GLFW and Vulkan. Owns ImGui's two backends.
// Use one at a time, from the main thread only.
#pragma once

#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/result.h"
#include "ui/window/display.h"
#include "ui/window/host_canvas.h"
#include "ui/window/render_device.h"
#include "ui/window/swapchain.h"

namespace hearth {

struct WindowOptions {
  std::string title = "Hearth";
  // 0: most of the screen, up to 1600 by 1000 at its scale.
  int width = 0, height = 0;
  float scale = 0;  // of text and widgets; 0: what the display says, or its size
  // Draw with Vulkan even if the device is the CPU, which takes ten times as long.
  bool always_vulkan = false;
  RenderDeviceOptions device;
};

class Window {
 public:
  // REQUIRES: ImGui's context exists. Fails with a one-line message if there is no display.
  static Result<std::unique_ptr<Window>> create(const WindowOptions& options);
  ~Window();
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  // Processes input events, waiting up to `seconds` for the first.
  void wait_for_input(double seconds);
  bool should_close() const;
  void close();
  // The window is not visible, so there is no point in drawing.
  bool minimized() const;
  // How large to draw, in pixels per point: 2 on a typical high-density screen.
  float density();
  bool drawn_by_cpu() const;
  std::vector<std::string> take_dropped_files();
  std::vector<std::string> take_validation_messages();

  // Starts a frame of ImGui's backends; call ImGui::NewFrame() after it.
  void begin_frame();
  // Draws and presents the result of ImGui::Render(), and writes it to a PNG file if one is given.
  // Does nothing if the window already shows the same.
  Status show(const std::optional<std::filesystem::path>& screenshot = {});

 private:
  // The resources of one frame in flight.
  struct Frame {
    VkCommandPool pool = VK_NULL_HANDLE;
    VkCommandBuffer commands = VK_NULL_HANDLE;
    VkFence done = VK_NULL_HANDLE;
    VkSemaphore acquired = VK_NULL_HANDLE;
  };

  Window() = default;
  Status open(const WindowOptions& options);
  Status make_frames();
  Status start_imgui();
  Status start_imgui_vulkan();
  Status make_swapchain();
  // The whole frame as one number: two frames that look different differ in it.
  uint64_t frame_hash() const;
  Status wait_for(const Frame& frame) const;
  Status draw(Frame& frame, uint32_t image, const class Screenshot* screenshot);
  void draw_with_vulkan(VkCommandBuffer commands, const Swapchain::Image& target);
  void draw_on_host(VkCommandBuffer commands, const Swapchain::Image& target);
  void change_layout(VkCommandBuffer commands, VkImage image, VkImageLayout from, VkImageLayout to);

  bool started_ = false;
  GLFWwindow* window_ = nullptr;
  std::unique_ptr<RenderDevice> device_;
  std::unique_ptr<Swapchain> swapchain_;
  bool stale_ = false;                  // the swapchain no longer fits the window
  std::unique_ptr<HostCanvas> canvas_;  // null: Vulkan draws
  uint64_t shown_ = 0;                  // hash of the frame that the window shows
  bool exposed_ = true;                 // the window must be drawn again
  bool always_vulkan_ = false;
  float scale_ = 0;      // as in WindowOptions
  float density_ = 1;    // what the display says
  bool rescale_ = true;  // it may say something else now
  std::array<Frame, 2> frames_;
  size_t frame_ = 0;
  bool imgui_glfw_ = false, imgui_vulkan_ = false;
  std::vector<std::string> dropped_;
};

}  // namespace hearth
