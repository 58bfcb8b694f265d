// How large to draw on a display. Many X servers report a scale of 1 whatever the monitor is, which
// makes the text of a 4K monitor tiny; then the size of the window and of its dots decide. Pure.
#pragma once

namespace hearth {

struct DisplayFacts {
  float reported = 1;         // what the desktop says: 2 on a typical high-density screen
  bool trusted = false;       // a reported 1 is meant, as under Wayland
  int width = 0, height = 0;  // of the window, or of the room for it, in pixels
  float dots_per_inch = 0;    // of the monitor; 0: unknown
};

// The factor for text and widgets, in steps of a quarter: what was reported, if it is more than 1
// or trusted. Otherwise a dense monitor is given the scale of its dots, as long as the window keeps
// room for all panels; and a window of more than 1.5 times 1920 x 1080 is scaled as a whole.
float display_scale(const DisplayFacts& facts);

}  // namespace hearth
