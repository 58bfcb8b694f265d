// Static and dynamic batching as their readers see them: when results come.
#include <chrono>

#include <gtest/gtest.h>

#include "tests/support/stand_in_engine.h"

namespace hearth {
namespace {

using testing::made_up_prompt;
using testing::read_ids;
using testing::StandInEngine;

constexpr SchedulerLimits kDeliveryLimits{
    .max_sequences = 4, .max_step_tokens = 128, .context = 256, .pool_blocks = 100};

std::vector<GenerationRequest> requests_of(std::initializer_list<uint32_t> lengths) {
  std::vector<GenerationRequest> requests;
  for (const uint32_t length : lengths)
    requests.push_back({.prompt = made_up_prompt(10, length), .max_tokens = length});
  return requests;
}

TEST(EngineDelivery, ABatchIsDeliveredWhenItsLastMemberHasEnded) {
  StandInEngine engine({.limits = kDeliveryLimits}, *named_policy("static"), nullptr, true);
  const auto requests = requests_of({2, 12});
  auto streams = engine->submit(requests);
  ASSERT_TRUE(streams.ok());
  TokenStream& early = (*streams)[0];
  TokenStream& late = (*streams)[1];
  for (int i = 0; i < 6; ++i) engine->step_once();
  engine->inspect([](const Scheduler&) {});
  EXPECT_FALSE(early.next(std::chrono::milliseconds(1))) << "its answer is complete, its batch not";
  EXPECT_FALSE(late.next(std::chrono::milliseconds(1)));
  EXPECT_EQ(engine->metrics().time_to_first_token_seconds.snapshot().count, 0u);

  engine->resume();
  EXPECT_EQ(read_ids(early), engine.alone(requests[0]));
  EXPECT_EQ(read_ids(late), engine.alone(requests[1]));
  EXPECT_DOUBLE_EQ(early.end().times.first_token, early.end().times.last_token);
  EXPECT_EQ(engine->metrics().time_to_first_token_seconds.snapshot().count, 2u);
}

TEST(EngineDelivery, AtOnceTokensComeAsTheyAreMade) {
  Policy policy = *named_policy("static");
  policy.delivery = Delivery::kAtOnce;
  StandInEngine engine({.limits = kDeliveryLimits}, policy, nullptr, true);
  auto streams = engine->submit(requests_of({2, 12}));
  ASSERT_TRUE(streams.ok());
  for (int i = 0; i < 6; ++i) engine->step_once();
  EXPECT_EQ(read_ids((*streams)[0]).size(), 2u);
  engine->resume();
}

TEST(EngineDelivery, AChangeOfPolicyDeliversWhatWasHeldBack) {
  StandInEngine engine({.limits = kDeliveryLimits}, *named_policy("static"), nullptr, true);
  auto streams = engine->submit(requests_of({2, 40}));
  ASSERT_TRUE(streams.ok());
  for (int i = 0; i < 6; ++i) engine->step_once();
  engine->inspect([](const Scheduler&) {});
  EXPECT_FALSE((*streams)[0].next(std::chrono::milliseconds(1)));
  engine->set_policy({});
  EXPECT_EQ(read_ids((*streams)[0]).size(), 2u);
  EXPECT_TRUE((*streams)[1].next()) << "of the request that still runs";
  engine->resume();
  EXPECT_EQ(read_ids((*streams)[1]).size(), 39u);
}

TEST(EngineDelivery, ACancelledMemberIsNotWaitedFor) {
  StandInEngine engine({.limits = kDeliveryLimits}, *named_policy("static"), nullptr, true);
  auto streams = engine->submit(requests_of({2, 100}));
  ASSERT_TRUE(streams.ok());
  for (int i = 0; i < 6; ++i) engine->step_once();
  engine->cancel((*streams)[1].request());
  EXPECT_EQ(read_ids((*streams)[0]).size(), 2u);
  EXPECT_LT(read_ids((*streams)[1]).size(), 100u);
  EXPECT_EQ((*streams)[1].end().reason, FinishReason::kCancelled);
}

TEST(EngineDelivery, ACompleteAnswerIsNotHeldBackPastItsTimeLimitOrACancellation) {
  for (const bool cancels : {false, true}) {
    StandInEngine engine({.limits = kDeliveryLimits}, *named_policy("static"), nullptr, true);
    auto requests = requests_of({2, 100});
    if (!cancels) requests[0].time_limit_seconds = 1;
    auto streams = engine->submit(requests);
    ASSERT_TRUE(streams.ok());
    for (int i = 0; i < 6; ++i) engine->step_once();
    const RequestId early = (*streams)[0].request();
    for (bool runs = true; runs;)
      engine->inspect(
          [&](const Scheduler& scheduler) { runs = scheduler.sequence(early).has_value(); });
    if (cancels) engine->cancel(early);
    // The other member of the batch has not ended, and does not while the engine is paused.
    EXPECT_EQ(read_ids((*streams)[0]), engine.alone(requests[0]));
    EXPECT_EQ((*streams)[0].end().reason, FinishReason::kLength);
    engine->resume();
    EXPECT_EQ(read_ids((*streams)[1]).size(), 100u);
  }
}

TEST(EngineDelivery, ADynamicBatchStartsWhenItsWindowCloses) {
  Policy policy = *named_policy("dynamic");
  policy.batch_window_ms = 300;
  StandInEngine engine({.limits = kDeliveryLimits}, policy);
  const auto requests = requests_of({3, 5});
  auto first = engine->submit(requests[0]);
  auto second = engine->submit(requests[1]);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(read_ids(*first), engine.alone(requests[0]));
  EXPECT_EQ(read_ids(*second), engine.alone(requests[1]));
  EXPECT_GE(first->end().times.admitted, 0.3);
  EXPECT_EQ(engine.executor().steps, 5u) << "one batch";

  // A full batch waits for nothing.
  auto full = engine->submit(requests_of({3, 3, 3, 3}));
  ASSERT_TRUE(full.ok());
  for (TokenStream& stream : *full) EXPECT_EQ(read_ids(stream).size(), 3u);
}

// Nobody else will join it.
TEST(EngineDelivery, DrainingDoesNotWaitForABatchToFill) {
  Policy policy = *named_policy("dynamic");
  policy.batch_window_ms = 3'600'000;
  StandInEngine engine({.limits = kDeliveryLimits}, policy);
  auto stream = engine->submit(requests_of({3}).front());
  ASSERT_TRUE(stream.ok());
  engine->drain();
  EXPECT_EQ(read_ids(*stream).size(), 3u);
  EXPECT_EQ(stream->end().reason, FinishReason::kLength);
}

}  // namespace
}  // namespace hearth
