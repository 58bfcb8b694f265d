// How often proposals were accepted lately: a mean of successes that forgets. With few
// observations it is close to a prior, such as the rate of other requests. Plain data.
#pragma once

#include <cstdint>

namespace hearth {

class AcceptanceRate {
 public:
  // How much an observation leaves of those before it. The rate of all requests remembers eight
  // times as many as that of one request, whose text changes.
  static constexpr double kRequestMemory = 31.0 / 32, kSharedMemory = 255.0 / 256;

  explicit AcceptanceRate(double memory = kRequestMemory) : memory_(memory) {}

  // Of `tried` tokens that were compared one after the other, `accepted` were right. A wrong token
  // ends the comparison, so that at most one was not.
  void add(std::uint32_t accepted, std::uint32_t tried) {
    for (std::uint32_t i = 0; i < tried; ++i) {
      fade(memory_);
      weight_ += 1;
      if (i < accepted) accepted_ += 1;
    }
  }
  // A step without observations: moves towards the prior, so that proposals are tried again.
  void idle() { fade(kIdle); }

  // With `prior` counting as kPrior observations.
  double value(double prior) const { return (accepted_ + kPrior * prior) / (weight_ + kPrior); }

 private:
  static constexpr double kIdle = 127.0 / 128, kPrior = 4;

  void fade(double keep) {
    accepted_ *= keep;
    weight_ *= keep;
  }

  double memory_, accepted_ = 0, weight_ = 0;
};

}  // namespace hearth
