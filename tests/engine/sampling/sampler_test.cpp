// The parts of sampling that need no device: checking options, counting tokens, and the reference
// that kernels are compared with.
#include "engine/sampling/sampler.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "engine/sampling/penalties.h"
#include "tests/support/reference_sampling.h"

namespace hearth {
namespace {

TEST(Sampler, RefusesInvalidOptionsByName) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  const std::pair<SamplingOptions, const char*> cases[] = {
      {{.temperature = -1}, "temperature"},
      {{.temperature = nan}, "temperature"},
      {{.temperature = infinity}, "temperature"},
      {{.top_p = 1.5f}, "top_p"},
      {{.top_p = -0.1f}, "top_p"},
      {{.min_p = nan}, "min_p"},
      {{.repetition_penalty = 0}, "repetition_penalty"},
      {{.presence_penalty = infinity}, "presence_penalty"},
      {{.frequency_penalty = nan}, "frequency_penalty"},
      {{.top_logprobs = 21}, "log-probabilities"},
  };
  for (const auto& [options, word] : cases) {
    const auto row = make_sampling_row(options, {});
    ASSERT_FALSE(row.ok()) << word;
    EXPECT_EQ(row.error().kind, ErrorKind::kInvalid);
    EXPECT_NE(row.error().message.find(word), std::string::npos) << row.error().message;
  }
}

TEST(Sampler, ARowHoldsTheOptions) {
  const auto row = make_sampling_row(
      {.temperature = 0.5f, .top_k = 7, .top_p = 0.9f, .min_p = 0.25f, .seed = 0x1234567890abcdef},
      {.id_index = 3, .counter = 11, .bias_offset = 5, .bias_count = 2, .history_slot = 4});
  ASSERT_TRUE(row.ok());
  EXPECT_EQ(row->flags, params::kSamplingActive | params::kSamplingAppend);
  EXPECT_EQ(row->inverse_temperature, 2.0f);
  EXPECT_FLOAT_EQ(row->log_min_p, std::log(0.25f));
  EXPECT_EQ(row->seed_low, 0x90abcdefu);
  EXPECT_EQ(row->seed_high, 0x12345678u);
  EXPECT_EQ(row->counter, 11u);
  EXPECT_EQ(row->history_slot, 4u);

  const auto greedy = make_sampling_row({.temperature = 0}, {.append = false});
  ASSERT_TRUE(greedy.ok());
  EXPECT_EQ(greedy->flags, params::kSamplingActive | params::kSamplingGreedy);
  EXPECT_EQ(greedy->log_min_p, -std::numeric_limits<float>::infinity());
  EXPECT_EQ(greedy->history_slot, params::kNoHistory);
}

TEST(Penalties, EachTokenHasOneEntry) {
  const uint32_t prompt[] = {5, 9, 5, 1}, generated[] = {9, 2, 2};
  const auto counts = [&](float repetition) {
    std::vector<std::pair<uint32_t, uint32_t>> pairs;
    for (const auto& entry : count_tokens(prompt, generated, repetition, 8))
      pairs.emplace_back(entry.token, entry.count);
    return pairs;
  };
  using Pairs = std::vector<std::pair<uint32_t, uint32_t>>;
  EXPECT_EQ(counts(1.1f), (Pairs{{1, 0}, {5, 0}, {9, 1}, {2, 2}}));
  // Without a repetition penalty the prompt needs no entries.
  EXPECT_EQ(counts(1), (Pairs{{9, 1}, {2, 2}}));
  EXPECT_TRUE(count_tokens({}, {}, 1.1f, 8).empty());
}

// A slot is filled once and then appended to; after a preemption it is filled again.
TEST(Penalties, AFullSlotIsTheSameHoweverItWasFilled) {
  constexpr size_t kRoom = 8;
  const std::vector<uint32_t> prompt = {1, 2, 3, 4, 5, 6, 7, 6};
  const std::vector<uint32_t> generated = {6, 20, 21, 1, 22, 23, 20, 24, 5, 25};
  std::vector<params::TokenCount> appended = count_tokens(prompt, {}, 1.1f, kRoom);
  EXPECT_EQ(appended.size(), kRoom / 2);
  EXPECT_EQ(appended.back().token, 4u) << "the last tokens of the prompt";
  for (size_t i = 0; i < generated.size(); ++i) {
    const auto place = std::ranges::find(appended, generated[i], &params::TokenCount::token);
    if (place != appended.end())
      ++place->count;
    else if (appended.size() < kRoom)
      appended.push_back({.token = generated[i], .count = 1});
    const auto filled = count_tokens(prompt, std::span(generated).first(i + 1), 1.1f, kRoom);
    ASSERT_EQ(filled.size(), appended.size()) << i;
    for (size_t k = 0; k < filled.size(); ++k) {
      EXPECT_EQ(filled[k].token, appended[k].token) << i;
      EXPECT_EQ(filled[k].count, appended[k].count) << i;
    }
  }
  EXPECT_EQ(appended.size(), kRoom);
}

TEST(Sampler, IsPlainlyGreedyIfARowNeedsOnlyItsLargestLogit) {
  const auto greedy = [](const SamplingOptions& options, const SamplingPlace& place = {}) {
    return is_plainly_greedy(make_sampling_row(options, place).value());
  };
  EXPECT_TRUE(greedy({.temperature = 0}));
  EXPECT_TRUE(greedy({.temperature = 0, .top_k = 40, .top_p = 0.9f}));
  EXPECT_TRUE(greedy({.top_k = 1}));
  EXPECT_TRUE(greedy({.temperature = 0}, {.bias_count = 3}));
  EXPECT_TRUE(greedy({.temperature = 0}, {.history_slot = 0, .append = false}));
  EXPECT_TRUE(is_plainly_greedy({})) << "padding";
  EXPECT_FALSE(greedy({}));
  EXPECT_FALSE(greedy({.top_k = 2}));
  EXPECT_FALSE(greedy({.temperature = 0, .top_logprobs = 1}));
  EXPECT_FALSE(greedy({.temperature = 0}, {.history_slot = 0})) << "the token has to be counted";
}

// Steps with such rows are waited for without sleeping; all others run ahead of the host.
TEST(Sampler, OnlyRowsWhoseTokenStaysNowhereAreJudged) {
  params::SamplingRow row = make_sampling_row({.temperature = 0}, {.id_index = 3}).value();
  EXPECT_FALSE(is_judged(row));
  verify_only(row);
  EXPECT_TRUE(is_judged(row));
  EXPECT_FALSE(is_judged(make_score_row(5, 0))) << "nothing is chosen";
  EXPECT_FALSE(is_judged({.id_index = params::kNoSlot})) << "padding";
}

TEST(ReferenceSampling, PhiloxMatchesThePublishedAnswers) {
  // From the known-answer tests of Random123, for philox4x32 with 10 rounds.
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(testing::reference_philox({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const uint32_t ones = 0xffffffff;
  EXPECT_EQ(testing::reference_philox({ones, ones, ones, ones}, {ones, ones}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(testing::reference_philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                                      {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(ReferenceSampling, ChiSquareTailsMatchTables) {
  EXPECT_NEAR(testing::chi_square_p(3.841, 1), 0.05, 1e-4);
  EXPECT_NEAR(testing::chi_square_p(18.307, 10), 0.05, 1e-4);
  EXPECT_NEAR(testing::chi_square_p(124.342, 100), 0.05, 1e-4);
  EXPECT_NEAR(testing::chi_square_p(149.449, 100), 0.001, 1e-5);
  EXPECT_NEAR(testing::chi_square_p(82.358, 100), 0.9, 1e-4);
}

}  // namespace
}  // namespace hearth
