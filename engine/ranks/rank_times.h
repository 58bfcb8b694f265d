// Where the time of a rank's steps goes, as its host thread sees it. Plain data; sums over steps.
#pragma once

#include <chrono>
#include <cstdint>

namespace hearth {

struct RankTimes {
  uint64_t steps = 0;
  uint64_t shared_steps = 0;  // whose rows came in memory that both devices share
  // A step's rows, or on the first rank the ids that it continues: from when the rank before knew
  // them, or from when this rank began to wait if that was later, until this rank had them.
  double arrival_seconds = 0;
  double submit_seconds = 0;  // from then until the device had the step
  double device_seconds = 0;  // from then, or from the end of the step before, until it was done
};

// Seconds of a clock that all processes of a machine share.
inline double rank_clock() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace hearth
