// The display: whether there is one, and how large things are on it. Separate from window.h, so
// that callers need no Vulkan headers.
#pragma once

#include <string>
#include <utility>

struct GLFWwindow;

namespace hearth {

// Whether the environment names a display (DISPLAY or WAYLAND_DISPLAY).
bool has_display_variable();

// Whether it also accepts a connection.
bool can_open_display();

// Starts GLFW on the platform that the environment names; glfw_error() says why not.
bool start_glfw();
std::string glfw_error();

// The size of a new window, in GLFW's units, which it multiplies by the scale that the monitor
// reports: what is asked for, or where that is 0, most of the screen up to 1600 by 1000 at its
// scale. REQUIRES, as window_scale() does: GLFW was started.
std::pair<int, int> fitting_size(int width, int height);

// How large to draw in this window (display_scale()). Asks the display, so call it only when the
// window has moved, has another size, or the monitors have changed.
float window_scale(GLFWwindow* window);

}  // namespace hearth
