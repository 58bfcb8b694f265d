#include "tools/replay/replay_plot.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "runtime/host/replace_file.h"
#include "tools/replay/curve_plot.h"
#include "tools/replay/policy_plot.h"

namespace hearth {
namespace {

std::vector<std::string> plot_subtitle(const ReplaySetting& setting) {
  return {setting.trace, fmt::format("{}{} on {}", setting.simulated ? "Simulation: " : "",
                                     setting.model, setting.device)};
}

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using PlotFile = std::unique_ptr<std::FILE, CloseFile>;

Result<PlotFile> open_plot(const std::string& path, const char* mode) {
  PlotFile file(std::fopen(path.c_str(), mode));
  if (!file)
    return Error{ErrorKind::kIo, fmt::format("cannot write {}: {}", path, strerror(errno))};
  return file;
}

}  // namespace

std::string plot_sweep(const ReplaySetting& setting, std::span<const SweepPoint> points,
                       const ServiceGoal& goal) {
  const Sweep& sweep = *setting.sweep;
  CurvePlot plot{.title = fmt::format("Latency and throughput of {} for each {}",
                                      points.front().report.policy, sweep.parameter()),
                 .subtitle = plot_subtitle(setting),
                 .parameter = std::string(sweep.parameter()),
                 .points = {},
                 .best = best_point(points, goal),
                 .goal = goal};
  for (const SweepPoint& point : points)
    plot.points.push_back({.label = std::to_string(point.value),
                           .throughput = point.report.throughput_tokens_per_s,
                           .ttft = point.report.ttft,
                           .tbt = point.report.tbt});
  return draw_curve(plot);
}

std::string plot_comparison(const ReplaySetting& setting, std::span<const ReplayReport> reports,
                            const ServiceGoal& goal) {
  return draw_policies({.title = reports.size() > 1 ? "Scheduling policies compared"
                                                    : fmt::format("Policy {}", reports[0].policy),
                        .subtitle = plot_subtitle(setting),
                        .reports = reports,
                        .goal = goal});
}

std::string check_plot_name(const std::string& path) {
  return path.ends_with(".svg") ? "" : "the picture is an SVG file, so its name must end in .svg";
}

Status check_writable(const std::string& path) {
  HEARTH_TRY(open_plot(path, "ab"));
  return {};
}

Status write_plot(const std::string& path, const std::string& svg) {
  return replace_file(path, svg);
}

}  // namespace hearth
