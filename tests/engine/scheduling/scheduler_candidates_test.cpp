// Requests that propose candidates for their next token: each is computed in a block of its own,
// and the block of the one that is taken becomes the text's.
#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "engine/scheduling/scheduler.h"

namespace hearth {
namespace {

constexpr RequestId kSearching = 1;

// Blocks hold the tokens that were written to them.
class SchedulerCandidatesTest : public testing::Test {
 protected:
  explicit SchedulerCandidatesTest(const SchedulerLimits& limits = {.max_sequences = 4,
                                                                    .max_step_tokens = 64,
                                                                    .context = 256,
                                                                    .pool_blocks = 12,
                                                                    .max_proposed = 16})
      : scheduler_(limits, {}), pool_(std::size_t{limits.pool_blocks} * kTokensPerBlock) {}

  void add(RequestId id, std::uint32_t prompt, std::uint32_t candidates) {
    std::vector<TokenId> tokens(prompt);
    std::iota(tokens.begin(), tokens.end(), 100);
    const AddResult result = scheduler_.add(id, {.prompt = tokens,
                                                 .max_new_tokens = 60,
                                                 .with_host = true,
                                                 .compute_all = candidates > 0,
                                                 .candidates = candidates});
    ASSERT_TRUE(result.accepted()) << result.message;
  }

  // Plans a step and carries it out. The member of the request with candidates, if it is there.
  const BatchMember* step() {
    const BatchPlan& plan = scheduler_.plan();
    EXPECT_EQ(scheduler_.check_integrity(), std::nullopt);
    for (const BlockMove& copy : plan.copies)
      std::copy_n(pool_.begin() + copy.from * kTokensPerBlock, kTokensPerBlock,
                  pool_.begin() + copy.to * kTokensPerBlock);
    const BatchMember* searching = nullptr;
    for (const BatchMember& member : plan.members) {
      if (member.request == kSearching) searching = &member;
      for (std::uint32_t i = 0; i < member.tokens; ++i) {
        const std::uint32_t position = member.first_position + (member.candidates ? 0 : i);
        const std::uint32_t block = position / kTokensPerBlock + (member.candidates ? i : 0);
        pool_[plan.block_ids[member.first_block + block] * kTokensPerBlock +
              position % kTokensPerBlock] = plan.ids[member.first_id + i];
      }
    }
    return searching;
  }

  // What is in the cache of the request that runs alone.
  std::vector<TokenId> cached() const {
    std::vector<BlockId> blocks;
    scheduler_.view_block_tables(blocks);
    std::vector<TokenId> tokens;
    for (std::uint32_t i = 0; i < scheduler_.ledger(kSearching)->computed(); ++i)
      tokens.push_back(pool_[blocks[i / kTokensPerBlock] * kTokensPerBlock + i % kTokensPerBlock]);
    return tokens;
  }

  Scheduler scheduler_;
  std::vector<TokenId> pool_;
};

TEST_F(SchedulerCandidatesTest, TheBlockOfTheOneTakenBecomesTheTexts) {
  add(kSearching, 14, 4);
  const BatchMember* member = step();
  ASSERT_NE(member, nullptr);
  EXPECT_EQ(member->tokens, 14u);
  EXPECT_FALSE(member->candidates);
  for (TokenId token = 1000; token < 1040; token += 4) {
    const TokenId candidates[] = {token, token + 1, token + 2, token + 3};
    scheduler_.propose_candidates(kSearching, candidates);
    EXPECT_EQ(scheduler_.check_integrity(), std::nullopt);
    member = step();
    ASSERT_NE(member, nullptr);
    EXPECT_TRUE(member->candidates);
    EXPECT_EQ(member->tokens, 4u);
    EXPECT_EQ(member->proposed, 4u);
    scheduler_.take_candidate(kSearching, token / 4 % 4);
    const TokenLedger& ledger = *scheduler_.ledger(kSearching);
    EXPECT_EQ(ledger.computed(), ledger.committed());
    EXPECT_TRUE(std::ranges::equal(cached(), ledger.tokens()));
    EXPECT_EQ(scheduler_.counts().blocks_used, blocks_for(ledger.committed()));
  }
  scheduler_.finish(kSearching);
  EXPECT_EQ(scheduler_.counts().blocks_used, 0u);
}

// The blocks of candidates in flight are no reservation: each has something in it.
TEST_F(SchedulerCandidatesTest, TheyKeepTheirBlocksWhenReservationsEnd) {
  scheduler_.set_policy({.kv = KvAllocation::kReserve});
  add(kSearching, 20, 4);
  ASSERT_NE(step(), nullptr);
  const TokenId candidates[] = {1, 2, 3, 4};
  scheduler_.propose_candidates(kSearching, candidates);
  ASSERT_NE(step(), nullptr);
  scheduler_.set_policy({});
  EXPECT_EQ(scheduler_.check_integrity(), std::nullopt);
  EXPECT_EQ(scheduler_.counts().blocks_used, 5u);
  EXPECT_EQ(scheduler_.counts().blocks_reserved, 0u);
  EXPECT_EQ(scheduler_.counts().wasted_tokens, 4u * (kTokensPerBlock - 5));
  scheduler_.take_candidate(kSearching, 3);
  EXPECT_TRUE(std::ranges::equal(cached(), scheduler_.ledger(kSearching)->tokens()));
  EXPECT_EQ(scheduler_.check_integrity(), std::nullopt);
}

class CandidatesAmongOthersTest : public SchedulerCandidatesTest {
 protected:
  CandidatesAmongOthersTest()
      : SchedulerCandidatesTest({.max_sequences = 5,
                                 .max_step_tokens = 64,
                                 .context = 256,
                                 .pool_blocks = 32,
                                 .max_proposed = 16}) {}
};

// The text's block is copied because a fork has it, too. The fork is preempted in the same step,
// and another copy overwrites the block before it would be copied for the candidates.
TEST_F(CandidatesAmongOthersTest, TheyBeginWithTheTextsBlockAsItIsNow) {
  constexpr RequestId kBeam = 2, kOtherBeam = 3, kPrompt = 4, kFork = 5;
  scheduler_.set_policy({.tbt_target_ms = 1});
  const auto propose = [&] {
    const TokenId candidates[] = {1, 2, 3, 4};
    scheduler_.propose_candidates(kSearching, candidates);
  };
  add(kSearching, 20, 4);
  const std::vector<TokenId> beams(20, 7), prompt(32, 8);
  ASSERT_TRUE(
      scheduler_.add(kBeam, {.prompt = beams, .max_new_tokens = 10, .with_host = true, .seats = 2})
          .accepted());
  ASSERT_NE(step(), nullptr);
  scheduler_.fork(kOtherBeam, kBeam);
  propose();
  // It takes all tokens that prompts get, so that the fork begins without one.
  ASSERT_TRUE(scheduler_.add(kPrompt, {.prompt = prompt, .max_new_tokens = 1}).accepted());
  std::vector<TokenId> searched(20);
  std::iota(searched.begin(), searched.end(), 100);
  ASSERT_TRUE(scheduler_
                  .add(kFork, {.prompt = searched,
                               .max_new_tokens = 10,
                               .fork = ForkPoint{.parent = kSearching, .position = 20}})
                  .accepted());
  ASSERT_NE(step(), nullptr);
  scheduler_.take_candidate(kSearching, 0);
  propose();
  for (const RequestId id : {kBeam, kOtherBeam, kPrompt}) scheduler_.token(id, 9);
  scheduler_.set_limits(5, 64, 8);
  ASSERT_NE(step(), nullptr);
  EXPECT_EQ(scheduler_.sequence(kFork)->state, SequenceState::kWaiting) << "the case did not occur";
  scheduler_.take_candidate(kSearching, 1);
  EXPECT_TRUE(std::ranges::equal(cached(), scheduler_.ledger(kSearching)->tokens()));
}

// Otherwise a newcomer would be preempted by the search's next step.
TEST_F(SchedulerCandidatesTest, BlocksThatASearchNeedsNextAreNotGivenAway) {
  add(kSearching, 20, 4);
  ASSERT_NE(step(), nullptr);  // 2 of 12 blocks are in use; the search needs 3 more
  add(2, 8 * kTokensPerBlock, 0);
  step();
  EXPECT_EQ(scheduler_.sequence(2)->state, SequenceState::kWaiting);
}

TEST_F(SchedulerCandidatesTest, OnesThatAStepHasNoRoomForAreLeftOut) {
  scheduler_.set_limits(4, 3);
  add(kSearching, 3, 8);
  ASSERT_NE(step(), nullptr);
  const TokenId candidates[] = {1, 2, 3, 4, 5, 6};
  scheduler_.propose_candidates(kSearching, candidates);
  EXPECT_EQ(step()->tokens, 3u);
  EXPECT_EQ(scheduler_.ledger(kSearching)->proposed(), 3u);
  scheduler_.propose_candidates(kSearching, std::span(candidates).subspan(3, 1));
  EXPECT_EQ(step()->tokens, 1u);
  scheduler_.take_candidate(kSearching, 0);
  EXPECT_EQ(scheduler_.ledger(kSearching)->tokens().back(), 4u);
}

// A preempted request computes its text, and its candidates in the step after that.
TEST_F(SchedulerCandidatesTest, TextAndCandidatesAreNeverInOneStep) {
  add(kSearching, 20, 4);
  ASSERT_NE(step(), nullptr);
  const TokenId candidates[] = {1, 2, 3, 4};
  scheduler_.propose_candidates(kSearching, candidates);
  ASSERT_NE(step(), nullptr);
  // Others that are better protected take all blocks while the host judges.
  for (RequestId id = 2; id <= 4; ++id) {
    add(id, 40, 0);
    scheduler_.set_priority(id, 5);
  }
  for (int i = 0; i < 200 && scheduler_.sequence(kSearching)->state == SequenceState::kRunning;
       ++i) {
    for (RequestId id = 2; id <= 4; ++id)
      if (scheduler_.ledger(id)->awaiting()) scheduler_.token(id, 7);
    step();
  }
  ASSERT_EQ(scheduler_.sequence(kSearching)->state, SequenceState::kWaiting);
  scheduler_.take_candidate(kSearching, 2);
  const TokenId next[] = {5, 6};
  scheduler_.propose_candidates(kSearching, next);
  for (RequestId id = 2; id <= 4; ++id) scheduler_.finish(id);
  const BatchMember* member = step();
  ASSERT_NE(member, nullptr);
  EXPECT_EQ(member->tokens, 21u);
  EXPECT_FALSE(member->samples);
  EXPECT_FALSE(member->candidates);
  member = step();
  ASSERT_NE(member, nullptr);
  EXPECT_TRUE(member->candidates);
  EXPECT_EQ(member->tokens, 2u);
  scheduler_.take_candidate(kSearching, 1);
  EXPECT_TRUE(std::ranges::equal(cached(), scheduler_.ledger(kSearching)->tokens()));
}

TEST_F(SchedulerCandidatesTest, AStepWithoutMoreLogitRowsStillJudgesOne) {
  Scheduler scheduler({.max_sequences = 2, .max_step_tokens = 64, .max_proposed = 1}, {});
  const std::vector<TokenId> prompt(5, 1);
  for (const RequestId id : {1, 2})
    ASSERT_TRUE(scheduler
                    .add(id, {.prompt = prompt,
                              .max_new_tokens = 20,
                              .with_host = true,
                              .compute_all = true,
                              .candidates = 4})
                    .accepted());
  scheduler.plan();
  const TokenId candidates[] = {1, 2, 3, 4};
  for (const RequestId id : {1, 2}) scheduler.propose_candidates(id, candidates);
  const BatchPlan& plan = scheduler.plan();
  ASSERT_EQ(plan.members.size(), 2u);
  EXPECT_EQ(plan.members[0].tokens, 2u);
  EXPECT_EQ(plan.members[1].tokens, 1u);
  EXPECT_EQ(scheduler.check_integrity(), std::nullopt);
}

}  // namespace
}  // namespace hearth
