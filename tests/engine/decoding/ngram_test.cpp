#include "engine/decoding/speculation/ngram.h"

#include <random>

#include <gtest/gtest.h>

namespace hearth {
namespace {

using Tokens = std::vector<std::uint32_t>;

Tokens proposal(const NgramProposer& proposer, std::uint32_t most) {
  Tokens proposed;
  proposer.propose(most, proposed);
  return proposed;
}

TEST(Ngram, ProposesWhatFollowedTheSameTokensBefore) {
  NgramProposer proposer(100, {});
  proposer.append(Tokens{1, 2, 3, 4, 5, 6, 9, 2, 3});
  EXPECT_EQ(proposal(proposer, 3), (Tokens{4, 5, 6}));
}

TEST(Ngram, PrefersTheLongestMatchAndThenTheLatest) {
  NgramProposer proposer(100, {});
  proposer.append(Tokens{7, 1, 2, 30, 8, 1, 2, 40, 1, 2, 50, 7, 1, 2});
  EXPECT_EQ(proposal(proposer, 1), (Tokens{30})) << "7 1 2 is longer than 1 2";
  NgramProposer equal(100, {});
  equal.append(Tokens{1, 2, 30, 4, 1, 2, 40, 5, 1, 2});
  EXPECT_EQ(proposal(equal, 1), (Tokens{40}));
}

TEST(Ngram, ProposesNothingWithoutAMatch) {
  NgramProposer proposer(100, {});
  EXPECT_EQ(proposal(proposer, 3), Tokens{});
  proposer.append(Tokens{1});
  EXPECT_EQ(proposal(proposer, 3), Tokens{});
  proposer.append(Tokens{2, 3, 1});
  EXPECT_EQ(proposal(proposer, 3), Tokens{}) << "one equal token is not enough";
}

TEST(Ngram, GoesRoundARepetition) {
  NgramProposer proposer(100, {});
  proposer.append(Tokens{5, 6, 5, 6});
  EXPECT_EQ(proposal(proposer, 5), (Tokens{5, 6, 5, 6, 5}));
}

}  // namespace
}  // namespace hearth
