// 16-bit floats on the host: IEEE half and bfloat16, rounding to nearest, ties to even.
#pragma once

#include <bit>
#include <cstdint>

#include "shaders/quant/cpp.h"

namespace hearth {

inline float half_to_float(std::uint16_t half) { return quant::half_bits_to_float(half); }

// Values that are too large become infinity, those that are too small zero or a subnormal half.
inline std::uint16_t float_to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | 0x7e00u;   // NaN
  if (magnitude >= 0x477ff000u) return sign | 0x7c00u;  // 65520 and above is infinity
  if (magnitude < 0x38800000u) {                        // below 2^-14, halves are subnormal
    // Near 0.5 floats have steps of 2^-24, like subnormal halves, so the addition rounds.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u));
  }
  const std::uint32_t rounded = magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<std::uint16_t>(sign | (rounded >> 13));
}

inline float bfloat16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

inline std::uint16_t float_to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  // A NaN must not be rounded to infinity.
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace hearth
