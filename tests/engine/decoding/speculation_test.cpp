#include "engine/decoding/speculation/speculation.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

namespace hearth {
namespace {

using Tokens = std::vector<std::uint32_t>;

constexpr SpeculationOptions kNgrams{.method = SpeculationMethod::kNgram, .max_proposed = 4};

TEST(Speculation, ProposesAtMostWhatItMay) {
  Speculation speculation(kNgrams, Tokens{1, 2, 3, 4, 5, 6, 7, 1, 2}, 100);
  EXPECT_TRUE(speculation.promising());
  EXPECT_EQ(speculation.propose(speculation.length()).tokens, (Tokens{3, 4, 5, 6}));
  EXPECT_EQ(speculation.propose(9).size(), 4u);
}

TEST(Speculation, GuessesOneMoreThanWasRight) {
  Speculation speculation(kNgrams, Tokens{1, 2, 3, 4, 5, 6, 7, 1, 2}, 100);
  speculation.judged(4, 1);
  EXPECT_EQ(speculation.length(), 2u);
  speculation.judged(2, 2);
  EXPECT_EQ(speculation.length(), 4u);
}

// It used to stop for good, because nothing counted the pause down.
TEST(Speculation, ResumesAfterFailures) {
  Speculation speculation(kNgrams, Tokens{1, 2, 1, 2}, 500);
  std::uint32_t pause = 1;
  for (int failure = 0; failure < 8; ++failure) {
    ASSERT_TRUE(speculation.promising()) << failure;
    speculation.judged(1, 0);
    pause = std::min(2 * pause, 32u);
    for (std::uint32_t i = 0; i < pause; ++i) {
      EXPECT_FALSE(speculation.promising());
      EXPECT_EQ(speculation.length(), 0u);
      speculation.append(Tokens{i % 2 + 1});
    }
  }
  speculation.judged(1, 1);
  speculation.judged(1, 0);
  speculation.append(Tokens{1, 2});
  EXPECT_TRUE(speculation.promising()) << "a success makes the next pause short again";
}

// A prediction is looked up from the first token of the answer on, and again after a difference.
TEST(Speculation, ProposesFromAPrediction) {
  const Tokens prediction{10, 11, 12, 13, 14, 15};
  Speculation speculation(kNgrams, Tokens{1, 2, 3}, 100, prediction);
  EXPECT_EQ(speculation.propose(3).tokens, (Tokens{10, 11, 12}));
  speculation.append(Tokens{10, 99, 12, 13});
  EXPECT_EQ(speculation.propose(2).tokens, (Tokens{14, 15}));
}

// The draft model may have failed.
TEST(Speculation, WithoutADrafterOnlyTheTextIsGuessedFrom) {
  Speculation speculation({.method = SpeculationMethod::kAuto, .draft_model = true},
                          Tokens{1, 2, 3, 4}, 100);
  AcceptanceRates rates = shared_rates();
  EXPECT_GT(speculation.acceptance(rates, true), 0);
  EXPECT_TRUE(speculation.drafts());
  EXPECT_EQ(speculation.acceptance(rates, false), 0) << "nothing matches";
  EXPECT_FALSE(speculation.drafts());
}

// What a guess would have been is compared with the next token even if nothing was proposed.
TEST(Speculation, LearnsFromGuessesThatWereNotProposed) {
  AcceptanceRates shared = shared_rates();
  Tokens prompt;
  for (std::uint32_t i = 0; i < 40; ++i) prompt.push_back(i % 10);
  Speculation speculation({.method = SpeculationMethod::kAuto}, prompt, 500);
  const double before = speculation.acceptance(shared);
  for (std::uint32_t i = 40; i < 100; ++i) {
    speculation.append(Tokens{i % 10});
    speculation.acceptance(shared);
  }
  const double right = speculation.acceptance(shared);
  EXPECT_GT(right, 0.9);
  EXPECT_GT(right, before);
  // Another request starts from what this one has learnt.
  Speculation other({.method = SpeculationMethod::kAuto}, prompt, 500);
  EXPECT_GT(other.acceptance(shared), 0.9);
  // The text still repeats itself, but the guesses are wrong now.
  for (std::uint32_t i = 0; i < 300; ++i) {
    speculation.append(Tokens{i % 10, 1000 + i});
    speculation.acceptance(shared);
  }
  EXPECT_EQ(speculation.acceptance(shared), 0) << "nothing matches";
}

// Requests whose text changes learn quickly, and what all have learnt is still there for the next.
TEST(AcceptanceRate, ARequestNoticesAChangeAndAllRequestsDoNot) {
  AcceptanceRate one, all = shared_rates().front();
  for (AcceptanceRate* rate : {&one, &all}) {
    for (int i = 0; i < 100; ++i) rate->add(9, 10);
    EXPECT_NEAR(rate->value(0.5), 0.9, 0.02);
    for (int i = 0; i < 10; ++i) rate->add(0, 1);
  }
  EXPECT_LT(one.value(0.5), 0.35);
  EXPECT_GT(all.value(0.5), 0.8);
  for (int i = 0; i < 10; ++i) one.add(8, 8);
  EXPECT_GT(one.value(0.5), 0.85);
}

// A request that remembered 32 tokens would be below 0.85 for 13 % of the steps.
TEST(AcceptanceRate, IsSeldomTooLowWhileNothingChanges) {
  std::mt19937 random(1);
  AcceptanceRate rate;
  constexpr int kSteps = 2000;
  int low = 0;
  for (int i = 0; i < kSteps; ++i) {
    std::uint32_t accepted = 0;
    while (accepted < 8 && random() % 10 != 0) ++accepted;
    rate.add(accepted, std::min(accepted + 1, 8u));
    if (rate.value(0.9) < 0.85) ++low;
  }
  EXPECT_LT(low, kSteps * 8 / 100);
}

TEST(Speculation, MethodsAreReadByName) {
  SpeculationOptions options;
  EXPECT_FALSE(read_method("auto", options));
  EXPECT_EQ(options.method, SpeculationMethod::kAuto);
  EXPECT_EQ(most_proposed(options), 32u);
  EXPECT_FALSE(read_method("synthetic:0.7", options));
  EXPECT_EQ(options.method, SpeculationMethod::kSynthetic);
  EXPECT_EQ(options.synthetic_rate, 0.7);
  EXPECT_FALSE(read_method("ngram", options));
  EXPECT_EQ(most_proposed(options), 8u);
  for (const char* wrong : {"", "synthetic", "synthetic:", "synthetic:2", "synthetic:0.5x", "best"})
    EXPECT_TRUE(read_method(wrong, options)) << wrong;
  EXPECT_EQ(
      *read_method("best", options),
      "unknown value 'best'; use off, ngram, lookahead, draft, tree, auto, or synthetic:RATE");
}

}  // namespace
}  // namespace hearth
