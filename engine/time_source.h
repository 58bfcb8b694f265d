// Where an engine and the device below it read the time: the real clock, or a virtual one that a
// simulation moves.
#pragma once

#include <chrono>
#include <thread>

namespace hearth {

using EngineClock = std::chrono::steady_clock;

class TimeSource {
 public:
  virtual ~TimeSource() = default;

  // Never goes back. Any thread.
  virtual EngineClock::time_point now() const = 0;
  // Returns when now() has reached `time`.
  virtual void sleep_until(EngineClock::time_point time) = 0;
  // For a virtual clock, which stands still unless it is moved: a caller that waits for `time`
  // calls this, and it moves the clock there or to an earlier event. False for a clock that goes by
  // itself.
  virtual bool move_towards(EngineClock::time_point /*time*/) { return false; }
};

class RealTime final : public TimeSource {
 public:
  EngineClock::time_point now() const override { return EngineClock::now(); }
  void sleep_until(EngineClock::time_point time) override { std::this_thread::sleep_until(time); }
};

// The one that engines use unless told otherwise.
inline RealTime& real_time() {
  static RealTime time;
  return time;
}

}  // namespace hearth
