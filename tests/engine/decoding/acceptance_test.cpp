#include "engine/decoding/acceptance.h"

#include <array>
#include <random>

#include <gtest/gtest.h>

#include "engine/scheduling/batch_plan.h"
#include "tests/support/reference_judging.h"

namespace hearth {
namespace {

using testing::judge_proposals;

using Tokens = std::vector<std::uint32_t>;

Judgement judged(const Tokens& proposed, const Tokens& parents, const Tokens& sampled) {
  Judgement judgement;
  judge_proposals(proposed, parents, sampled, judgement);
  return judgement;
}

TEST(Acceptance, AChainIsAcceptedUpToItsFirstDifference) {
  const Judgement all = judged({1, 2}, {}, {1, 2, 3});
  EXPECT_EQ(all.path, (Tokens{0, 1}));
  EXPECT_EQ(all.next_row, 2u);
  const Judgement one = judged({1, 2, 3}, {}, {1, 9, 3, 4});
  EXPECT_EQ(one.path, (Tokens{0})) << "3 is right, but follows a wrong token";
  EXPECT_EQ(one.next_row, 1u);
  const Judgement none = judged({1, 2}, {}, {5, 2, 3});
  EXPECT_TRUE(none.path.empty());
  EXPECT_EQ(none.next_row, 0u);
}

TEST(Acceptance, ATreeIsFollowedDownOneBranch) {
  // 0 and 1 follow the newest token; 2 and 3 follow 1.
  const Judgement judgement = judged({7, 8, 5, 6}, {kNoParent, kNoParent, 1, 1}, {8, 0, 6, 0, 4});
  EXPECT_EQ(judgement.path, (Tokens{1, 3}));
  EXPECT_EQ(judgement.next_row, 4u);
}

TEST(Acceptance, InPlaceOnlyTheFirstBranchIsAccepted) {
  Judgement judgement;
  const Tokens proposed{7, 5, 8, 6}, parents{kNoParent, 0, kNoParent, 2};
  judge_proposals(proposed, parents, Tokens{7, 5, 1, 6, 4}, judgement, /*in_place=*/true);
  EXPECT_EQ(judgement.path, (Tokens{0, 1}));
  EXPECT_EQ(judgement.next_row, 2u);
  judge_proposals(proposed, parents, Tokens{8, 5, 1, 6, 4}, judgement, /*in_place=*/true);
  EXPECT_TRUE(judgement.path.empty()) << "8 is computed in another place than it would be";
  EXPECT_EQ(judgement.next_row, 0u);
}

TEST(Acceptance, RowsKnowTheirPathAndWhatMayFollow) {
  const auto rows_of = [](uint32_t proposed, const Tokens& parents, bool in_place) {
    std::vector<VerifiedRow> rows(1 + proposed, VerifiedRow{77, 77});
    find_verified_rows(parents, in_place, rows);
    std::vector<std::pair<uint32_t, uint32_t>> found;
    for (const VerifiedRow& row : rows) found.emplace_back(row.path, row.followers);
    return found;
  };
  using Rows = std::vector<std::pair<uint32_t, uint32_t>>;
  EXPECT_EQ(rows_of(0, {}, false), (Rows{{0, 0}}));
  EXPECT_EQ(rows_of(2, {}, false), (Rows{{0, 1}, {1, 2}, {3, 0}}));
  const Tokens tree{kNoParent, kNoParent, 1, 1};
  EXPECT_EQ(rows_of(4, tree, false), (Rows{{0, 3}, {1, 0}, {2, 12}, {6, 0}, {10, 0}}));
  EXPECT_EQ(rows_of(4, tree, true), (Rows{{0, 1}, {1, 0}, {2, 4}, {6, 0}, {10, 0}}));
  const auto longest = rows_of(kMaxProposed, {}, false);
  EXPECT_EQ(longest[31], (std::pair{0x7fffffffu, 0x80000000u}));
  EXPECT_EQ(longest[32], (std::pair{0xffffffffu, 0u}));
}

// Whatever a device reports, the host ends.
TEST(Acceptance, OnlyLaterRowsAreFollowed) {
  Judgement judgement;
  for (const Tokens& accepted :
       {Tokens{1, 1, 0}, Tokens{1, 0, 2}, Tokens{1, 3, 0}, Tokens{1, ~0u, 0}}) {
    follow_accepted(accepted, judgement);
    EXPECT_EQ(judgement.path, (Tokens{0}));
    EXPECT_EQ(judgement.next_row, 1u);
  }
}

// A proposal that is always the same token: the outcome still follows the model's distribution.
TEST(Acceptance, KeepsTheDistribution) {
  constexpr std::array<double, 4> kModel{0.1, 0.5, 0.15, 0.25};
  constexpr int kDraws = 1'000'000;
  std::mt19937 random(7);
  std::discrete_distribution<std::uint32_t> sample(kModel.begin(), kModel.end());
  std::array<double, 4> first{}, second{};
  Judgement judgement;
  for (int i = 0; i < kDraws; ++i) {
    const Tokens sampled{sample(random), sample(random)};
    judge_proposals(Tokens{1}, {}, sampled, judgement);
    ++first[sampled[0]];
    if (!judgement.path.empty()) ++second[sampled[judgement.next_row]];
  }
  const auto chi_squared = [&](const std::array<double, 4>& counts) {
    double total = 0, sum = 0;
    for (const double count : counts) total += count;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const double expected = total * kModel[i];
      sum += (counts[i] - expected) * (counts[i] - expected) / expected;
    }
    return sum;
  };
  EXPECT_LT(chi_squared(first), 16.3) << "0.1 % of fair draws exceed this";
  EXPECT_LT(chi_squared(second), 16.3);
}

// A draft that another model draws with the very noise that the model will use: pairs of tokens
// still follow the model, although the draft depends on that noise.
TEST(Acceptance, KeepsTheDistributionWithDraftsFromTheSameNoise) {
  // The distribution after token `before`; token 3 stands for the text so far.
  constexpr std::array<std::array<double, 3>, 4> kModel{
      {{0.2, 0.5, 0.3}, {0.6, 0.3, 0.1}, {0.1, 0.1, 0.8}, {0.4, 0.35, 0.25}}};
  constexpr std::array<std::array<double, 3>, 4> kDraft{
      {{0.3, 0.3, 0.4}, {0.5, 0.5, 0.0}, {0.2, 0.2, 0.6}, {0.3, 0.3, 0.4}}};
  using Noise = std::array<double, 3>;  // exponential: the smallest noise / probability wins
  const auto draw = [](const std::array<double, 3>& distribution, const Noise& noise) {
    std::uint32_t drawn = 0;
    for (const std::uint32_t token : {1u, 2u})
      if (noise[token] * distribution[drawn] < noise[drawn] * distribution[token]) drawn = token;
    return drawn;
  };
  constexpr int kDraws = 1'000'000;
  std::mt19937_64 random(11);
  std::exponential_distribution<double> exponential;
  std::array<double, 9> pairs{};
  int accepted = 0;
  Judgement judgement;
  for (int i = 0; i < kDraws; ++i) {
    Noise first, second;
    for (double& each : first) each = exponential(random);
    for (double& each : second) each = exponential(random);
    const std::uint32_t draft = draw(kDraft[3], first);
    const std::uint32_t other = (draft + 1) % 3;  // a branch
    const Tokens sampled{draw(kModel[3], first), draw(kModel[draft], second),
                         draw(kModel[other], second)};
    judge_proposals(Tokens{draft, other}, Tokens{kNoParent, kNoParent}, sampled, judgement);
    accepted += judgement.path.empty() ? 0 : 1;
    // Without an accepted proposal, the next step samples the second token.
    const std::uint32_t after =
        judgement.path.empty() ? draw(kModel[sampled[0]], second) : sampled[judgement.next_row];
    ++pairs[sampled[0] * 3 + after];
  }
  double sum = 0;
  for (std::uint32_t i = 0; i < 9; ++i) {
    const double expected = kDraws * kModel[3][i / 3] * kModel[i / 3][i % 3];
    sum += (pairs[i] - expected) * (pairs[i] - expected) / expected;
  }
  EXPECT_LT(sum, 26.1) << "0.1 % of fair draws exceed this";
  EXPECT_GT(accepted, kDraws / 2);
}

}  // namespace
}  // namespace hearth
