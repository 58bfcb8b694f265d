// Scales that make integers come closest to given weights, by weighted least squares: the inner
// part of quantizing. Errors of large weights count more than those of small ones, since they move
// a matrix product more.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace hearth {

// The groups that share a scale have at most this many weights.
inline constexpr std::size_t kMaxFitWeights = 32;

// To the nearest integer, ties to even, for |x| < 2^22, which the library does slower.
inline float round_even(float x) { return (x + 12582912.0f) - 12582912.0f; }

// Scale s for which s * q is closest to x, where q are integers from `low`, negative, to `high`.
// The weight of largest magnitude lands near `low`, so that s may be negative. Zero if x is zero.
float fit_scale(std::span<const float> x, int low, int high);

struct AffineFit {
  float scale = 0;    // at least 0
  float minimum = 0;  // at least 0
};

// Scale and minimum for which scale * q - minimum is closest to x, where q are integers from 0 to
// `high`.
AffineFit fit_affine(std::span<const float> x, int high);

// The same where scale and minimum are whole steps of `unit`, from 0 to `most`: those around `fit`
// with which the weights come closest. Rounding each by itself would not find them.
struct AffineSteps {
  int scale = 0, minimum = 0;
};
AffineSteps fit_affine_steps(std::span<const float> x, int high, const AffineFit& fit,
                             const AffineFit& unit, int most);

// What the nibbles of IQ4_NL and IQ4_XS stand for, ascending.
inline constexpr std::array<std::int8_t, 16> kIq4Values = {
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

// The nibble whose value is nearest to x; the lower of two as near.
int nearest_iq4(float x);

// Scale s for which s times a value of the table, chosen for each weight, is closest to x. Zero if
// x is zero.
float fit_iq4_scale(std::span<const float> x);

// The value of largest magnitude, with its sign; the first of several.
float largest_magnitude(std::span<const float> x);

}  // namespace hearth
