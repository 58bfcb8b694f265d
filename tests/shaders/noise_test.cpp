// The noise of tokens against the same in double, above all at its ends, which draws rarely reach.
#include "params/noise.h"

#include <cmath>
#include <numbers>
#include <random>

#include "tests/support/gpu.h"
#include "tests/support/reference_sampling.h"

namespace hearth::testing {
namespace {

class NoiseTest : public GpuTest {
 protected:
  struct Noise {
    std::vector<float> noise, most;
  };
  Noise noise_of(const std::vector<uint32_t>& bits) {
    const auto count = static_cast<uint32_t>(bits.size());
    const Buffer input = filled(bits), noise = poisoned(count * 4), most = poisoned(count * 4);
    run([&](CommandRecorder& recorder) -> Status {
      HEARTH_ASSIGN(const Pipeline* pipeline,
                    pipelines().get({.kernel = "noise",
                                     .constants = params::NoiseConstants{.kWorkgroupSize = 64}}));
      recorder.dispatch({.pipeline = *pipeline,
                         .arguments = params::Noise{.bits = input.all(),
                                                    .noise = noise.all(),
                                                    .most = most.all(),
                                                    .count = count},
                         .groups = {.x = 3}});
      return {};
    });
    return {.noise = read<float>(noise), .most = read<float>(most)};
  }
};

// Every power of two, the numbers beside it, both ends, and where the formula changes.
std::vector<uint32_t> special_bits() {
  std::vector<uint32_t> bits;
  for (uint32_t i = 0; i < 64; ++i) {
    bits.push_back(i);
    bits.push_back(~i);
    bits.push_back(0x4b000000 + i - 32);
  }
  for (uint32_t shift = 6; shift < 32; ++shift)
    for (const uint32_t around : {0xffffffffu, 0u, 1u}) bits.push_back((1u << shift) + around);
  return bits;
}

TEST_F(NoiseTest, IsThatOfTheFormula) {
  std::vector<uint32_t> bits = special_bits();
  std::mt19937 random(5);
  while (bits.size() < 100'000) bits.push_back(static_cast<uint32_t>(random() >> random() % 32));
  const Noise found = noise_of(bits);
  constexpr double kLimit = 4e-6;
  for (size_t i = 0; i < bits.size(); ++i) {
    ASSERT_NEAR(found.noise[i], reference_noise(bits[i]), kLimit) << bits[i];
    ASSERT_GE(found.most[i], found.noise[i]) << bits[i];
  }
  EXPECT_NEAR(found.noise[0], 33 * std::numbers::ln2, kLimit) << "of bits 0";
  EXPECT_GT(found.noise[1], -3.2) << "of all bits: kLeastNoise is less";
}

TEST_F(NoiseTest, FallsAsBitsRise) {
  std::vector<uint32_t> bits;
  for (uint64_t i = 0; i < 0x100000000; i += 65521) bits.push_back(static_cast<uint32_t>(i));
  for (const uint32_t special : special_bits()) bits.push_back(special);
  std::ranges::sort(bits);
  const Noise found = noise_of(bits);
  for (size_t i = 1; i < bits.size(); ++i)
    ASSERT_LE(found.noise[i], found.noise[i - 1]) << bits[i];
}

}  // namespace
}  // namespace hearth::testing
