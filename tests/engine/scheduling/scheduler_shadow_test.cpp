// Requests with a shadow: two sequences with different prompts that sample in the same steps.
#include <numeric>

#include <gtest/gtest.h>

#include "engine/scheduling/scheduler.h"

namespace hearth {
namespace {

class SchedulerShadowTest : public ::testing::Test {
 protected:
  static std::vector<TokenId> shadow_case_prompt(std::uint32_t tokens, TokenId first) {
    std::vector<TokenId> prompt(tokens);
    std::iota(prompt.begin(), prompt.end(), first);
    return prompt;
  }
  static AddResult add(Scheduler& scheduler, RequestId id, std::uint32_t tokens,
                       std::uint32_t shadow_tokens, std::uint32_t new_tokens) {
    return scheduler.add(id, {.prompt = shadow_case_prompt(tokens, static_cast<TokenId>(id * 1000)),
                              .max_new_tokens = new_tokens,
                              .shadow_prompt = shadow_case_prompt(shadow_tokens, 500000)});
  }
  // The request, and how many tokens of it and of its shadow the next step computes.
  struct Step {
    std::uint32_t own = 0, shadow = 0;
    bool samples = false;
  };
  static Step step(Scheduler& scheduler) {
    Step step;
    for (const BatchMember& member : scheduler.plan().members) {
      (member.shadow ? step.shadow : step.own) += member.tokens;
      step.samples |= member.samples;
    }
    EXPECT_EQ(scheduler.check_integrity(), std::nullopt);
    return step;
  }
};

TEST_F(SchedulerShadowTest, TheOneThatIsAheadWaitsForTheOther) {
  Scheduler scheduler({.max_sequences = 4, .max_step_tokens = 16, .pool_blocks = 40}, {});
  ASSERT_TRUE(add(scheduler, 1, 10, 30, 4).accepted());
  Step first = step(scheduler);
  EXPECT_EQ(first.own, 9u) << "it would be ready to sample";
  EXPECT_EQ(first.shadow, 6u);
  EXPECT_FALSE(first.samples);
  first = step(scheduler);
  EXPECT_EQ(first.own, 0u);
  EXPECT_EQ(first.shadow, 15u);
  const Step last = step(scheduler);
  EXPECT_EQ(last.own, 1u);
  EXPECT_EQ(last.shadow, 9u);
  EXPECT_TRUE(last.samples);
}

TEST_F(SchedulerShadowTest, AShadowTakesNoPlaceInTheQueue) {
  Scheduler scheduler({.max_sequences = 4, .pool_blocks = 40, .max_queue = 3}, {});
  for (const RequestId id : {1, 2, 3}) EXPECT_TRUE(add(scheduler, id, 10, 12, 4).accepted()) << id;
  EXPECT_EQ(add(scheduler, 4, 10, 12, 4).refusal, Refusal::kQueueFull);
  scheduler.finish(2);
  EXPECT_TRUE(add(scheduler, 4, 10, 12, 4).accepted());
  step(scheduler);
  EXPECT_EQ(scheduler.counts().running, 4u) << "two requests and their shadows";
  EXPECT_TRUE(add(scheduler, 5, 10, 12, 4).accepted());
}

TEST_F(SchedulerShadowTest, BothReadTheTokenFromTheRequestsSlot) {
  Scheduler scheduler({.max_sequences = 4, .pool_blocks = 40}, {});
  ASSERT_TRUE(add(scheduler, 1, 5, 3, 6).accepted());
  EXPECT_TRUE(step(scheduler).samples);
  const BatchPlan& plan = scheduler.plan();
  ASSERT_EQ(plan.members.size(), 2u);
  EXPECT_EQ(plan.admitted.size(), 0u);
  for (const BatchMember& member : plan.members) {
    EXPECT_EQ(member.request, 1u);
    EXPECT_TRUE(member.input_on_gpu);
    EXPECT_EQ(member.input_slot, plan.members[0].slot);
  }
  EXPECT_FALSE(plan.members[0].shadow);
  EXPECT_TRUE(plan.members[1].shadow);
  EXPECT_NE(plan.members[0].slot, plan.members[1].slot);
}

TEST_F(SchedulerShadowTest, WhatIsSaidAboutTheRequestAppliesToBoth) {
  Scheduler scheduler({.max_sequences = 4, .pool_blocks = 40}, {});
  ASSERT_TRUE(add(scheduler, 1, 5, 20, 12).accepted());
  scheduler.set_with_host(1, true);
  step(scheduler);
  scheduler.token(1, 77);
  EXPECT_EQ(scheduler.propose(1, std::vector<TokenId>{1, 2}), 0u);
  scheduler.force(1, std::vector<TokenId>{78, 79, 80});
  EXPECT_EQ(scheduler.check_integrity(), std::nullopt);
  EXPECT_EQ(scheduler.ledger(1 | kShadowBit)->tokens().back(), 80u);
  const Step forced = step(scheduler);
  EXPECT_EQ(forced.own, 4u);
  EXPECT_EQ(forced.shadow, 4u);
  scheduler.token(1, 81);
  scheduler.truncate(1, 5 + 2);
  EXPECT_EQ(scheduler.check_integrity(), std::nullopt);
  EXPECT_EQ(scheduler.ledger(1 | kShadowBit)->committed(), 20u + 2);
  EXPECT_EQ(scheduler.ledger(1 | kShadowBit)->tokens().back(), 78u);
  const Step again = step(scheduler);
  EXPECT_EQ(again.own, 1u);
  EXPECT_EQ(again.shadow, 1u);
  scheduler.finish(1);
  EXPECT_TRUE(scheduler.idle());
  EXPECT_EQ(scheduler.counts().blocks_used, 0u);
  EXPECT_EQ(scheduler.check_integrity(), std::nullopt);
}

TEST_F(SchedulerShadowTest, BothStayTogetherInTheQueueWhateverItsOrder) {
  Scheduler scheduler({.max_sequences = 2, .pool_blocks = 60}, {.order = Order::kShortestPrompt});
  ASSERT_TRUE(add(scheduler, 1, 20, 4, 4).accepted());
  ASSERT_TRUE(add(scheduler, 3, 10, 50, 4).accepted());
  scheduler.set_priority(1, 3);
  const Step first = step(scheduler);
  EXPECT_EQ(scheduler.sequence(3)->state, SequenceState::kRunning);
  EXPECT_EQ(first.own, 10u);
  EXPECT_EQ(first.shadow, 50u);
  scheduler.finish(3);
  const Step second = step(scheduler);
  EXPECT_EQ(second.own, 20u);
  EXPECT_EQ(second.shadow, 4u);
}

TEST_F(SchedulerShadowTest, RefusesWhatCannotRun) {
  const SchedulerLimits limits{
      .max_sequences = 4, .max_step_tokens = 16, .context = 64, .pool_blocks = 6};
  Scheduler scheduler(limits, {});
  EXPECT_EQ(add(scheduler, 1, 10, 60, 5).message,
            "a negative prompt of 60 tokens and up to 5 new tokens make 65; the context holds 64");
  EXPECT_EQ(add(scheduler, 1, 60, 50, 4).message,
            "64 tokens, and 54 with the negative prompt, need 8 blocks of 16 tokens; the KV cache "
            "has 6");
  EXPECT_TRUE(add(scheduler, 1, 28, 50, 4).accepted());
  // One step must have room for both.
  scheduler.set_limits(4, 1);
  EXPECT_EQ(scheduler.limits().max_step_tokens, 2u);
  Scheduler single({.max_sequences = 1, .pool_blocks = 60}, {});
  EXPECT_EQ(add(single, 1, 10, 10, 5).message,
            "guidance runs two sequences at once; the limit of sequences or of tokens per step is "
            "1");
}

}  // namespace
}  // namespace hearth
