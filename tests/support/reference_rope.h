// Rope, head norms and the paged cache, in double and as simply as possible.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

namespace hearth::testing {

// Frequencies without scaling, in radians per position.
inline std::vector<double> plain_frequencies(uint32_t dims, double base = 10000.0) {
  std::vector<double> frequencies;
  for (uint32_t i = 0; i < dims; i += 2)
    frequencies.push_back(1.0 / std::pow(base, static_cast<double>(i) / dims));
  return frequencies;
}

// A head of q or k. `weight` is empty if there is no norm.
inline std::vector<double> reference_head(std::span<const float> x, std::span<const float> weight,
                                          double epsilon, uint64_t position,
                                          std::span<const double> frequencies, bool adjacent,
                                          double attention_scale) {
  std::vector<double> head(x.begin(), x.end());
  if (!weight.empty()) {
    double squares = 0;
    for (const double value : head) squares += value * value;
    const double scale = 1.0 / std::sqrt(squares / static_cast<double>(head.size()) + epsilon);
    for (size_t i = 0; i < head.size(); ++i) head[i] *= scale * double{weight[i]};
  }
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const double angle = static_cast<double>(position) * frequencies[i];
    double& a = head[adjacent ? 2 * i : i];
    double& b = head[adjacent ? 2 * i + 1 : i + frequencies.size()];
    const double cosine = std::cos(angle) * attention_scale;
    const double sine = std::sin(angle) * attention_scale;
    const double rotated = a * cosine - b * sine;
    b = b * cosine + a * sine;
    a = rotated;
  }
  return head;
}

}  // namespace hearth::testing
