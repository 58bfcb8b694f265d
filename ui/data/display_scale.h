// How large to draw on a display. Many X servers report a scale of 1 whatever the monitor is, which
// makes the text of a 4K monitor tiny; then the monitor's size and its dots decide. Pure.
#pragma once

#include <span>

namespace hearth {

struct DisplayFacts {
  float reported = 1;         // what the desktop says: 2 on a typical high-density screen
  bool trusted = false;       // a reported 1 is meant, as under Wayland
  int width = 0, height = 0;  // of the window, or of the room for it, in pixels
  int monitor_width = 0, monitor_height = 0;  // in pixels; 0: unknown
  float dots_per_inch = 0;                    // of the monitor; 0: unknown
};

// The factor for text and widgets, in steps of a quarter: what was reported, if it is more than 1
// or trusted. Otherwise the monitor's own scale: that of its dots, or if it is larger than 1.5
// times 1920 x 1080, the one at which it shows what 1920 x 1080 shows. In a small window it is
// less, so that all panels keep their room: a window of 1600 x 1000 times the monitor's scale is
// drawn at it.
float display_scale(const DisplayFacts& facts);

// A rectangle on the desktop, in the units of its monitors' positions.
struct DesktopBox {
  int left = 0, top = 0, width = 0, height = 0;
};
// The monitor that shows the largest part of the window: an index, or -1 if none shows any of it.
int monitor_of(const DesktopBox& window, std::span<const DesktopBox> monitors);

}  // namespace hearth
