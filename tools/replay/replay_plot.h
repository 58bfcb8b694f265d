// Turns the results of a replay into a picture and writes it to a file.
#pragma once

#include <span>
#include <string>

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

// For Option::check(): what is wrong with the name of a picture, or nothing.
std::string check_plot_name(const std::string& path);
// Whether the file can be written, before measuring for minutes. Creates it if it is missing.
Status check_writable(const std::string& path);
Status write_plot(const std::string& path, const std::string& svg);

}  // namespace hearth
