// Reads back rows that a kernel wrote in the form a matmul wants.
#pragma once

#include <cstdint>
#include <vector>

#include "shaders/quant/cpp.h"

namespace hearth::testing {

inline constexpr double kHalvesLimit = 1e-6;  // NMSE of rounding to f16

inline std::vector<float> read_halves(const std::vector<uint32_t>& words) {
  std::vector<float> values;
  for (const uint32_t word : words) {
    values.push_back(quant::half_bits_to_float(word & 0xffffu));
    values.push_back(quant::half_bits_to_float(word >> 16));
  }
  return values;
}

}  // namespace hearth::testing
