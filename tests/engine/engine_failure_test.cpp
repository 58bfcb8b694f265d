// Which requests a failure ends: a lost device ends all of them, with the reason; a step that could
// not be submitted ends its own members. The process continues, and no wrong prefix stays in the
// cache.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/stand_in_engine.h"

namespace hearth::testing {
namespace {

using ::testing::HasSubstr;

constexpr SchedulerLimits kFailureLimits{
    .max_sequences = 4, .max_step_tokens = 64, .context = 128, .pool_blocks = 64};
constexpr SchedulerLimits kFewBlocks{.max_sequences = 4,
                                     .max_step_tokens = 64,
                                     .context = 128,
                                     .pool_blocks = 8,
                                     .swap_blocks = 16,
                                     .max_queue = 15};

enum class Call { kSubmit, kWait };

// Six requests, two of them waiting; the device is lost at the n-th call.
void lose_device(Call call, int n) {
  SCOPED_TRACE((call == Call::kSubmit ? "submit " : "wait ") + std::to_string(n));
  StandInEngine engine({.limits = kFailureLimits}, {}, nullptr, /*start_paused=*/true);
  std::vector<TokenStream> streams;
  std::vector<GenerationRequest> requests;
  for (uint32_t i = 0; i < 6; ++i) {
    requests.push_back({.prompt = made_up_prompt(20 + i, i), .max_tokens = 8 + i});
    auto stream = engine->submit(requests.back());
    ASSERT_TRUE(stream.ok());
    streams.push_back(std::move(*stream));
  }
  (call == Call::kSubmit ? engine.executor().faults.submit : engine.executor().faults.wait).arm(n);
  engine->resume();
  uint32_t ended_with_error = 0;
  for (size_t i = 0; i < streams.size(); ++i) {
    const std::vector<TokenId> ids = read_ids(streams[i]);
    std::vector<TokenId> right = engine.alone(requests[i]);
    const GenerationEnd& end = streams[i].end();
    if (end.reason == FinishReason::kError) {
      ++ended_with_error;
      EXPECT_THAT(end.message, HasSubstr("the stand-in could not"));
      right.resize(ids.size());
    }
    EXPECT_EQ(ids, right) << "tokens before the failure are right";
  }
  EXPECT_GT(ended_with_error, 0u);
  EXPECT_EQ(engine->metrics().finished_error.value(), ended_with_error);
  EXPECT_EQ(engine->state(), EngineState::kFailed);
  EXPECT_THAT(engine->failure(), HasSubstr("the stand-in could not"));
  // From now on it refuses requests, and all other functions still work.
  const auto refused = engine->submit({.prompt = {1}, .max_tokens = 1});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kDeviceLost);
  EXPECT_EQ(refused.error().message, engine->failure());
  engine->set_policy(*named_policy("static"));
  engine->cancel(1);
  engine->pause();
  engine->step_once();
  engine->resume();
  engine->drain();
  engine->inspect([](const Scheduler& scheduler) { EXPECT_TRUE(scheduler.idle()); });
}

TEST(EngineFailure, ALostDeviceEndsAllRequestsAtAnySubmission) {
  for (int n = 1; n <= 12; ++n) lose_device(Call::kSubmit, n);
}

TEST(EngineFailure, ALostDeviceEndsAllRequestsAtAnyWait) {
  for (int n = 1; n <= 12; ++n) lose_device(Call::kWait, n);
}

TEST(EngineFailure, AStepThatCannotBeSubmittedEndsOnlyItsMembers) {
  for (int n = 1; n <= 12; ++n) {
    SCOPED_TRACE(n);
    StandInEngine engine({.limits = kFailureLimits}, {}, nullptr, /*start_paused=*/true);
    engine.executor().faults.kind = ErrorKind::kOutOfMemory;
    std::vector<TokenStream> streams;
    std::vector<GenerationRequest> requests;
    for (uint32_t i = 0; i < 6; ++i) {
      requests.push_back({.prompt = made_up_prompt(20 + i, i), .max_tokens = 8 + i});
      auto stream = engine->submit(requests.back());
      ASSERT_TRUE(stream.ok());
      streams.push_back(std::move(*stream));
    }
    engine.executor().faults.submit.arm(n);
    engine->resume();
    uint32_t failed = 0;
    for (size_t i = 0; i < streams.size(); ++i) {
      const std::vector<TokenId> ids = read_ids(streams[i]);
      std::vector<TokenId> right = engine.alone(requests[i]);
      if (streams[i].end().reason == FinishReason::kError) {
        ++failed;
        EXPECT_EQ(streams[i].end().message, "the stand-in could not submit");
        right.resize(ids.size());
      } else {
        EXPECT_EQ(streams[i].end().reason, FinishReason::kLength);
      }
      EXPECT_EQ(ids, right);
    }
    EXPECT_GE(failed, 1u);
    EXPECT_LE(failed, 4u) << "at most four are in a step";
    EXPECT_EQ(engine->state(), EngineState::kRunning);
    // The same prompts again: the prefix cache has nothing that was never computed.
    for (const GenerationRequest& request : requests) {
      auto stream = engine->submit(request);
      ASSERT_TRUE(stream.ok());
      EXPECT_EQ(read_ids(*stream), engine.alone(request));
    }
  }
}

TEST(EngineFailure, FailedPreparationsEndTheRequestsTheyWereFor) {
  for (const bool of_slots : {false, true})
    for (int n = 1; n <= 10; ++n) {
      SCOPED_TRACE(n);
      StandInEngine engine({.limits = kFewBlocks}, {.preemption = Preemption::kSwap}, nullptr,
                           /*start_paused=*/true);
      engine.executor().faults.kind = ErrorKind::kOutOfMemory;
      (of_slots ? engine.executor().faults.slot : engine.executor().faults.move).arm(n);
      std::vector<TokenStream> streams;
      std::vector<GenerationRequest> requests;
      for (uint32_t i = 0; i < 10; ++i) {
        requests.push_back({.prompt = made_up_prompt(20 + 3 * i, i), .max_tokens = 40});
        requests.back().sampling.presence_penalty = 0.5f;
        auto streams_of_prompt = engine->submit_n(requests.back(), 1 + i % 2);
        ASSERT_TRUE(streams_of_prompt.ok());
        if (i % 2 == 1) {
          requests.push_back(requests.back());
          ++requests.back().sampling.seed;
        }
        for (TokenStream& stream : *streams_of_prompt) streams.push_back(std::move(stream));
      }
      engine->resume();
      uint32_t failed = 0;
      for (size_t i = 0; i < streams.size(); ++i) {
        const std::vector<TokenId> ids = read_ids(streams[i]);
        std::vector<TokenId> right = engine.alone(requests[i]);
        if (streams[i].end().reason == FinishReason::kError) {
          ++failed;
          right.resize(ids.size());
        }
        EXPECT_EQ(ids, right);
      }
      EXPECT_GE(failed, 1u);
      EXPECT_LE(failed, 8u);
      EXPECT_EQ(engine->state(), EngineState::kRunning);
      EXPECT_EQ(engine->metrics().waiting.value(), 0u);
      // The queue is empty again.
      engine->pause();
      std::vector<TokenStream> queued;
      while (auto stream = engine->submit({.prompt = {1, 2}, .max_tokens = 2}))
        queued.push_back(std::move(*stream));
      EXPECT_EQ(queued.size(), kFewBlocks.max_queue);
    }
}

}  // namespace
}  // namespace hearth::testing
