// Reads rows back that a kernel wrote in a matmul's form.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "engine/ops/kernel_choice.h"
#include "params/split_rows.h"
#include "shaders/quant/cpp.h"

namespace hearth::testing {

// The values that `words`, a whole buffer, stand for; of kSplit also checks the sums.
inline std::vector<float> read_form(RowForm form, const std::vector<uint32_t>& words) {
  std::vector<float> values;
  if (form == RowForm::kHalves) {
    for (const uint32_t word : words) {
      values.push_back(quant::half_bits_to_float(word & 0xffffu));
      values.push_back(quant::half_bits_to_float(word >> 16));
    }
    return values;
  }
  const size_t pieces = words.size() / (params::kSplitPlanes * 4);
  const auto byte = [&](size_t plane, size_t piece, size_t element) {
    const uint32_t word = words[(plane * pieces + piece) * 4 + element / 4];
    return static_cast<int>(static_cast<int8_t>(word >> (8 * (element % 4))));
  };
  for (size_t piece = 0; piece < pieces; ++piece) {
    const uint32_t* rest = &words[(4 * pieces + piece) * 4];
    const float scale = std::bit_cast<float>(rest[0]);
    for (size_t half = 0; half < 2; ++half) {
      float sum = 0;
      for (size_t i = 0; i < 16; ++i) {
        const int q = 256 * byte(half, piece, i) + byte(2 + half, piece, i);
        values.push_back(scale * static_cast<float>(q));
        sum += values.back();
      }
      EXPECT_NEAR(sum, std::bit_cast<float>(rest[1 + half]), 32 * scale + 1e-6f);
    }
    EXPECT_EQ(rest[3], 0u);
  }
  return values;
}

// NMSE of what is left of floats in each form.
inline double form_limit(RowForm form) { return form == RowForm::kHalves ? 1e-6 : 1e-8; }

}  // namespace hearth::testing
