// Plays a comparison: both sides advance on one clock, which can be paused, moved to any time,
// stepped forward and back, and reset to the beginning. Call only from the window's thread.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "tools/replay/step_tally.h"
#include "ui/data/compared_numbers.h"
#include "ui/data/comparison.h"
#include "ui/data/timeline_data.h"

namespace hearth {

class ComparisonPlayer {
 public:
  static constexpr double kSlowest = 1.0 / 64, kFastest = 16;  // times the modelled or real speed

  // Starts playing from the beginning, at a speed that takes about a quarter of a minute.
  void open(Comparison comparison);
  void close();
  const Comparison* comparison() const { return comparison_ ? &*comparison_ : nullptr; }

  bool playing() const { return playing_; }
  // Playing from the end starts over.
  void play(bool playing);
  double speed() const { return speed_; }
  void set_speed(double speed);
  // Both sides from the beginning, paused.
  void reset();
  void seek(double seconds);
  // To the end of the next step of either side, or of the previous one. Pauses.
  void step(bool forward);
  // Call once per frame with the time since the last one.
  void update(double seconds_passed);

  double now() const { return now_; }
  double end() const { return end_; }
  bool at_end() const { return now_ >= end_; }

  // As of now. REQUIRES: there is a comparison.
  const TimelineData& timeline(size_t side) const { return sides_[side].timeline; }
  const NumbersPair& numbers() const { return numbers_; }

 private:
  struct Side {
    TimelineData timeline;
    StepTally tally;
    size_t next = 0;          // step that is not shown yet
    uint64_t generation = 0;  // of the views that the timeline was fed
  };
  void show(size_t side);

  std::optional<Comparison> comparison_;
  std::array<Side, 2> sides_;
  NumbersPair numbers_;
  uint64_t generation_ = 0;
  bool playing_ = false;
  double now_ = 0, end_ = 0, speed_ = 1;
};

}  // namespace hearth
