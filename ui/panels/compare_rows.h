// The rows of one side of a comparison: one per request, drawn over time instead of steps, so that
// both sides share an axis.
#pragma once

#include <imgui.h>

#include "ui/data/timeline_data.h"
#include "ui/panel.h"

namespace hearth {

struct TimeAxis {
  double end = 1;  // seconds; it starts at 0
  float left = 0, width = 1;

  float x_of(double seconds, float corner) const {
    return corner + left + static_cast<float>(seconds / end) * width;
  }
  double seconds_at(float x, float corner) const {
    return static_cast<double>((x - corner - left) / width) * end;
  }
};

struct ComparedRowsView {
  const char* id = "";
  const TimelineData& data;
  TimeAxis axis;
  size_t rows = 0;          // space for this many, so that both sides have the same height
  double now = 0;           // a line there
  double finished_at = -1;  // and one where the side had finished; negative: it has not
};

// Adds one item of this size. A click moves the clock: returns the time, or a negative number.
double draw_compared_rows(const PanelContext& context, const ComparedRowsView& view, ImVec2 size);

// The axis below both sides, with seconds.
void draw_time_axis(const Theme& theme, const TimeAxis& axis, double now);

}  // namespace hearth
