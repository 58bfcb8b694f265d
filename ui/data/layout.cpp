#include "ui/data/layout.h"

#include <algorithm>
#include <span>

namespace hearth {
namespace {

constexpr size_t index(Region region) { return static_cast<size_t>(region); }

// Divides `whole` among the used parts by weight, with splitters between them.
std::vector<Box> cut(const Box& whole, float gap, bool vertical, std::span<float> weights,
                     std::span<const bool> used, std::vector<Splitter>& splitters) {
  std::vector<Box> parts(weights.size());
  float sum = 0;
  int count = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (!used[i]) continue;
    sum += weights[i];
    ++count;
  }
  if (count == 0 || sum <= 0) return parts;
  const float room = (vertical ? whole.width : whole.height) - gap * static_cast<float>(count - 1);
  float place = vertical ? whole.x : whole.y;
  size_t last = weights.size();
  for (size_t i = 0; i < weights.size(); ++i) {
    if (!used[i]) continue;
    const float size = std::max(room * weights[i] / sum, 1.0f);
    if (last != weights.size()) {
      const float begin = place - gap;
      splitters.push_back({.box = vertical ? Box{begin, whole.y, gap, whole.height}
                                           : Box{whole.x, begin, whole.width, gap},
                           .vertical = vertical,
                           .before = &weights[last],
                           .after = &weights[i],
                           .extent = room * (weights[last] + weights[i]) / sum});
    }
    parts[i] =
        vertical ? Box{place, whole.y, size, whole.height} : Box{whole.x, place, whole.width, size};
    place += size + gap;
    last = i;
  }
  return parts;
}

}  // namespace

Arrangement arrange(const Box& whole, float gap, Splits& splits,
                    const std::array<bool, kRegions>& used) {
  const auto uses = [&](Region region) { return used[index(region)]; };
  const bool bottom[] = {uses(Region::kBottomLeft), uses(Region::kBottomRight)};
  const bool rows[] = {uses(Region::kTop), uses(Region::kMiddle), bottom[0] || bottom[1]};
  const bool side[] = {uses(Region::kSideTop), uses(Region::kSideBottom)};
  const bool columns[] = {uses(Region::kLeft), rows[0] || rows[1] || rows[2], side[0] || side[1]};

  Arrangement result;
  const auto box_of = [&](Region region) -> Box& { return result.regions[index(region)]; };
  const auto column = cut(whole, gap, true, splits.columns, columns, result.splitters);
  box_of(Region::kLeft) = column[0];
  if (columns[1]) {
    const auto row = cut(column[1], gap, false, splits.rows, rows, result.splitters);
    box_of(Region::kTop) = row[0];
    box_of(Region::kMiddle) = row[1];
    if (rows[2]) {
      const auto half = cut(row[2], gap, true, splits.bottom, bottom, result.splitters);
      box_of(Region::kBottomLeft) = half[0];
      box_of(Region::kBottomRight) = half[1];
    }
  }
  if (columns[2]) {
    const auto half = cut(column[2], gap, false, splits.side, side, result.splitters);
    box_of(Region::kSideTop) = half[0];
    box_of(Region::kSideBottom) = half[1];
  }
  return result;
}

void drag(const Splitter& splitter, float pixels) {
  if (splitter.extent <= 0) return;
  const float both = *splitter.before + *splitter.after;
  const float moved = *splitter.before + both * pixels / splitter.extent;
  *splitter.before = std::clamp(moved, 0.1f * both, 0.9f * both);
  *splitter.after = both - *splitter.before;
}

}  // namespace hearth
