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

void draw_legend(const Theme& theme, std::span<const LegendEntry> entries);
// What draw_legend() takes at this width.
float legend_height(const Theme& theme, std::span<const LegendEntry> entries, float width);

// Stripes from bottom left to top right over a rectangle: a second cue beside its colour.
void draw_hatching(ImDrawList& draw, ImVec2 from, ImVec2 to, ImU32 color, float spacing);

}  // namespace hearth
