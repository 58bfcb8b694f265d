// The engine over ranks that divide every layer: the ids that every request gets alone, under
// preemption, swaps, prefix hits, forks and speculation; and a failure of a rank ends everything.
#include "engine/ranks/shard_loop.h"

#include <gtest/gtest.h>

#include "engine/engine.h"
#include "tests/support/stand_in_engine.h"
#include "tests/support/stand_in_shards.h"

namespace hearth::testing {
namespace {

constexpr SchedulerLimits kShardRoom{
    .max_sequences = 8, .max_step_tokens = 64, .context = 128, .pool_blocks = 512};
// The longest request needs 7 blocks.
constexpr SchedulerLimits kTightShardRoom{
    .max_sequences = 8, .max_step_tokens = 64, .context = 128, .pool_blocks = 8, .swap_blocks = 12};

EngineOptions shard_engine_options(const StandInOptions& options, const Policy& policy = {}) {
  return {.limits = options.limits,
          .policy = policy,
          .vocabulary = options.vocabulary,
          .speculation = options.speculation,
          .check_integrity = true};
}

void expect_shard_ids(Engine& engine, const StandInOptions& options, uint32_t count) {
  engine.pause();  // all of them compete for blocks
  std::vector<std::pair<GenerationRequest, TokenStream>> asked;
  for (uint32_t number = 0; number < count; ++number) {
    const GenerationRequest request = mixed_request(number);
    const uint32_t completions = number % 6 == 5 ? 3 : 1;
    auto streams = engine.submit_n(request, completions);
    ASSERT_TRUE(streams.ok()) << streams.error().message;
    for (uint32_t i = 0; i < completions; ++i) {
      asked.emplace_back(request, std::move((*streams)[i]));
      asked.back().first.sampling.seed += i;
    }
  }
  engine.resume();
  for (auto& [request, stream] : asked) {
    EXPECT_EQ(read_ids(stream), generate_alone(options, request));
    EXPECT_EQ(stream.end().reason, FinishReason::kLength) << stream.end().message;
  }
}

TEST(ShardLoop, SameIdsWithTwoAndThreeRanks) {
  for (const uint32_t ranks : {2u, 3u})
    for (const SchedulerLimits& limits : {kShardRoom, kTightShardRoom})
      for (const Preemption preemption : {Preemption::kRecompute, Preemption::kSwap}) {
        SCOPED_TRACE(std::to_string(ranks) + " ranks");
        const StandInOptions options{.limits = limits};
        StandInShards shards(options, ranks);
        {
          Engine engine(shards.executor(), nullptr,
                        shard_engine_options(options, {.preemption = preemption}));
          expect_shard_ids(engine, options, 18);
        }
        if (limits.pool_blocks == kTightShardRoom.pool_blocks && preemption == Preemption::kSwap) {
          EXPECT_GT(shards.last().swaps, 0u);
        }
      }
}

TEST(ShardLoop, SameIdsWithSpeculation) {
  StandInOptions options{.limits = kShardRoom};
  options.limits.max_proposed = 32;
  options.speculation = {.method = SpeculationMethod::kNgram};
  StandInShards shards(options, 3);
  Engine engine(shards.executor(), nullptr, shard_engine_options(options));
  expect_shard_ids(engine, options, 18);
}

void expect_all_fail(StandInShards& shards, const StandInOptions& options, const Policy& policy,
                     const std::string& reason) {
  Engine engine(shards.executor(), nullptr, shard_engine_options(options, policy));
  engine.pause();  // the first must not be done before the last is there
  std::vector<TokenStream> streams;
  for (uint32_t i = 0; i < 6; ++i) {
    GenerationRequest request;
    request.prompt = made_up_prompt(40, i);
    request.max_tokens = 60;
    auto stream = engine.submit(request);
    ASSERT_TRUE(stream.ok()) << stream.error().message;
    streams.push_back(std::move(*stream));
  }
  engine.resume();
  for (TokenStream& stream : streams) {
    static_cast<void>(read_ids(stream));
    EXPECT_EQ(stream.end().reason, FinishReason::kError);
    EXPECT_EQ(stream.end().message, reason);
  }
  EXPECT_FALSE(engine.submit(mixed_request(1)).ok());
}

// The other ranks wait for the failed one's part of a sum, and must not wait for ever.
TEST(ShardLoop, AFailedStepOfAnyRankEndsEveryRequest) {
  for (const uint32_t failing : {0u, 1u, 2u}) {
    const StandInOptions options{.limits = kShardRoom};
    StandInShards shards(options, 3);
    shards.share(failing).faults.submit.arm(5);
    expect_all_fail(shards, options, {}, "a share has no room");
  }
}

TEST(ShardLoop, AFailedSwapOfAnyRankEndsEveryRequest) {
  for (const uint32_t failing : {0u, 1u}) {
    const StandInOptions options{.limits = kTightShardRoom};
    StandInShards shards(options, 2);
    shards.share(failing).faults.swap.arm(1);
    expect_all_fail(shards, options, {.preemption = Preemption::kSwap}, "a share cannot swap");
  }
}

// No step need follow a failed move. If the rank that waits were not told, this would not end.
TEST(ShardLoop, ARankThatWaitsForABlockHearsThatTheMoveFailed) {
  StandInShards shards({.limits = kTightShardRoom}, 2);
  shards.share(0).faults.swap.arm(1);
  shards.share(1).receives_from = 0;
  const BlockMove move{.from = 0, .to = 1};
  EXPECT_TRUE(shards.executor().swap_out(std::span(&move, 1)).ok());
}

TEST(ShardLoop, ALostRankEndsEveryRequestWithItsReason) {
  const StandInOptions options{.limits = kShardRoom};
  StandInShards shards(options, 3);
  shards.last().delay = std::chrono::milliseconds(2);
  Engine engine(shards.executor(), nullptr, shard_engine_options(options));
  GenerationRequest request;
  request.prompt = made_up_prompt(5, 1);
  request.max_tokens = 100;
  auto stream = engine.submit(request);
  ASSERT_TRUE(stream.ok());
  ASSERT_TRUE(stream->next());
  shards.link(1).fail("rank 1 was lost");
  static_cast<void>(read_ids(*stream));
  EXPECT_EQ(stream->end().reason, FinishReason::kError);
  EXPECT_EQ(stream->end().message, "rank 1 was lost");
}

}  // namespace
}  // namespace hearth::testing
