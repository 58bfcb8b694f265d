#include "ui/window/display.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

// In a unity build this is the first of several files that include it, and others need surfaces.
#define GLFW_INCLUDE_VULKAN
#include <GLFW/glfw3.h>

#include "ui/data/display_scale.h"

namespace hearth {
namespace {

bool has_value(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

// Under Wayland every monitor has a scale, so that 1 means 1.
bool trusted_scale() {
#ifdef GLFW_PLATFORM
  return glfwGetPlatform() == GLFW_PLATFORM_WAYLAND;
#else
  return false;
#endif
}

// What this monitor is like, for a window of `width` by `height` pixels.
DisplayFacts facts_of(GLFWmonitor* monitor, float reported, int width, int height) {
  constexpr float kMillimetresPerInch = 25.4f;
  DisplayFacts facts{
      .reported = reported, .trusted = trusted_scale(), .width = width, .height = height};
  const GLFWvidmode* const mode = monitor != nullptr ? glfwGetVideoMode(monitor) : nullptr;
  if (mode == nullptr) return facts;
  facts.monitor_width = mode->width;
  facts.monitor_height = mode->height;
  int millimetres = 0, high = 0;
  glfwGetMonitorPhysicalSize(monitor, &millimetres, &high);
  if (millimetres > 0)
    facts.dots_per_inch =
        static_cast<float>(mode->width) * kMillimetresPerInch / static_cast<float>(millimetres);
  return facts;
}

// The monitor that shows most of the window; the primary one if that cannot be known, as under
// Wayland, which keeps the position of windows to itself.
GLFWmonitor* monitor_with(GLFWwindow* window) {
  int count = 0;
  GLFWmonitor** const monitors = glfwGetMonitors(&count);
  DesktopBox box;
  glfwGetWindowPos(window, &box.left, &box.top);
  glfwGetWindowSize(window, &box.width, &box.height);
  std::vector<DesktopBox> boxes(static_cast<size_t>(count));
  for (size_t i = 0; i < boxes.size(); ++i) {
    glfwGetMonitorPos(monitors[i], &boxes[i].left, &boxes[i].top);
    if (const GLFWvidmode* const mode = glfwGetVideoMode(monitors[i])) {
      boxes[i].width = mode->width;
      boxes[i].height = mode->height;
    }
  }
  const int found = monitor_of(box, boxes);
  return found < 0 ? glfwGetPrimaryMonitor() : monitors[found];
}

}  // namespace

bool has_display_variable() { return has_value("DISPLAY") || has_value("WAYLAND_DISPLAY"); }

bool can_open_display() {
  if (!has_display_variable() || !start_glfw()) return false;
  glfwTerminate();
  return true;
}

std::string glfw_error() {
  const char* text = nullptr;
  glfwGetError(&text);
  return text != nullptr ? text : "GLFW gave no reason";
}

// By default GLFW 3.4 tries Wayland first, and libwayland then complains on standard error in
// sessions that have only an X server.
bool start_glfw() {
#ifdef GLFW_PLATFORM
  const bool x11_only = has_value("DISPLAY") && !has_value("WAYLAND_DISPLAY");
  if (x11_only && glfwPlatformSupported(GLFW_PLATFORM_X11) == GLFW_TRUE)
    glfwInitHint(GLFW_PLATFORM, GLFW_PLATFORM_X11);
#endif
  return glfwInit() == GLFW_TRUE;
}

std::pair<int, int> fitting_size(int wanted_width, int wanted_height) {
  constexpr float kWidth = 1600, kHeight = 1000;
  int left = 0, top = 0, width = 0, height = 0;
  float across = 1, down = 1;
  GLFWmonitor* const monitor = glfwGetPrimaryMonitor();
  if (monitor != nullptr) {
    glfwGetMonitorWorkarea(monitor, &left, &top, &width, &height);
    glfwGetMonitorContentScale(monitor, &across, &down);
  }
  const float reported = std::max(across, down);
  // What the monitor's scale leaves out is added here.
  const float missing = display_scale(facts_of(monitor, reported, width, height)) / reported;
  const auto fitting = [&](int wanted, float usual, int room, float scale) {
    if (wanted > 0) return wanted;
    if (room <= 0) return static_cast<int>(usual);
    return static_cast<int>(std::min(usual * missing, static_cast<float>(room) / scale));
  };
  return {fitting(wanted_width, kWidth, width, across),
          fitting(wanted_height, kHeight, height, down)};
}

float window_scale(GLFWwindow* window) {
  float across = 1, down = 1;
  int width = 0, height = 0;
  glfwGetWindowContentScale(window, &across, &down);
  glfwGetFramebufferSize(window, &width, &height);
  return display_scale(facts_of(monitor_with(window), std::max(across, down), width, height));
}

}  // namespace hearth
