// What each kernel should compute, in double and as simply as possible.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

namespace hearth::testing {

// y[r, i] = x[r, i] / sqrt(mean of x[r]^2 + epsilon) * weight[i]
inline std::vector<double> reference_rms_norm(std::span<const float> x,
                                              std::span<const float> weight, size_t rows,
                                              size_t width, double epsilon) {
  std::vector<double> y(rows * width);
  for (size_t r = 0; r < rows; ++r) {
    double squares = 0;
    for (size_t i = 0; i < width; ++i) squares += double{x[r * width + i]} * x[r * width + i];
    const double scale = 1.0 / std::sqrt(squares / static_cast<double>(width) + epsilon);
    for (size_t i = 0; i < width; ++i) y[r * width + i] = x[r * width + i] * scale * weight[i];
  }
  return y;
}

// y[r, n] = sum over k of weight[n, k] * x[r, k]
inline std::vector<double> reference_matmul(std::span<const float> weight, std::span<const float> x,
                                            size_t rows, size_t inputs, size_t outputs) {
  std::vector<double> y(rows * outputs);
  for (size_t r = 0; r < rows; ++r) {
    for (size_t n = 0; n < outputs; ++n) {
      double sum = 0;
      for (size_t k = 0; k < inputs; ++k) sum += double{weight[n * inputs + k]} * x[r * inputs + k];
      y[r * outputs + n] = sum;
    }
  }
  return y;
}

}  // namespace hearth::testing
