#include "engine/decoding/speculation/length_choice.h"

#include <cmath>
#include <functional>
#include <random>

#include <gtest/gtest.h>

namespace hearth {
namespace {

// Seconds of a step of `rows` rows.
using Curve = std::function<double(std::uint32_t rows)>;

// Flat up to 8 rows of a tile, then a jump.
double tiles_of_eight(std::uint32_t rows) { return 1.0 + 0.4 * ((rows - 1) / 8); }
double by_row(std::uint32_t rows) { return rows; }
double by_weights(std::uint32_t rows) { return 1.0 + 0.02 * rows; }

// A batch whose proposals are accepted at a given rate. Runs steps as an engine would, and lets the
// choice learn what they cost.
class Batch {
 public:
  Batch(Curve curve, std::uint32_t members, double rate)
      : curve_(std::move(curve)), members_(members), rate_(rate) {}

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      choice_.choose({.ahead = &ahead_, .waiting = &waiting_}, members_,
                     std::vector<ProposalChance>(members_, {.acceptance = rate_, .most = 32}), 256,
                     lengths_);
      std::uint32_t proposed = 0;
      for (const std::uint32_t length : lengths_) proposed += length;
      const double seconds = curve_(members_ + proposed) * noise_(random_);
      if (proposed > 0)
        waiting_.add(members_ + proposed, seconds + kHostSeconds);
      else
        ahead_.add(members_, seconds);
      spent_ += seconds + (proposed > 0 ? kHostSeconds : 0);
      tokens_ += expected();
    }
  }
  // Tokens of the step that was chosen last.
  double expected() const {
    double tokens = members_;
    for (const std::uint32_t length : lengths_)
      for (std::uint32_t i = 1; i <= length; ++i) tokens += std::pow(rate_, i);
    return tokens;
  }
  std::uint32_t length() const { return lengths_.front(); }
  double tokens_per_s() const { return tokens_ / spent_; }
  double plain_tokens_per_s() const { return members_ / curve_(members_); }
  void forget_totals() { tokens_ = spent_ = 0; }

 private:
  static constexpr double kHostSeconds = 0.02;
  Curve curve_;
  std::uint32_t members_;
  double rate_;
  RowCosts ahead_, waiting_;
  LengthChoice choice_;
  std::vector<std::uint32_t> lengths_;
  double tokens_ = 0, spent_ = 0;
  std::mt19937 random_{1};
  std::uniform_real_distribution<double> noise_{0.99, 1.01};
};

TEST(RowCosts, SizesAreThoseThatStepsAreRecordedFor) {
  RowCosts costs;
  EXPECT_FALSE(costs.seconds(5));
  for (int i = 0; i < 3; ++i) costs.add(17, 2.0);
  EXPECT_TRUE(costs.measured(18)) << "17 and 18 rows are one size";
  EXPECT_FALSE(costs.measured(19));
  EXPECT_FALSE(costs.measured(16));
  EXPECT_EQ(costs.seconds(18), 2.0);
  EXPECT_FALSE(costs.seconds(16)) << "a smaller step may be much faster";
  for (std::uint32_t rows = 1; rows <= RowCosts::kMostRows; ++rows) {
    for (int i = 0; i < 2; ++i) costs.add(rows, 1.0);
    ASSERT_TRUE(costs.measured(rows)) << rows;
  }
  costs.add(RowCosts::kMostRows + 1, 1.0);
  EXPECT_FALSE(costs.measured(RowCosts::kMostRows + 1));
}

TEST(RowCosts, TheFirstStepOfASizeIsNotCounted) {
  RowCosts costs;
  costs.add(4, 100);  // records its commands
  EXPECT_FALSE(costs.measured(4));
  costs.add(4, 2);
  EXPECT_EQ(costs.seconds(4), 2);
  for (int i = 0; i < 20; ++i) costs.add(4, 2);
  costs.add(4, 500);
  EXPECT_LT(*costs.seconds(4), 2.2) << "one slow step changes little";
  for (int i = 0; i < 60; ++i) costs.add(4, 3);
  EXPECT_NEAR(*costs.seconds(4), 3, 0.01) << "many do";
}

TEST(RowCosts, UnknownSizesLookCheapUntilTheyAreMeasured) {
  RowCosts costs;
  for (int i = 0; i < 2; ++i) costs.add(2, 1.0);
  EXPECT_GT(*costs.seconds(8), 1.0);
  EXPECT_LT(*costs.seconds(8), 1.1);
  for (int i = 0; i < 2; ++i) costs.add(8, 3.0);
  EXPECT_EQ(*costs.seconds(8), 3.0);
  EXPECT_LT(*costs.seconds(7), 1.1) << "still unknown";
}

TEST(RowCosts, UnknownSizesLookDearerOnACpu) {
  RowCosts costs(/*on_cpu=*/true);
  for (int i = 0; i < 2; ++i) costs.add(8, 1.0);
  EXPECT_EQ(*costs.seconds(12), 1.25);
  EXPECT_EQ(*costs.seconds(104), 7.0);
  for (int i = 0; i < 2; ++i) costs.add(12, 1.5);
  EXPECT_EQ(*costs.seconds(24), 2.25) << "from the next smaller size that was measured";
}

TEST(RowCosts, WhatWasNotMeasuredForLongIsForgotten) {
  RowCosts costs;
  for (int i = 0; i < 2; ++i) costs.add(8, 9.0);
  for (int i = 0; i < 5000; ++i) costs.add(1, 1.0);
  EXPECT_FALSE(costs.measured(8));
  costs.add(8, 2.0);
  EXPECT_EQ(costs.seconds(8), 2.0);
}

TEST(LengthChoice, StaysBelowTheEdgeOfATile) {
  Batch one(tiles_of_eight, 1, 0.7);
  one.run(200);
  EXPECT_EQ(one.length(), 7u) << "8 rows fill a tile";
  Batch sure(tiles_of_eight, 1, 0.95);
  sure.run(200);
  EXPECT_TRUE(sure.length() == 15 || sure.length() == 23) << sure.length();
  EXPECT_GT(sure.tokens_per_s(), 5.5 * sure.plain_tokens_per_s());
}

TEST(LengthChoice, ProposesNothingIfRowsCostAsMuchAsSteps) {
  Batch batch(by_row, 4, 0.9);
  batch.run(300);
  EXPECT_EQ(batch.length(), 0u);
}

// It has to try sizes to know them, but not at the cost of anything worth noticing.
TEST(LengthChoice, IsNeverNoticeablySlowerThanPlainDecoding) {
  for (const Curve& curve : {Curve(tiles_of_eight), Curve(by_row), Curve(by_weights)})
    for (const std::uint32_t members : {1u, 7u, 32u, 256u})
      for (const double rate : {0.05, 0.3, 0.7, 0.95}) {
        Batch batch(curve, members, rate);
        batch.run(100);
        batch.forget_totals();
        batch.run(300);
        EXPECT_GT(batch.tokens_per_s(), 0.98 * batch.plain_tokens_per_s())
            << members << " members at " << rate;
      }
}

TEST(LengthChoice, TakesTheLikeliestProposalsOfAllRequests) {
  RowCosts ahead, waiting;
  for (int i = 0; i < 2; ++i) ahead.add(3, 1.0);
  LengthChoice choice;
  std::vector<std::uint32_t> lengths;
  const std::vector<ProposalChance> chances{
      {.acceptance = 0.3, .most = 8}, {.acceptance = 0.9, .most = 4}, {.acceptance = 0, .most = 8}};
  choice.choose({.ahead = &ahead, .waiting = &waiting}, 3, chances, 5, lengths);
  EXPECT_EQ(lengths, (std::vector<std::uint32_t>{1, 4, 0}));
  choice.choose({.ahead = &ahead, .waiting = &waiting}, 3, chances, 2, lengths);
  EXPECT_EQ(lengths, (std::vector<std::uint32_t>{0, 2, 0}));
  choice.choose({.ahead = &ahead, .waiting = &waiting}, 3, chances, 0, lengths);
  EXPECT_EQ(lengths, (std::vector<std::uint32_t>{0, 0, 0}));
  choice.choose({.ahead = &ahead, .waiting = &waiting}, 4, chances, 5, lengths);
  EXPECT_EQ(lengths, (std::vector<std::uint32_t>{0, 0, 0})) << "what 4 rows cost is not known";
}

TEST(LengthChoice, CountsWhatDraftingCosts) {
  RowCosts ahead, waiting;
  for (int i = 0; i < 2; ++i) ahead.add(1, 1.0);
  LengthChoice choice;
  std::vector<std::uint32_t> lengths;
  const std::vector<ProposalChance> chances{{.acceptance = 0.8, .most = 16, .drafted = true}};
  const auto length_at = [&](double draft_seconds) {
    choice.choose({.ahead = &ahead, .waiting = &waiting, .draft_step_seconds = draft_seconds}, 1,
                  chances, 32, lengths);
    return lengths.front();
  };
  EXPECT_GT(length_at(0), length_at(0.06));
  EXPECT_GT(length_at(0.06), length_at(0.3));
  EXPECT_GT(length_at(0.3), 0u);
  EXPECT_EQ(length_at(0.9), 0u);
}

}  // namespace
}  // namespace hearth
