// How often proposals were accepted lately: a mean of successes that forgets. With few
// observations it is close to a prior, such as the rate of other requests. Plain data.
#pragma once

#include <cstdint>

namespace hearth {

class AcceptanceRate {
 public:
  // Of `tried` tokens that were compared one after the other, `accepted` were right. A wrong token
  // ends the comparison, so that at most one was not.
  void add(std::uint32_t accepted, std::uint32_t tried) {
    for (std::uint32_t i = 0; i < tried; ++i) {
      fade(kMemory);
      weight_ += 1;
      if (i < accepted) accepted_ += 1;
    }
  }
  // A step without observations: moves towards the prior, so that proposals are tried again.
  void idle() { fade(kIdle); }

  // With `prior` counting as kPrior observations.
  double value(double prior) const { return (accepted_ + kPrior * prior) / (weight_ + kPrior); }

 private:
  static constexpr double kMemory = 31.0 / 32, kIdle = 127.0 / 128, kPrior = 2;

  void fade(double keep) {
    accepted_ *= keep;
    weight_ *= keep;
  }

  double accepted_ = 0, weight_ = 0;
};

}  // namespace hearth
