// Turns the results of a replay into a picture and writes it to a file.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/result.h"
#include "tools/replay/replay_report.h"
#include "tools/replay/replay_setting.h"
#include "tools/replay/sweep_report.h"

namespace hearth {

// SVG files. REQUIRES: there are results, and for plot_sweep() setting.sweep.
std::string plot_sweep(const ReplaySetting& setting, std::span<const SweepPoint> points,
                       const ServiceGoal& goal);
std::string plot_comparison(const ReplaySetting& setting, std::span<const ReplayReport> reports,
                            const ServiceGoal& goal);

// A comparison of policies as bars: throughput, TTFT, end to end and padding.
struct PolicyPlot {
  std::string title;
  std::vector<std::string> subtitle;      // two lines at most
  std::span<const ReplayReport> reports;  // at least one; drawn from the top down
  ServiceGoal goal;
};

// The SVG file.
std::string draw_policies(const PolicyPlot& plot);

// For Option::check(): what is wrong with the name of a picture, or nothing.
std::string check_plot_name(const std::string& path);
// Whether the file can be written, before measuring for minutes. Creates it if it is missing.
Status check_writable(const std::string& path);
Status write_plot(const std::string& path, const std::string& svg);

}  // namespace hearth
