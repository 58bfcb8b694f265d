#include "ui/data/display_scale.h"

#include <algorithm>
#include <cmath>

namespace hearth {

float display_scale(const DisplayFacts& facts) {
  constexpr float kUsualDots = 96, kLeast = 1.5f, kMost = 4;
  // Projectors and servers without a monitor report physical sizes that cannot be true.
  constexpr float kMostDots = 600;
  // What all panels need at scale 1, and a window that they fill well.
  constexpr float kNeededWidth = 1600, kNeededHeight = 900, kFullWidth = 1920, kFullHeight = 1080;
  if (facts.trusted || facts.reported > 1) return std::max(facts.reported, 0.5f);
  const auto width = static_cast<float>(facts.width), height = static_cast<float>(facts.height);
  const float room = std::min(width / kNeededWidth, height / kNeededHeight);
  const float full = std::min(width / kFullWidth, height / kFullHeight);
  const float dots = facts.dots_per_inch <= kMostDots ? facts.dots_per_inch / kUsualDots : 0;
  const float wanted = std::max(std::min(dots, room), full);
  if (wanted < kLeast) return 1;
  return std::min(std::floor(wanted * 4 + 0.01f) / 4, kMost);
}

}  // namespace hearth
