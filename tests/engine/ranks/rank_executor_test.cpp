// The engine over several ranks gives every request the ids that it gets alone: under preemption,
// swaps, prefix hits, forks, speculation and divided steps; and a failure of a rank ends
// everything.
#include "engine/ranks/rank_executor.h"

#include <gtest/gtest.h>

#include "engine/engine.h"
#include "tests/support/stand_in_engine.h"
#include "tests/support/stand_in_ranks.h"

namespace hearth::testing {
namespace {

constexpr SchedulerLimits kRankRoom{
    .max_sequences = 8, .max_step_tokens = 64, .context = 128, .pool_blocks = 512};
// The longest request needs 7 blocks.
constexpr SchedulerLimits kTightRankRoom{
    .max_sequences = 8, .max_step_tokens = 64, .context = 128, .pool_blocks = 8, .swap_blocks = 12};

EngineOptions rank_engine_options(const StandInOptions& options, const Policy& policy) {
  return {.limits = options.limits,
          .policy = policy,
          .vocabulary = options.vocabulary,
          .speculation = options.speculation,
          .check_integrity = true};
}

void expect_same_ids(Engine& engine, const StandInOptions& options, uint32_t count) {
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

TEST(RankExecutor, SameIdsWithTwoAndThreeRanksWholeAndDivided) {
  for (const uint32_t ranks : {2u, 3u})
    for (const uint32_t least_rows : {1u, 4u, 1000u})
      for (const SchedulerLimits& limits : {kRankRoom, kTightRankRoom})
        for (const Preemption preemption : {Preemption::kRecompute, Preemption::kSwap}) {
          SCOPED_TRACE(std::to_string(ranks) + " ranks, parts of " + std::to_string(least_rows));
          const StandInOptions options{.limits = limits};
          StandInRanks pipeline(options, ranks, least_rows);
          {
            Engine engine(pipeline.executor(), nullptr,
                          rank_engine_options(options, {.preemption = preemption}));
            expect_same_ids(engine, options, 24);
          }
          if (limits.pool_blocks == kTightRankRoom.pool_blocks && preemption == Preemption::kSwap) {
            EXPECT_GT(pipeline.last().swaps, 0u);
          }
        }
}

// Prompts without a token yet to sample let the first rank run ahead as far as it may.
TEST(RankExecutor, SharedRowsStayUntilTheNextRankHasReadThem) {
  for (const uint32_t ranks : {2u, 3u})
    for (const uint32_t least_rows : {1u, 1000u}) {
      SCOPED_TRACE(std::to_string(ranks) + " ranks, parts of " + std::to_string(least_rows));
      StandInOptions options{.limits = kRankRoom};
      options.limits.max_step_tokens = 8;
      StandInRanks pipeline(options, ranks, least_rows, RowsTravel::kInSharedMemory);
      pipeline.last().delay = std::chrono::microseconds(200);
      {
        Engine engine(pipeline.executor(), nullptr, rank_engine_options(options, {}));
        expect_same_ids(engine, options, 16);
      }
      const auto times = pipeline.executor().times();
      ASSERT_TRUE(times.ok());
      EXPECT_GT(times->back().steps, 0u);
      EXPECT_EQ(times->back().shared_steps, times->back().steps);
    }
}

TEST(RankExecutor, SameIdsWhileBothWaysOfDecodingAreTried) {
  const StandInOptions options{.limits = kRankRoom};
  StandInRanks pipeline(options, 2, 1000, RowsTravel::kInSharedMemory, true);
  uint64_t steps = 0;
  {
    Engine engine(pipeline.executor(), nullptr, rank_engine_options(options, {}));
    expect_same_ids(engine, options, 24);
    steps = engine.records().written();
  }
  const auto times = pipeline.executor().times();
  ASSERT_TRUE(times.ok());
  EXPECT_GT((*times)[1].steps, steps + 5) << "a divided step is two for a rank";
}

TEST(RankExecutor, TellsWhereTheTimeOfEachRankWent) {
  const StandInOptions options{.limits = kRankRoom};
  StandInRanks pipeline(options, 2, 1000);
  pipeline.last().delay = std::chrono::milliseconds(2);
  {
    Engine engine(pipeline.executor(), nullptr, rank_engine_options(options, {}));
    auto stream = engine.submit(mixed_request(1));
    ASSERT_TRUE(stream.ok());
    EXPECT_FALSE(read_ids(*stream).empty());
  }
  const auto times = pipeline.executor().times();
  ASSERT_TRUE(times.ok()) << times.error().message;
  ASSERT_EQ(times->size(), 2u);
  EXPECT_GT((*times)[0].steps, 0u);
  EXPECT_EQ((*times)[0].steps, (*times)[1].steps);
  EXPECT_GE((*times)[1].device_seconds, 2e-3 * static_cast<double>((*times)[1].steps));
  EXPECT_GT((*times)[1].arrival_seconds, 0);
  const auto again = pipeline.executor().times();
  ASSERT_TRUE(again.ok());
  EXPECT_EQ((*again)[1].steps, 0u) << "a report begins anew";
}

TEST(RankExecutor, SameIdsUnderEveryNamedPolicy) {
  for (const std::string_view name : policy_names()) {
    SCOPED_TRACE(name);
    const StandInOptions options{.limits = kTightRankRoom};
    StandInRanks pipeline(options, 2, 2);
    Engine engine(pipeline.executor(), nullptr, rank_engine_options(options, *named_policy(name)));
    expect_same_ids(engine, options, 18);
  }
}

TEST(RankExecutor, SameIdsWithSpeculation) {
  StandInOptions options{.limits = kRankRoom};
  options.limits.max_proposed = 32;
  options.speculation = {.method = SpeculationMethod::kNgram};
  StandInRanks pipeline(options, 3, 2);
  Engine engine(pipeline.executor(), nullptr, rank_engine_options(options, {}));
  expect_same_ids(engine, options, 18);
}

TEST(RankExecutor, ReportsTheMostProbableTokens) {
  const StandInOptions options{.limits = kRankRoom};
  std::vector<std::vector<std::pair<TokenId, float>>> answers;
  for (const uint32_t ranks : {0u, 2u}) {
    StandInExecutor alone(options);
    StandInRanks pipeline(options, 2, 1);
    StepExecutor& executor = ranks == 0 ? static_cast<StepExecutor&>(alone) : pipeline.executor();
    Engine engine(executor, nullptr, rank_engine_options(options, {}));
    std::vector<TokenStream> streams;
    for (uint32_t i = 0; i < 4; ++i) {
      GenerationRequest request = mixed_request(i);
      request.max_tokens = 6;
      if (i % 2 == 1) request.sampling.top_logprobs = 3;
      auto stream = engine.submit(request);
      ASSERT_TRUE(stream.ok());
      streams.push_back(std::move(*stream));
    }
    auto& answer = answers.emplace_back();
    for (TokenStream& stream : streams)
      while (const auto token = stream.next())
        for (const auto& top : token->top) answer.emplace_back(top.id, top.logprob);
  }
  EXPECT_EQ(answers[0].size(), 2u * 6 * 3);
  EXPECT_EQ(answers[0], answers[1]);
}

TEST(RankExecutor, AFailedStepOfAnyRankEndsEveryRequest) {
  for (const bool first : {true, false}) {
    const StandInOptions options{.limits = kRankRoom};
    StandInRanks pipeline(options, 2, 1000);
    if (first)
      pipeline.stage(0).faults.wait.arm(5);
    else
      pipeline.last().faults.wait.arm(5);
    Engine engine(pipeline.executor(), nullptr, rank_engine_options(options, {}));
    engine.pause();  // until all are there
    std::vector<TokenStream> streams;
    for (uint32_t i = 0; i < 4; ++i) {
      GenerationRequest request;
      request.prompt = made_up_prompt(5, i);
      request.max_tokens = 50;
      auto stream = engine.submit(request);
      ASSERT_TRUE(stream.ok()) << stream.error().message;
      streams.push_back(std::move(*stream));
    }
    engine.resume();
    for (TokenStream& stream : streams) {
      static_cast<void>(read_ids(stream));
      EXPECT_EQ(stream.end().reason, FinishReason::kError);
      EXPECT_FALSE(stream.end().message.empty());
    }
    EXPECT_FALSE(engine.submit(mixed_request(1)).ok());
  }
}

TEST(RankExecutor, ALostRankEndsEveryRequestWithItsReason) {
  const StandInOptions options{.limits = kRankRoom};
  StandInRanks pipeline(options, 3, 1000);
  pipeline.last().delay = std::chrono::milliseconds(2);
  Engine engine(pipeline.executor(), nullptr, rank_engine_options(options, {}));
  GenerationRequest request;
  request.prompt = made_up_prompt(5, 1);
  request.max_tokens = 100;
  auto stream = engine.submit(request);
  ASSERT_TRUE(stream.ok());
  ASSERT_TRUE(stream->next());
  pipeline.link(1).fail("rank 1 was lost");
  static_cast<void>(read_ids(*stream));
  EXPECT_EQ(stream->end().reason, FinishReason::kError);
  EXPECT_EQ(stream->end().message, "rank 1 was lost");
}

TEST(RankExecutor, RefusesContrastiveSearchByName) {
  const StandInOptions options{.limits = kRankRoom};
  StandInRanks pipeline(options, 2, 1000);
  EXPECT_TRUE(pipeline.executor().reserve_hidden(0, 0).ok());
  const Status status = pipeline.executor().reserve_hidden(0, 8);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, ErrorKind::kUnsupported);
  EXPECT_NE(status.error().message.find("contrastive search"), std::string::npos);
}

}  // namespace
}  // namespace hearth::testing
