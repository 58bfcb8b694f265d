// Since when numbers count, and the words for it. Pure.
#pragma once

#include <string>

#include "ui/feeds/engine_view.h"

namespace hearth {

// Sets `restart` in views: numbers start over with a new policy, and when the user asks for it.
class NumberRestarts {
 public:
  // Call for every view, before panels see it. `engine` changes with the engine.
  void follow(EngineView& view, uint64_t engine);
  // Numbers start over with the next view.
  void restart() { wanted_ = true; }

 private:
  uint64_t engine_ = 0, restarts_ = 0;
  bool known_ = false, wanted_ = false;
  Policy policy_;
  double seconds_ = 0;
};

// The interval that numbers are about: the last `most` seconds, or less if they restarted since, or
// all of it if `most` is 0. "over the last 30 s", "over 12 s, since the policy changed or Reset".
std::string interval_words(double most, double restart_seconds, double now);
// The same for a narrow place: "last 30 s", "7 s so far", "12 s since the change".
std::string interval_label(double most, double restart_seconds, double now);

}  // namespace hearth
