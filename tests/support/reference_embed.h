// Matrices of every weight format for tests, in device layout and as floats.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "engine/weights/formats.h"
#include "engine/weights/quantize.h"
#include "engine/weights/repack.h"
#include "tests/support/compare.h"

namespace hearth::testing {

struct WeightMatrix {
  std::vector<std::byte> device;
  std::vector<float> values;  // [rows, cols], as dequantize_row gives them
};

inline WeightMatrix random_matrix(WeightFormat format, size_t rows, size_t cols, uint32_t seed) {
  const FormatInfo& info = format_info(format);
  const std::vector<float> source = random_floats(rows * cols, seed, 0.05f);
  const size_t blocks = rows * cols / info.block_weights;
  std::vector<std::byte> file(blocks * info.block_bytes);
  EXPECT_TRUE(quantize_row(format, source, file).ok());
  WeightMatrix matrix{std::vector<std::byte>(device_layout(format, blocks).total_bytes),
                      std::vector<float>(rows * cols)};
  repack_matrix(format, file, matrix.device);
  for (size_t r = 0; r < rows; ++r)
    dequantize_row(format, matrix.device.data(), {rows, cols}, r, matrix.values.data() + r * cols);
  return matrix;
}

}  // namespace hearth::testing
