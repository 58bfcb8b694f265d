// The log-probabilities of a prompt: every token but the first has one, however the prompt is
// divided into steps, shared, preempted or mixed with other requests.
#include <gtest/gtest.h>

#include "tests/support/stand_in_engine.h"

namespace hearth {
namespace {

using testing::made_up_prompt;
using testing::mixed_request;
using testing::read_ids;
using testing::stand_in_logprob;
using testing::StandInEngine;
using testing::StandInOptions;
using testing::StandInSampler;

std::vector<float> expected_scores(const GenerationRequest& request) {
  std::vector<float> scores;
  uint64_t read = 0;
  for (size_t i = 0; i + 1 < request.prompt.size(); ++i) {
    read = StandInSampler::mix(read, request.prompt[i]);
    scores.push_back(stand_in_logprob(read, request.prompt[i + 1]));
  }
  return scores;
}

std::vector<float> scores_of(const TokenStream& stream) {
  std::vector<float> scores;
  for (const PromptLogprob& entry : stream.prompt_logprobs()) scores.push_back(entry.logprob);
  return scores;
}

// Of every three requests one is scored, one is scored only, one is not.
GenerationRequest scored_request(uint32_t number) {
  GenerationRequest request = mixed_request(number);
  request.prompt_logprobs = number % 3 != 2;
  request.generate = number % 3 != 1;
  return request;
}

void expect_right_scores(StandInEngine& engine, uint32_t count) {
  std::vector<GenerationRequest> requests;
  std::vector<TokenStream> streams;
  for (uint32_t i = 0; i < count; ++i) {
    requests.push_back(scored_request(i));
    auto stream = engine->submit(requests.back());
    ASSERT_TRUE(stream.ok()) << stream.error().message;
    streams.push_back(std::move(*stream));
  }
  for (uint32_t i = 0; i < count; ++i) {
    SCOPED_TRACE(i);
    const std::vector<TokenId> ids = read_ids(streams[i]);
    const GenerationRequest& request = requests[i];
    ASSERT_EQ(ids, request.generate ? engine.alone(request) : std::vector<TokenId>());
    ASSERT_EQ(scores_of(streams[i]),
              request.prompt_logprobs ? expected_scores(request) : std::vector<float>());
    ASSERT_EQ(streams[i].end().reason, FinishReason::kLength);
    ASSERT_EQ(streams[i].end().generated_tokens, ids.size());
    ASSERT_EQ(streams[i].end().prompt_tokens, request.prompt.size());
  }
}

TEST(EngineScoring, DoesNotDependOnHowManyRowsAStepCanScore) {
  for (const uint32_t rows : {0u, 1u, 7u, 64u, 1000u}) {
    SCOPED_TRACE(rows);
    StandInEngine engine({.limits = {.max_sequences = 8,
                                     .max_step_tokens = 50,
                                     .context = 256,
                                     .pool_blocks = 400,
                                     .max_proposed = rows}});
    expect_right_scores(engine, 60);
  }
}

TEST(EngineScoring, HoldsUnderEveryPolicyWithFewBlocks) {
  for (const std::string_view name : policy_names())
    for (const Preemption preemption : {Preemption::kRecompute, Preemption::kSwap}) {
      SCOPED_TRACE(name);
      Policy policy = *named_policy(name);
      policy.preemption = preemption;
      policy.batch_window_ms = std::min(policy.batch_window_ms, 1u);
      StandInEngine engine({.limits = {.max_sequences = 6,
                                       .max_step_tokens = 60,
                                       .context = 128,
                                       .pool_blocks = 14,
                                       .swap_blocks = 30,
                                       .max_proposed = 9}},
                           policy);
      expect_right_scores(engine, 24);
    }
}

TEST(EngineScoring, WorksNextToSpeculation) {
  StandInEngine engine({.limits = {.max_sequences = 6,
                                   .max_step_tokens = 60,
                                   .context = 128,
                                   .pool_blocks = 100,
                                   .max_proposed = 9},
                        .speculation = {.method = SpeculationMethod::kNgram, .max_proposed = 4}});
  expect_right_scores(engine, 24);
}

TEST(EngineScoring, ScoresAPromptThatIsCached) {
  StandInEngine engine({.limits = {.max_sequences = 4,
                                   .max_step_tokens = 64,
                                   .context = 256,
                                   .pool_blocks = 100,
                                   .max_proposed = 16}});
  GenerationRequest request{.prompt = made_up_prompt(100, 1), .max_tokens = 3};
  for (int round = 0; round < 3; ++round) {
    request.prompt_logprobs = round != 1;
    auto stream = engine->submit(request);
    ASSERT_TRUE(stream.ok());
    EXPECT_EQ(read_ids(*stream), engine.alone(request));
    EXPECT_EQ(stream->end().cached_tokens, round == 1 ? 96u : 0u);
    if (round != 1) {
      EXPECT_EQ(scores_of(*stream), expected_scores(request));
    }
  }
}

TEST(EngineScoring, ScoresEachOfSeveralCompletions) {
  StandInEngine engine({.limits = {.max_sequences = 4,
                                   .max_step_tokens = 64,
                                   .context = 256,
                                   .pool_blocks = 100,
                                   .max_proposed = 16}});
  GenerationRequest request{.prompt = made_up_prompt(50, 1), .max_tokens = 3};
  request.prompt_logprobs = true;
  auto streams = engine->submit_n(request, 3);
  ASSERT_TRUE(streams.ok());
  for (TokenStream& stream : *streams) {
    EXPECT_EQ(read_ids(stream).size(), 3u);
    EXPECT_EQ(scores_of(stream), expected_scores(request));
  }
}

TEST(EngineScoring, OneTokenHasNothingToScore) {
  StandInEngine engine({.limits = {.max_proposed = 16}});
  GenerationRequest request{.prompt = {7}};
  request.prompt_logprobs = true;
  request.generate = false;
  auto stream = engine->submit(request);
  ASSERT_TRUE(stream.ok());
  EXPECT_TRUE(read_ids(*stream).empty());
  EXPECT_TRUE(stream->prompt_logprobs().empty());
  EXPECT_EQ(stream->end().reason, FinishReason::kLength);
}

// A step has at most one logit row per sequence and max_proposed others; the stand-in checks it.
TEST(EngineScoring, SharesItsRowsAmongRequests) {
  StandInEngine engine({.limits = {.max_sequences = 8,
                                   .max_step_tokens = 512,
                                   .context = 256,
                                   .pool_blocks = 400,
                                   .max_proposed = 20}});
  std::vector<GenerationRequest> requests;
  for (uint32_t i = 0; i < 8; ++i) {
    requests.push_back({.prompt = made_up_prompt(60, i)});
    requests.back().prompt_logprobs = true;
    requests.back().generate = false;
  }
  auto streams = engine->submit(requests);
  ASSERT_TRUE(streams.ok());
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_TRUE(read_ids((*streams)[i]).empty());
    EXPECT_EQ(scores_of((*streams)[i]), expected_scores(requests[i]));
  }
}

}  // namespace
}  // namespace hearth
