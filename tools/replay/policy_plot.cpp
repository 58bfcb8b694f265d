#include "tools/replay/policy_plot.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "tools/replay/plot_legend.h"
#include "tools/replay/plot_scale.h"
#include "tools/replay/svg_writer.h"

namespace hearth {
namespace {

constexpr double kBarsTop = 172, kBarsRow = 54, kBarHeight = 15;
constexpr double kBarsPanel = 168, kBarsGap = 62;  // the gap has room for the numbers at the bars

struct BarSeries {
  std::string_view colour;
  std::function<double(const ReplayReport&)> value;
};

struct BarPanel {
  std::string title;
  std::vector<BarSeries> series;  // one bar each, below each other
  bool is_time = false;           // seconds; otherwise as the title says
  std::optional<double> goal;
};

std::vector<BarPanel> bar_panels(const ServiceGoal& goal) {
  const auto times = [](Summary ReplayReport::*summary) {
    return std::vector<BarSeries>{
        {"p50", [=](const ReplayReport& report) { return (report.*summary).p50; }},
        {"p99", [=](const ReplayReport& report) { return (report.*summary).p99; }}};
  };
  return {
      {.title = "Throughput, tokens/s",
       .series = {{"plain", [](const auto& report) { return report.throughput_tokens_per_s; }}}},
      {.title = "Time to first token",
       .series = times(&ReplayReport::ttft),
       .is_time = true,
       .goal = goal.time_to_first_token},
      {.title = "End to end", .series = times(&ReplayReport::e2e), .is_time = true},
      {.title = "Padding, % of rows",
       .series = {{"plain", [](const auto& report) { return report.padding_share * 100; }}}}};
}

// "continuous+preemption=swap" over as many lines as it takes, broken before a '+' or a space.
std::vector<std::string> policy_lines(std::string_view policy, double width) {
  std::vector<std::string> lines = {""};
  while (!policy.empty()) {
    const size_t end = std::min(policy.find_first_of("+ ", 1), policy.size());
    const std::string_view part = policy.substr(0, end);
    policy.remove_prefix(end);
    if (!lines.back().empty() && text_width(lines.back() + std::string(part)) > width)
      lines.emplace_back();
    lines.back() += part;
  }
  for (std::string& line : lines) line = fitting_text(line, width);
  return lines;
}

class BarDrawing {
 public:
  explicit BarDrawing(const PolicyPlot& plot)
      : plot_(plot),
        panels_(bar_panels(plot.goal)),
        labels_width_(widest_label()),
        width_(left() + static_cast<double>(panels_.size()) * (kBarsPanel + kBarsGap)),
        bottom_(kBarsTop + static_cast<double>(plot.reports.size()) * kBarsRow),
        svg_(width_, bottom_ + 52, plot.title) {}

  std::string draw() && {
    draw_plot_heading(svg_, plot_.title, plot_.subtitle, width_);
    PlotLegend legend(svg_, {30, kLegendY}, width_ - 30);
    const auto swatch = [&](std::string_view colour) {
      return [this, colour](SvgPoint at) {
        svg_.rect({at.x - 9, at.y - 6}, 18, 12, fmt::format("{} fill", colour));
      };
    };
    legend.add("median (p50)", swatch("p50"));
    legend.add("99th percentile (p99)", swatch("p99"));
    legend.add(fmt::format("SLO: first token within {:g} s", plot_.goal.time_to_first_token),
               [&](SvgPoint at) {
                 svg_.line({at.x, at.y - 9}, {at.x, at.y + 9}, "muted stroke thin dashed");
               });
    for (size_t i = 0; i < plot_.reports.size(); ++i) draw_name(i);
    double panel_left = left();
    for (const BarPanel& panel : panels_) {
      draw_panel(panel, panel_left);
      panel_left += kBarsPanel + kBarsGap;
    }
    return std::move(svg_).finish();
  }

 private:
  double left() const { return 30 + labels_width_ + 16; }

  double widest_label() const {
    constexpr double kLeast = 70, kMost = 190;
    double width = kLeast;
    for (const ReplayReport& report : plot_.reports)
      for (const std::string& line : policy_lines(report.policy, kMost))
        width = std::max(width, text_width(line));
    return width;
  }

  double middle_of(size_t report) const {
    return kBarsTop + (static_cast<double>(report) + 0.5) * kBarsRow;
  }

  void draw_name(size_t report) {
    constexpr double kLine = 17;
    const std::vector<std::string> lines =
        policy_lines(plot_.reports[report].policy, labels_width_);
    double y = middle_of(report) + 5 - kLine / 2 * static_cast<double>(lines.size() - 1);
    for (const std::string& line : lines) {
      svg_.text({left() - 12, y}, line, {}, TextAnchor::kEnd);
      y += kLine;
    }
  }

  void draw_panel(const BarPanel& panel, double panel_left) {
    double high = 0;
    for (const ReplayReport& report : plot_.reports)
      for (const BarSeries& series : panel.series) high = std::max(high, series.value(report));
    // A goal that is far away would squeeze the bars.
    constexpr double kNearGoal = 1.5;
    const bool shows_goal = panel.goal && *panel.goal <= high * kNearGoal;
    if (shows_goal) high = std::max(high, *panel.goal);
    const TimeUnit unit = panel.is_time ? time_unit(0, high) : TimeUnit{};
    const PlotScale scale = PlotScale::linear(0, high * unit.per_second, 5);
    const auto x = [&](double value) {
      return panel_left + scale.place(value * unit.per_second) * kBarsPanel;
    };

    svg_.text({panel_left, kBarsTop - 20},
              panel.is_time ? fmt::format("{}, {}", panel.title, unit.name) : panel.title, "bold");
    for (const double tick : scale.ticks()) {
      const double at = x(tick / unit.per_second);
      svg_.line({at, kBarsTop}, {at, bottom_}, "grid");
      svg_.text({at, bottom_ + 20}, plot_number(tick), "small", TextAnchor::kMiddle);
    }
    for (size_t i = 0; i < plot_.reports.size(); ++i)
      draw_bars(panel, plot_.reports[i], middle_of(i), panel_left, unit, x);
    svg_.line({panel_left, kBarsTop}, {panel_left, bottom_}, "axis");
    if (shows_goal)
      svg_.line({x(*panel.goal), kBarsTop - 8}, {x(*panel.goal), bottom_},
                "muted stroke thin dashed");
  }

  template <class X>
  void draw_bars(const BarPanel& panel, const ReplayReport& report, double middle,
                 double panel_left, const TimeUnit& unit, const X& x) {
    double top = middle - kBarHeight / 2 * static_cast<double>(panel.series.size());
    for (const BarSeries& series : panel.series) {
      const double value = series.value(report);
      svg_.rect({panel_left, top + 1}, x(value) - panel_left, kBarHeight - 2,
                fmt::format("{} fill", series.colour));
      svg_.text({x(value) + 5, top + kBarHeight - 3}, bar_number(value * unit.per_second),
                "small halo");
      top += kBarHeight;
    }
  }

  // Three digits, as there is no room for more.
  static std::string bar_number(double value) {
    if (value >= 1000) return plot_number(std::round(value));
    return value >= 100 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
  }

  const PolicyPlot& plot_;
  const std::vector<BarPanel> panels_;
  const double labels_width_, width_, bottom_;
  SvgWriter svg_;
};

}  // namespace

std::string draw_policies(const PolicyPlot& plot) { return BarDrawing(plot).draw(); }

}  // namespace hearth
