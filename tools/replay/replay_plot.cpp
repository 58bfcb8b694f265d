#include "tools/replay/replay_plot.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "runtime/host/replace_file.h"
#include "tools/replay/bar_plot.h"
#include "tools/replay/curve_plot.h"

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

std::string draw_policies(const PolicyPlot& plot) {
  BarPlot bars{.title = plot.title, .subtitle = plot.subtitle, .goal = plot.goal};
  BarSeries throughput{.colour = "plain"}, padding{.colour = "plain"};
  BarSeries ttft_p50{.colour = "p50"}, ttft_p99{.colour = "p99"};
  BarSeries e2e_p50{.colour = "p50"}, e2e_p99{.colour = "p99"};
  for (const ReplayReport& report : plot.reports) {
    bars.rows.push_back(report.policy);
    throughput.values.push_back(report.throughput_tokens_per_s);
    ttft_p50.values.push_back(report.ttft.p50);
    ttft_p99.values.push_back(report.ttft.p99);
    e2e_p50.values.push_back(report.e2e.p50);
    e2e_p99.values.push_back(report.e2e.p99);
    padding.values.push_back(report.padding_share * 100);
  }
  bars.panels = {{.title = "Throughput, tokens/s", .series = {throughput}},
                 {.title = "Time to first token",
                  .series = {ttft_p50, ttft_p99},
                  .is_time = true,
                  .goal = plot.goal.time_to_first_token},
                 {.title = "End to end", .series = {e2e_p50, e2e_p99}, .is_time = true},
                 {.title = "Padding, % of rows", .series = {padding}}};
  return draw_bars(bars);
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
