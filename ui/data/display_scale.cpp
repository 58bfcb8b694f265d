#include "ui/data/display_scale.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace hearth {

float display_scale(const DisplayFacts& facts) {
  constexpr float kUsualDots = 96, kLeast = 1.5f, kMost = 4;
  // Projectors and servers without a monitor report physical sizes that cannot be true.
  constexpr float kMostDots = 600;
  // What all panels need at scale 1, and the monitor that they fill well.
  constexpr float kNeededWidth = 1600, kNeededHeight = 900, kFullWidth = 1920, kFullHeight = 1080;
  if (facts.trusted || facts.reported > 1) return std::max(facts.reported, 0.5f);
  const auto part = [](int width, int height, float whole_width, float whole_height) {
    return std::min(static_cast<float>(width) / whole_width,
                    static_cast<float>(height) / whole_height);
  };
  const float full = part(facts.monitor_width, facts.monitor_height, kFullWidth, kFullHeight);
  const float dots = facts.dots_per_inch <= kMostDots ? facts.dots_per_inch / kUsualDots : 0;
  const float room = part(facts.width, facts.height, kNeededWidth, kNeededHeight);
  const float wanted = std::min(std::max(dots, full), room);
  if (wanted < kLeast) return 1;
  return std::min(std::floor(wanted * 4 + 0.01f) / 4, kMost);
}

int monitor_of(const DesktopBox& window, std::span<const DesktopBox> monitors) {
  int found = -1;
  int64_t most = 0;
  for (size_t i = 0; i < monitors.size(); ++i) {
    const DesktopBox& monitor = monitors[i];
    const int64_t across = std::min(window.left + window.width, monitor.left + monitor.width) -
                           std::max(window.left, monitor.left);
    const int64_t down = std::min(window.top + window.height, monitor.top + monitor.height) -
                         std::max(window.top, monitor.top);
    if (across <= 0 || down <= 0 || across * down <= most) continue;
    most = across * down;
    found = static_cast<int>(i);
  }
  return found;
}

}  // namespace hearth
