#include "ui/data/roofline_plot.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace hearth {
namespace {

// Axes end at whole powers of ten, so that their last ticks are labelled.
double power_below(double value) { return std::pow(10, std::floor(std::log10(value) + 1e-9)); }
double power_above(double value) { return std::pow(10, std::ceil(std::log10(value) - 1e-9)); }

}  // namespace

RooflinePlot make_roofline_plot(const RooflineData& data) {
  RooflinePlot plot;
  std::map<std::string, double> step_seconds;
  for (const RooflineDot& dot : data.dots) step_seconds[dot.step] += dot.seconds;

  bool any = false;
  double x_low = 0, x_high = 0, y_low = 0, y_high = 0;
  const auto cover = [&](RooflinePlot::Point at) {
    x_low = any ? std::min(x_low, at.x) : at.x;
    x_high = any ? std::max(x_high, at.x) : at.x;
    y_low = any ? std::min(y_low, at.y) : at.y;
    y_high = any ? std::max(y_high, at.y) : at.y;
    any = true;
  };
  for (size_t i = 0; i < data.dots.size(); ++i) {
    const RooflineDot& dot = data.dots[i];
    auto step = std::ranges::find(plot.steps, dot.step);
    if (step == plot.steps.end()) step = plot.steps.insert(step, dot.step);
    const RooflinePlot::Point at{dot.intensity(), dot.flops_per_s()};
    if (!(at.x > 0) || !(at.y > 0)) {
      plot.unplotted.push_back(i);
      continue;
    }
    const double step_total = step_seconds[dot.step];
    plot.marks.push_back({.dot = i,
                          .step = static_cast<size_t>(step - plot.steps.begin()),
                          .at = at,
                          .time_share = step_total > 0 ? dot.seconds / step_total : 0});
    cover(at);
  }

  const double bandwidth = data.read_bytes_per_s;
  struct Flat {
    const char* name;
    double flops;
  };
  std::vector<Flat> flats;
  if (data.matrix_flops_per_s > 0) flats.push_back({"matrix units", data.matrix_flops_per_s});
  if (data.flops_per_s > 0) flats.push_back({"vector units", data.flops_per_s});
  std::ranges::sort(flats, std::greater<>(), &Flat::flops);
  if (bandwidth > 0)
    for (const Flat& flat : flats) cover({flat.flops / bandwidth, flat.flops});
  if (!any) return plot;

  plot.x_min = power_below(x_low);
  plot.x_max = std::max(power_above(x_high), plot.x_min * 10);
  plot.y_min = power_below(y_low);
  plot.y_max = std::max(power_above(y_high * 1.01), plot.y_min * 10);
  if (bandwidth <= 0) return plot;
  for (const Flat& flat : flats) {
    const double ridge = flat.flops / bandwidth;
    plot.roofs.push_back(
        {.name = flat.name,
         .points = {
             {plot.x_min, plot.x_min * bandwidth}, {ridge, flat.flops}, {plot.x_max, flat.flops}}});
  }
  return plot;
}

}  // namespace hearth
