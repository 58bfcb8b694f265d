// Requests and the engine from start to end, on the stand-in executor: refusals, ends, streams,
// cancellation, time limits, pausing, slow motion, draining.
#include "engine/engine.h"

#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/stand_in_engine.h"

namespace hearth::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

constexpr SchedulerLimits kLimits{
    .max_sequences = 4, .max_step_tokens = 32, .context = 128, .pool_blocks = 64, .max_queue = 5};

GenerationRequest small_request(uint32_t seed, uint32_t max_tokens = 10) {
  return {.prompt = made_up_prompt(5, seed), .max_tokens = max_tokens};
}

// Submits a request that must be accepted.
TokenStream submitted(StandInEngine& engine, GenerationRequest request) {
  auto stream = engine->submit(std::move(request));
  if (!stream.ok()) throw std::runtime_error(stream.error().message);
  return std::move(*stream);
}

Error refusal(StandInEngine& engine, GenerationRequest request) {
  const auto stream = engine->submit(std::move(request));
  EXPECT_FALSE(stream.ok());
  return stream.ok() ? Error{} : stream.error();
}

// Steps until the request has ended, which must take at most `most` steps.
void step_to_end(StandInEngine& engine, TokenStream& stream, uint32_t most = 1000) {
  for (uint32_t i = 0; i < most && !stream.ended(); ++i) {
    engine->step_once();
    while (stream.next(milliseconds(1))) {
    }
  }
  EXPECT_TRUE(stream.ended());
}

TEST(Engine, ARequestThatCanNeverRunIsRefusedWithTheNumbers) {
  StandInEngine engine({.limits = {.context = 4096, .pool_blocks = 8}});
  EXPECT_EQ(refusal(engine, {}).kind, ErrorKind::kInvalid);
  const Error error = refusal(engine, {.prompt = made_up_prompt(200, 1)});
  EXPECT_EQ(error.kind, ErrorKind::kInvalid);
  EXPECT_THAT(error.message, HasSubstr("201 tokens need 13 blocks"));
  EXPECT_THAT(error.message, HasSubstr("8"));

  GenerationRequest request = small_request(1);
  request.prompt[3] = 5000;
  EXPECT_THAT(refusal(engine, request).message, HasSubstr("token id 5000"));
  // The id would refer to another request's sampled token.
  request.prompt[3] = params::kSampledId | 1;
  EXPECT_EQ(refusal(engine, request).kind, ErrorKind::kInvalid);
  request = small_request(1);
  request.sampling.temperature = -1;
  EXPECT_THAT(refusal(engine, request).message, HasSubstr("temperature"));
  request = small_request(1);
  request.biases.resize(513);
  EXPECT_THAT(refusal(engine, request).message, HasSubstr("513 logit biases"));
  EXPECT_EQ(engine->metrics().requests_refused.value(), 6u);
  EXPECT_EQ(engine->metrics().requests_submitted.value(), 0u);
}

TEST(Engine, ARefusedRequestKeepsNoPlaceInTheQueue) {
  StandInEngine engine({.limits = kLimits}, {}, nullptr, /*start_paused=*/true);
  GenerationRequest request = small_request(1);
  request.prompt[3] = 5000;
  for (int i = 0; i < 6; ++i) EXPECT_EQ(refusal(engine, request).kind, ErrorKind::kInvalid);
  std::vector<TokenStream> streams;
  for (uint32_t i = 0; i < 5; ++i) streams.push_back(submitted(engine, small_request(i)));
  engine->resume();
  for (TokenStream& stream : streams) read_ids(stream);
}

TEST(Engine, SeveralAreAcceptedAllOrNone) {
  StandInEngine engine({.limits = kLimits}, {}, nullptr, /*start_paused=*/true);
  std::vector<GenerationRequest> requests(3, small_request(1));
  requests[2].prompt.clear();
  EXPECT_FALSE(engine->submit(requests).ok());
  requests.pop_back();
  const auto streams = engine->submit(requests);
  ASSERT_TRUE(streams.ok());
  engine->inspect([](const Scheduler& scheduler) { EXPECT_EQ(scheduler.counts().waiting, 2u); });
  EXPECT_EQ(engine->submit(std::vector<GenerationRequest>{}).value().size(), 0u);
}

TEST(Engine, MoreAtOnceThanTheQueueHoldsIsInvalidNotBusy) {
  StandInEngine engine({.limits = kLimits});
  const auto refused = engine->submit(std::vector<GenerationRequest>(6, small_request(1)));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kInvalid);
  EXPECT_THAT(refused.error().message, HasSubstr("queue of 5"));
}

TEST(Engine, ATokenHasOneLogitBias) {
  StandInEngine engine({.limits = kLimits});
  GenerationRequest request = small_request(1);
  request.biases = {{.token = 5, .bias = 50}, {.token = 6, .bias = 1}, {.token = 5, .bias = -50}};
  const Error error = refusal(engine, request);
  EXPECT_EQ(error.kind, ErrorKind::kInvalid);
  EXPECT_THAT(error.message, HasSubstr("token 5"));
}

TEST(Engine, AllBlocksAreFreeBeforeTheFirstStep) {
  StandInEngine engine({.limits = kLimits});
  EXPECT_EQ(engine->metrics().kv_blocks_free.value(), 64);
}

TEST(Engine, AFullQueueIsBusyAndAcceptsMoreLater) {
  StandInEngine engine({.limits = kLimits}, {}, nullptr, /*start_paused=*/true);
  std::vector<TokenStream> streams;
  for (uint32_t i = 0; i < 5; ++i) streams.push_back(submitted(engine, small_request(i)));
  const Error error = refusal(engine, small_request(9));
  EXPECT_EQ(error.kind, ErrorKind::kBusy);
  EXPECT_THAT(error.message, HasSubstr("5"));
  // Four start running.
  engine->step_once();
  EXPECT_TRUE(comes_true([&] { return engine->metrics().running.value() == 4; }));
  for (uint32_t i = 0; i < 4; ++i) streams.push_back(submitted(engine, small_request(10 + i)));
  EXPECT_EQ(refusal(engine, small_request(9)).kind, ErrorKind::kBusy);
  // A cancelled request also frees its place.
  engine->cancel(streams.back().request());
  read_ids(streams.back());
  streams.push_back(submitted(engine, small_request(20)));
  engine->resume();
  for (TokenStream& stream : streams) read_ids(stream);
}

TEST(Engine, RunsToTheContextWithoutALimitOfItsOwn) {
  StandInEngine engine({.limits = kLimits});
  EXPECT_EQ(read_ids(submitted(engine, small_request(1, 0))).size(), 123u);
  EXPECT_EQ(read_ids(submitted(engine, small_request(2, 10000))).size(), 123u);
  StandInEngine small({.limits = {.context = 128, .pool_blocks = 4}});
  EXPECT_EQ(read_ids(submitted(small, small_request(1, 0))).size(), 59u);
}

TEST(Engine, EndsAndCountsAddUp) {
  StandInEngine engine({.limits = kLimits});
  GenerationRequest request = small_request(1);
  TokenStream stream = submitted(engine, request);
  EXPECT_EQ(read_ids(stream), engine.alone(request));
  const GenerationEnd& end = stream.end();
  EXPECT_EQ(end.reason, FinishReason::kLength);
  EXPECT_EQ(finish_reason_name(end.reason), "length");
  EXPECT_EQ(end.prompt_tokens, 5u);
  EXPECT_EQ(end.generated_tokens, 10u);
  EXPECT_LE(end.times.admitted, end.times.first_token);
  EXPECT_LT(end.times.first_token, end.times.last_token);
  EXPECT_LE(end.times.last_token, end.times.finished);
  EXPECT_FALSE(stream.next().has_value()) << "the stream stays at its end";

  // The last step is published after its tokens were delivered.
  EXPECT_TRUE(comes_true([&] { return engine->records().written() == 10; }));
  const Metrics& metrics = engine->metrics();
  EXPECT_EQ(metrics.generated_tokens.value(), 10u);
  EXPECT_EQ(metrics.prompt_tokens.value(), 5u);
  EXPECT_EQ(metrics.finished_length.value(), 1u);
  EXPECT_EQ(metrics.steps.value(), 10u);
  EXPECT_EQ(metrics.time_to_first_token_seconds.snapshot().count, 1u);
  EXPECT_EQ(metrics.time_between_tokens_seconds.snapshot().count, 9u);
  StepRecord record;
  uint32_t sampled = 0, finished = 0;
  for (uint64_t i = 0; i < 10; ++i) {
    ASSERT_TRUE(engine->records().read(i, record));
    EXPECT_EQ(record.step, i + 1);
    ASSERT_EQ(record.members.size(), 1u);
    EXPECT_EQ(record.members[0].phase, i == 0 ? StepPhase::kPrompt : StepPhase::kDecode);
    EXPECT_EQ(record.members[0].first_position, i == 0 ? 0 : 4 + i);
    EXPECT_EQ(record.tokens, i == 0 ? 5u : 1u);
    EXPECT_EQ(record.counts.blocks_used, i <= 11 ? 1u : 2u);
    EXPECT_GE(record.submit_seconds, record.begin_seconds);
    sampled += record.sampled_tokens;
    finished += static_cast<uint32_t>(record.finished.size());
  }
  EXPECT_EQ(sampled, 10u);
  EXPECT_EQ(finished, 1u);
  EXPECT_FALSE(engine->records().read(10, record));
}

TEST(Engine, ArrivalsAreRecordedNoLaterThanTheFirstStep) {
  StandInEngine engine({.limits = kLimits}, {}, nullptr, /*start_paused=*/true);
  const double before = engine->seconds();
  std::vector<TokenStream> streams;
  for (uint32_t i = 0; i < 3; ++i) {
    auto stream = engine->submit(small_request(i, 4 + i));
    ASSERT_TRUE(stream.ok());
    streams.push_back(std::move(*stream));
  }
  const double after = engine->seconds();
  engine->cancel(streams[1].request());
  engine->resume();
  for (TokenStream& stream : streams) read_ids(stream);
  auto late = engine->submit(small_request(9, 2));
  ASSERT_TRUE(late.ok());
  read_ids(*late);
  EXPECT_FALSE(engine->submit(GenerationRequest{}).ok());
  ASSERT_TRUE(comes_true([&] { return engine->records().written() == 6 + 2; }));

  std::vector<StepRecord::Arrival> arrived;
  std::vector<RequestId> finished, cancelled;
  StepRecord record;
  for (uint64_t i = 0; i < engine->records().written(); ++i) {
    ASSERT_TRUE(engine->records().read(i, record));
    arrived.insert(arrived.end(), record.arrived.begin(), record.arrived.end());
    finished.insert(finished.end(), record.finished.begin(), record.finished.end());
    cancelled.insert(cancelled.end(), record.cancelled.begin(), record.cancelled.end());
    for (const StepMember& member : record.members)
      EXPECT_TRUE(std::any_of(arrived.begin(), arrived.end(),
                              [&](const auto& one) { return one.request == member.request; }));
  }
  ASSERT_EQ(arrived.size(), 4u) << "each once; cancelled ones too, but not refused ones";
  EXPECT_EQ(finished.size(), 4u);
  EXPECT_EQ(cancelled, std::vector<RequestId>{streams[1].request()});
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(arrived[i].request, streams[i].request());
    EXPECT_GE(arrived[i].seconds, before);
    EXPECT_LE(arrived[i].seconds, after);
    EXPECT_EQ(arrived[i].prompt_tokens, 5u);
    EXPECT_EQ(arrived[i].max_tokens, 9u + i);
  }
  EXPECT_GT(arrived[3].seconds, after);
}

TEST(Engine, APriorityCanBeChangedWhileWaiting) {
  SchedulerLimits limits = kLimits;
  limits.max_sequences = 1;
  StandInEngine engine({.limits = limits}, {.order = Order::kPriority}, nullptr, true);
  auto first = engine->submit(small_request(1, 3));
  auto second = engine->submit(small_request(2, 3));
  auto third = engine->submit(small_request(3, 3));
  ASSERT_TRUE(first.ok() && second.ok() && third.ok());
  engine->set_priority(third->request(), 5);
  engine->set_priority(12345, 5);
  engine->resume();
  read_ids(*second);
  std::vector<RequestId> order;
  StepRecord record;
  for (uint64_t i = 0; i < engine->records().written(); ++i)
    if (engine->records().read(i, record))
      order.insert(order.end(), record.admitted.begin(), record.admitted.end());
  EXPECT_EQ(order, (std::vector<RequestId>{third->request(), first->request(), second->request()}));
}

TEST(Engine, ThePoolCanBeMadeSmallerAndLargerAgain) {
  StandInEngine engine({.limits = kLimits}, {}, nullptr, true);
  EXPECT_EQ(engine->initial_limits().pool_blocks, 64u);
  const auto settle = [&] { engine->inspect([](const Scheduler&) {}); };
  engine->set_limits(4, 32, 2);
  EXPECT_EQ(engine->limits().pool_blocks, 2u);
  const auto refused = engine->submit({.prompt = made_up_prompt(40, 1), .max_tokens = 10});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("the KV cache has 2"), std::string::npos)
      << refused.error().message;
  engine->set_limits(4, 32, 1000);
  settle();
  EXPECT_EQ(engine->limits().pool_blocks, 64u);
  const GenerationRequest request{.prompt = made_up_prompt(40, 1), .max_tokens = 20};
  auto stream = engine->submit(request);
  ASSERT_TRUE(stream.ok());
  engine->set_limits(4, 32, 1);
  settle();
  EXPECT_EQ(engine->limits().pool_blocks, 4u) << "the request needs room for 59 tokens";
  engine->resume();
  EXPECT_EQ(read_ids(*stream), engine.alone(request));
}

TEST(Engine, CancelAtEveryStepOfARequest) {
  for (const bool by_letting_go : {false, true})
    for (uint32_t steps = 0; steps <= 14; ++steps) {
      SCOPED_TRACE(steps);
      // Chunks of 2: three prompt steps, then decodes, while another request runs.
      StandInEngine engine({.limits = kLimits}, {.max_chunk_tokens = 2}, nullptr, true);
      const GenerationRequest other = small_request(7, 30);
      TokenStream companion = submitted(engine, other);
      TokenStream stream = submitted(engine, small_request(1));
      const uint64_t before = engine->metrics().steps.value();
      for (uint32_t i = 0; i < steps; ++i) engine->step_once();
      ASSERT_TRUE(comes_true([&] { return engine->metrics().steps.value() == before + steps; }));
      if (by_letting_go) {
        drop(std::move(stream));
      } else {
        engine->cancel(stream.request());
        const std::vector<TokenId> ids = read_ids(stream);
        std::vector<TokenId> right = engine.alone(small_request(1));
        right.resize(ids.size());
        EXPECT_EQ(ids, right);
        EXPECT_EQ(ids.size(), steps < 3 ? 0u : std::min(steps - 2, 10u));
        EXPECT_EQ(stream.end().reason,
                  steps < 12 ? FinishReason::kCancelled : FinishReason::kLength);
        EXPECT_EQ(stream.end().generated_tokens, ids.size());
      }
      // Its blocks are freed without another step.
      EXPECT_TRUE(comes_true([&] {
        uint32_t left = 0;
        engine->inspect([&](const Scheduler& scheduler) {
          const SchedulerCounts counts = scheduler.counts();
          left = counts.running + counts.waiting + counts.ending;
        });
        return left == 1;
      }));
      EXPECT_EQ(engine->metrics().finished_cancelled.value(), steps < 12 ? 1u : 0u);
      engine->resume();
      EXPECT_EQ(read_ids(companion), engine.alone(other));
    }
}

TEST(Engine, CancellingAnUnknownRequestIsIgnored) {
  StandInEngine engine({.limits = kLimits});
  engine->cancel(0);
  engine->cancel(99);
  TokenStream stream = submitted(engine, small_request(1));
  EXPECT_EQ(read_ids(stream).size(), 10u);
  engine->cancel(stream.request());
  EXPECT_EQ(read_ids(submitted(engine, small_request(2))).size(), 10u);
  EXPECT_EQ(engine->metrics().finished_cancelled.value(), 0u);
}

TEST(Engine, ATimeLimitEndsARequestWhereverItIs) {
  StandInEngine engine({.limits = kLimits}, {}, nullptr, /*start_paused=*/true);
  // While waiting, with nothing else going on.
  GenerationRequest request = small_request(1, 100);
  request.time_limit_seconds = 0.02;
  TokenStream waiting = submitted(engine, request);
  EXPECT_EQ(read_ids(waiting).size(), 0u);
  EXPECT_EQ(waiting.end().reason, FinishReason::kTimeLimit);
  EXPECT_THAT(waiting.end().message, HasSubstr("time limit"));
  EXPECT_GE(waiting.end().times.finished, 0.02);
  // In slow motion, between two steps.
  engine->set_pace(0.2);
  engine->resume();
  EXPECT_TRUE(submitted(engine, small_request(3, 1)).next().has_value());
  TokenStream slow = submitted(engine, request);
  EXPECT_EQ(read_ids(slow).size(), 0u);
  EXPECT_LT(slow.end().times.finished, 2.0);
  // While running; the others continue.
  engine->set_pace(0);
  engine.executor().delay = std::chrono::microseconds(2000);
  TokenStream other = submitted(engine, small_request(2, 100));
  TokenStream running = submitted(engine, request);
  EXPECT_LT(read_ids(running).size(), 100u);
  EXPECT_EQ(running.end().reason, FinishReason::kTimeLimit);
  EXPECT_EQ(read_ids(other), engine.alone(small_request(2, 100)));
  EXPECT_EQ(engine->metrics().finished_time_limit.value(), 3u);
}

TEST(Engine, ASlowReaderDelaysNoOther) {
  StandInEngine engine({.limits = kLimits});
  TokenStream slow = submitted(engine, small_request(1, 100));
  EXPECT_EQ(read_ids(submitted(engine, small_request(2, 100))).size(), 100u);
  EXPECT_TRUE(comes_true([&] { return engine->metrics().finished_length.value() == 2; }));
  EXPECT_EQ(read_ids(slow), engine.alone(small_request(1, 100))) << "nothing is lost";
}

TEST(Engine, NotifyIsCalledForEveryTokenAndTheEnd) {
  StandInEngine engine({.limits = kLimits}, {}, nullptr, /*start_paused=*/true);
  std::atomic<int> told = 0;
  TokenStream stream = submitted(engine, small_request(1));
  stream.set_notify([&] { ++told; });
  EXPECT_EQ(told, 0);
  engine->resume();
  EXPECT_TRUE(comes_true([&] { return told == 11; }));
  // The callback is called immediately for what is already there.
  told = 0;
  stream.set_notify([&] { ++told; });
  EXPECT_EQ(told, 1);
  read_ids(stream);
}

TEST(Engine, ASlowCallbackOnlyCostsTime) {
  StandInEngine engine({.limits = kLimits}, {}, nullptr, /*start_paused=*/true);
  TokenStream slow = submitted(engine, small_request(1)),
              other = submitted(engine, small_request(2));
  slow.set_notify([] { std::this_thread::sleep_for(milliseconds(5)); });
  engine->resume();
  EXPECT_EQ(read_ids(other), engine.alone(small_request(2)));
  EXPECT_EQ(read_ids(slow), engine.alone(small_request(1)));
  EXPECT_GE(slow.end().times.finished, 0.045);
}

TEST(Engine, APausedEngineStepsOneByOne) {
  StandInEngine engine({.limits = kLimits}, {}, nullptr, /*start_paused=*/true);
  EXPECT_EQ(engine->state(), EngineState::kPaused);
  engine->step_once();  // without work it does nothing, and is not kept for later
  engine->inspect([](const Scheduler&) {});
  TokenStream stream = submitted(engine, small_request(1));
  EXPECT_FALSE(stream.next(milliseconds(30)).has_value());
  EXPECT_EQ(engine.executor().steps, 0u);
  for (uint64_t i = 1; i <= 4; ++i) {
    engine->step_once();
    EXPECT_TRUE(stream.next().has_value());
    EXPECT_FALSE(stream.next(milliseconds(10)).has_value());
    EXPECT_EQ(engine.executor().steps, i);
  }
  step_to_end(engine, stream);
  EXPECT_EQ(stream.end().reason, FinishReason::kLength);
  EXPECT_EQ(engine.executor().steps, 10u);
  engine->resume();
  EXPECT_EQ(engine->state(), EngineState::kRunning);
}

// Gauges are current even if no step runs, for observers of a paused engine.
TEST(Engine, GaugesFollowWhatHappensBetweenSteps) {
  StandInEngine engine({.limits = kLimits}, {}, nullptr, /*start_paused=*/true);
  const Metrics& metrics = engine->metrics();
  // After two tasks the engine has gone to sleep at least once in between.
  const auto settle = [&] {
    for (int i = 0; i < 2; ++i) engine->inspect([](const Scheduler&) {});
  };
  std::vector<TokenStream> streams;
  for (uint32_t i = 0; i < 3; ++i) {
    auto stream = engine->submit({.prompt = made_up_prompt(40, i), .max_tokens = 4});
    ASSERT_TRUE(stream.ok());
    streams.push_back(std::move(*stream));
    EXPECT_EQ(metrics.waiting.value(), i + 1);
  }
  settle();
  EXPECT_EQ(metrics.waiting.value(), 3);
  engine->cancel(streams[0].request());
  settle();
  EXPECT_EQ(metrics.waiting.value(), 2);
  engine->resume();
  for (TokenStream& stream : streams) read_ids(stream);
  settle();
  EXPECT_GT(metrics.kv_blocks_cached.value(), 0);
  Policy policy = engine->policy();
  policy.prefix_cache = false;
  engine->set_policy(policy);
  settle();
  EXPECT_EQ(metrics.kv_blocks_cached.value(), 0);
}

// Checked while the first step is in flight, which may take a second on a slow device.
TEST(Engine, GaugesShowARunningRequestBeforeItsFirstStepIsDone) {
  StandInEngine engine({.limits = kLimits});
  engine.executor().delay = milliseconds(500);
  TokenStream stream = submitted(engine, small_request(1, 2));
  const Metrics& metrics = engine->metrics();
  EXPECT_TRUE(comes_true([&] { return metrics.running.value() == 1; }));
  EXPECT_EQ(metrics.steps.value(), 0u);
  EXPECT_EQ(metrics.waiting.value(), 0);
  engine.executor().delay = milliseconds(0);
  read_ids(stream);
}

TEST(Engine, SlowMotionKeepsItsPaceAndStaysResponsive) {
  StandInEngine engine({.limits = kLimits});
  engine->set_pace(50);
  const double begin = engine->seconds();
  EXPECT_EQ(read_ids(submitted(engine, small_request(1))).size(), 10u);
  EXPECT_GE(engine->seconds() - begin, 9 * 0.02);
  // At one step every five seconds, calls do not have to wait for the next step.
  engine->set_pace(0.2);
  const double before = engine->seconds();
  TokenStream stream = submitted(engine, small_request(2));
  engine->inspect([](const Scheduler&) {});
  engine->cancel(stream.request());
  EXPECT_LE(read_ids(stream).size(), 1u);
  EXPECT_EQ(stream.end().reason, FinishReason::kCancelled);
  TokenStream next = submitted(engine, small_request(3));
  engine->set_pace(0);
  EXPECT_EQ(read_ids(next).size(), 10u);
  EXPECT_LT(engine->seconds() - before, 3.0);
  engine->set_pace(-1);
  EXPECT_EQ(read_ids(submitted(engine, small_request(4))).size(), 10u);
}

TEST(Engine, DrainsAndAcceptsRequestsAgain) {
  StandInEngine engine({.limits = kLimits}, {}, nullptr, /*start_paused=*/true);
  std::vector<TokenStream> streams;
  for (uint32_t i = 0; i < 5; ++i) streams.push_back(submitted(engine, small_request(i, 50)));
  engine->drain();
  EXPECT_EQ(engine->state(), EngineState::kDraining);
  for (TokenStream& stream : streams) {
    EXPECT_EQ(read_ids(stream).size(), 50u);
    EXPECT_EQ(stream.end().reason, FinishReason::kLength);
  }
  EXPECT_THAT(refusal(engine, small_request(1)).message, HasSubstr("shutting down"));
  engine->undrain();
  EXPECT_EQ(read_ids(submitted(engine, small_request(1))).size(), 10u);
}

TEST(Engine, ShuttingDownEndsRequestsInFlight) {
  for (const bool paused : {false, true}) {
    StandInEngine engine({.limits = kLimits}, {}, nullptr, paused);
    engine.executor().delay = std::chrono::microseconds(300);
    std::vector<TokenStream> streams;
    for (uint32_t i = 0; i < 5; ++i) streams.push_back(submitted(engine, small_request(i, 100)));
    EXPECT_TRUE(paused || streams[0].next().has_value());
    engine.close();
    for (TokenStream& stream : streams) {
      read_ids(stream);
      EXPECT_EQ(stream.end().reason, FinishReason::kCancelled);
      EXPECT_EQ(stream.end().message, "the engine was shut down");
    }
  }
}

TEST(Engine, AStreamMayOutliveTheEngine) {
  StandInEngine engine({.limits = kLimits}, {}, nullptr, /*start_paused=*/true);
  TokenStream read = submitted(engine, small_request(1)),
              dropped = submitted(engine, small_request(2));
  engine.close();
  drop(std::move(dropped));
  EXPECT_TRUE(read_ids(read).empty());
  EXPECT_EQ(read.end().reason, FinishReason::kCancelled);
}

// A paused engine without time limits sleeps until it is called.
TEST(Engine, ADroppedStreamWakesAPausedEngine) {
  StandInEngine engine({.limits = kLimits}, {}, nullptr, /*start_paused=*/true);
  TokenStream stream = submitted(engine, small_request(1));
  engine->inspect([](const Scheduler& scheduler) { EXPECT_FALSE(scheduler.idle()); });
  drop(std::move(stream));
  engine->inspect([](const Scheduler& scheduler) { EXPECT_TRUE(scheduler.idle()); });
}

TEST(Engine, AStepRingOverwritesTheOldest) {
  StepRing ring(4, 2);
  for (uint64_t i = 0; i < 6; ++i)
    ring.publish([&](StepRecord& record) {
      EXPECT_TRUE(record.members.empty());
      record.step = i + 100;
      record.members.push_back({.request = i});
    });
  EXPECT_EQ(ring.written(), 6u);
  StepRecord record;
  EXPECT_FALSE(ring.read(1, record));
  ASSERT_TRUE(ring.read(2, record));
  EXPECT_EQ(record.step, 102u);
  EXPECT_EQ(record.members.size(), 1u);
  EXPECT_FALSE(ring.read(6, record));
}

}  // namespace
}  // namespace hearth::testing
