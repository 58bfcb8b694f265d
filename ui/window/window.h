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
#include "ui/window/render_device.h"
#include "ui/window/swapchain.h"

namespace hearth {

struct WindowOptions {
  std::string title = "Hearth";
  int width = 1600, height = 1000;
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
  // The display's scale factor: 2 on a typical high-density screen.
  float density() const;
  bool drawn_by_cpu() const;
  std::vector<std::string> take_dropped_files();
  std::vector<std::string> take_validation_messages();

  // Starts a frame of ImGui's backends; call ImGui::NewFrame() after it.
  void begin_frame();
  // Draws and presents the result of ImGui::Render(), and writes it to a PNG file if one is given.
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
  Status make_swapchain();
  Status draw(Frame& frame, uint32_t image, const class Screenshot* screenshot);
  void change_layout(VkCommandBuffer commands, VkImage image, VkImageLayout from, VkImageLayout to);

  bool started_ = false;
  GLFWwindow* window_ = nullptr;
  std::unique_ptr<RenderDevice> device_;
  std::unique_ptr<Swapchain> swapchain_;
  bool stale_ = false;  // the swapchain no longer fits the window
  std::array<Frame, 2> frames_;
  size_t frame_ = 0;
  bool imgui_glfw_ = false, imgui_vulkan_ = false;
  std::vector<std::string> dropped_;
};

}  // namespace hearth
