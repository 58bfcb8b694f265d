// Moves the whole dashboard through the last steps: stops at one, goes back and forth, and plays
// them. Every panel sees the chosen moment, because the view itself is of that moment. Call only
// from the window's thread.
#pragma once

#include <cstdint>

#include "ui/data/view_history.h"
#include "ui/feeds/engine_view.h"

namespace hearth {

class Scrubber {
 public:
  static constexpr double kSlowest = 1.0 / 64, kFastest = 16;  // times the recorded speed

  ViewHistory history;

  // Whether the past is shown. A recording has nothing else.
  bool active() const { return active_; }
  // The number of the newest step shown, plus one; in (history.first(), history.end()].
  uint64_t position() const { return position_; }
  // Does nothing without steps.
  void seek(uint64_t position);
  void step(int64_t steps);
  // Back to the present.
  void leave();

  bool playing() const { return playing_; }
  // From the end, playing starts over.
  void play(bool playing);
  double speed() const { return speed_; }
  void set_speed(double speed);

  // Call once per frame while active: sets the view of this frame. If it has to go back, the view
  // gets a new generation and all steps up to the position, as if the engine were a new one.
  void show(EngineView& view, uint64_t& generation, double seconds_passed);
  // After leave(): all steps that are kept, for a view that continues with the present.
  void rejoin(EngineView& view, uint64_t& generation) const;

 private:
  void append_steps(uint64_t from, uint64_t to, EngineView& view) const;

  bool active_ = false, playing_ = false;
  uint64_t position_ = 0;
  uint64_t shown_ = 0;  // the position that the view has; 0: none
  double clock_ = 0;    // while playing, on the engine's clock
  double speed_ = 1;
};

}  // namespace hearth
