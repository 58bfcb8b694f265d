// Waiting for something that comes after about the same time again and again, and whose waiter must
// be quick: sleeps for most of the time that the last waits took, then looks again and again for a
// little while, then sleeps until it comes. A thread that sleeps wakes up tens of microseconds late.
// Pure bookkeeping of one waiter.
#pragma once

#include <algorithm>
#include <chrono>

namespace hearth {

class CloseWait {
 public:
  using Seconds = std::chrono::duration<double>;

  // How long to sleep at first, and then to look; both 0 if waits are long, or none was measured.
  Seconds asleep() const { return is_short() ? kAsleep * mean_ : Seconds(0); }
  Seconds looking() const { return is_short() ? std::min(mean_, kLongestLook) : Seconds(0); }
  // A wait took this long. Not for what was there already.
  void took(Seconds wait) {
    mean_ = mean_.count() == 0 ? wait : mean_ + kNewest * (wait - mean_);
  }

 private:
  static constexpr double kAsleep = 0.8, kNewest = 0.2;
  static constexpr Seconds kLongestLook{1e-3};
  // Where being late by a wake-up does not matter.
  static constexpr Seconds kLong{50e-3};
  bool is_short() const { return mean_.count() > 0 && mean_ < kLong; }

  Seconds mean_{0};
};

}  // namespace hearth
