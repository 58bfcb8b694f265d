// Draws a comparison as bars: a row for each thing that is compared, and a panel with an axis of
// its own for each number. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/replay/request_timing.h"

namespace hearth {

struct BarSeries {
  std::string_view colour;     // a class of SvgWriter: p50, p99, plain
  std::vector<double> values;  // one per row
};

struct BarPanel {
  std::string title;
  std::vector<BarSeries> series;  // one bar each, below each other
  bool is_time = false;           // seconds; otherwise as the title says
  std::optional<double> goal;     // drawn if it is near the bars
};

struct BarPlot {
  std::string title;
  std::vector<std::string> subtitle;  // two lines at most
  std::vector<std::string> rows;      // names, at least one; drawn from the top down
  std::vector<BarPanel> panels;
  ServiceGoal goal;  // for the legend
};

// The SVG file. REQUIRES: every series has a value for each row.
std::string draw_bars(const BarPlot& plot);

}  // namespace hearth
