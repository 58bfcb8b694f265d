// A request gets the same ids whatever else is in the batch and however it is scheduled: under
// every policy, in chunks, preempted, swapped, forked, with shared prefixes, and while switches
// change. On the stand-in executor, whose answer is wrong if a single block is.
#include <random>

#include <gtest/gtest.h>

#include "tests/support/stand_in_engine.h"

namespace hearth::testing {
namespace {

constexpr SchedulerLimits kRoomy{
    .max_sequences = 8, .max_step_tokens = 64, .context = 128, .pool_blocks = 512};
// The longest request needs 7 blocks.
constexpr SchedulerLimits kTight{
    .max_sequences = 8, .max_step_tokens = 64, .context = 128, .pool_blocks = 8, .swap_blocks = 12};

// Submits `count` requests, every sixth as three completions of one prompt, and checks all
// generated ids. Calls `meanwhile` repeatedly until the last request has ended.
template <class Meanwhile>
void run_mixed(StandInEngine& engine, uint32_t count, Meanwhile meanwhile) {
  std::vector<std::pair<GenerationRequest, TokenStream>> asked;
  for (uint32_t number = 0; number < count; ++number) {
    const GenerationRequest request = mixed_request(number);
    const uint32_t completions = number % 6 == 5 ? 3 : 1;
    auto streams = engine->submit_n(request, completions);
    ASSERT_TRUE(streams.ok()) << streams.error().message;
    for (uint32_t i = 0; i < completions; ++i) {
      asked.emplace_back(request, std::move((*streams)[i]));
      asked.back().first.sampling.seed += i;
    }
  }
  for (size_t i = 0; i < asked.size(); ++i) {
    std::vector<TokenId> ids;
    TokenStream& stream = asked[i].second;
    while (!stream.ended()) {
      if (const auto token = stream.next(std::chrono::microseconds(200))) ids.push_back(token->id);
      meanwhile();
    }
    const GenerationEnd& end = stream.end();
    ASSERT_EQ(ids, engine.alone(asked[i].first)) << "request " << i;
    EXPECT_EQ(end.reason, FinishReason::kLength) << end.message;
    EXPECT_EQ(end.prompt_tokens, asked[i].first.prompt.size());
    EXPECT_EQ(end.generated_tokens, ids.size());
    EXPECT_LT(end.cached_tokens, end.prompt_tokens);
  }
  // Nothing is left over.
  engine->inspect([](const Scheduler& scheduler) {
    EXPECT_TRUE(scheduler.idle());
    EXPECT_EQ(scheduler.counts().blocks_used, 0u);
    EXPECT_EQ(scheduler.counts().swap_used, 0u);
    EXPECT_EQ(scheduler.check_integrity(), std::nullopt);
  });
}

TEST(EngineBatching, SameIdsUnderEveryNamedPolicyAndChunk) {
  for (const std::string_view name : policy_names())
    for (const uint32_t chunk : {0u, 1u, 7u, 16u, 64u})
      for (const SchedulerLimits& limits : {kRoomy, kTight}) {
        SCOPED_TRACE(std::string(name) + ", chunks of " + std::to_string(chunk) + ", " +
                     std::to_string(limits.pool_blocks) + " blocks");
        Policy policy = *named_policy(name);
        policy.max_chunk_tokens = chunk;
        StandInEngine engine({.limits = limits}, policy);
        run_mixed(engine, 24, [] {});
      }
}

TEST(EngineBatching, SameIdsAfterPreemption) {
  for (const Preemption preemption : {Preemption::kRecompute, Preemption::kSwap})
    for (const bool prefix_cache : {true, false}) {
      StandInEngine engine({.limits = kTight},
                           {.preemption = preemption, .prefix_cache = prefix_cache});
      run_mixed(engine, 30, [] {});
      const Metrics& metrics = engine->metrics();
      EXPECT_GT((preemption == Preemption::kSwap ? metrics.preemptions_swap
                                                 : metrics.preemptions_recompute)
                    .value(),
                5u);
      if (preemption == Preemption::kSwap) {
        EXPECT_GT(metrics.blocks_swapped_in.value(), 5u);
        EXPECT_EQ(metrics.blocks_swapped_out.value(), engine.executor().swaps);
      }
    }
}

// Rows of members that have ended also go through attention, in every decode step.
TEST(EngineBatching, PaddingOfADecodeIsReallyComputed) {
  StandInEngine engine({.limits = kRoomy}, *named_policy("static"), nullptr, true);
  std::vector<GenerationRequest> requests;
  for (uint32_t i = 0; i < 4; ++i)
    requests.push_back({.prompt = made_up_prompt(9, i), .max_tokens = 5 * (i + 1)});
  auto streams = engine->submit(requests);
  ASSERT_TRUE(streams.ok());
  engine->resume();
  for (size_t i = 0; i < requests.size(); ++i)
    EXPECT_EQ(read_ids((*streams)[i]), engine.alone(requests[i]));
  // A member that has ended is a padding row until the longest one has ended.
  EXPECT_EQ(engine.executor().padding_rows, 5u + 10 + 15);
  EXPECT_EQ(engine.executor().seeing_padding_rows, engine.executor().padding_rows);
}

TEST(EngineBatching, SharedPrefixesAreFound) {
  StandInEngine engine({.limits = kRoomy});
  GenerationRequest request{.prompt = made_up_prompt(64, 1), .max_tokens = 3};
  for (int round = 0; round < 3; ++round) {
    auto stream = engine->submit(request);
    ASSERT_TRUE(stream.ok());
    EXPECT_EQ(read_ids(*stream), engine.alone(request));
    // All blocks except the one with the newest token.
    EXPECT_EQ(stream->end().cached_tokens, round == 0 ? 0u : 48u);
  }
  // Requests with another salt share nothing.
  request.cache_salt = 5;
  auto stream = engine->submit(request);
  ASSERT_TRUE(stream.ok());
  EXPECT_EQ(read_ids(*stream), engine.alone(request));
  EXPECT_EQ(stream->end().cached_tokens, 0u);
}

TEST(EngineBatching, CompletionsOfOnePromptShareItsBlocks) {
  StandInEngine engine({.limits = kRoomy});
  GenerationRequest request{.prompt = made_up_prompt(60, 1), .max_tokens = 30};
  auto streams = engine->submit_n(request, 6);
  ASSERT_TRUE(streams.ok());
  for (TokenStream& stream : *streams) {
    EXPECT_EQ(read_ids(stream), engine.alone(request));
    ++request.sampling.seed;
  }
  engine->inspect([](const Scheduler& scheduler) {
    EXPECT_EQ(scheduler.totals().forks, 5u);
    // The block in which the prompt ends is copied for every writer but the last.
    EXPECT_EQ(scheduler.totals().copies, 5u);
    EXPECT_LT(scheduler.totals().prompt_tokens, 60u + 5 * 2);
  });
  EXPECT_EQ(engine->metrics().blocks_copied.value(), 5u);
  EXPECT_EQ(engine->metrics().prefix_query_tokens.value(), 60u)
      << "the others did not query the cache";
}

TEST(EngineBatching, CachedTokensAreNotCountedAgainAfterPreemption) {
  // Two requests fill the pool: the younger one is preempted and finds its own blocks when it
  // returns.
  StandInEngine engine(
      {.limits = {.max_sequences = 4, .max_step_tokens = 64, .context = 128, .pool_blocks = 8}});
  std::vector<TokenStream> streams;
  for (uint32_t i = 0; i < 3; ++i) {
    auto stream = engine->submit({.prompt = made_up_prompt(33, i), .max_tokens = 60});
    ASSERT_TRUE(stream.ok());
    streams.push_back(std::move(*stream));
  }
  for (TokenStream& stream : streams) {
    EXPECT_EQ(read_ids(stream).size(), 60u);
    EXPECT_EQ(stream.end().cached_tokens, 0u);
  }
  EXPECT_GT(engine->metrics().preemptions_recompute.value(), 0u);
  EXPECT_EQ(engine->metrics().prefix_query_tokens.value(), 3 * 33u) << "each queries once";
  EXPECT_EQ(engine->metrics().prefix_hit_tokens.value(), 0u)
      << "there are no other requests' blocks";
}

TEST(EngineBatching, SameIdsWhileSwitchesChange) {
  std::mt19937 random(1);
  for (const SchedulerLimits& limits : {kRoomy, kTight}) {
    StandInEngine engine({.limits = limits});
    engine.executor().delay = std::chrono::microseconds(100);
    uint64_t changes = 0;
    run_mixed(engine, 90, [&] {
      Policy policy;
      for (const PolicySwitch& entry : policy_switches()) {
        const std::string value = entry.values.empty()
                                      ? std::to_string(random() % 20)
                                      : std::string(entry.values[random() % entry.values.size()]);
        ASSERT_EQ(set_switch(policy, entry.name, value), std::nullopt);
      }
      engine->set_policy(policy);
      EXPECT_EQ(engine->policy(), policy);
      if (random() % 8 == 0)
        engine->set_limits(static_cast<uint32_t>(1 + random() % 8),
                           static_cast<uint32_t>(1 + random() % 64),
                           static_cast<uint32_t>(8 + random() % limits.pool_blocks));
      ++changes;
    });
    EXPECT_GT(changes, 100u);
  }
}

}  // namespace
}  // namespace hearth::testing
