// A clock that a test moves by hand. Any thread.
#pragma once

#include <atomic>
#include <chrono>

#include "engine/time_source.h"

namespace hearth::testing {

class HandClock final : public TimeSource {
 public:
  EngineClock::time_point now() const override { return now_.load(); }
  void sleep_until(EngineClock::time_point time) override { now_ = time; }
  void advance(double seconds) {
    now_ = now() + std::chrono::duration_cast<EngineClock::duration>(
                       std::chrono::duration<double>(seconds));
  }

 private:
  std::atomic<EngineClock::time_point> now_{EngineClock::time_point(std::chrono::hours(1))};
};

}  // namespace hearth::testing
