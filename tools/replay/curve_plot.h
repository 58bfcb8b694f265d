// Draws a sweep as a latency-throughput curve: TTFT above, TBT below, one point per value, with the
// service goal and the best point. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tools/replay/request_timing.h"
#include "tools/replay/summary.h"

namespace hearth {

struct CurvePlot {
  struct Point {
    std::string label;      // the swept value
    double throughput = 0;  // tokens/s
    Summary ttft, tbt;      // seconds; p50 and p99 are drawn
  };

  std::string title;
  std::vector<std::string> subtitle;  // two lines at most
  std::string parameter;              // the setting whose values the labels show
  std::vector<Point> points;          // at least one; joined in this order
  std::optional<size_t> best;
  ServiceGoal goal;
};

// The SVG file.
std::string draw_curve(const CurvePlot& plot);

}  // namespace hearth
