#include "tools/replay/label_placer.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

namespace hearth {

PlotBox PlotBox::around(SvgPoint centre, double width, double height) {
  return {.left = centre.x - width / 2,
          .top = centre.y - height / 2,
          .right = centre.x + width / 2,
          .bottom = centre.y + height / 2};
}

bool LabelPlacer::is_free(const PlotBox& box) const {
  return area_.contains(box) &&
         std::ranges::none_of(taken_, [&](const PlotBox& other) { return box.overlaps(other); });
}

void LabelPlacer::avoid_line(SvgPoint from, SvgPoint to) {
  constexpr double kBetween = 4, kThickness = 4;  // pixels
  const double length = std::hypot(to.x - from.x, to.y - from.y);
  const auto boxes = static_cast<size_t>(length / kBetween) + 1;
  for (size_t i = 0; i <= boxes; ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(boxes);
    lines_.push_back(PlotBox::around(
        {std::lerp(from.x, to.x, share), std::lerp(from.y, to.y, share)}, kThickness, kThickness));
  }
}

LabelPlacer::Label LabelPlacer::place(SvgPoint point, double radius, double width, double height) {
  // Down is positive; in the order of preference.
  constexpr SvgPoint kDirections[] = {{0, -1}, {1, -1}, {-1, -1}, {1, 0},
                                      {-1, 0}, {0, 1},  {1, 1},   {-1, 1}};
  constexpr double kGaps[] = {4, 11, 23, 37, 53};  // pixels between the point and the label
  const auto candidate = [&](SvgPoint direction, double gap) {
    return PlotBox::around({point.x + direction.x * (radius + gap + width / 2),
                            point.y + direction.y * (radius + gap + height / 2)},
                           width, height);
  };
  const auto find = [&](std::span<const double> gaps, auto allows) -> std::optional<Label> {
    for (const double gap : gaps)
      for (const SvgPoint direction : kDirections)
        if (const PlotBox box = candidate(direction, gap); is_free(box) && allows(box)) {
          block(box);
          return Label{.box = box, .far = gap > kGaps[1]};
        }
    return std::nullopt;
  };
  const auto off_lines = [&](const PlotBox& box) {
    return std::ranges::none_of(lines_, [&](const PlotBox& line) { return box.overlaps(line); });
  };
  if (const auto label = find(std::span(kGaps).first(2), off_lines)) return *label;
  if (const auto label = find(kGaps, [](const PlotBox&) { return true; })) return *label;
  const PlotBox box = candidate(kDirections[0], kGaps[0]);
  block(box);
  return {.box = box, .far = false};
}

}  // namespace hearth
