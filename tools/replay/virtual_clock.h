// A clock that stands still until it is moved, for simulations: nothing ever sleeps, and the same
// events happen at the same times on every machine.
//
// now() may be called from any thread; everything else from one thread at a time.
#pragma once

#include <atomic>
#include <deque>
#include <functional>

#include "engine/time_source.h"

namespace hearth {

class VirtualClock final : public TimeSource {
 public:
  using Event = std::function<void()>;

  EngineClock::time_point now() const override {
    return EngineClock::time_point(EngineClock::duration(ticks_.load()));
  }
  // Moves to `time` at once, and on the way stops at each event that is due and runs it.
  void sleep_until(EngineClock::time_point time) override;
  bool move_towards(EngineClock::time_point time) override;

  // Runs `event` when the clock gets to `time`. REQUIRES: not earlier than events added before.
  void at(EngineClock::time_point time, Event event);
  // Moves to the next event and runs it. The clock is not touched after the event has begun, so the
  // event may start another thread that moves it. False if there is no event left.
  bool run_next();
  // Runs at the beginning of every sleep_until(); may be empty.
  void before_sleep(Event event) { before_sleep_ = std::move(event); }

 private:
  struct Entry {
    EngineClock::time_point time;
    Event event;
  };
  void move_to(EngineClock::time_point time);

  std::atomic<EngineClock::rep> ticks_{0};  // since the clock's epoch
  std::deque<Entry> events_;                // by time
  Event before_sleep_;
};

}  // namespace hearth
