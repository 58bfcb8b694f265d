#include "ui/window/display.h"

#include <algorithm>
#include <cstdlib>

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

float dots_per_inch(GLFWmonitor* monitor) {
  constexpr float kMillimetresPerInch = 25.4f;
  int width = 0, height = 0;
  if (monitor != nullptr) glfwGetMonitorPhysicalSize(monitor, &width, &height);
  const GLFWvidmode* const mode = monitor != nullptr ? glfwGetVideoMode(monitor) : nullptr;
  if (width <= 0 || mode == nullptr) return 0;
  return static_cast<float>(mode->width) * kMillimetresPerInch / static_cast<float>(width);
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
  const float missing = display_scale({.reported = reported,
                                       .trusted = trusted_scale(),
                                       .width = width,
                                       .height = height,
                                       .dots_per_inch = dots_per_inch(monitor)}) /
                        reported;
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
  return display_scale({.reported = std::max(across, down),
                        .trusted = trusted_scale(),
                        .width = width,
                        .height = height,
                        .dots_per_inch = dots_per_inch(glfwGetPrimaryMonitor())});
}

}  // namespace hearth
