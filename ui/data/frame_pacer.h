// How many frames to draw per second. Where the CPU draws the window, drawing competes with the
// model, so that frames become rarer the more they cost. Plain arithmetic, used by one thread.
#pragma once

#include <cstdint>

namespace hearth {

struct FrameLimits {
  double busy_per_s = 60;  // while the engine works
  double idle_per_s = 10;  // while nothing happens; input is answered at once in any case
  double least_per_s = 4;  // however much a frame costs
  double most_share = 0;   // of all cores' time that frames may take; 0: any
  uint32_t cores = 1;
};

class FramePacer {
 public:
  explicit FramePacer(const FrameLimits& limits) : limits_(limits) {}

  // Tells how long the newest frame kept a core busy.
  void drawn(double core_seconds);
  double frames_per_s(bool idle) const;
  double mean_core_seconds() const { return mean_; }

 private:
  FrameLimits limits_;
  double mean_ = 0;  // of the last frames
};

}  // namespace hearth
