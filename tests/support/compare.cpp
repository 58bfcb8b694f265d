#include "tests/support/compare.h"

#include <bit>
#include <cmath>
#include <limits>

namespace hearth::testing {

std::vector<float> random_floats(size_t count, uint32_t seed, float scale) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::uniform_int_distribution<int> one_in(0, 99);
  std::vector<float> values(count);
  for (float& value : values)
    value = normal(generator) * scale * (one_in(generator) == 0 ? 10.0f : 1.0f);
  return values;
}

float from_half(uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f;
  const int mantissa = bits & 0x3ff;
  const float sign = (bits & 0x8000) != 0 ? -1.0f : 1.0f;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -24);
  if (exponent == 31)
    return mantissa == 0 ? sign * std::numeric_limits<float>::infinity()
                         : std::numeric_limits<float>::quiet_NaN();
  return sign * std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
}

uint16_t to_half(float value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const float magnitude = std::fabs(value);
  if (std::isnan(value)) return 0x7e00;
  if (magnitude >= 65520.0f) return sign | 0x7c00;
  // In units of the last place of the result; nearbyint rounds halves to even.
  const int exponent = std::max(std::ilogb(magnitude), -14);
  const auto units =
      magnitude == 0 ? 0 : static_cast<int>(std::nearbyint(std::ldexp(magnitude, 10 - exponent)));
  // A mantissa that rounds up to the next power of two carries into the exponent by itself.
  const int biased = magnitude == 0 ? 0 : exponent + 14;
  return static_cast<uint16_t>(sign | ((biased << 10) + units));
}

std::vector<uint16_t> to_half(std::span<const float> values) {
  std::vector<uint16_t> halves;
  halves.reserve(values.size());
  for (const float value : values) halves.push_back(to_half(value));
  return halves;
}

double nmse(std::span<const float> result, std::span<const double> reference) {
  if (result.size() != reference.size()) return std::numeric_limits<double>::infinity();
  double error = 0, power = 0;
  for (size_t i = 0; i < result.size(); ++i) {
    const double difference = result[i] - reference[i];
    error += difference * difference;
    power += reference[i] * reference[i];
  }
  if (std::isnan(error)) return std::numeric_limits<double>::infinity();
  return power == 0 ? (error == 0 ? 0 : std::numeric_limits<double>::infinity()) : error / power;
}

}  // namespace hearth::testing
