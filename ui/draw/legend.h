// What colours mean, in words: coloured squares or lines with text beside, wrapped to the width
// that is left.
#pragma once

#include <span>

#include <imgui.h>

#include "ui/theme.h"

namespace hearth {

struct LegendEntry {
  enum class Mark : uint8_t { kSquare, kLine, kDashes, kDot, kHatched, kFrame };

  const char* text = "";
  ImU32 color = 0;
  Mark mark = Mark::kSquare;
  char letter = 0;  // inside the square, as in the cells it explains; 0: none
};

// As wide as given, or as what is left of the window.
void draw_legend(const Theme& theme, std::span<const LegendEntry> entries, float width = 0);
// Over what is drawn there, on a faint ground: for plots, which save the line above them.
void draw_legend_over(const Theme& theme, ImDrawList& draw, ImVec2 corner, float width,
                      std::span<const LegendEntry> entries);
// What draw_legend() takes at this width.
float legend_height(const Theme& theme, std::span<const LegendEntry> entries, float width);

// Stripes from bottom left to top right over a rectangle: a second cue beside its colour.
void draw_hatching(ImDrawList& draw, ImVec2 from, ImVec2 to, ImU32 color, float spacing);

}  // namespace hearth
