// Whether there is a display. Separate from window.h, so that callers need no Vulkan headers.
#pragma once

namespace hearth {

// Whether the environment names a display (DISPLAY or WAYLAND_DISPLAY).
bool has_display_variable();

// Whether it also accepts a connection.
bool can_open_display();

}  // namespace hearth
