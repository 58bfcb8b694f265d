// Finds scales with which integers approximate given weights best, by weighted least squares: the
// core of quantizing. Errors of large weights count more, because they change a matrix product
// more.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace hearth {

// At most this many weights share a scale.
inline constexpr std::size_t kMaxFitWeights = 32;

// Rounds to the nearest integer, ties to even, for |x| < 2^22; faster than the library function.
inline float round_even(float x) { return (x + 12582912.0f) - 12582912.0f; }

// The scale s for which s * q is closest to x, with integers q from `low` (negative) to `high`. The
// weight of largest magnitude is mapped near `low`, so s may be negative. Zero if x is zero.
float fit_scale(std::span<const float> x, int low, int high);

struct AffineFit {
  float scale = 0;    // at least 0
  float minimum = 0;  // at least 0
};

// The scale and minimum for which scale * q - minimum is closest to x, with integers q from 0 to
// `high`.
AffineFit fit_affine(std::span<const float> x, int high);

// The same with scale and minimum as integer multiples, from 0 to `most`, of `unit`: the ones near
// `fit` with the smallest error. Rounding each separately would not find them.
struct AffineSteps {
  int scale = 0, minimum = 0;
};
AffineSteps fit_affine_steps(std::span<const float> x, int high, const AffineFit& fit,
                             const AffineFit& unit, int most);

// The values of the nibbles of IQ4_NL and IQ4_XS, ascending.
inline constexpr std::array<std::int8_t, 16> kIq4Values = {
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

// The nibble whose value is nearest to x; the lower one of a tie.
int nearest_iq4(float x);

// The scale s for which s times the best table value per weight is closest to x. Zero if x is zero.
float fit_iq4_scale(std::span<const float> x);

// The value of largest magnitude, with its sign; the first if there are several.
float largest_magnitude(std::span<const float> x);

}  // namespace hearth
