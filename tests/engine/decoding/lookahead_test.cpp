#include "engine/decoding/speculation/lookahead.h"

#include <gtest/gtest.h>

#include "engine/decoding/acceptance.h"
#include "engine/decoding/speculation/ngram.h"
#include "tests/support/reference_judging.h"

namespace hearth {
namespace {

using testing::judge_proposals;

using Tokens = std::vector<std::uint32_t>;

// A model whose next token follows from the last two.
std::uint32_t next_token(std::uint32_t before, std::uint32_t last) {
  return (before * 5 + last * 3 + 1) % 17;
}

// What the model would write after the newest token and after each token of a tree.
Tokens sample_tree(const Tokens& text, const Proposal& tree) {
  Tokens sampled{next_token(text[text.size() - 2], text.back())};
  for (std::uint32_t i = 0; i < tree.size(); ++i) {
    const std::uint32_t parent = tree.parents[i];
    sampled.push_back(
        next_token(parent == kNoParent ? text.back() : tree.tokens[parent], tree.tokens[i]));
  }
  return sampled;
}

// The text does not repeat itself, so that without the window nothing would be right. There are 17
// continuations of each token, of which the pool holds 4.
TEST(Lookahead, FindsWhatTheModelWouldWrite) {
  Tokens text{3, 9};
  Lookahead lookahead(text);
  Judgement judgement;
  std::uint32_t steps = 0, accepted = 0;
  while (text.size() < 300) {
    Proposal tree;
    lookahead.propose(32, tree);
    ASSERT_LE(tree.size(), 32u);
    ASSERT_EQ(tree.parents.size(), tree.tokens.size());
    for (std::uint32_t i = 0; i < tree.size(); ++i)
      ASSERT_TRUE(tree.parents[i] == kNoParent || tree.parents[i] < i);
    const Tokens sampled = sample_tree(text, tree);
    judge_proposals(tree.tokens, tree.parents, sampled, judgement);
    lookahead.observe(sampled);
    Tokens more;
    for (const std::uint32_t place : judgement.path) more.push_back(tree.tokens[place]);
    more.push_back(sampled[judgement.next_row]);
    for (const std::uint32_t token : more) {
      ASSERT_EQ(token, next_token(text[text.size() - 2], text.back()));
      text.push_back(token);
    }
    lookahead.append(more);
    accepted += static_cast<std::uint32_t>(judgement.path.size());
    ++steps;
  }
  EXPECT_GT(accepted, steps / 4) << steps;
}

TEST(Lookahead, TakesWhatRoomThereIs) {
  Lookahead lookahead(Tokens{1, 2, 3, 4, 5, 6, 7});
  for (const std::uint32_t most : {1u, 4u, 9u}) {
    Proposal tree;
    lookahead.propose(most, tree);
    EXPECT_LE(tree.size(), most);
    lookahead.observe(Tokens{1});  // the step dropped the proposals
  }
}

TEST(Ngram, ATreeHasTheOtherContinuations) {
  NgramProposer proposer(100, {});
  proposer.append(Tokens{9, 1, 2, 30, 31, 8, 1, 2, 40, 41, 7, 1, 2, 40, 50, 9, 1, 2});
  Proposal tree;
  proposer.propose_tree(4, 16, tree);
  EXPECT_EQ(tree.tokens, (Tokens{30, 31, 8, 1, 40, 50, 41}));
  EXPECT_EQ(tree.parents, (Tokens{kNoParent, 0, 1, 2, kNoParent, 4, 4}));
  tree.clear();
  proposer.propose_tree(4, 5, tree);
  EXPECT_EQ(tree.size(), 5u);
  NgramProposer once(100, {});
  once.append(Tokens{1, 2, 3, 4, 1, 2});
  tree.clear();
  once.propose_tree(2, 16, tree);
  EXPECT_EQ(tree.tokens, (Tokens{3, 4}));
  EXPECT_TRUE(tree.parents.empty()) << "one continuation is a chain";
}

}  // namespace
}  // namespace hearth
