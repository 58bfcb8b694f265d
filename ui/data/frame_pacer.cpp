#include "ui/data/frame_pacer.h"

#include <algorithm>

namespace hearth {

void FramePacer::drawn(double core_seconds) {
  constexpr double kNewest = 0.1;  // its weight; the first frames also load fonts and settle soon
  mean_ = mean_ == 0 ? core_seconds : mean_ + kNewest * (core_seconds - mean_);
}

double FramePacer::frames_per_s(bool idle) const {
  double rate = idle ? std::min(limits_.idle_per_s, limits_.busy_per_s) : limits_.busy_per_s;
  if (limits_.most_share > 0 && mean_ > 0) {
    const double affordable = limits_.most_share * limits_.cores / mean_;
    rate = std::min(rate, std::max(affordable, limits_.least_per_s));
  }
  return rate;
}

}  // namespace hearth
