#include "engine/decoding/contrastive.h"

#include <cmath>

#include <gtest/gtest.h>

namespace hearth {
namespace {

using SearchToken = ContrastiveSearch::Token;

SearchToken with_probability(TokenId id, double probability) {
  return {.id = id, .logprob = static_cast<float>(std::log(probability))};
}

TEST(ContrastiveSearch, BalancesProbabilityAndSimilarity) {
  ContrastiveSearch search({.alpha = 0.6f, .top_k = 3});
  EXPECT_TRUE(search.needs_candidates());
  const SearchToken top[] = {with_probability(7, 0.5), with_probability(3, 0.3),
                             with_probability(9, 0.1), with_probability(4, 0.05)};
  search.set_candidates(top);
  ASSERT_EQ(search.unjudged().size(), 3u) << "the first top_k";
  const SearchToken next[] = {with_probability(1, 0.9)};
  search.judge(0.9f, {});    // 0.4 * 0.5 - 0.6 * 0.9 = -0.34
  search.judge(0.2f, next);  // 0.4 * 0.3 - 0.6 * 0.2 =  0.00
  EXPECT_FALSE(search.complete());
  EXPECT_EQ(search.unjudged()[0], 9u);
  search.judge(0.15f, {});  // 0.4 * 0.1 - 0.6 * 0.15 = -0.05
  ASSERT_TRUE(search.complete());
  const ContrastiveSearch::Choice choice = search.choose();
  EXPECT_EQ(choice.token.id, 3u);
  EXPECT_NEAR(choice.score, 0.0, 1e-6);
  EXPECT_NEAR(choice.token.logprob, std::log(0.3), 1e-6);
  ASSERT_EQ(choice.top.size(), 4u);
  EXPECT_EQ(choice.top[0].id, 7u);
  // The winner's most probable successors are the next candidates.
  ASSERT_EQ(search.unjudged().size(), 1u);
  EXPECT_EQ(search.unjudged()[0], 1u);
}

TEST(ContrastiveSearch, TheMoreProbableOfEquallyGoodCandidatesWins) {
  ContrastiveSearch search({.alpha = 1, .top_k = 3});
  const SearchToken top[] = {with_probability(7, 0.5), with_probability(3, 0.3),
                             with_probability(9, 0.1)};
  search.set_candidates(top);
  search.judge(0.5f, {});
  search.judge(0.25f, {});
  search.judge(0.25f, {});
  EXPECT_EQ(search.choose().token.id, 3u);
  EXPECT_TRUE(search.needs_candidates());
}

}  // namespace
}  // namespace hearth
