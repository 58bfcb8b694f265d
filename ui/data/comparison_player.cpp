#include "ui/data/comparison_player.h"

#include <algorithm>
#include <utility>

namespace hearth {
namespace {

constexpr double kPlayedSeconds = 15;  // how long a comparison should take to watch

}  // namespace

void ComparisonPlayer::open(Comparison comparison) {
  comparison_ = std::move(comparison);
  end_ = comparison_->end_seconds();
  set_speed(end_ / kPlayedSeconds);
  reset();
  playing_ = true;
}

void ComparisonPlayer::close() {
  comparison_.reset();
  playing_ = false;
  now_ = end_ = 0;
}

void ComparisonPlayer::play(bool playing) {
  if (playing && at_end()) seek(0);
  playing_ = playing && comparison_.has_value();
}

void ComparisonPlayer::set_speed(double speed) { speed_ = std::clamp(speed, kSlowest, kFastest); }

void ComparisonPlayer::reset() {
  playing_ = false;
  seek(0);
}

void ComparisonPlayer::seek(double seconds) {
  if (!comparison_) return;
  now_ = std::clamp(seconds, 0.0, end_);
  for (size_t i = 0; i < sides_.size(); ++i) show(i);
}

void ComparisonPlayer::step(bool forward) {
  if (!comparison_) return;
  playing_ = false;
  double to = forward ? end_ : 0;
  for (const ComparedRun& run : comparison_->runs) {
    const auto after = std::ranges::upper_bound(run.steps, now_, {}, &StepRecord::end_seconds);
    if (forward && after != run.steps.end()) to = std::min(to, after->end_seconds);
    const auto from = std::ranges::lower_bound(run.steps, now_, {}, &StepRecord::end_seconds);
    if (!forward && from != run.steps.begin()) to = std::max(to, std::prev(from)->end_seconds);
  }
  seek(to);
}

void ComparisonPlayer::update(double seconds_passed) {
  if (!playing_) return;
  seek(now_ + seconds_passed * speed_);
  if (at_end()) playing_ = false;
}

// Feeds the side's timeline with the steps that have ended by now; from the beginning if the clock
// was moved back.
void ComparisonPlayer::show(size_t i) {
  const ComparedRun& run = comparison_->runs[i];
  Side& side = sides_[i];
  if (side.generation == 0 || now_ == 0 ||
      (side.next > 0 &&
       (side.next > run.steps.size() || run.steps[side.next - 1].end_seconds > now_))) {
    side.generation = ++generation_;
    side.next = 0;
    side.tally = {};
  }
  EngineView view;
  view.connected = true;
  view.generation = side.generation;
  view.limits = run.limits;
  view.policy = run.policy;
  while (side.next < run.steps.size() && run.steps[side.next].end_seconds <= now_) {
    view.new_steps.push_back(run.steps[side.next++]);
    side.tally.add(view.new_steps.back());
  }
  side.timeline.update(view);
  numbers_[i] = numbers_at(run, side.tally.use(), now_);
}

}  // namespace hearth
