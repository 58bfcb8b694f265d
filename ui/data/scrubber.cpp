#include "ui/data/scrubber.h"

#include <algorithm>

namespace hearth {

void Scrubber::seek(uint64_t position) {
  if (history.empty()) return;
  if (!active_) shown_ = 0;
  active_ = true;
  position_ = std::clamp(position, history.first() + 1, history.end());
  clock_ = history.step(position_ - 1).end_seconds;
}

void Scrubber::step(int64_t steps) {
  playing_ = false;
  const auto from = static_cast<int64_t>(active_ ? position_ : history.end());
  seek(static_cast<uint64_t>(std::max<int64_t>(from + steps, 0)));
}

void Scrubber::leave() {
  active_ = playing_ = false;
  shown_ = 0;
}

void Scrubber::play(bool playing) {
  if (playing && (!active_ || position_ >= history.end())) seek(0);
  playing_ = playing && active_;
}

void Scrubber::set_speed(double speed) { speed_ = std::clamp(speed, kSlowest, kFastest); }

void Scrubber::append_steps(uint64_t from, uint64_t to, EngineView& view) const {
  view.new_steps.clear();
  view.missed_steps = 0;
  for (uint64_t i = from; i < to; ++i) view.new_steps.push_back(history.step(i));
}

void Scrubber::show(EngineView& view, uint64_t& generation, double seconds_passed) {
  // A server that restarted has no steps yet.
  if (history.empty()) return leave();
  if (playing_) {
    const double clock = clock_ + seconds_passed * speed_;
    const uint64_t to = history.step_at(clock);
    if (to > position_) seek(to);
    clock_ = clock;
    playing_ = position_ < history.end();
  }
  // Its steps may have been dropped meanwhile.
  position_ = std::clamp(position_, history.first() + 1, history.end());
  if (position_ == shown_) {
    view.new_steps.clear();
    view.missed_steps = 0;
    return;
  }
  const bool forward = shown_ != 0 && position_ > shown_ && shown_ >= history.first();
  append_steps(forward ? shown_ : history.first(), position_, view);
  if (!forward) view.generation = ++generation;
  history.show(position_, view);
  shown_ = position_;
}

void Scrubber::rejoin(EngineView& view, uint64_t& generation) const {
  // The upper half is the server's, if there is one.
  view.generation = ++generation | (view.generation >> 32 << 32);
  append_steps(history.first(), history.end(), view);
}

}  // namespace hearth
