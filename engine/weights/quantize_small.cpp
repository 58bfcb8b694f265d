// Formats with 1 or 32 weights per block.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "engine/weights/fit.h"
#include "engine/weights/half.h"
#include "engine/weights/quantize_blocks.h"

namespace hearth {
namespace {

constexpr std::size_t kSmallBlock = 32;
using SmallQuants = std::array<std::uint8_t, kSmallBlock>;

// Packs weight j into the low and weight 16+j into the high nibble of byte j.
void put_nibbles(std::byte* to, const SmallQuants& q) {
  for (std::size_t j = 0; j < kSmallBlock / 2; ++j)
    to[j] = static_cast<std::byte>((q[j] & 15) | (q[j + 16] & 15) << 4);
}

// Packs bit 4 of weight i into bit i.
void put_fifth_bits(std::byte* to, const SmallQuants& q) {
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < kSmallBlock; ++i) bits |= std::uint32_t{(q[i] >> 4) & 1u} << i;
  put(to, bits);
}

// The reciprocal of a scale; zero if all weights are zero or too small for any scale.
float reciprocal(float x) {
  const float result = 1 / x;
  return std::isfinite(result) ? result : 0;
}

struct Symmetric {
  float d;
  SmallQuants q;  // unsigned: `half` represents weight 0
};

// weight = d * (q - half). The weight of largest magnitude becomes q = 0.
Symmetric round_symmetric(const float* x, int half) {
  Symmetric result;
  result.d = largest_magnitude({x, kSmallBlock}) / static_cast<float>(-half);
  const float inverse = reciprocal(result.d);
  for (std::size_t i = 0; i < kSmallBlock; ++i) {
    const int q = static_cast<int>(x[i] * inverse + (static_cast<float>(half) + 0.5f));
    result.q[i] = static_cast<std::uint8_t>(std::min(q, 2 * half - 1));
  }
  return result;
}

struct Affine {
  float d;
  float m;
  SmallQuants q;
};

// weight = d * q + m, from the smallest weight at q = 0 to the largest at q = high.
Affine round_affine(const float* x, int high) {
  const auto [smallest, largest] = std::minmax_element(x, x + kSmallBlock);
  Affine result;
  result.m = *smallest;
  result.d = (*largest - *smallest) / static_cast<float>(high);
  const float inverse = reciprocal(result.d);
  for (std::size_t i = 0; i < kSmallBlock; ++i) {
    const int q = static_cast<int>((x[i] - result.m) * inverse + 0.5f);
    result.q[i] = static_cast<std::uint8_t>(std::min(q, high));
  }
  return result;
}

}  // namespace

void quantize_f32(const float* x, std::byte* block) { put(block, *x); }
void quantize_f16(const float* x, std::byte* block) { put(block, float_to_half(*x)); }
void quantize_bf16(const float* x, std::byte* block) { put(block, float_to_bfloat16(*x)); }

void quantize_q8_0(const float* x, std::byte* block) {
  const float largest = std::fabs(largest_magnitude({x, kSmallBlock}));
  const float d = largest / 127;
  const float inverse = reciprocal(d);
  put(block, float_to_half(d));
  for (std::size_t i = 0; i < kSmallBlock; ++i)
    block[2 + i] = static_cast<std::byte>(static_cast<int>(std::round(x[i] * inverse)));
}

void quantize_q4_0(const float* x, std::byte* block) {
  const Symmetric rounded = round_symmetric(x, 8);
  put(block, float_to_half(rounded.d));
  put_nibbles(block + 2, rounded.q);
}

void quantize_q4_1(const float* x, std::byte* block) {
  const Affine rounded = round_affine(x, 15);
  put(block, float_to_half(rounded.d));
  put(block + 2, float_to_half(rounded.m));
  put_nibbles(block + 4, rounded.q);
}

void quantize_q5_0(const float* x, std::byte* block) {
  const Symmetric rounded = round_symmetric(x, 16);
  put(block, float_to_half(rounded.d));
  put_fifth_bits(block + 2, rounded.q);
  put_nibbles(block + 6, rounded.q);
}

void quantize_q5_1(const float* x, std::byte* block) {
  const Affine rounded = round_affine(x, 31);
  put(block, float_to_half(rounded.d));
  put(block + 2, float_to_half(rounded.m));
  put_fifth_bits(block + 4, rounded.q);
  put_nibbles(block + 8, rounded.q);
}

void quantize_iq4_nl(const float* x, std::byte* block) {
  const std::uint16_t d = float_to_half(fit_iq4_scale({x, kSmallBlock}));
  const float inverse = reciprocal(half_to_float(d));
  SmallQuants q;
  for (std::size_t i = 0; i < kSmallBlock; ++i)
    q[i] = static_cast<std::uint8_t>(nearest_iq4(x[i] * inverse));
  put(block, d);
  put_nibbles(block + 2, q);
}

void quantize_mxfp4(const float* x, std::byte* block) {
  constexpr std::array<int, 16> kValues = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
  const float largest = std::fabs(largest_magnitude({x, kSmallBlock}));
  // The largest four-bit float is 6, between 2^2 and 2^3; the values above are twice the floats.
  const int exponent = largest > 0 ? std::clamp(std::ilogb(largest) - 2, -127, 127) : -127;
  const float scale = std::ldexp(0.5f, exponent);
  SmallQuants q{};
  for (std::size_t i = 0; i < kSmallBlock; ++i) {
    float least = INFINITY;
    for (std::size_t v = 0; v < kValues.size(); ++v) {
      const float error = std::fabs(scale * static_cast<float>(kValues[v]) - x[i]);
      if (error < least) {
        least = error;
        q[i] = static_cast<std::uint8_t>(v);
      }
    }
  }
  block[0] = static_cast<std::byte>(exponent + 127);
  put_nibbles(block + 1, q);
}

}  // namespace hearth
