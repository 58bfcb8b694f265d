// Gated MLP activations in double and in the plainest way.
#pragma once

#include <cmath>
#include <numbers>

namespace hearth::testing {

inline double reference_silu(double x) { return x / (1.0 + std::exp(-x)); }

inline double reference_gelu_tanh(double x) {
  return 0.5 * x *
         (1.0 + std::tanh(std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

}  // namespace hearth::testing
