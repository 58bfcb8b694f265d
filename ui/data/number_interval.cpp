#include "ui/data/number_interval.h"

#include <algorithm>

#include <fmt/format.h>

namespace hearth {

void NumberRestarts::follow(EngineView& view, uint64_t engine) {
  if (!view.connected) return;
  if (engine != engine_) {
    engine_ = engine;
    known_ = false;
    seconds_ = 0;
  }
  if (wanted_ || (known_ && view.policy != policy_)) {
    ++restarts_;
    seconds_ = view.now;
  }
  wanted_ = false;
  known_ = true;
  policy_ = view.policy;
  view.restart = restarts_;
  view.restart_seconds = seconds_;
}

std::string interval_words(double most, double restart_seconds, double now) {
  const double since = std::max(now - restart_seconds, 0.0);
  if (most > 0 && since >= most) return fmt::format("over the last {:.0f} s", most);
  if (restart_seconds <= 0) return fmt::format("over {:.0f} s, since the start", since);
  return fmt::format("over {:.0f} s, since the policy changed or Reset", since);
}

std::string interval_label(double most, double restart_seconds, double now) {
  const double since = std::max(now - restart_seconds, 0.0);
  if (most > 0 && since >= most) return fmt::format("last {:.0f} s", most);
  if (restart_seconds > 0) return fmt::format("{:.0f} s since the change", since);
  return fmt::format("{:.0f} s {}", since, most > 0 ? "so far" : "since the start");
}

}  // namespace hearth
