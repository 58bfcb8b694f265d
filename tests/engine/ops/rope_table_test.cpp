// Compares frequencies with independently written formulas and with numbers published with models.
#include "engine/ops/rope_table.h"

#include <bit>
#include <cmath>
#include <limits>
#include <numbers>

#include <gtest/gtest.h>

namespace hearth {
namespace {

constexpr double kPi = std::numbers::pi;

RopeTable table_of(const RopeTableInfo& info) {
  auto table = make_rope_table(info);
  EXPECT_TRUE(table.ok()) << (table.ok() ? "" : table.error().message);
  return table.ok() ? std::move(table).value() : RopeTable{};
}

// The difference between the kernel's angle at a position and the true one, in radians from minus
// to plus half a turn.
double angle_error(uint64_t turns, double frequency, uint32_t position) {
  const double ours = std::ldexp(static_cast<double>(turns * position), -64);
  const double truth = std::fmod(frequency / (2 * kPi) * position, 1.0);
  return std::remainder(ours - truth, 1.0) * 2 * kPi;
}

TEST(RopeTable, PlainFrequenciesFallGeometrically) {
  for (const auto& [dims, base] :
       {std::pair{64u, 10000.0}, {128u, 500000.0}, {80u, 10000.0}, {256u, 1e6}, {2u, 10000.0}}) {
    const std::vector<double> frequencies = rope_frequencies({.dims = dims, .base = base});
    ASSERT_EQ(frequencies.size(), dims / 2);
    EXPECT_EQ(frequencies[0], 1.0);
    const double ratio = std::exp(-2.0 * std::log(base) / dims);
    for (size_t i = 1; i < frequencies.size(); ++i)
      EXPECT_NEAR(frequencies[i] / frequencies[i - 1], ratio, 1e-14);
  }
  // 10000^(-1/32) and 500000^(-1/64).
  EXPECT_NEAR(rope_frequencies({.dims = 64})[1], 0.7498942093324559, 1e-15);
  EXPECT_NEAR(rope_frequencies({.dims = 128, .base = 500000.0})[1], 0.8146172338565447, 1e-15);
  EXPECT_EQ(table_of({.dims = 64}).attention_scale, 1.0f);
}

TEST(RopeTable, AnglesAreExactAtEveryPosition) {
  const RopeTableInfo info{.dims = 128, .base = 500000.0};
  const RopeTable table = table_of(info);
  const std::vector<double> frequencies = rope_frequencies(info);
  ASSERT_EQ(table.turns.size(), 64u);
  for (size_t i = 0; i < 64; ++i)
    for (const uint32_t position : {1u, 2u, 4095u, 131'072u, 10'000'000u})
      EXPECT_NEAR(angle_error(table.turns[i], frequencies[i], position), 0.0, 1e-8)
          << i << " at " << position;
}

TEST(RopeTable, WordsAreWhatTheKernelReads) {
  const RopeTable table{.turns = {0x0123456789abcdefull, 1}, .attention_scale = 1.5f};
  const std::vector<uint32_t> words = rope_table_words(table);
  EXPECT_EQ(words, (std::vector<uint32_t>{std::bit_cast<uint32_t>(1.5f), 0, 0, 0, 0x89abcdef,
                                          0x01234567, 1, 0}));
}

TEST(RopeTable, Linear) {
  const std::vector<double> plain = rope_frequencies({.dims = 256, .base = 1e6});
  const RopeTableInfo info{
      .dims = 256, .base = 1e6, .scaling = RopeScaling::kLinear, .factor = 8.0};
  const std::vector<double> linear = rope_frequencies(info);
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_DOUBLE_EQ(linear[i], plain[i] / 8);
  EXPECT_EQ(table_of(info).attention_scale, 1.0f);
}

// Llama 3.1 and 3.2 according to their config.json. The factors in between are those of the files'
// rope_freqs tensor: in the 3.1 files 1 up to pair 28 and 8 from pair 35 on.
TEST(RopeTable, Llama3) {
  for (const auto& [dims, factor] : {std::pair{128u, 8.0}, {64u, 32.0}}) {
    const RopeTableInfo info{.dims = dims,
                             .base = 500000.0,
                             .scaling = RopeScaling::kLlama3,
                             .factor = factor,
                             .original_context = 8192};
    const std::vector<double> plain = rope_frequencies({.dims = dims, .base = 500000.0});
    const std::vector<double> scaled = rope_frequencies(info);
    for (size_t i = 0; i < plain.size(); ++i) {
      const double wavelength = 2 * kPi / plain[i];
      double expected = plain[i];
      if (wavelength > 8192.0 / 1.0) {
        expected = plain[i] / factor;
      } else if (wavelength >= 8192.0 / 4.0) {
        const double smooth = (8192.0 / wavelength - 1.0) / (4.0 - 1.0);
        expected = (1 - smooth) * plain[i] / factor + smooth * plain[i];
      }
      EXPECT_NEAR(scaled[i] / expected, 1.0, 1e-13) << i;
    }
    EXPECT_EQ(table_of(info).attention_scale, 1.0f);
    if (dims == 128) {
      EXPECT_DOUBLE_EQ(scaled[28], plain[28]);
      EXPECT_LT(scaled[29], plain[29]);
      EXPECT_GT(scaled[34], plain[34] / factor);
      EXPECT_DOUBLE_EQ(scaled[35], plain[35] / factor);
    }
  }
}

TEST(RopeTable, FactorsDivide) {
  const std::vector<float> factors = {1.0f, 2.0f, 4.0f, 8.0f};
  const std::vector<double> plain = rope_frequencies({.dims = 8});
  const std::vector<double> divided =
      rope_frequencies({.dims = 8, .scaling = RopeScaling::kFactors, .factors = factors});
  for (size_t i = 0; i < 4; ++i) EXPECT_DOUBLE_EQ(divided[i], plain[i] / double{factors[i]});
}

RopeTableInfo yarn(uint32_t dims, double base, double factor, uint32_t original) {
  return {.dims = dims,
          .base = base,
          .scaling = RopeScaling::kYarn,
          .factor = factor,
          .original_context = original};
}

// DeepSeek-V2's rope (64 dimensions, base 10000, original context 4096) keeps the pairs up to 10
// and divides those from 23 on.
TEST(RopeTable, YarnRampIsWhereItWasPublished) {
  const RopeTableInfo info = yarn(64, 10000.0, 40.0, 4096);
  const std::vector<double> plain = rope_frequencies({.dims = 64});
  const std::vector<double> scaled = rope_frequencies(info);
  for (size_t i = 0; i < 32; ++i) {
    const double divided = i <= 10 ? 0.0 : i >= 23 ? 1.0 : (static_cast<double>(i) - 10.0) / 13.0;
    const double expected = plain[i] / 40.0 * divided + plain[i] * (1 - divided);
    EXPECT_NEAR(scaled[i] / expected, 1.0, 1e-13) << i;
  }
}

// gpt-oss: the ramp ends between pairs, at 8.09 and 17.40; the attention factor is 1.3466.
TEST(RopeTable, YarnWithoutTruncation) {
  RopeTableInfo info = yarn(64, 150000.0, 32.0, 4096);
  info.truncate = false;
  const std::vector<double> plain = rope_frequencies({.dims = 64, .base = 150000.0});
  const std::vector<double> scaled = rope_frequencies(info);
  const double low = 32 * std::log(4096 / (32.0 * 2 * kPi)) / std::log(150000.0);
  const double high = 32 * std::log(4096 / (1.0 * 2 * kPi)) / std::log(150000.0);
  EXPECT_NEAR(low, 8.09, 0.01);
  EXPECT_NEAR(high, 17.40, 0.01);
  EXPECT_DOUBLE_EQ(scaled[8], plain[8]);
  EXPECT_DOUBLE_EQ(scaled[18], plain[18] / 32.0);
  const double divided = (12.0 - low) / (high - low);
  EXPECT_NEAR(scaled[12], plain[12] * (1 - divided) + plain[12] / 32.0 * divided, 1e-15);
  EXPECT_NEAR(double{table_of(info).attention_scale}, 1.3466, 5e-5);
}

TEST(RopeTable, YarnAttentionFactors) {
  // Qwen's factor of 4.
  EXPECT_NEAR(double{table_of(yarn(128, 1e6, 4.0, 32768)).attention_scale}, 1.138629436111989,
              1e-7);
  EXPECT_EQ(table_of(yarn(128, 1e6, 1.0, 32768)).attention_scale, 1.0f);
  RopeTableInfo given = yarn(128, 1e6, 4.0, 32768);
  given.attention_factor = 1.25;
  EXPECT_EQ(table_of(given).attention_scale, 1.25f);
}

TEST(RopeTable, YarnWithoutExtrapolationIsLinear) {
  RopeTableInfo info = yarn(128, 10000.0, 16.0, 4096);
  info.ext_factor = 0.0;
  const std::vector<double> scaled = rope_frequencies(info);
  const std::vector<double> plain = rope_frequencies({.dims = 128});
  for (size_t i = 0; i < 64; ++i) EXPECT_DOUBLE_EQ(scaled[i], plain[i] / 16.0);
}

// Phi-3-mini-128k: 4096 extended to 131072, attention factor 1.19024.
TEST(RopeTable, LongRope) {
  std::vector<float> factors, long_factors;
  for (int i = 0; i < 48; ++i) {
    factors.push_back(1.0f + 0.03f * static_cast<float>(i));
    long_factors.push_back(1.0f + 1.3f * static_cast<float>(i));
  }
  RopeTableInfo info{.dims = 96,
                     .scaling = RopeScaling::kLongRope,
                     .original_context = 4096,
                     .factors = factors,
                     .long_factors = long_factors,
                     .model_context = 131'072,
                     .context = 4096};
  const std::vector<double> plain = rope_frequencies({.dims = 96});
  const std::vector<double> within = rope_frequencies(info);
  info.context = 4097;
  const std::vector<double> beyond = rope_frequencies(info);
  for (size_t i = 0; i < 48; ++i) {
    EXPECT_DOUBLE_EQ(within[i], plain[i] / double{factors[i]});
    EXPECT_DOUBLE_EQ(beyond[i], plain[i] / double{long_factors[i]});
  }
  EXPECT_NEAR(double{table_of(info).attention_scale}, 1.1902380714238083, 1e-7);
  info.model_context = 4096;
  EXPECT_EQ(table_of(info).attention_scale, 1.0f);
}

TEST(RopeTable, InvalidParametersAreRefused) {
  const std::vector<float> three(3, 1.0f), zero(4, 0.0f), ones(4, 1.0f);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const RopeTableInfo bad[] = {
      {.dims = 0},
      {.dims = 7},
      {.dims = 8, .base = 0.0},
      {.dims = 8, .base = nan},
      {.dims = 8, .scaling = RopeScaling::kLinear, .factor = 0.0},
      {.dims = 8, .scaling = RopeScaling::kLlama3, .factor = 8.0},
      {.dims = 8,
       .scaling = RopeScaling::kLlama3,
       .factor = 8.0,
       .original_context = 8192,
       .low_freq_factor = 4.0},
      {.dims = 8, .scaling = RopeScaling::kYarn, .factor = nan, .original_context = 4096},
      {.dims = 8, .scaling = RopeScaling::kYarn, .original_context = 4096, .beta_slow = 0.0},
      {.dims = 8, .attention_factor = -1.0},
      {.dims = 8, .scaling = RopeScaling::kFactors, .factors = three},
      {.dims = 8, .scaling = RopeScaling::kFactors, .factors = zero},
      {.dims = 8, .scaling = RopeScaling::kLongRope, .original_context = 4096, .factors = ones},
  };
  for (const RopeTableInfo& info : bad) {
    const auto table = make_rope_table(info);
    ASSERT_FALSE(table.ok()) << (&info - bad);
    EXPECT_EQ(table.error().kind, ErrorKind::kInvalid);
  }
}

}  // namespace
}  // namespace hearth
