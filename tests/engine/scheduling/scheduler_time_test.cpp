// A target for the time between tokens: how many prompt tokens a step gets.
#include <vector>

#include <gtest/gtest.h>

#include "tests/engine/scheduling/simulated_engine.h"

namespace hearth {
namespace {

using test::SimulatedEngine;

constexpr SchedulerLimits kTimedLimits{.max_sequences = 8,
                                       .max_step_tokens = 1024,
                                       .context = 4096,
                                       .pool_blocks = 2048,
                                       .max_queue = 100};

// 5 ms per step and 0.1 ms per token.
double timed_step_seconds(const StepLoad& load) { return 5e-3 + 1e-4 * load.rows; }

class TimedScheduler {
 public:
  TimedScheduler(const SchedulerLimits& limits, const Policy& policy) : engine(limits, policy) {
    engine.seconds = timed_step_seconds;
  }

  void add(RequestId id, std::uint32_t prompt_tokens, std::uint32_t generated) {
    const std::vector<TokenId> prompt(prompt_tokens, static_cast<TokenId>(id));
    ASSERT_TRUE(engine.add(id, {.prompt = prompt, .max_new_tokens = generated}).accepted());
  }
  // Runs a step and returns its tokens.
  std::uint32_t step() {
    const auto problem = engine.step();
    EXPECT_EQ(problem, std::nullopt);
    engine.report_tokens();
    return engine.last_plan->tokens();
  }

  SimulatedEngine engine;
};

TEST(SchedulerTime, TheLimitsHoldUnlessThePolicyHasATarget) {
  for (const std::uint32_t target_ms : {0u, 25u, 80u}) {
    SCOPED_TRACE(target_ms);
    SchedulerLimits limits = kTimedLimits;
    limits.step_ms = 50;
    TimedScheduler timed(limits, {.tbt_target_ms = target_ms, .prefix_cache = false});
    timed.add(1, 100, 500);
    timed.step();
    timed.step();
    const double target = target_ms == 0 ? 0.050 : 1e-3 * target_ms;
    timed.add(2, 3000, 1);
    double longest = 0;
    for (int i = 0; i < 8; ++i)
      longest = std::max(longest, timed_step_seconds({.rows = timed.step()}));
    EXPECT_LE(longest, target);
    EXPECT_GE(longest, 0.8 * target);
  }
}

TEST(SchedulerTime, WithoutAStreamPromptsFillTheStep) {
  TimedScheduler timed(kTimedLimits, {.tbt_target_ms = 10});
  timed.add(1, 3000, 5);
  EXPECT_EQ(timed.step(), 1024u);
  EXPECT_EQ(timed.step(), 1024u);
}

TEST(SchedulerTime, ANewPromptIsNotAdmittedWhenTheTimeIsUsedUp) {
  TimedScheduler timed(kTimedLimits, {.tbt_target_ms = 20, .prefix_cache = false});
  timed.add(1, 100, 500);
  timed.step();
  timed.step();
  timed.add(2, 2000, 5);
  timed.add(3, 2000, 5);
  timed.step();
  EXPECT_EQ(timed.engine.scheduler.counts().waiting, 1u);
  // Request 2 is done at some time, and then it is 3's turn.
  for (int i = 0; i < 60; ++i) timed.step();
  EXPECT_EQ(timed.engine.scheduler.counts().waiting, 0u);
}

TEST(SchedulerTime, PromptsNeverStarve) {
  // Decodes alone take longer than the target.
  TimedScheduler timed(kTimedLimits, {.tbt_target_ms = 1, .prefix_cache = false});
  for (RequestId id = 1; id <= 4; ++id) timed.add(id, 50, 1000);
  timed.step();
  timed.step();
  timed.add(9, 1000, 1);
  int steps = 0;
  for (; !timed.engine.requests.at(9).ended && steps < 100; ++steps) timed.step();
  EXPECT_LT(steps, 40);
  EXPECT_GT(steps, 10);
}

// Forks that are admitted when the time is used up keep sharing a block with their parent, which
// copies it in the next step. A fork that is admitted then begins with that copy.
TEST(SchedulerTime, AForkMayBeginWithACopyOfTheSameStep) {
  SchedulerLimits limits = kTimedLimits;
  limits.max_sequences = 64;
  TimedScheduler timed(limits, {.tbt_target_ms = 1, .prefix_cache = false});
  timed.add(1, 20, 200);
  timed.step();
  timed.step();
  for (RequestId id = 2; id <= 50; ++id)
    ASSERT_TRUE(timed.engine
                    .add(id, {.prompt = std::vector<TokenId>(20, 1),
                              .max_new_tokens = 20,
                              .fork = ForkPoint{.parent = 1, .position = 20}})
                    .accepted());
  bool copied_twice = false;
  for (int i = 0; i < 60; ++i) {
    timed.step();
    const std::vector<BlockMove>& copies = timed.engine.last_plan->copies;
    copied_twice |= independent_moves(copies) < copies.size();
  }
  EXPECT_TRUE(copied_twice) << "the case did not occur";
}

TEST(SchedulerTime, SeparatePhasesTakeTurns) {
  TimedScheduler timed(kTimedLimits,
                       {.phases = Phases::kSeparate, .tbt_target_ms = 40, .prefix_cache = false});
  timed.add(1, 100, 500);
  timed.step();
  timed.step();
  timed.add(2, 3000, 1);
  double since_token = 0, longest = 0;
  for (int i = 0; i < 20; ++i) {
    const std::uint32_t generated = timed.engine.requests.at(1).generated();
    since_token += timed_step_seconds({.rows = timed.step()});
    if (timed.engine.requests.at(1).generated() == generated) continue;
    longest = std::max(longest, since_token);
    since_token = 0;
  }
  EXPECT_LE(longest, 0.040);
  EXPECT_GE(longest, 0.030);
}

}  // namespace
}  // namespace hearth
