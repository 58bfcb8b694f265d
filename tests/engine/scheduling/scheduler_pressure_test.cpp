// When blocks or rows run short, no request fails, none waits needlessly, and nothing is computed
// twice without need.
#include <numeric>

#include <gtest/gtest.h>

#include "tests/engine/scheduling/simulated_engine.h"

namespace hearth {
namespace {

using test::SimulatedEngine;
using Ids = std::vector<RequestId>;

std::vector<TokenId> counting_from(TokenId first, std::uint32_t tokens) {
  std::vector<TokenId> result(tokens);
  std::iota(result.begin(), result.end(), first);
  return result;
}

void add(SimulatedEngine& engine, RequestId id, std::uint32_t prompt_tokens,
         std::uint32_t new_tokens) {
  const auto prompt = counting_from(static_cast<TokenId>(id * 10'000), prompt_tokens);
  ASSERT_TRUE(engine.add(id, {.prompt = prompt, .max_new_tokens = new_tokens}).accepted());
}

void steps(SimulatedEngine& engine, std::uint32_t count = 1) {
  for (std::uint32_t i = 0; i < count; ++i) ASSERT_EQ(engine.step(), std::nullopt);
}

Ids members(const SimulatedEngine& engine) {
  Ids result;
  for (const BatchMember& member : engine.last_plan->members) result.push_back(member.request);
  return result;
}

// The blocks that a chunked prompt still needs are promised to it; admission does not count on
// them.
TEST(SchedulerPressure, BlocksOfARunningPromptAreNotPromisedTwice) {
  SimulatedEngine engine({.max_sequences = 4, .max_step_tokens = 20, .pool_blocks = 8},
                         {.max_chunk_tokens = 10});
  add(engine, 1, 100, 5);
  steps(engine);
  add(engine, 2, 30, 5);
  steps(engine);
  // 2 blocks are used and 6 are free, but the rest of the first prompt needs 5 of those.
  EXPECT_EQ(engine.scheduler.counts().blocks_free, 6u);
  EXPECT_EQ(members(engine), (Ids{1}));
  while (engine.live() > 0) steps(engine);
  EXPECT_EQ(engine.scheduler.totals().preemptions_recompute, 0u);
}

TEST(SchedulerPressure, APromptContinuesWithTheBlocksThereAre) {
  SimulatedEngine engine({.max_sequences = 4, .max_step_tokens = 6, .pool_blocks = 9},
                         {.prefix_cache = false});
  add(engine, 1, 16, 100);
  steps(engine, 3);
  add(engine, 2, 100, 5);
  while (engine.scheduler.sequence(2)->computed < 95) {
    steps(engine);
    ASSERT_EQ(engine.last_plan->members[1].tokens, 5u);
  }
  // The first took the blocks that were left; the second's last block has one empty place.
  ASSERT_EQ(engine.scheduler.counts().blocks_free, 0u);
  steps(engine);
  ASSERT_EQ(members(engine), (Ids{1, 2}));
  EXPECT_EQ(engine.last_plan->members[1].tokens, 1u);
  // Then it waits and keeps what it computed, until the first needs its blocks or ends.
  steps(engine);
  EXPECT_EQ(members(engine), (Ids{1}));
  EXPECT_EQ(engine.scheduler.sequence(2)->computed, 96u);
  while (engine.live() > 0) steps(engine);
}

// If the next request to run preempts itself, another one runs in the same plan.
TEST(SchedulerPressure, APlanIsNotEmptyWhileARequestCanRun) {
  for (Phases phases : {Phases::kMixed, Phases::kSeparate}) {
    SimulatedEngine engine({.max_sequences = 2, .max_step_tokens = 128, .pool_blocks = 5},
                           {.phases = phases, .prefix_cache = false});
    add(engine, 1, 40, 20);
    add(engine, 2, 31, 20);
    steps(engine, 2);
    engine.scheduler.set_limits(2, 1);
    steps(engine);
    EXPECT_EQ(members(engine), (Ids{1}));
    engine.report_tokens();
    steps(engine);
    EXPECT_EQ(engine.last_plan->preempted_recompute, (Ids{2})) << "it was the next to run";
    EXPECT_EQ(members(engine), (Ids{1}));
    while (engine.live() > 0) steps(engine);
  }
}

TEST(SchedulerPressure, APreemptedRequestIsNotAdmittedWhileItsTokenIsPending) {
  for (Preemption preemption : {Preemption::kRecompute, Preemption::kSwap}) {
    Scheduler scheduler({.max_sequences = 2, .pool_blocks = 6, .swap_blocks = 8},
                        {.preemption = preemption, .prefix_cache = false});
    const auto first = counting_from(100, 47), second = counting_from(500, 32);
    ASSERT_TRUE(scheduler.add(1, {.prompt = first, .max_new_tokens = 9}).accepted());
    ASSERT_TRUE(scheduler.add(2, {.prompt = second, .max_new_tokens = 9}).accepted());
    scheduler.plan();
    scheduler.plan();
    for (RequestId id : {1, 2}) scheduler.token(id, 7);
    scheduler.plan();
    ASSERT_NE(scheduler.sequence(2)->state, SequenceState::kRunning);
    scheduler.finish(1);
    EXPECT_TRUE(scheduler.plan().empty()) << "its next input is pending";
    scheduler.token(2, 8);
    const BatchPlan& plan = scheduler.plan();
    ASSERT_EQ(plan.members.size(), 1u);
    EXPECT_FALSE(plan.members[0].input_on_gpu);
    EXPECT_EQ(plan.members[0].first_position + plan.members[0].tokens, 34u);
    EXPECT_EQ(scheduler.check_integrity(), std::nullopt);
  }
}

TEST(SchedulerPressure, ASwappedInRequestSharesItsBlocksAgain) {
  SimulatedEngine engine({.max_sequences = 4, .pool_blocks = 6, .swap_blocks = 8},
                         {.preemption = Preemption::kSwap});
  add(engine, 1, 47, 40);
  add(engine, 2, 32, 20);
  steps(engine, 3);
  ASSERT_EQ(engine.last_plan->preempted_swap, (Ids{2}));
  // The first fills the pool, so that none of the second's blocks stay cached.
  while (!engine.requests.at(1).ended) steps(engine);
  steps(engine, 2);
  ASSERT_EQ(engine.scheduler.sequence(2)->state, SequenceState::kRunning);
  const auto same = counting_from(20'000, 32);
  std::vector<TokenId> longer = same;
  longer.push_back(5);
  ASSERT_TRUE(engine.add(3, {.prompt = longer, .max_new_tokens = 2}).accepted());
  steps(engine);
  ASSERT_EQ(engine.last_plan->prefix_hits.size(), 1u);
  EXPECT_EQ(engine.last_plan->prefix_hits[0].tokens, 32u);
  while (engine.live() > 0) steps(engine);
}

// The last step of a batch is known when it is planned, so the next batch follows without a gap.
TEST(SchedulerPressure, BatchesFollowEachOtherWithoutAGap) {
  SimulatedEngine engine({.max_sequences = 2}, *named_policy("static"));
  for (RequestId id = 1; id <= 4; ++id) add(engine, id, 10, 2);
  steps(engine, 2);
  EXPECT_EQ(members(engine), (Ids{1, 2}));
  steps(engine);
  EXPECT_EQ(engine.last_plan->admitted, (Ids{3, 4}));
  EXPECT_EQ(engine.last_plan->padding_tokens, 0u) << "the old batch's rows are gone";
  while (engine.live() > 0) steps(engine);
  EXPECT_EQ(engine.scheduler.totals().steps, 4u);
}

TEST(SchedulerPressure, ForgettingPrefixesEmptiesTheCache) {
  SimulatedEngine engine({}, {});
  add(engine, 1, 40, 2);
  while (engine.live() > 0) steps(engine);
  EXPECT_EQ(engine.scheduler.counts().blocks_cached, 2u);
  engine.scheduler.forget_prefixes();
  EXPECT_EQ(engine.scheduler.counts().blocks_cached, 0u);
  EXPECT_EQ(engine.scheduler.check_integrity(), std::nullopt);
}

}  // namespace
}  // namespace hearth
