#include "tools/replay/bar_plot.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tools/replay/plot_legend.h"
#include "tools/replay/plot_scale.h"
#include "tools/replay/svg_writer.h"

namespace hearth {
namespace {

constexpr double kBarsTop = 172, kBarsRow = 54, kBarHeight = 15;
constexpr double kBarsPanel = 168, kBarsGap = 62;  // the gap has room for the numbers at the bars

// "continuous+preemption=swap" over as many lines as it takes, broken before a '+' or a space.
std::vector<std::string> name_lines(std::string_view name, double width) {
  std::vector<std::string> lines = {""};
  while (!name.empty()) {
    const size_t end = std::min(name.find_first_of("+ ", 1), name.size());
    const std::string_view part = name.substr(0, end);
    name.remove_prefix(end);
    if (!lines.back().empty() && text_width(lines.back() + std::string(part)) > width)
      lines.emplace_back();
    lines.back() += part;
  }
  for (std::string& line : lines) line = fitting_text(line, width);
  return lines;
}

class BarDrawing {
 public:
  explicit BarDrawing(const BarPlot& plot)
      : plot_(plot),
        labels_width_(widest_label()),
        width_(left() + static_cast<double>(plot.panels.size()) * (kBarsPanel + kBarsGap)),
        bottom_(kBarsTop + static_cast<double>(plot.rows.size()) * kBarsRow),
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
    for (size_t row = 0; row < plot_.rows.size(); ++row) draw_name(row);
    double panel_left = left();
    for (const BarPanel& panel : plot_.panels) {
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
    for (const std::string& row : plot_.rows)
      for (const std::string& line : name_lines(row, kMost))
        width = std::max(width, text_width(line));
    return width;
  }

  static double middle_of(size_t row) {
    return kBarsTop + (static_cast<double>(row) + 0.5) * kBarsRow;
  }

  void draw_name(size_t row) {
    constexpr double kLine = 17;
    const std::vector<std::string> lines = name_lines(plot_.rows[row], labels_width_);
    double y = middle_of(row) + 5 - kLine / 2 * static_cast<double>(lines.size() - 1);
    for (const std::string& line : lines) {
      svg_.text({left() - 12, y}, line, {}, TextAnchor::kEnd);
      y += kLine;
    }
  }

  void draw_panel(const BarPanel& panel, double panel_left) {
    double high = 0;
    for (const BarSeries& series : panel.series)
      for (const double value : series.values) high = std::max(high, value);
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
    for (size_t row = 0; row < plot_.rows.size(); ++row) draw_row(panel, row, panel_left, unit, x);
    svg_.line({panel_left, kBarsTop}, {panel_left, bottom_}, "axis");
    if (shows_goal)
      svg_.line({x(*panel.goal), kBarsTop - 8}, {x(*panel.goal), bottom_},
                "muted stroke thin dashed");
  }

  template <class X>
  void draw_row(const BarPanel& panel, size_t row, double panel_left, const TimeUnit& unit,
                const X& x) {
    double top = middle_of(row) - kBarHeight / 2 * static_cast<double>(panel.series.size());
    for (const BarSeries& series : panel.series) {
      const double value = series.values[row];
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

  const BarPlot& plot_;
  const double labels_width_, width_, bottom_;
  SvgWriter svg_;
};

}  // namespace

std::string draw_bars(const BarPlot& plot) { return BarDrawing(plot).draw(); }

}  // namespace hearth
