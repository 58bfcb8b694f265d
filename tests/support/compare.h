// Random inputs, and the distance of a result from its reference.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace hearth::testing {

// Normally distributed with occasional outliers, like activations.
std::vector<float> random_floats(size_t count, uint32_t seed, float scale = 1.0f);

// f32 to f16, rounded to nearest even; and back.
uint16_t to_half(float value);
float from_half(uint16_t bits);
std::vector<uint16_t> to_half(std::span<const float> values);

// sum (a - b)^2 / sum b^2. Infinite if any value is NaN or the lengths differ.
double nmse(std::span<const float> result, std::span<const double> reference);

}  // namespace hearth::testing
