// The publisher alone: gauges that callers and the engine thread change, counts of ends, and step
// records.
#include "engine/publisher.h"

#include <gtest/gtest.h>

#include "tests/support/hand_clock.h"

namespace hearth::testing {
namespace {

class PublisherTest : public ::testing::Test {
 protected:
  HandClock clock_;
  Publisher publisher_{4, 2, clock_};
  const Metrics& metrics_ = publisher_.metrics();
};

TEST_F(PublisherTest, PostedRequestsCountAsWaitingBeforeTheSchedulerHasThem) {
  publisher_.show_counts({.waiting = 0});
  publisher_.posted(3);
  EXPECT_EQ(metrics_.waiting.value(), 3u);
  publisher_.show_counts({.waiting = 0});
  EXPECT_EQ(metrics_.waiting.value(), 3u) << "still in the mailbox";
  for (int i = 0; i < 3; ++i) publisher_.accepted();
  publisher_.posted(2);
  publisher_.show_counts({.waiting = 3});
  EXPECT_EQ(metrics_.waiting.value(), 5u);
  publisher_.unposted(2);
  publisher_.show_counts({.waiting = 1, .running = 2});
  EXPECT_EQ(metrics_.waiting.value(), 1u);
  publisher_.show_counts({.waiting = 2, .running = 1});
  EXPECT_EQ(metrics_.waiting.value(), 2u) << "one was preempted";
}

TEST_F(PublisherTest, GaugesCanBeReadBack) {
  const SchedulerCounts shown{.waiting = 1,
                              .running = 2,
                              .swapped = 3,
                              .blocks_used = 4,
                              .blocks_cached = 5,
                              .blocks_free = 6};
  publisher_.show_counts(shown);
  SchedulerCounts read;
  publisher_.read_gauges(read);
  EXPECT_EQ(read, shown);
}

TEST_F(PublisherTest, CountsEveryEndUnderItsReason) {
  const auto request =
      ActiveRequest::create({.prompt = {1}, .max_tokens = 1}, {.submitted = clock_.now()});
  ASSERT_TRUE(request.ok());
  const std::pair<FinishReason, const Counter*> reasons[] = {
      {FinishReason::kStop, &metrics_.finished_stop},
      {FinishReason::kLength, &metrics_.finished_length},
      {FinishReason::kCancelled, &metrics_.finished_cancelled},
      {FinishReason::kTimeLimit, &metrics_.finished_time_limit},
      {FinishReason::kError, &metrics_.finished_error}};
  for (const auto& [reason, counter] : reasons) {
    EXPECT_EQ(counter->value(), 0u);
    publisher_.ended(**request, reason);
    EXPECT_EQ(counter->value(), 1u) << finish_reason_name(reason);
  }
  EXPECT_EQ(metrics_.end_to_end_seconds.snapshot().count, 5u);
}

TEST_F(PublisherTest, TimesTheFirstTokenAndTheGapsAfterIt) {
  const auto request =
      ActiveRequest::create({.prompt = {1}, .max_tokens = 3}, {.submitted = clock_.now()});
  ASSERT_TRUE(request.ok());
  for (TokenId id = 0; id < 3; ++id) {
    clock_.advance(0.5);
    (*request)->accept({.id = id}, clock_.now());
    publisher_.generated_token();
    publisher_.delivered_token(**request);
  }
  (*request)->stop_clock(clock_.now());
  publisher_.ended(**request, FinishReason::kLength);
  EXPECT_EQ(metrics_.generated_tokens.value(), 3u);
  EXPECT_DOUBLE_EQ(metrics_.time_to_first_token_seconds.snapshot().sum, 0.5);
  EXPECT_EQ(metrics_.time_between_tokens_seconds.snapshot().count, 2u);
  EXPECT_DOUBLE_EQ(metrics_.time_per_output_token_seconds.snapshot().sum, 0.5);
  EXPECT_DOUBLE_EQ(metrics_.end_to_end_seconds.snapshot().sum, 1.5);
}

TEST_F(PublisherTest, DescribesAPlan) {
  BatchPlan plan;
  plan.step = 7;
  plan.members = {{.request = 1, .slot = 0, .first_position = 5, .tokens = 3},
                  {.request = 2,
                   .slot = 1,
                   .first_position = 9,
                   .tokens = 1,
                   .samples = true,
                   .decodes = true}};
  plan.padding_tokens = 4;
  plan.swap_out = {{}, {}};
  plan.copies = {{}};
  plan.admitted = {1};
  StepRecord record;
  record.members.resize(5);
  record.sampled_tokens = 3;
  describe_plan(plan, {.running = 2}, record);
  EXPECT_EQ(record.step, 7u);
  ASSERT_EQ(record.members.size(), 2u);
  EXPECT_EQ(record.members[0].phase, StepPhase::kPrompt);
  EXPECT_EQ(record.members[1].phase, StepPhase::kDecode);
  EXPECT_EQ(record.tokens, 4u);
  EXPECT_EQ(record.sampled_tokens, 1u);
  EXPECT_EQ(record.padding_tokens, 4u);
  EXPECT_EQ(record.blocks_swapped_out, 2u);
  EXPECT_EQ(record.blocks_copied, 1u);
  EXPECT_EQ(record.admitted, plan.admitted);
  EXPECT_EQ(record.counts.running, 2u);
}

TEST_F(PublisherTest, PublishesARecordAndCountsIt) {
  StepRecord record;
  record.step = 1;
  record.run_seconds = 0.25;
  record.tokens = 6;
  record.padding_tokens = 2;
  record.members = {{.request = 1, .phase = StepPhase::kPrompt, .tokens = 5},
                    {.request = 2, .phase = StepPhase::kDecode, .tokens = 1}};
  publisher_.publish(record, {.preemptions_swap = 3, .prefix_hit_tokens = 16});
  StepRecord read;
  ASSERT_TRUE(publisher_.records().read(0, read));
  EXPECT_EQ(read.step, 1u);
  EXPECT_EQ(read.members.size(), 2u);
  EXPECT_EQ(metrics_.steps.value(), 1u);
  EXPECT_EQ(metrics_.prompt_tokens.value(), 5u);
  EXPECT_EQ(metrics_.padding_tokens.value(), 2u);
  EXPECT_EQ(metrics_.preemptions_swap.value(), 3u);
  EXPECT_EQ(metrics_.prefix_hit_tokens.value(), 16u);
  EXPECT_DOUBLE_EQ(metrics_.step_seconds.snapshot().sum, 0.25);
}

TEST_F(PublisherTest, SecondsBeginWithTheEngine) {
  clock_.advance(3);
  EXPECT_DOUBLE_EQ(publisher_.seconds(), 3);
}

}  // namespace
}  // namespace hearth::testing
