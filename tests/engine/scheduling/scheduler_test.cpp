// One test per promise of the scheduler. scheduler_property_test combines them all at random;
// lessons for a class are in tests/engine/scenarios.
#include "engine/scheduling/scheduler.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "tests/engine/scheduling/simulated_engine.h"

namespace hearth {
namespace {

using test::SimulatedEngine;

class SchedulerTest : public testing::Test {
 protected:
  // A prompt that no other request shares, unless it has the same first token.
  static std::vector<TokenId> prompt(std::uint32_t tokens, TokenId first = 0) {
    static TokenId next = 10'000;
    std::vector<TokenId> result(tokens);
    std::iota(result.begin(), result.end(), first != 0 ? first : next += 1'000);
    return result;
  }
  void add(SimulatedEngine& engine, RequestId id, std::uint32_t prompt_tokens,
           std::uint32_t new_tokens, TokenId first = 0) {
    const auto tokens = prompt(prompt_tokens, first);
    const AddResult result = engine.add(id, {.prompt = tokens, .max_new_tokens = new_tokens});
    ASSERT_TRUE(result.accepted()) << result.message;
  }
  void steps(SimulatedEngine& engine, std::uint32_t count = 1) {
    for (std::uint32_t i = 0; i < count; ++i) ASSERT_EQ(engine.step(), std::nullopt);
  }
  void drain(SimulatedEngine& engine) {
    for (int i = 0; engine.live() > 0; ++i) {
      ASSERT_LT(i, 10'000);
      steps(engine);
    }
    for (const auto& [id, request] : engine.requests)
      EXPECT_TRUE(engine.output_is_right(request)) << id;
    EXPECT_EQ(engine.scheduler.counts().blocks_used, 0u);
  }
  static std::vector<RequestId> members(const SimulatedEngine& engine) {
    std::vector<RequestId> result;
    for (const BatchMember& member : engine.last_plan->members) result.push_back(member.request);
    return result;
  }
  // The tokens that a request had in the KV cache before the last step, in which it took part.
  static std::uint32_t first_position_in_last_step(const SimulatedEngine& engine, RequestId id) {
    const auto& members = engine.last_plan->members;
    const auto found = std::ranges::find(members, id, &BatchMember::request);
    EXPECT_NE(found, members.end());
    return found != members.end() ? found->first_position : 0;
  }
};

using Ids = std::vector<RequestId>;

TEST_F(SchedulerTest, ReadsAPendingTokenFromTheGpu) {
  SimulatedEngine engine({.max_sequences = 2}, {});
  add(engine, 1, 20, 10);
  steps(engine);
  EXPECT_FALSE(engine.last_plan->members[0].input_on_gpu);
  EXPECT_TRUE(engine.last_plan->members[0].samples);
  EXPECT_FALSE(engine.last_plan->members[0].decodes);
  steps(engine);
  EXPECT_TRUE(engine.last_plan->members[0].input_on_gpu);
  EXPECT_TRUE(engine.last_plan->members[0].decodes);
  engine.report_tokens();
  steps(engine);
  EXPECT_FALSE(engine.last_plan->members[0].input_on_gpu);
}

TEST_F(SchedulerTest, ATokenForARequestThatIsGoneIsIgnored) {
  Scheduler scheduler({}, {});
  const auto tokens = prompt(5);
  ASSERT_TRUE(scheduler.add(1, {.prompt = tokens, .max_new_tokens = 5}).accepted());
  scheduler.plan();
  scheduler.finish(1);
  scheduler.token(1, 42);
  scheduler.finish(1);
  EXPECT_TRUE(scheduler.idle());
  EXPECT_TRUE(scheduler.plan().empty());
  EXPECT_EQ(scheduler.check_integrity(), std::nullopt);
}

TEST_F(SchedulerTest, AnIdInUseIsRefused) {
  Scheduler scheduler({}, {});
  const auto tokens = prompt(5);
  EXPECT_TRUE(scheduler.add(1, {.prompt = tokens, .max_new_tokens = 5}).accepted());
  const AddResult again = scheduler.add(1, {.prompt = tokens, .max_new_tokens = 5});
  EXPECT_EQ(again.refusal, Refusal::kInvalid);
  EXPECT_EQ(again.message, "request 1 exists already");
}

TEST_F(SchedulerTest, SlotsStayTheSameWhileARequestRuns) {
  SimulatedEngine engine({.max_sequences = 3}, {});
  for (RequestId id = 1; id <= 4; ++id) add(engine, id, 10, id == 2 ? 2 : 20);
  steps(engine, 8);
  EXPECT_EQ(engine.scheduler.sequence(1)->slot, 0u);
  EXPECT_EQ(engine.scheduler.sequence(3)->slot, 2u);
  EXPECT_EQ(engine.scheduler.sequence(4)->slot, 1u) << "the slot of the request that ended";
  drain(engine);
}

TEST_F(SchedulerTest, StepsAreCountedOnlyIfTheyComputeSomething) {
  SimulatedEngine engine({}, {});
  EXPECT_TRUE(engine.scheduler.plan().empty());
  EXPECT_TRUE(engine.scheduler.plan().empty());
  add(engine, 1, 10, 1);
  EXPECT_EQ(engine.scheduler.plan().step, 1u);
}

TEST_F(SchedulerTest, CancellingWorksAtEveryStep) {
  Policy policy{.preemption = Preemption::kSwap};
  for (std::uint32_t at = 0; at < 60; ++at) {
    SimulatedEngine engine(
        {.max_sequences = 4, .max_step_tokens = 24, .pool_blocks = 8, .swap_blocks = 4}, policy);
    add(engine, 1, 40, 30, 500);
    add(engine, 2, 40, 30, 500);
    const auto tokens = prompt(40, 500);
    ASSERT_TRUE(engine
                    .add(3, {.prompt = tokens,
                             .max_new_tokens = 30,
                             .fork = ForkPoint{.parent = 2, .position = 40}})
                    .accepted());
    steps(engine, at);
    if (!engine.requests.at(2).ended) engine.cancel(2);
    ASSERT_EQ(engine.scheduler.check_integrity(), std::nullopt) << "cancelled at step " << at;
    drain(engine);
  }
}

TEST_F(SchedulerTest, LoweredLimitsLetRunningRequestsTakeTurns) {
  SimulatedEngine engine({.max_sequences = 4, .max_step_tokens = 64}, {});
  for (RequestId id = 1; id <= 5; ++id) add(engine, id, 10, 12);
  steps(engine, 2);
  EXPECT_EQ(members(engine), (Ids{1, 2, 3, 4}));
  // Four run and two fit into a step: they take turns, and no other is admitted.
  engine.scheduler.set_limits(2, 2);
  steps(engine);
  EXPECT_EQ(members(engine), (Ids{1, 2}));
  steps(engine);
  EXPECT_EQ(members(engine), (Ids{3, 4}));
  steps(engine);
  EXPECT_EQ(members(engine), (Ids{1, 2}));
  drain(engine);
  engine.scheduler.set_limits(100, 0);
  EXPECT_EQ(engine.scheduler.limits().max_sequences, 4u) << "there are no more slots";
  EXPECT_EQ(engine.scheduler.limits().max_step_tokens, 1u);
}

TEST_F(SchedulerTest, ThePoolCanBeResizedWithinItsBounds) {
  SimulatedEngine engine({.context = 1024, .pool_blocks = 20}, {});
  engine.scheduler.set_limits(16, 512, 100);
  EXPECT_EQ(engine.scheduler.limits().pool_blocks, 20u) << "the pool was created with 20";
  engine.scheduler.set_limits(16, 512, 4);
  EXPECT_EQ(engine.scheduler.limits().pool_blocks, 4u);
  const std::vector<TokenId> prompt(60, 1);
  NewRequest large{.prompt = prompt, .max_new_tokens = 5};
  EXPECT_TRUE(engine.add(1, large).accepted()) << "63 tokens need four blocks";
  large.max_new_tokens = 6;
  EXPECT_EQ(engine.add(2, large).refusal, Refusal::kTooLong);
  engine.scheduler.set_limits(16, 512, 1);
  EXPECT_EQ(engine.scheduler.limits().pool_blocks, 4u) << "request 1 needs four";
  engine.scheduler.set_limits(16, 512);
  EXPECT_EQ(engine.scheduler.limits().pool_blocks, 4u) << "0 leaves it unchanged";
  steps(engine, 1);
  std::vector<BlockView> blocks;
  engine.scheduler.view_blocks(blocks);
  ASSERT_EQ(blocks.size(), 20u) << "withheld blocks are included";
  EXPECT_EQ(
      std::count_if(blocks.begin(), blocks.end(),
                    [](const BlockView& block) { return block.state == BlockState::kWithheld; }),
      16);
  drain(engine);
}

TEST_F(SchedulerTest, TwoTokensPerStepAreEnoughForEveryPolicy) {
  for (std::string_view name : policy_names()) {
    SimulatedEngine engine({.max_sequences = 8, .max_step_tokens = 2}, *named_policy(name));
    for (RequestId id = 1; id <= 5; ++id) add(engine, id, 7, 5);
    drain(engine);
  }
}

// A branch from the middle of an answer writes a different token where the parent's block is full
// and findable.
TEST_F(SchedulerTest, ABranchNeverWritesIntoAFindableBlock) {
  SimulatedEngine engine({.max_sequences = 4}, {});
  add(engine, 1, 20, 60, 700);
  steps(engine, 30);
  engine.report_tokens();
  std::vector<TokenId> branch = engine.requests.at(1).tokens;
  branch.resize(29);  // in the middle of the second block, which is full
  branch.push_back(4'999);
  ASSERT_TRUE(engine
                  .add(2, {.prompt = branch,
                           .max_new_tokens = 20,
                           .fork = ForkPoint{.parent = 1, .position = 29}})
                  .accepted());
  steps(engine);
  EXPECT_EQ(first_position_in_last_step(engine, 2), 29u);
  EXPECT_EQ(engine.last_plan->copies.size(), 1u);
  // A request with the parent's prefix finds the parent's block, not the branch's.
  std::vector<TokenId> same = engine.requests.at(1).tokens;
  same.resize(40);
  ASSERT_TRUE(engine.add(3, {.prompt = same, .max_new_tokens = 4}).accepted());
  drain(engine);
}

// The prompts are compared, so that a wrong fork position shares no wrong tokens.
TEST_F(SchedulerTest, AForkSharesOnlyWhatIsEqual) {
  SimulatedEngine engine({.max_sequences = 4}, {.prefix_cache = false});
  add(engine, 1, 40, 20, 800);
  auto other = prompt(40, 800);
  other[21] = 3;
  ASSERT_TRUE(engine
                  .add(2, {.prompt = other,
                           .max_new_tokens = 5,
                           .fork = ForkPoint{.parent = 1, .position = 40}})
                  .accepted());
  ASSERT_TRUE(engine
                  .add(3, {.prompt = other,
                           .max_new_tokens = 5,
                           .fork = ForkPoint{.parent = 99, .position = 40}})
                  .accepted());
  steps(engine, 2);
  EXPECT_EQ(engine.scheduler.totals().forks, 1u);
  EXPECT_EQ(first_position_in_last_step(engine, 2), 21u);
  drain(engine);
}

TEST_F(SchedulerTest, APreemptedRequestFindsItsOwnBlocksInTheCache) {
  SimulatedEngine engine({.max_sequences = 4, .pool_blocks = 6}, {});
  add(engine, 1, 47, 10);
  add(engine, 2, 32, 20);
  steps(engine, 3);
  EXPECT_EQ(engine.last_plan->preempted_recompute, (Ids{2}));
  while (engine.last_plan->admitted != Ids{2}) steps(engine);
  ASSERT_EQ(engine.last_plan->prefix_hits.size(), 1u);
  EXPECT_EQ(engine.last_plan->prefix_hits[0].tokens, 32u);
  drain(engine);
}

TEST_F(SchedulerTest, ViewsShowBlocksAndSequences) {
  SimulatedEngine engine({.max_sequences = 2, .pool_blocks = 8}, {});
  add(engine, 1, 20, 20, 900);
  add(engine, 2, 20, 2, 900);
  add(engine, 3, 20, 2, 950);
  steps(engine);
  std::vector<BlockView> blocks;
  engine.scheduler.view_blocks(blocks);
  ASSERT_EQ(blocks.size(), 8u);
  EXPECT_EQ(blocks[0].state, BlockState::kOwned);
  EXPECT_EQ(blocks[0].owner, 1u);
  EXPECT_EQ(blocks[0].filled, 16u);
  EXPECT_EQ(blocks[1].filled, 4u);
  EXPECT_EQ(blocks[1].last_use, 1u);
  EXPECT_EQ(blocks[7].state, BlockState::kFree);
  std::vector<SequenceView> sequences;
  engine.scheduler.view_sequences(sequences);
  ASSERT_EQ(sequences.size(), 3u);
  EXPECT_EQ(sequences[2].id, 3u);
  EXPECT_EQ(sequences[2].state, SequenceState::kWaiting);
  SchedulerCounts counts = engine.scheduler.counts();
  EXPECT_EQ(counts.running, 2u);
  EXPECT_EQ(counts.waiting, 1u);
  EXPECT_EQ(counts.kv_tokens, 40u);
  EXPECT_EQ(counts.wasted_tokens, 24u);
  drain(engine);
  counts = engine.scheduler.counts();
  EXPECT_EQ(counts.blocks_cached + counts.blocks_free, 8u);
  engine.scheduler.view_blocks(blocks);
  EXPECT_EQ(blocks[0].state, BlockState::kCached);
  EXPECT_NE(blocks[0].hash, 0u);
}

// ---- Switches changed while requests run.

TEST_F(SchedulerTest, AdmissionSwitched) {
  SimulatedEngine engine({.max_sequences = 4}, {});
  add(engine, 1, 10, 20);
  steps(engine);
  engine.scheduler.set_policy({.admission = Admission::kRequest});
  add(engine, 2, 10, 20);
  steps(engine, 2);
  EXPECT_EQ(members(engine), (Ids{1})) << "the running request is the batch";
  engine.scheduler.set_policy({});
  steps(engine);
  EXPECT_EQ(members(engine), (Ids{1, 2}));
  drain(engine);
}

TEST_F(SchedulerTest, LayoutSwitched) {
  SimulatedEngine engine({.max_sequences = 4, .max_step_tokens = 64}, {});
  add(engine, 1, 10, 20);
  steps(engine, 2);
  engine.scheduler.set_policy({.layout = Layout::kPadded});
  add(engine, 2, 10, 20);
  steps(engine);
  EXPECT_EQ(engine.last_plan->tokens(), 11u);
  EXPECT_EQ(engine.last_plan->padding_tokens, 9u) << "the decode is padded to the prompt's length";
  engine.scheduler.set_policy({});
  steps(engine);
  EXPECT_EQ(engine.last_plan->padding_tokens, 0u);
  drain(engine);
}

TEST_F(SchedulerTest, PhasesSwitched) {
  SimulatedEngine engine({.max_sequences = 4, .max_step_tokens = 16}, {});
  add(engine, 1, 10, 20);
  add(engine, 2, 40, 20);
  steps(engine, 2);
  EXPECT_EQ(members(engine), (Ids{1, 2}));
  engine.scheduler.set_policy({.phases = Phases::kSeparate});
  steps(engine);
  EXPECT_EQ(members(engine), (Ids{2}));
  engine.scheduler.set_policy({});
  steps(engine);
  EXPECT_EQ(members(engine), (Ids{1, 2}));
  drain(engine);
}

TEST_F(SchedulerTest, KvSwitched) {
  SimulatedEngine engine({.max_sequences = 4}, {.kv = KvAllocation::kReserve});
  add(engine, 1, 16, 65);
  steps(engine);
  EXPECT_EQ(engine.scheduler.sequence(1)->blocks, 5u);
  engine.scheduler.set_policy({});
  EXPECT_EQ(engine.scheduler.sequence(1)->blocks, 1u) << "reserved blocks are released";
  steps(engine);
  engine.scheduler.set_policy({.kv = KvAllocation::kReserve});
  add(engine, 2, 16, 65);
  steps(engine);
  EXPECT_EQ(engine.scheduler.sequence(1)->blocks, 2u) << "it still allocates on demand";
  EXPECT_EQ(engine.scheduler.sequence(2)->blocks, 5u);
  drain(engine);
}

TEST_F(SchedulerTest, PreemptionSwitched) {
  SimulatedEngine engine({.max_sequences = 4, .pool_blocks = 6, .swap_blocks = 8},
                         {.preemption = Preemption::kSwap, .prefix_cache = false});
  add(engine, 1, 47, 10);
  add(engine, 2, 32, 20);
  steps(engine, 3);
  ASSERT_EQ(engine.last_plan->preempted_swap, (Ids{2}));
  engine.scheduler.set_policy({.prefix_cache = false});
  while (engine.last_plan->admitted != Ids{2}) steps(engine);
  EXPECT_EQ(engine.last_plan->swap_in.size(), 3u) << "a swapped-out request still swaps in";
  drain(engine);
}

TEST_F(SchedulerTest, OrderSwitched) {
  SimulatedEngine engine({.max_sequences = 1}, {});
  add(engine, 1, 10, 3);
  add(engine, 2, 30, 3);
  add(engine, 3, 20, 3);
  steps(engine);
  engine.scheduler.set_policy({.order = Order::kShortestPrompt});
  while (engine.last_plan->admitted != Ids{3}) steps(engine);
  EXPECT_EQ(engine.scheduler.sequence(2)->state, SequenceState::kWaiting);
  drain(engine);
}

TEST_F(SchedulerTest, PrefixCacheSwitched) {
  SimulatedEngine engine({.max_sequences = 4}, {});
  add(engine, 1, 40, 2, 1'000);
  drain(engine);
  add(engine, 2, 40, 40, 2'000);
  steps(engine, 2);
  EXPECT_EQ(engine.scheduler.counts().blocks_cached, 2u);
  engine.scheduler.set_policy({.prefix_cache = false});
  EXPECT_EQ(engine.scheduler.counts().blocks_cached, 0u) << "cached blocks became free";
  add(engine, 3, 40, 2, 2'000);
  steps(engine);
  EXPECT_TRUE(engine.last_plan->prefix_hits.empty());
  engine.scheduler.set_policy({});
  add(engine, 4, 40, 2, 2'000);
  steps(engine);
  ASSERT_EQ(engine.last_plan->prefix_hits.size(), 1u)
      << "blocks of running requests are findable again";
  EXPECT_EQ(engine.last_plan->prefix_hits[0].tokens, 32u);
  drain(engine);
}

TEST_F(SchedulerTest, ChunkSwitched) {
  SimulatedEngine engine({.max_sequences = 4, .max_step_tokens = 64}, {});
  add(engine, 1, 200, 2);
  steps(engine);
  EXPECT_EQ(engine.last_plan->tokens(), 64u);
  engine.scheduler.set_policy({.max_chunk_tokens = 7});
  steps(engine);
  EXPECT_EQ(engine.last_plan->tokens(), 7u);
  drain(engine);
}

// An endless stream of high-priority requests does not starve one of low priority.
TEST_F(SchedulerTest, NoRequestStarves) {
  for (Order order : {Order::kFcfs, Order::kPriority, Order::kShortestPrompt}) {
    for (Phases phases : {Phases::kMixed, Phases::kSeparate}) {
      SimulatedEngine engine({.max_sequences = 3, .max_step_tokens = 40, .pool_blocks = 8},
                             {.phases = phases, .order = order});
      RequestId next = 2;
      const auto tokens = prompt(90);
      ASSERT_TRUE(engine.add(1, {.prompt = tokens, .max_new_tokens = 30}).accepted());
      for (std::uint32_t step = 0; !engine.requests.at(1).ended; ++step) {
        ASSERT_LT(step, 1'500u) << describe(engine.scheduler.policy());
        while (engine.scheduler.counts().waiting < 6) {
          const auto shorter = prompt(10);
          const std::uint32_t new_tokens = next % 3 == 0 ? 1 : 20;
          engine.add(next++, {.prompt = shorter, .max_new_tokens = new_tokens, .priority = 4});
        }
        steps(engine);
      }
    }
  }
}

}  // namespace
}  // namespace hearth
