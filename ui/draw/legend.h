// Legends: coloured marks with their meaning, wrapped to the available width.
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
  char letter = 0;  // inside the mark, as in the cells it explains; 0: none
};

// A width of 0 uses the width left in the window.
void draw_legend(const Theme& theme, std::span<const LegendEntry> entries, float width = 0);
// Drawn over a plot on a translucent background, to save a line above it.
void draw_legend_over(const Theme& theme, ImDrawList& draw, ImVec2 corner, float width,
                      std::span<const LegendEntry> entries);
// Drawn at a place, on nothing.
void draw_legend_at(const Theme& theme, ImDrawList& draw, ImVec2 corner, float width,
                    std::span<const LegendEntry> entries);
// The height of draw_legend() at this width.
float legend_height(const Theme& theme, std::span<const LegendEntry> entries, float width);

// Diagonal stripes over a rectangle: a second cue besides colour.
void draw_hatching(ImDrawList& draw, ImVec2 from, ImVec2 to, ImU32 color, float spacing);

}  // namespace hearth
