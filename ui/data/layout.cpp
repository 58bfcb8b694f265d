#include "ui/data/layout.h"

#include <algorithm>
#include <cmath>

namespace hearth {
namespace {

constexpr size_t index(Region region) { return static_cast<size_t>(region); }

// Divides parts among their own parts.
class Arranger {
 public:
  Arranger(float gap, Splits& splits, const std::array<bool, kRegions>& used)
      : gap_(gap), splits_(splits) {
    // Parts come after the part that holds them.
    for (size_t i = kLayoutParts.size(); i-- > 0;) {
      const LayoutPart& part = kLayoutParts[i];
      if (part.region) used_[i] = used[index(*part.region)];
      if (part.parent >= 0 && used_[i]) used_[static_cast<size_t>(part.parent)] = true;
    }
  }

  void place(size_t part, const Box& box) {
    if (!used_[part]) return;
    if (kLayoutParts[part].region) {
      result.regions[index(*kLayoutParts[part].region)] = box;
      return;
    }
    std::vector<size_t> inner;
    float sum = 0;
    for (size_t i = 0; i < kLayoutParts.size(); ++i) {
      if (kLayoutParts[i].parent != static_cast<int>(part) || !used_[i]) continue;
      inner.push_back(i);
      sum += splits_[i];
    }
    const bool side_by_side = kLayoutParts[part].side_by_side;
    const float room =
        (side_by_side ? box.width : box.height) - gap_ * static_cast<float>(inner.size() - 1);
    float at = side_by_side ? box.x : box.y;
    for (size_t i = 0; i < inner.size(); ++i) {
      const float size = std::max(room * splits_[inner[i]] / sum, 1.0f);
      if (i > 0) {
        float& before = splits_[inner[i - 1]];
        float& after = splits_[inner[i]];
        result.splitters.push_back({.box = side_by_side ? Box{at - gap_, box.y, gap_, box.height}
                                                        : Box{box.x, at - gap_, box.width, gap_},
                                    .vertical = side_by_side,
                                    .before = &before,
                                    .after = &after,
                                    .extent = room * (before + after) / sum});
      }
      place(inner[i],
            side_by_side ? Box{at, box.y, size, box.height} : Box{box.x, at, box.width, size});
      at += size + gap_;
    }
  }

  Arrangement result;

 private:
  float gap_;
  Splits& splits_;
  std::array<bool, kLayoutParts.size()> used_ = {};
};

}  // namespace

const LayoutPart& part_of(Region region) {
  return *std::ranges::find(kLayoutParts, std::optional(region), &LayoutPart::region);
}

std::optional<Region> region_with_key(std::string_view key) {
  const auto found = std::ranges::find(kLayoutParts, key, &LayoutPart::key);
  return found == kLayoutParts.end() ? std::nullopt : found->region;
}

Splits default_splits() {
  Splits splits;
  std::ranges::transform(kLayoutParts, splits.begin(), &LayoutPart::weight);
  return splits;
}

Arrangement arrange(const Box& whole, float gap, Splits& splits,
                    const std::array<bool, kRegions>& used) {
  Arranger arranger(gap, splits, used);
  arranger.place(0, whole);
  return std::move(arranger.result);
}

float fitting_scale(float width, float height) {
  constexpr float kWidth = 1600, kHeight = 900, kLeast = 0.8f, kStep = 0.05f;
  const float fit = std::min(width / kWidth, height / kHeight);
  // In steps, so that the fonts are not made anew for every pixel.
  return std::clamp(std::floor(fit / kStep + 0.01f) * kStep, kLeast, 1.0f);
}

void drag(const Splitter& splitter, float pixels) {
  if (splitter.extent <= 0) return;
  const float both = *splitter.before + *splitter.after;
  const float moved = *splitter.before + both * pixels / splitter.extent;
  *splitter.before = std::clamp(moved, 0.1f * both, 0.9f * both);
  *splitter.after = both - *splitter.before;
}

}  // namespace hearth
