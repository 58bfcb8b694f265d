// Gated MLP activations, in double and as simply as possible.
#pragma once

#include <cmath>
#include <numbers>
#include <vector>

#include "engine/ops/mlp.h"

namespace hearth::testing {

inline double reference_silu(double x) { return x / (1.0 + std::exp(-x)); }

inline double reference_gelu_tanh(double x) {
  return 0.5 * x *
         (1.0 + std::tanh(std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

// The results of a gated product from its sums, [rows, outputs]: the first half are gates for the
// second.
inline std::vector<double> reference_gated(const std::vector<double>& sums, uint32_t rows,
                                           uint32_t outputs, MlpActivation activation) {
  std::vector<double> results;
  for (uint32_t r = 0; r < rows; ++r) {
    for (uint32_t n = 0; n < outputs / 2; ++n) {
      const double gate = sums[r * outputs + n];
      results.push_back(
          (activation == MlpActivation::kSilu ? reference_silu(gate) : reference_gelu_tanh(gate)) *
          sums[r * outputs + outputs / 2 + n]);
    }
  }
  return results;
}

}  // namespace hearth::testing
