// A window that shows what Dear ImGui draws: GLFW for the window, Vulkan for the picture. Owns
// ImGui's two backends. Of the main thread alone, one at a time.
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
  // REQUIRES: ImGui's context exists. Without a display: one line that says so.
  static Result<std::unique_ptr<Window>> create(const WindowOptions& options);
  ~Window();
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  // Takes what the user did. Waits up to `seconds` for it.
  void wait_for_input(double seconds);
  bool should_close() const;
  void close();
  // Nothing of it can be seen.
  bool minimized() const;
  // Pixels of the screen to one of a plain one.
  float density() const;
  bool drawn_by_cpu() const;
  std::vector<std::string> take_dropped_files();
  std::vector<std::string> take_validation_messages();

  // Begins a frame of ImGui's backends; ImGui::NewFrame() comes after it.
  void begin_frame();
  // Draws and shows what ImGui::Render() left; also into a file, if one is named.
  Status show(const std::optional<std::filesystem::path>& screenshot = {});

 private:
  // What one of the frames under way uses.
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
