// What a mixture of experts should compute, in double and as simply as possible.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "engine/ops/experts.h"
#include "tests/support/reference.h"

namespace hearth::testing {

// The values of all experts' matrices; biases may be empty.
struct ExpertValues {
  std::vector<std::vector<float>> gate_up, down;  // [2 * mlp_width, width], [width, mlp_width]
  std::vector<float> gate_up_bias, down_bias;     // [experts, outputs]
};

struct RoutedExpert {
  uint32_t expert = 0;
  double weight = 0;
};

// The experts of one row, the likeliest first; of equal ones the one with the lower number.
inline std::vector<RoutedExpert> reference_route(std::span<const float> logits, uint32_t used,
                                                 bool over_all) {
  std::vector<uint32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](uint32_t a, uint32_t b) { return logits[a] > logits[b]; });
  double sum = 0;
  for (size_t i = 0; i < (over_all ? order.size() : used); ++i)
    sum += std::exp(double{logits[order[i]]} - logits[order[0]]);
  std::vector<RoutedExpert> chosen;
  for (uint32_t i = 0; i < used; ++i)
    chosen.push_back({order[i], std::exp(double{logits[order[i]]} - logits[order[0]]) / sum});
  return chosen;
}

inline double reference_gate(ExpertActivation activation, double gate, double up) {
  if (activation == ExpertActivation::kSilu) return gate / (1 + std::exp(-gate)) * up;
  const double limited = std::min(gate, 7.0);
  return limited / (1 + std::exp(-1.702 * limited)) * (std::clamp(up, -7.0, 7.0) + 1);
}

// What is added to y.
inline std::vector<double> reference_experts(const ExpertsShape& shape, const ExpertValues& values,
                                             std::span<const float> x,
                                             std::span<const float> logits) {
  std::vector<double> y(size_t{shape.rows} * shape.width);
  for (uint32_t r = 0; r < shape.rows; ++r) {
    const auto row = x.subspan(size_t{r} * shape.width, shape.width);
    const auto row_logits = logits.subspan(size_t{r} * shape.experts, shape.experts);
    for (const auto& [e, weight] : reference_route(row_logits, shape.used, shape.over_all)) {
      const uint32_t outputs = 2 * shape.mlp_width;
      std::vector<double> sums = reference_matmul(values.gate_up[e], row, 1, shape.width, outputs);
      if (!values.gate_up_bias.empty())
        for (uint32_t n = 0; n < outputs; ++n)
          sums[n] += values.gate_up_bias[size_t{e} * outputs + n];
      for (uint32_t n = 0; n < shape.width; ++n) {
        double sum = values.down_bias.empty() ? 0 : values.down_bias[size_t{e} * shape.width + n];
        for (uint32_t k = 0; k < shape.mlp_width; ++k)
          sum += values.down[e][size_t{n} * shape.mlp_width + k] *
                 reference_gate(shape.activation, sums[k], sums[k + shape.mlp_width]);
        y[size_t{r} * shape.width + n] += weight * sum;
      }
    }
  }
  return y;
}

}  // namespace hearth::testing
