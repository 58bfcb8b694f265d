#include "tools/replay/curve_plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "tools/replay/label_placer.h"
#include "tools/replay/plot_legend.h"
#include "tools/replay/plot_scale.h"
#include "tools/replay/svg_writer.h"

namespace hearth {
namespace {

constexpr double kCurveWidth = 990, kCurveHeight = 800;
constexpr double kCurveLeft = 84, kCurveRight = 870;
constexpr double kMarker = 5;     // half the size of a point
constexpr double kBestRing = 10;  // radius

// One of the two diagrams, which share the horizontal axis.
struct CurvePanel {
  std::string_view name;
  Summary CurvePlot::Point::*times;
  double goal = 0;  // seconds
  double top = 0, bottom = 0;
};

struct CurveLabel {
  std::string text;
  SvgPoint point;
  bool best = false;
};

struct CurveSeries {
  std::string_view colour;
  double Summary::*value;
  bool square = false;  // the shape of its points
};
constexpr CurveSeries kCurveSeries[] = {{"p50", &Summary::p50, false},
                                        {"p99", &Summary::p99, true}};

PlotScale throughput_scale(const CurvePlot& plot) {
  constexpr size_t kMostTicks = 11;
  double low = plot.points.front().throughput, high = low;
  for (const CurvePlot::Point& point : plot.points) {
    low = std::min(low, point.throughput);
    high = std::max(high, point.throughput);
  }
  // Points that are close together get the whole width, but differences of a few percent must not
  // look large.
  constexpr double kClose = 0.6, kLeastSpan = 0.1;
  if (low < kClose * high || low == high) return PlotScale::linear(0, high, kMostTicks);
  return PlotScale::linear(std::min(low, high * (1 - kLeastSpan)), high, kMostTicks);
}

struct TimeAxis {
  PlotScale scale;
  bool shows_goal = false;
};

TimeAxis time_axis(const CurvePlot& plot, const CurvePanel& panel) {
  constexpr size_t kMostTicks = 7;
  double low = (plot.points.front().*panel.times).p50, high = 0;
  for (const CurvePlot::Point& point : plot.points)
    for (const CurveSeries& series : kCurveSeries) {
      low = std::min(low, point.*panel.times.*series.value);
      high = std::max(high, point.*panel.times.*series.value);
    }
  // A linear axis would draw everything below a thirtieth as the same; and a goal that is far away
  // would squeeze the curve.
  constexpr double kMostLinear = 30, kNear = 3, kNearOnLog = 10;
  const bool logarithmic = low > 0 && high / low > kMostLinear;
  const double near = logarithmic ? kNearOnLog : kNear;
  const bool shows_goal =
      panel.goal <= high * near && (!logarithmic || panel.goal >= low / kNearOnLog);
  if (shows_goal) {
    high = std::max(high, panel.goal);
    low = std::min(low, panel.goal);
  }
  if (logarithmic) return {PlotScale::logarithmic(low, high, kMostTicks), shows_goal};
  constexpr double kNothing = 1e-3;  // an axis for times that are all 0
  return {PlotScale::linear(0, high > 0 ? high : kNothing, kMostTicks), shows_goal};
}

class CurveDrawing {
 public:
  explicit CurveDrawing(const CurvePlot& plot)
      : plot_(plot),
        throughput_(throughput_scale(plot)),
        svg_(kCurveWidth, kCurveHeight, plot.title) {}

  std::string draw() && {
    draw_plot_heading(svg_, plot_.title, plot_.subtitle, kCurveWidth);
    draw_legend();
    const CurvePanel ttft{.name = "Time to first token (TTFT)",
                          .times = &CurvePlot::Point::ttft,
                          .goal = plot_.goal.time_to_first_token,
                          .top = 146,
                          .bottom = 416};
    const CurvePanel tbt{.name = "Time between tokens (TBT)",
                         .times = &CurvePlot::Point::tbt,
                         .goal = plot_.goal.time_between_tokens,
                         .top = 452,
                         .bottom = 722};
    draw_panel(ttft);
    draw_panel(tbt);
    for (const double tick : throughput_.ticks())
      svg_.text({x(tick), tbt.bottom + 22}, plot_number(tick), "small", TextAnchor::kMiddle);
    svg_.text({(kCurveLeft + kCurveRight) / 2, tbt.bottom + 52}, "Throughput, generated tokens/s",
              {}, TextAnchor::kMiddle);
    return std::move(svg_).finish();
  }

 private:
  double x(double throughput) const {
    return kCurveLeft + throughput_.place(throughput) * (kCurveRight - kCurveLeft);
  }

  void draw_legend() {
    PlotLegend legend(svg_, {30, kLegendY}, kCurveWidth - 30);
    legend.add("median (p50)", [&](SvgPoint at) { marker(at, kCurveSeries[0]); });
    legend.add("99th percentile (p99)", [&](SvgPoint at) { marker(at, kCurveSeries[1]); });
    legend.add("SLO", [&](SvgPoint at) {
      svg_.line({at.x - 13, at.y}, {at.x + 13, at.y}, "muted stroke thin dashed");
    });
    if (plot_.best)
      legend.add("best point with both p99 within the SLO",
                 [&](SvgPoint at) { svg_.circle(at, kBestRing - 2, "best stroke"); });
    else
      legend.add("no point has both p99 within the SLO", {});
  }

  void marker(SvgPoint at, const CurveSeries& series) {
    if (series.square)
      svg_.rect({at.x - kMarker, at.y - kMarker}, 2 * kMarker, 2 * kMarker,
                fmt::format("{} fill", series.colour));
    else
      svg_.circle(at, kMarker, fmt::format("{} fill", series.colour));
  }

  void draw_panel(const CurvePanel& panel) {
    const TimeAxis axis = time_axis(plot_, panel);
    const TimeUnit unit = time_unit(axis.scale.low(), axis.scale.high());
    const auto y = [&](double seconds) {
      return panel.bottom - axis.scale.place(seconds) * (panel.bottom - panel.top);
    };
    for (const double tick : throughput_.ticks())
      svg_.line({x(tick), panel.top}, {x(tick), panel.bottom}, "grid");
    for (const double tick : axis.scale.ticks()) {
      svg_.line({kCurveLeft, y(tick)}, {kCurveRight, y(tick)}, "grid");
      svg_.text({kCurveLeft - 9, y(tick) + 5}, plot_number(tick * unit.per_second), "small",
                TextAnchor::kEnd);
    }
    svg_.line({kCurveLeft, panel.bottom}, {kCurveRight, panel.bottom}, "axis");
    svg_.line({kCurveLeft, panel.top}, {kCurveLeft, panel.bottom}, "axis");
    svg_.upward_text({28, (panel.top + panel.bottom) / 2},
                     fmt::format("{}, {}{}", panel.name, unit.name,
                                 axis.scale.is_logarithmic() ? " (log)" : ""));

    LabelPlacer placer({kCurveLeft + 3, panel.top - 8, kCurveWidth - 6, panel.bottom - 3});
    draw_goal(panel, axis, y(panel.goal), placer);
    if (plot_.best) {
      const double best_x = x(plot_.points[*plot_.best].throughput);
      svg_.line({best_x, panel.top}, {best_x, panel.bottom}, "best stroke thin dashed");
      placer.avoid_line({best_x, panel.top}, {best_x, panel.bottom});
    }
    std::array<std::vector<SvgPoint>, std::size(kCurveSeries)> places;
    for (size_t i = 0; i < places.size(); ++i) {
      for (const CurvePlot::Point& point : plot_.points)
        places[i].push_back({x(point.throughput), y(point.*panel.times.*kCurveSeries[i].value)});
      draw_line(places[i], kCurveSeries[i], placer);
    }
    std::vector<CurveLabel> labels = labels_of(places[1]);
    // A p50 right below its p99 needs no second label.
    constexpr double kSameLabel = 40;  // pixels
    for (CurveLabel& label : labels_of(places[0]))
      if (std::ranges::none_of(labels, [&](const CurveLabel& other) {
            return other.text == label.text && distance(other.point, label.point) < kSameLabel;
          }))
        labels.push_back(std::move(label));
    // The best point's label is the longest, and the one to find.
    std::ranges::stable_partition(labels, &CurveLabel::best);
    for (const CurveLabel& label : labels) draw_label(label, placer);
  }

  void draw_line(std::span<const SvgPoint> places, const CurveSeries& series, LabelPlacer& placer) {
    svg_.polyline(places, fmt::format("{} stroke", series.colour));
    for (size_t i = 1; i < places.size(); ++i) placer.avoid_line(places[i - 1], places[i]);
    for (const SvgPoint& at : places) {
      marker(at, series);
      placer.block(PlotBox::around(at, 2 * kMarker + 2, 2 * kMarker + 2));
    }
    if (!plot_.best) return;
    svg_.circle(places[*plot_.best], kBestRing, "best stroke");
    placer.block(PlotBox::around(places[*plot_.best], 2 * kBestRing, 2 * kBestRing));
  }

  // Labels for the points of one line. Points that lie on top of each other share one: "8, 16, 32".
  // The best point has its own.
  std::vector<CurveLabel> labels_of(std::span<const SvgPoint> places) const {
    constexpr double kTogether = 14;  // pixels
    std::vector<CurveLabel> labels;
    for (size_t i = 0; i < places.size(); ++i) {
      const std::string& value = plot_.points[i].label;
      if (plot_.best == i) {
        labels.push_back({fmt::format("{} = {}", plot_.parameter, value), places[i], true});
        continue;
      }
      const auto near = std::ranges::find_if(labels, [&](const CurveLabel& label) {
        return !label.best && distance(label.point, places[i]) < kTogether;
      });
      if (near != labels.end())
        near->text += ", " + value;
      else
        labels.push_back({value, places[i], false});
    }
    return labels;
  }

  static double distance(SvgPoint a, SvgPoint b) { return std::hypot(a.x - b.x, a.y - b.y); }

  void draw_goal(const CurvePanel& panel, const TimeAxis& axis, double goal_y,
                 LabelPlacer& placer) {
    const TimeUnit unit = time_unit(0, panel.goal);
    std::string text =
        fmt::format("SLO {} {}", plot_number(panel.goal * unit.per_second), unit.name);
    if (axis.shows_goal) {
      svg_.line({kCurveLeft, goal_y}, {kCurveRight, goal_y}, "muted stroke thin dashed");
      placer.avoid_line({kCurveLeft, goal_y}, {kCurveRight, goal_y});
    } else {
      const bool above = panel.goal > axis.scale.high();
      text += above ? " is above this axis" : " is below this axis";
      goal_y = above ? panel.top + 20 : panel.bottom;
    }
    const SvgPoint at{kCurveLeft + 8, goal_y - 6};
    svg_.text(at, text, "small halo muted");
    placer.block({at.x, at.y - 12, at.x + text_width(text), at.y + 4});
  }

  void draw_label(const CurveLabel& label, LabelPlacer& placer) {
    constexpr double kBold = 1.1, kAround = 4;  // bold letters are wider
    const double width = text_width(label.text) * (label.best ? kBold : 1) + kAround;
    const auto [box, far] =
        placer.place(label.point, label.best ? kBestRing : kMarker, width, kTextHeight + 1);
    if (far) svg_.line(label.point, box.nearest(label.point), "muted leader");
    svg_.text({box.centre().x, box.bottom - 3}, label.text, label.best ? "halo best bold" : "halo",
              TextAnchor::kMiddle);
  }

  const CurvePlot& plot_;
  PlotScale throughput_;
  SvgWriter svg_;
};

}  // namespace

std::string draw_curve(const CurvePlot& plot) { return CurveDrawing(plot).draw(); }

}  // namespace hearth
