// How often proposals were accepted lately. With few observations the rate is close to a prior,
// such as the rate of all requests. Plain data.
//
// One request's text may change from easy to hard to guess. So its rate is watched over its last
// few tokens, too: as soon as these differ from the long memory by more than chance explains, what
// came before them is forgotten. As long as nothing changes, the long memory is exact enough that
// proposals are not too short or too long by chance (docs/lab/speculation.md).
#pragma once

#include <algorithm>
#include <cstdint>

namespace hearth {

class AcceptanceRate {
 public:
  enum class Of { kOneRequest, kAllRequests };

  explicit AcceptanceRate(Of whose = Of::kOneRequest) : whose_(whose) {}

  // Of `tried` tokens that were compared one after the other, `accepted` were right. A wrong token
  // ends the comparison, so that at most one was not.
  void add(std::uint32_t accepted, std::uint32_t tried) {
    for (std::uint32_t i = 0; i < tried; ++i) {
      long_.add(i < accepted, kLongMemory);
      short_.add(i < accepted, kShortMemory);
    }
    // Many requests at once differ, but do not change.
    if (whose_ == Of::kOneRequest && tried > 0 && has_changed()) long_ = short_;
  }
  // A step without observations: moves towards the prior, so that proposals are tried again.
  void idle() {
    long_.fade(kIdle);
    short_.fade(kIdle);
  }

  // With `prior` counting as kPrior observations.
  double value(double prior) const {
    return (long_.accepted + kPrior * prior) / (long_.weight + kPrior);
  }

 private:
  // A mean of observations that count less and less.
  struct Mean {
    double accepted = 0, weight = 0;

    void fade(double keep) {
      accepted *= keep;
      weight *= keep;
    }
    void add(bool right, double keep) {
      fade(keep);
      weight += 1;
      if (right) accepted += 1;
    }
    double value() const { return accepted / weight; }
  };

  // How much an observation leaves of those before it: memories of 256 and 8 tokens.
  static constexpr double kLongMemory = 255.0 / 256, kShortMemory = 7.0 / 8;
  static constexpr double kIdle = 127.0 / 128, kPrior = 4;
  // More than this many standard deviations are no chance. Rates near 0 and 1 count as if they had
  // the variance of 0.99, or a single wrong token would be a change.
  static constexpr double kChance = 2.5, kLeastVariance = 0.01;

  bool has_changed() const {
    const double expected = long_.value(), apart = short_.value() - expected;
    const double variance = std::max(expected * (1 - expected), kLeastVariance);
    return apart * apart * short_.weight > kChance * kChance * variance;
  }

  Of whose_;
  Mean long_, short_;
};

}  // namespace hearth
