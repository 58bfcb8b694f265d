// Formats with 256 weights per block, whose scales are integers times the block's scale d.
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

constexpr std::size_t kSuperBlock = 256;
constexpr std::size_t kMaxGroups = 16;
using SuperQuants = std::array<std::uint8_t, kSuperBlock>;

int round_clamped(float x, int low, int high) {
  return static_cast<int>(
      round_even(std::clamp(x, static_cast<float>(low), static_cast<float>(high))));
}

// Packs two bits of each q, from bit 2*shift on: byte l of each 32 has those of weights l, 32+l,
// 64+l and 96+l of 128.
void put_two_bits(std::byte* to, const SuperQuants& q, int shift) {
  for (std::size_t half = 0; half < 2; ++half)
    for (std::size_t l = 0; l < 32; ++l) {
      int bits = 0;
      for (std::size_t t = 0; t < 4; ++t)
        bits |= ((q[128 * half + 32 * t + l] >> shift) & 3) << (2 * t);
      to[32 * half + l] = static_cast<std::byte>(bits);
    }
}

// Packs bit `shift` of each q: byte l has those of weights l, 32+l, ... 224+l.
void put_one_bits(std::byte* to, const SuperQuants& q, int shift) {
  for (std::size_t l = 0; l < 32; ++l) {
    int bits = 0;
    for (std::size_t t = 0; t < 8; ++t) bits |= ((q[32 * t + l] >> shift) & 1) << t;
    to[l] = static_cast<std::byte>(bits);
  }
}

// Packs the low nibble of each q: byte l of each `distance` has those of weights l and distance+l.
void put_nibbles(std::byte* to, const SuperQuants& q, std::size_t distance) {
  for (std::size_t first = 0; first < kSuperBlock; first += 2 * distance)
    for (std::size_t l = 0; l < distance; ++l)
      to[first / 2 + l] =
          static_cast<std::byte>((q[first + l] & 15) | (q[first + distance + l] & 15) << 4);
}

struct AffineBlock {
  std::uint16_t d = 0;
  std::uint16_t dmin = 0;
  std::array<std::uint8_t, kMaxGroups> scale{};
  std::array<std::uint8_t, kMaxGroups> minimum{};
  SuperQuants q{};
};

// weight = d * scale * q - dmin * minimum, q from 0 to `high`, scale and minimum to `scale_high`.
AffineBlock fit_affine_block(const float* x, std::size_t group, int high, int scale_high) {
  const std::size_t groups = kSuperBlock / group;
  std::array<AffineFit, kMaxGroups> fits;
  AffineFit largest;
  for (std::size_t g = 0; g < groups; ++g) {
    fits[g] = fit_affine({x + g * group, group}, high);
    largest.scale = std::max(largest.scale, fits[g].scale);
    largest.minimum = std::max(largest.minimum, fits[g].minimum);
  }
  AffineBlock block;
  block.d = float_to_half(largest.scale / static_cast<float>(scale_high));
  block.dmin = float_to_half(largest.minimum / static_cast<float>(scale_high));
  const float d = half_to_float(block.d);
  const float dmin = half_to_float(block.dmin);
  for (std::size_t g = 0; g < groups; ++g) {
    const auto [scale, minimum] = fit_affine_steps({x + g * group, group}, high, fits[g],
                                                   {.scale = d, .minimum = dmin}, scale_high);
    block.scale[g] = static_cast<std::uint8_t>(scale);
    block.minimum[g] = static_cast<std::uint8_t>(minimum);
    if (scale == 0) continue;
    const float inverse = 1 / (d * static_cast<float>(scale));
    const float offset = dmin * static_cast<float>(minimum);
    for (std::size_t i = g * group; i < (g + 1) * group; ++i)
      block.q[i] = static_cast<std::uint8_t>(round_clamped((x[i] + offset) * inverse, 0, high));
  }
  return block;
}

// The scales of a block, one per group of weights by `fit`, as integers from `low` to `high` times
// d. The largest becomes `low`, which is negative and has the larger magnitude.
struct BlockScales {
  BlockScales(const std::array<float, kMaxGroups>& fits, int low, int high) {
    d_half = float_to_half(largest_magnitude(fits) / static_cast<float>(low));
    const float d = half_to_float(d_half);
    for (std::size_t g = 0; g < kMaxGroups; ++g) {
      integer[g] = d != 0 ? round_clamped(fits[g] / d, low, high) : 0;
      inverse[g] = integer[g] != 0 ? 1 / (d * static_cast<float>(integer[g])) : 0;
    }
  }
  std::uint16_t d_half = 0;
  std::array<int, kMaxGroups> integer{};
  std::array<float, kMaxGroups> inverse{};  // 1 / (d * integer); zero if that is zero
};

// weight = d * scale * (q + low), with one scale per 16 weights.
BlockScales fit_scaled_block(const float* x, int low, int high, int scale_low, SuperQuants& q) {
  std::array<float, kMaxGroups> fits{};
  for (std::size_t g = 0; g < kMaxGroups; ++g) fits[g] = fit_scale({x + 16 * g, 16}, low, high);
  const BlockScales scales(fits, scale_low, -scale_low - 1);
  for (std::size_t i = 0; i < kSuperBlock; ++i)
    q[i] = static_cast<std::uint8_t>(round_clamped(x[i] * scales.inverse[i / 16], low, high) - low);
  return scales;
}

// Packs eight six-bit scales and minima into 12 bytes, as in Q4_K and Q5_K.
void put_scales_and_minima(std::byte* to, const AffineBlock& block) {
  for (std::size_t j = 0; j < 4; ++j) {
    const int scale = block.scale[j + 4];
    const int minimum = block.minimum[j + 4];
    to[j] = static_cast<std::byte>(block.scale[j] | (scale >> 4) << 6);
    to[j + 4] = static_cast<std::byte>(block.minimum[j] | (minimum >> 4) << 6);
    to[j + 8] = static_cast<std::byte>((scale & 15) | (minimum & 15) << 4);
  }
}

}  // namespace

void quantize_q2_k(const float* x, std::byte* block) {
  const AffineBlock fit = fit_affine_block(x, 16, 3, 15);
  for (std::size_t g = 0; g < kMaxGroups; ++g)
    block[g] = static_cast<std::byte>(fit.scale[g] | fit.minimum[g] << 4);
  put_two_bits(block + 16, fit.q, 0);
  put(block + 80, fit.d);
  put(block + 82, fit.dmin);
}

void quantize_q3_k(const float* x, std::byte* block) {
  SuperQuants q;
  const BlockScales scales = fit_scaled_block(x, -4, 3, -32, q);
  put_one_bits(block, q, 2);
  put_two_bits(block + 32, q, 0);
  std::array<std::uint8_t, 12> packed{};
  for (std::size_t g = 0; g < kMaxGroups; ++g) {
    const int scale = scales.integer[g] + 32;
    packed[g % 8] = static_cast<std::uint8_t>(packed[g % 8] | (scale & 15) << (4 * (g / 8)));
    packed[8 + g % 4] =
        static_cast<std::uint8_t>(packed[8 + g % 4] | (scale >> 4) << (2 * (g / 4)));
  }
  put(block + 96, packed);
  put(block + 108, scales.d_half);
}

void quantize_q4_k(const float* x, std::byte* block) {
  const AffineBlock fit = fit_affine_block(x, 32, 15, 63);
  put(block, fit.d);
  put(block + 2, fit.dmin);
  put_scales_and_minima(block + 4, fit);
  put_nibbles(block + 16, fit.q, 32);
}

void quantize_q5_k(const float* x, std::byte* block) {
  const AffineBlock fit = fit_affine_block(x, 32, 31, 63);
  put(block, fit.d);
  put(block + 2, fit.dmin);
  put_scales_and_minima(block + 4, fit);
  put_one_bits(block + 16, fit.q, 4);
  put_nibbles(block + 48, fit.q, 32);
}

void quantize_q6_k(const float* x, std::byte* block) {
  SuperQuants q;
  const BlockScales scales = fit_scaled_block(x, -32, 31, -128, q);
  put_nibbles(block, q, 64);
  put_two_bits(block + 128, q, 4);
  for (std::size_t g = 0; g < kMaxGroups; ++g)
    block[192 + g] = static_cast<std::byte>(scales.integer[g]);
  put(block + 208, scales.d_half);
}

void quantize_iq4_xs(const float* x, std::byte* block) {
  std::array<float, kMaxGroups> fits{};
  for (std::size_t g = 0; g < 8; ++g) fits[g] = fit_iq4_scale({x + 32 * g, 32});
  const BlockScales scales(fits, -32, 31);
  int scales_high = 0;
  std::uint32_t scales_low = 0;
  for (std::size_t g = 0; g < 8; ++g) {
    const int scale = scales.integer[g] + 32;
    scales_high |= (scale >> 4) << (2 * g);
    scales_low |= static_cast<std::uint32_t>(scale & 15) << (4 * g);
    std::array<int, 32> q;
    for (std::size_t i = 0; i < 32; ++i) q[i] = nearest_iq4(x[32 * g + i] * scales.inverse[g]);
    for (std::size_t j = 0; j < 16; ++j)
      block[8 + 16 * g + j] = static_cast<std::byte>(q[j] | q[j + 16] << 4);
  }
  put(block, scales.d_half);
  put(block + 2, static_cast<std::uint16_t>(scales_high));
  put(block + 4, scales_low);
}

}  // namespace hearth
