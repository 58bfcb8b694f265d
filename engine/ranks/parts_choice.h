// Whether to divide a decode step, decided by how long such steps took. Dividing lets the ranks
// compute at the same time, but each part reads all weights and crosses the link, so it depends on
// the devices and on the number of rows which is faster. Both ways are tried, and again from time
// to time, as contexts grow. Only for steps that decode several sequences: how prompts are divided
// must not change from run to run. Pure.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace hearth {

class PartsChoice {
 public:
  // Steps in a row that a trial lasts; the first two of them are not counted, because steps of the
  // other kind were in flight with them.
  static constexpr uint32_t kTrialSteps = 10;
  static constexpr uint32_t kUncounted = 2;
  // Steps between two trials of the slower way, which then cost less than 1 %.
  static constexpr uint32_t kTrialInterval = 1000;

  // Whether to divide the next step, of `rows` rows.
  bool divides(uint32_t rows) {
    Size& size = size_of(rows);
    if (size.left == 0) {
      // A trial of each way, the faster one for long, then a trial of the other.
      const bool settled = size.seconds[0] > 0 && size.seconds[1] > 0;
      const bool faster = size.seconds[1] < size.seconds[0];
      if (!settled) {
        size.divided = size.seconds[0] > 0;
        size.left = kTrialSteps;
      } else if (size.divided == faster && size.rested) {
        size.divided = !faster;
        size.left = kTrialSteps;
        size.rested = false;
        size.seconds[size.divided] = 0;
      } else {
        size.divided = faster;
        size.left = kTrialInterval;
        size.rested = true;
      }
      size.begun = 0;
    }
    --size.left;
    return size.divided;
  }

  // The step before took this long; in the order of the calls of divides().
  void took(uint32_t rows, bool divided, double seconds) {
    Size& size = size_of(rows);
    if (divided != size.divided || ++size.begun <= kUncounted) return;
    double& mean = size.seconds[divided];
    constexpr double kNew = 0.2;
    mean = mean == 0 ? seconds : mean + kNew * (seconds - mean);
  }

 private:
  struct Size {
    std::array<double, 2> seconds = {};  // whole, divided; 0: not known
    bool divided = false;
    bool rested = false;  // it is not a trial
    uint32_t left = 0;    // steps until the next decision
    uint32_t begun = 0;   // steps that were reported since the last one
  };
  Size& size_of(uint32_t rows) { return sizes_[std::bit_width(rows)]; }

  std::array<Size, 33> sizes_;
};

}  // namespace hearth
