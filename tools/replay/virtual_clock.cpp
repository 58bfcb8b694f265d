#include "tools/replay/virtual_clock.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace hearth {

void VirtualClock::move_to(EngineClock::time_point time) {
  ticks_ = std::max(now(), time).time_since_epoch().count();
}

void VirtualClock::sleep_until(EngineClock::time_point time) {
  if (before_sleep_) before_sleep_();
  while (!events_.empty() && events_.front().time <= time) run_next();
  move_to(time);
}

bool VirtualClock::move_towards(EngineClock::time_point time) {
  if (events_.empty() || events_.front().time > time || !run_next()) move_to(time);
  return true;
}

void VirtualClock::at(EngineClock::time_point time, Event event) {
  assert(events_.empty() || events_.back().time <= time);
  events_.push_back({time, std::move(event)});
}

bool VirtualClock::run_next() {
  if (events_.empty()) return false;
  const Entry entry = std::move(events_.front());
  events_.pop_front();
  move_to(entry.time);
  entry.event();
  return true;
}

}  // namespace hearth
