#include "engine/scheduling/token_ledger.h"

#include <gtest/gtest.h>

#include "engine/scheduling/unread_token.h"

namespace hearth {
namespace {

using Tokens = std::vector<TokenId>;
using Numbers = std::vector<std::uint32_t>;

TokenLedger ledger_of(std::uint32_t prompt_tokens, std::uint32_t max_tokens) {
  Tokens prompt(prompt_tokens);
  for (std::uint32_t i = 0; i < prompt_tokens; ++i) prompt[i] = 100 + i;
  return TokenLedger(prompt, max_tokens, root_hash(0));
}

// Plans a step that computes all tokens there are and samples.
void run(TokenLedger& ledger, bool with_host) {
  ledger.compute(ledger.work());
  ledger.sample(with_host);
}

Tokens tokens(const TokenLedger& ledger) {
  return {ledger.tokens().begin(), ledger.tokens().end()};
}

TEST(TokenLedger, PlainDecodingHasOnePendingToken) {
  TokenLedger ledger = ledger_of(3, 6);
  run(ledger, false);
  EXPECT_TRUE(ledger.pending());
  EXPECT_FALSE(ledger.awaiting());
  EXPECT_EQ(ledger.committed(), 4u);
  EXPECT_EQ(ledger.known(), 3u);
  EXPECT_EQ(ledger.work(), 1u);
  ledger.append(7);
  EXPECT_FALSE(ledger.pending());
  EXPECT_EQ(tokens(ledger), (Tokens{100, 101, 102, 7}));
}

TEST(TokenLedger, AcceptedProposalsStayComputedAndTheRestIsDropped) {
  TokenLedger ledger = ledger_of(3, 20);
  run(ledger, true);
  ledger.append(7);
  EXPECT_EQ(ledger.propose(Tokens{8, 9, 10, 11}), 4u);
  EXPECT_EQ(ledger.work(), 5u);
  run(ledger, true);
  EXPECT_TRUE(ledger.awaiting());
  ledger.commit(2);
  EXPECT_EQ(ledger.committed(), 6u);
  EXPECT_EQ(ledger.proposed(), 2u);
  ledger.truncate(6);
  EXPECT_EQ(ledger.proposed(), 0u);
  EXPECT_EQ(ledger.computed(), 6u);
  ledger.append(20);
  EXPECT_EQ(tokens(ledger), (Tokens{100, 101, 102, 7, 8, 9, 20}));
  EXPECT_EQ(ledger.work(), 1u);
}

TEST(TokenLedger, UnreadProposalsAreLearntWhileAStepVerifiesThem) {
  TokenLedger ledger = ledger_of(3, 20);
  ledger.propose(Tokens{unread_token(40), unread_token(41), unread_token(42)});
  ledger.truncate_proposals(5);  // what fits into the step
  run(ledger, true);
  ledger.learn_proposals(Tokens{8, 9, 10});
  EXPECT_EQ(tokens(ledger), (Tokens{100, 101, 102, 8, 9}));
  ledger.commit(2);
  ledger.append(20);
  EXPECT_EQ(tokens(ledger), (Tokens{100, 101, 102, 8, 9, 20}));
}

// A step that verifies them may accept those, too; otherwise there is no reason to keep them.
TEST(TokenLedger, ProposalsThatCannotBeReadAreDroppedUnlessAStepVerifiesThem) {
  const Tokens unread{unread_token(40), unread_token(41), unread_token(42)};
  TokenLedger ledger = ledger_of(3, 20);
  ledger.propose(unread);
  ledger.learn_proposals(Tokens{8});
  EXPECT_EQ(tokens(ledger), (Tokens{100, 101, 102, 8}));
  ledger.propose(unread);
  run(ledger, true);
  ledger.learn_proposals(Tokens{8});
  EXPECT_EQ(tokens(ledger), (Tokens{100, 101, 102, 8, unread[1], unread[2]}));
  // The device has accepted two, of which the host knew one.
  ledger.learn_proposals(Tokens{8, 9});
  EXPECT_EQ(tokens(ledger), (Tokens{100, 101, 102, 8, 9, unread[2]}));
  ledger.commit(2);
  ledger.truncate(5);
  ledger.append(20);
  EXPECT_EQ(tokens(ledger), (Tokens{100, 101, 102, 8, 9, 20}));
  run(ledger, false);
  ledger.learn_proposals({});  // its drafts were dropped by a plan, and it has a pending token
  EXPECT_TRUE(ledger.pending());
  EXPECT_EQ(ledger.length(), 7u);
}

TEST(TokenLedger, ATreesOtherBranchIsComputedAgain) {
  TokenLedger ledger = ledger_of(2, 20);
  run(ledger, true);
  ledger.append(5);
  // 0 and 1 follow the newest token, 2 follows 0, 3 follows 1.
  EXPECT_EQ(ledger.propose(Tokens{10, 11, 12, 13}, Numbers{kNoParent, kNoParent, 0, 1}), 4u);
  run(ledger, true);
  EXPECT_EQ(ledger.computed(), 7u);
  ledger.commit_path(Numbers{1, 3});
  EXPECT_EQ(tokens(ledger), (Tokens{100, 101, 5, 11, 13}));
  EXPECT_EQ(ledger.computed(), 3u) << "11 and 13 are stored behind other branches";
  ledger.append(6);
  EXPECT_EQ(ledger.work(), 3u);

  EXPECT_EQ(ledger.propose(Tokens{10, 11, 12}, Numbers{kNoParent, 0, kNoParent}), 3u);
  run(ledger, true);
  ledger.commit_path(Numbers{0, 1});
  EXPECT_EQ(ledger.computed(), 8u) << "the first branch is where it belongs";
}

TEST(TokenLedger, ForcedTokensAreCommittedWithoutBeingComputed) {
  TokenLedger ledger = ledger_of(3, 20);
  run(ledger, true);
  ledger.append(7);
  ledger.propose(Tokens{8, 9});
  ledger.commit(2);
  EXPECT_EQ(ledger.committed(), 6u);
  EXPECT_EQ(ledger.work(), 3u);
}

TEST(TokenLedger, CommittedTokensCanBeTakenBack) {
  TokenLedger ledger = ledger_of(15, 60);
  for (TokenId token = 0; token < 20; ++token) {
    run(ledger, true);
    ledger.append(token);
  }
  EXPECT_EQ(ledger.hashes().size(), 2u);
  const BlockHash first = ledger.hashes()[0];
  ledger.truncate(17);
  EXPECT_EQ(ledger.committed(), 17u);
  EXPECT_EQ(ledger.computed(), 16u) << "the newest token is computed for its logits";
  ASSERT_EQ(ledger.hashes().size(), 1u);
  EXPECT_EQ(ledger.hashes()[0], first);
}

TEST(TokenLedger, ACandidateIsTakenAsItWasComputed) {
  TokenLedger ledger = ledger_of(15, 60);
  run(ledger, true);
  ledger.propose_candidates(Tokens{5, 6, 7});
  EXPECT_FALSE(ledger.awaiting());
  EXPECT_EQ(ledger.work(), 3u) << "the prompt is not computed again";
  run(ledger, true);
  ledger.take_candidate(1);
  EXPECT_EQ(ledger.committed(), 16u);
  EXPECT_EQ(ledger.computed(), 16u);
  EXPECT_EQ(ledger.tokens().back(), 6u);
  EXPECT_EQ(ledger.hashes().size(), 1u);
  ledger.propose_candidates(Tokens{8, 9});
  run(ledger, true);
  ledger.set_computed(0);  // preempted
  ledger.take_candidate(0);
  EXPECT_EQ(ledger.computed(), 0u);
  EXPECT_EQ(ledger.tokens().back(), 8u);
}

TEST(TokenLedger, ProposedTokensAreNeverHashed) {
  TokenLedger ledger = ledger_of(15, 60);
  run(ledger, true);
  ledger.append(1);
  EXPECT_EQ(ledger.hashes().size(), 1u);
  ledger.propose(Tokens(20, 9));
  run(ledger, true);
  EXPECT_EQ(ledger.computed(), 36u);
  EXPECT_EQ(ledger.hashes().size(), 1u);
  ledger.commit(16);
  EXPECT_EQ(ledger.hashes().size(), 2u);
}

TEST(TokenLedger, LeavesRoomForTheTokenAfterTheProposals) {
  TokenLedger ledger = ledger_of(3, 6);
  EXPECT_EQ(ledger.propose(Tokens{1, 2, 3, 4, 5}), 2u);
  EXPECT_EQ(ledger.length(), 5u);
  TokenLedger long_one = ledger_of(3, 200);
  EXPECT_EQ(long_one.propose(Tokens(100, 1)), kMaxProposed);
}

}  // namespace
}  // namespace hearth
