// Random numbers that are the same on every machine and with every standard library, so that a
// replay can be repeated exactly. The generator is SplitMix64.
#pragma once

#include <cmath>
#include <cstdint>

namespace hearth {

class SeededRandom {
 public:
  // Different streams of one seed are independent.
  explicit SeededRandom(uint64_t seed, uint64_t stream = 0) : state_(mix(mix(seed) ^ stream)) {}

  uint64_t next() {
    state_ += kGamma;
    return mix(state_);
  }
  // In [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  // In [low, high].
  uint32_t between(uint32_t low, uint32_t high) {
    return low + static_cast<uint32_t>(uniform() * (static_cast<double>(high - low) + 1));
  }
  // Standard normal, by Box and Muller's method.
  double normal() {
    constexpr double kTurn = 6.283185307179586;
    const double radius = std::sqrt(-2 * std::log1p(-uniform()));
    return radius * std::cos(kTurn * uniform());
  }
  // Time until the next event of a Poisson process with `rate` events per second.
  double exponential(double rate) { return -std::log1p(-uniform()) / rate; }

 private:
  static constexpr uint64_t kGamma = 0x9e3779b97f4a7c15;
  static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  uint64_t state_;
};

}  // namespace hearth
