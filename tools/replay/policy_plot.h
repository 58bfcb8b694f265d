// Draws a comparison of policies as bars: throughput, TTFT, end to end and padding, each with an
// axis of its own. Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tools/replay/replay_report.h"

namespace hearth {

struct PolicyPlot {
  std::string title;
  std::vector<std::string> subtitle;      // two lines at most
  std::span<const ReplayReport> reports;  // at least one; drawn from the top down
  ServiceGoal goal;
};

// The SVG file.
std::string draw_policies(const PolicyPlot& plot);

}  // namespace hearth
