// How fast tokens are generated: over the last second while the engine works, afterwards the speed
// it ended with. Used by one thread.
#pragma once

#include <cstdint>
#include <deque>

namespace hearth {

class SpeedMeter {
 public:
  // Call once per frame with the number of tokens generated so far and the engine's clock. A lower
  // number means that another engine is shown.
  void update(uint64_t generated_tokens, double now);
  double tokens_per_s() const { return rate_; }

 private:
  struct Reading {
    uint64_t tokens = 0;
    double at = 0;
  };
  std::deque<Reading> readings_;  // of the last second
  double rate_ = 0;
  bool idle_ = false;  // for a second already
};

}  // namespace hearth
