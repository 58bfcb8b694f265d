// The step loop alone, on the stand-in executor and without a thread: two steps in flight, tokens
// to their requests, and what a failing call ends.
#include "engine/step_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/engine_rooms.h"
#include "tests/support/stand_in_engine.h"

namespace hearth::testing {
namespace {

using ::testing::HasSubstr;

constexpr SchedulerLimits kLoopLimits{
    .max_sequences = 4, .max_step_tokens = 32, .context = 128, .pool_blocks = 64, .max_queue = 5};

// Answers every step with one sampled token and the two most probable ones.
class TopExecutor final : public StepExecutor {
 public:
  Result<StepTicket> submit(const StepBatch& batch) override {
    EXPECT_EQ(batch.logit_rows.size(), 1u);
    return StepTicket{};
  }
  Result<StepOutcome> wait(const StepTicket&) override {
    return StepOutcome{.sampled = sampled_, .top = top_};
  }
  Status fork_blocks(std::span<const BlockMove>) override { return {}; }
  Status swap_out(std::span<const BlockMove>) override { return {}; }
  Status swap_in(std::span<const BlockMove>) override { return {}; }
  Status set_history(uint32_t, std::span<const params::TokenCount>) override { return {}; }
  Status set_biases(uint32_t, std::span<const params::TokenBias> biases) override {
    set_biases_.assign(biases.begin(), biases.end());
    return {};
  }
  const std::vector<params::TokenBias>& set_biases() const { return set_biases_; }

 private:
  const std::vector<params::SamplingResult> sampled_ = {{.id = 7, .logprob = -1}};
  const std::vector<params::TokenLogprob> top_ = [] {
    std::vector<params::TokenLogprob> top(params::kMaxTopLogprobs, {.id = params::kNoToken});
    top[0] = {.id = 7, .logprob = -1};
    top[1] = {.id = 8, .logprob = -2};
    return top;
  }();
  std::vector<params::TokenBias> set_biases_;
};

class StepLoopTest : public ::testing::Test {
 protected:
  static GenerationRequest request(uint32_t seed, uint32_t max_tokens = 5) {
    return {.prompt = made_up_prompt(6, seed), .max_tokens = max_tokens};
  }
  bool begin() {
    const Result<bool> began = steps_.begin();
    EXPECT_TRUE(began.ok());
    return began.ok() && *began;
  }
  void run_to_end() {
    while (true) {
      const bool began = !steps_.full() && begin();
      if (steps_.full() || (!began && !steps_.idle()))
        ASSERT_TRUE(steps_.finish().ok());
      else if (!began)
        return;
    }
  }

  StandInOptions options_{.limits = kLoopLimits};
  StandInExecutor executor_{options_};
  EngineRooms rooms_{kLoopLimits};
  StepLoop steps_{rooms_.links(executor_), /*check_integrity=*/true};
};

TEST_F(StepLoopTest, NothingToDoIsNoStep) {
  EXPECT_FALSE(begin());
  EXPECT_TRUE(steps_.idle());
  EXPECT_EQ(executor_.steps, 0u);
}

TEST_F(StepLoopTest, TheSecondStepBeginsBeforeTheFirstTokenIsKnown) {
  TokenStream stream = rooms_.accepted(request(1));
  EXPECT_TRUE(begin());
  EXPECT_FALSE(steps_.full());
  rooms_.clock.advance(1);
  EXPECT_TRUE(begin());
  EXPECT_TRUE(steps_.full());
  EXPECT_EQ(steps_.last_begin(), rooms_.clock.now());
  EXPECT_FALSE(stream.next(std::chrono::nanoseconds(0)));
  ASSERT_TRUE(steps_.finish().ok());
  EXPECT_TRUE(stream.next(std::chrono::nanoseconds(0)));
  ASSERT_TRUE(steps_.finish().ok());
  EXPECT_TRUE(stream.next(std::chrono::nanoseconds(0)));
  EXPECT_TRUE(steps_.idle());
  EXPECT_EQ(rooms_.publisher.records().written(), 2u);
}

TEST_F(StepLoopTest, EveryRequestGetsItsOwnTokens) {
  std::vector<TokenStream> streams;
  for (uint32_t i = 0; i < 5; ++i) streams.push_back(rooms_.accepted(request(i, 3 + i)));
  run_to_end();
  for (uint32_t i = 0; i < 5; ++i) {
    EXPECT_EQ(read_ids(streams[i]), generate_alone(options_, request(i, 3 + i)));
    EXPECT_EQ(streams[i].end().reason, FinishReason::kLength);
  }
  EXPECT_TRUE(rooms_.scheduler.idle());
}

TEST_F(StepLoopTest, ARequestThatEndsInFlightGetsNoMoreTokens) {
  TokenStream stream = rooms_.accepted(request(1)), other = rooms_.accepted(request(2));
  begin();
  begin();
  rooms_.requests.end(stream.request(), FinishReason::kCancelled);
  run_to_end();
  EXPECT_TRUE(read_ids(stream).empty());
  EXPECT_EQ(read_ids(other), generate_alone(options_, request(2)));
}

TEST_F(StepLoopTest, AStepThatCannotBeSubmittedEndsItsMembersOnly) {
  std::vector<TokenStream> streams;
  for (uint32_t i = 0; i < 5; ++i) streams.push_back(rooms_.accepted(request(i)));
  executor_.faults.kind = ErrorKind::kOutOfMemory;
  executor_.faults.submit.arm(1);
  EXPECT_TRUE(begin()) << "there may be more to do";
  EXPECT_TRUE(steps_.idle());
  for (uint32_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(streams[i].ended());
    EXPECT_THAT(streams[i].end().message, HasSubstr("could not submit"));
  }
  run_to_end();
  EXPECT_EQ(read_ids(streams[4]), generate_alone(options_, request(4)));
}

TEST_F(StepLoopTest, ALostDeviceIsAnErrorAndEndsNothingByItself) {
  for (const bool at_submission : {true, false}) {
    TokenStream stream = rooms_.accepted(request(1));
    (at_submission ? executor_.faults.submit : executor_.faults.wait).arm(1);
    Status status;
    if (const Result<bool> began = steps_.begin(); !began.ok())
      status = began.error();
    else
      status = steps_.finish();
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().kind, ErrorKind::kDeviceLost);
    EXPECT_FALSE(stream.ended());
    steps_.abandon();
    EXPECT_TRUE(steps_.idle());
    rooms_.requests.end_all(FinishReason::kError, status.error().message);
  }
}

TEST_F(StepLoopTest, RecordsSayWhenAStepBeganAndHowLongItRan) {
  TokenStream stream = rooms_.accepted(request(1));
  rooms_.clock.advance(1);
  begin();
  rooms_.clock.advance(2);
  begin();
  ASSERT_TRUE(steps_.finish().ok());
  rooms_.clock.advance(4);
  ASSERT_TRUE(steps_.finish().ok());
  StepRecord record;
  ASSERT_TRUE(rooms_.publisher.records().read(0, record));
  EXPECT_DOUBLE_EQ(record.begin_seconds, 1);
  EXPECT_DOUBLE_EQ(record.run_seconds, 2);
  EXPECT_EQ(record.arrived.size(), 1u);
  ASSERT_TRUE(rooms_.publisher.records().read(1, record));
  EXPECT_DOUBLE_EQ(record.begin_seconds, 3);
  EXPECT_DOUBLE_EQ(record.run_seconds, 4);
  EXPECT_TRUE(record.arrived.empty());
}

// The device has unused entries where fewer tokens than requested have a probability.
TEST_F(StepLoopTest, PublicTypesAreConvertedAndUnusedTopEntriesLeftOut) {
  TopExecutor executor;
  StepLoop steps(rooms_.links(executor), true);
  GenerationRequest asked = request(1, 1);
  asked.biases = {{.token = 5, .bias = 2}, {.token = 3, .bias = -1}};
  for (const uint32_t top_logprobs : {0u, 1u, 4u}) {
    asked.sampling.top_logprobs = top_logprobs;
    TokenStream stream = rooms_.accepted(asked);
    ASSERT_TRUE(steps.begin().ok());
    ASSERT_TRUE(steps.finish().ok());
    const auto token = stream.next();
    ASSERT_TRUE(token);
    EXPECT_EQ(token->id, 7u);
    ASSERT_EQ(token->top.size(), std::min(top_logprobs, 2u));
    if (top_logprobs == 4) {
      EXPECT_EQ(token->top[1].id, 8u);
      EXPECT_EQ(token->top[1].logprob, -2);
    }
  }
  ASSERT_EQ(executor.set_biases().size(), 2u);
  EXPECT_EQ(executor.set_biases()[0].token, 3u);
  EXPECT_EQ(executor.set_biases()[1].bias, 2);
}

// While the host judges the only other request, one swaps itself out: the plan has moves and no
// members. They used to be left out, and the request came back with blocks that were never written.
TEST(StepLoop, BlocksMoveAlsoWhenNothingIsComputed) {
  const SchedulerLimits limits{
      .max_sequences = 2, .max_step_tokens = 64, .context = 64, .pool_blocks = 3, .swap_blocks = 8};
  const StandInOptions options{.limits = limits};
  StandInExecutor executor(options);
  EngineRooms rooms(limits, {.preemption = Preemption::kSwap, .prefix_cache = false});
  StepLoop steps(rooms.links(executor), true);
  const GenerationRequest judged{.prompt = made_up_prompt(17, 1), .max_tokens = 8};
  const GenerationRequest swapped{.prompt = made_up_prompt(14, 2), .max_tokens = 20};
  TokenStream first = rooms.accepted(judged);
  TokenStream second = rooms.accepted(swapped);
  rooms.scheduler.set_with_host(first.request(), true);
  bool moved_without_a_step = false;
  while (true) {
    const uint64_t steps_before = executor.steps, swaps_before = executor.swaps;
    bool began = false;
    if (!steps.full()) {
      const Result<bool> result = steps.begin();
      ASSERT_TRUE(result.ok());
      began = *result;
      moved_without_a_step |= executor.swaps > swaps_before && executor.steps == steps_before;
    }
    if (steps.full() || (!began && !steps.idle()))
      ASSERT_TRUE(steps.finish().ok());
    else if (!began)
      break;
  }
  EXPECT_TRUE(moved_without_a_step) << "the case did not occur";
  EXPECT_EQ(read_ids(first), generate_alone(options, judged));
  EXPECT_EQ(read_ids(second), generate_alone(options, swapped));
}

TEST(StepLoop, CopiesOfOneCallAreIndependent) {
  EXPECT_EQ(independent_moves({}), 0u);
  using Moves = std::vector<BlockMove>;
  EXPECT_EQ(independent_moves(Moves{{1, 2}, {1, 3}, {4, 5}}), 3u);
  EXPECT_EQ(independent_moves(Moves{{1, 2}, {4, 5}, {2, 3}}), 2u) << "reads what one wrote";
  EXPECT_EQ(independent_moves(Moves{{1, 2}, {3, 1}}), 1u) << "writes what one reads";
  EXPECT_EQ(independent_moves(Moves{{1, 2}, {3, 2}}), 1u) << "writes what one wrote";
}

// Forks that are admitted when the time of a step is used up share a block with their parent until
// it copies the block in the next step. A fork that is admitted then copies the copy.
TEST(StepLoop, ACopyOfACopyIsMadeAfterIt) {
  const SchedulerLimits limits{.max_sequences = 64,
                               .max_step_tokens = 256,
                               .context = 128,
                               .pool_blocks = 512,
                               .max_queue = 64};
  const StandInOptions options{.limits = limits};
  StandInExecutor executor(options);
  EngineRooms rooms(limits, {.tbt_target_ms = 1, .prefix_cache = false});
  StepLoop steps(rooms.links(executor), true);
  bool several_calls = false;
  const auto step = [&] {
    const uint64_t calls_before = executor.fork_calls;
    ASSERT_TRUE(steps.begin().ok());
    several_calls |= executor.fork_calls > calls_before + 1;
    rooms.clock.advance(0.01);
    ASSERT_TRUE(steps.finish().ok());
  };
  const GenerationRequest parent{.prompt = made_up_prompt(20, 1), .max_tokens = 60};
  TokenStream first = rooms.accepted(parent);
  for (int i = 0; i < 3; ++i) step();
  std::vector<TokenStream> forks;
  GenerationRequest fork{.prompt = parent.prompt, .max_tokens = 20};
  fork.fork = GenerationRequest::Fork{.parent = first.request(), .tokens = 20};
  for (int i = 0; i < 50; ++i) forks.push_back(rooms.accepted(fork));
  while (!rooms.scheduler.idle() && !HasFatalFailure()) step();
  EXPECT_TRUE(several_calls) << "the case did not occur";
  EXPECT_EQ(read_ids(first), generate_alone(options, parent));
  for (TokenStream& stream : forks) EXPECT_EQ(read_ids(stream), generate_alone(options, fork));
}

}  // namespace
}  // namespace hearth::testing
