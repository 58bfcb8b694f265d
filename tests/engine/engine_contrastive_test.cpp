// Contrastive search: a request's text is the one that the formula gives when each candidate is
// computed by itself, whatever happens to the request. On the stand-in executor, whose hidden
// states depend on all tokens before, and which knows which of them it was told to keep.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "tests/support/stand_in_engine.h"

namespace hearth::testing {
namespace {

constexpr SchedulerLimits kRoomyForSearch{.max_sequences = 8,
                                          .max_step_tokens = 64,
                                          .context = 128,
                                          .pool_blocks = 512,
                                          .max_proposed = 40};
constexpr SchedulerLimits kTightForSearch{.max_sequences = 8,
                                          .max_step_tokens = 64,
                                          .context = 128,
                                          .pool_blocks = 15,
                                          .swap_blocks = 20,
                                          .max_proposed = 40};

// Two thirds of them have contrastive search.
GenerationRequest searching_request(uint32_t number) {
  GenerationRequest request = mixed_request(number);
  if (number % 3 == 0) return request;
  request.contrastive_search = {.alpha = 0.3f + 0.1f * static_cast<float>(number % 5),
                                .top_k = 2 + number % 6};
  return request;
}

// The formula, from the beginning for every candidate.
std::vector<TokenId> searched_alone(const StandInOptions& options,
                                    const GenerationRequest& request) {
  const StandInSampler sampler(options);
  const ContrastiveSearchOptions& search = request.contrastive_search;
  uint64_t read = 0;
  std::vector<std::array<double, kStandInWidth>> before;
  const auto append = [&](TokenId token) {
    read = StandInSampler::mix(read, token);
    before.push_back(stand_in_direction(read));
  };
  for (const TokenId token : request.prompt) append(token);
  std::vector<TokenId> ids;
  while (ids.size() < request.max_tokens) {
    double best = -10;
    TokenId chosen = 0;
    for (const params::TokenLogprob& candidate : sampler.top(read, search.top_k)) {
      const auto own = stand_in_direction(StandInSampler::mix(read, candidate.id));
      double similarity = -2;
      for (const auto& other : before)
        similarity = std::max(similarity, stand_in_similarity(own, other));
      const double score =
          (1 - double{search.alpha}) * std::exp(candidate.logprob) - search.alpha * similarity;
      if (score <= best) continue;
      best = score;
      chosen = candidate.id;
    }
    ids.push_back(chosen);
    append(chosen);
  }
  return ids;
}

std::vector<TokenId> expected_alone(const StandInEngine& engine, const GenerationRequest& request) {
  return request.contrastive_search.searches() ? searched_alone(engine.options(), request)
                                               : engine.alone(request);
}

void expect_searched_ids(StandInEngine& engine, uint32_t count) {
  std::vector<std::pair<GenerationRequest, TokenStream>> asked;
  for (uint32_t number = 0; number < count; ++number) {
    const GenerationRequest request = searching_request(number);
    auto streams = engine->submit_n(request, number % 6 == 5 ? 2 : 1);
    ASSERT_TRUE(streams.ok()) << streams.error().message;
    for (size_t i = 0; i < streams->size(); ++i) {
      asked.emplace_back(request, std::move((*streams)[i]));
      asked.back().first.sampling.seed += i;
    }
  }
  for (size_t i = 0; i < asked.size(); ++i) {
    ASSERT_EQ(read_ids(asked[i].second), expected_alone(engine, asked[i].first)) << "request " << i;
    EXPECT_EQ(asked[i].second.end().reason, FinishReason::kLength);
  }
  engine->inspect([](const Scheduler& scheduler) {
    EXPECT_TRUE(scheduler.idle());
    EXPECT_EQ(scheduler.counts().blocks_used, 0u);
    EXPECT_EQ(scheduler.check_integrity(), std::nullopt);
  });
}

TEST(EngineContrastive, SameIdsUnderEveryNamedPolicyAndChunk) {
  for (const std::string_view name : policy_names())
    for (const uint32_t chunk : {0u, 3u})
      for (const SchedulerLimits& limits : {kRoomyForSearch, kTightForSearch}) {
        SCOPED_TRACE(std::string(name) + ", chunks of " + std::to_string(chunk) + ", " +
                     std::to_string(limits.pool_blocks) + " blocks");
        Policy policy = *named_policy(name);
        policy.max_chunk_tokens = chunk;
        StandInEngine engine({.limits = limits}, policy);
        expect_searched_ids(engine, 9);
      }
}

TEST(EngineContrastive, SameIdsAfterPreemption) {
  for (const Preemption preemption : {Preemption::kRecompute, Preemption::kSwap}) {
    StandInEngine engine({.limits = kTightForSearch}, {.preemption = preemption});
    expect_searched_ids(engine, 30);
    // What is kept of a request is not swapped, so those with contrastive search are recomputed.
    EXPECT_GT(engine->metrics().preemptions_recompute.value(), 3u);
  }
}

TEST(EngineContrastive, CandidatesThatDoNotFitIntoOneStepAreJudgedInSeveral) {
  SchedulerLimits limits = kRoomyForSearch;
  for (const uint32_t proposed : {1u, 3u}) {
    limits.max_proposed = proposed;
    StandInEngine engine({.limits = limits});
    expect_searched_ids(engine, 6);
  }
  limits.max_proposed = 40;
  limits.max_step_tokens = 16;
  StandInEngine engine({.limits = limits});
  expect_searched_ids(engine, 12);
}

TEST(EngineContrastive, SameIdsWithSpeculationForTheOthers) {
  StandInOptions options{.limits = kRoomyForSearch};
  options.speculation = {.method = SpeculationMethod::kNgram};
  StandInEngine engine(options);
  expect_searched_ids(engine, 20);
}

// Each step computes the candidates and nothing else: the one that is taken is not computed again.
TEST(EngineContrastive, EachTokenTakesOneStep) {
  StandInEngine engine({.limits = kRoomyForSearch});
  GenerationRequest request{.prompt = made_up_prompt(20, 3), .max_tokens = 12};
  request.contrastive_search = {.alpha = 0.6f, .top_k = 4};
  auto stream = engine->submit(request);
  ASSERT_TRUE(stream.ok());
  EXPECT_EQ(read_ids(*stream), searched_alone(engine.options(), request));
  EXPECT_EQ(engine.executor().steps, 1u + 12);
  EXPECT_EQ(engine.executor().rows, 20u + 12 * 4);
}

// A candidate that was judged by an earlier step than the last has to be computed again, in a step
// of its own, because another's keys and values are in its place.
TEST(EngineContrastive, OnlyACandidateOfAnEarlierStepIsComputedAgain) {
  SchedulerLimits limits = kRoomyForSearch;
  limits.max_proposed = 1;  // two candidates per step
  StandInEngine engine({.limits = limits});
  GenerationRequest request{.prompt = made_up_prompt(20, 3), .max_tokens = 12};
  request.contrastive_search = {.alpha = 0.6f, .top_k = 4};
  auto stream = engine->submit(request);
  ASSERT_TRUE(stream.ok());
  EXPECT_EQ(read_ids(*stream), searched_alone(engine.options(), request));
  const size_t again = engine.executor().steps - (1 + 2 * 12);
  EXPECT_GT(again, 0u);
  EXPECT_LT(again, 12u);
  EXPECT_EQ(engine.executor().rows, 20u + 12 * 4 + again);
}

TEST(EngineContrastive, ReportsLogprobsOfTheTextAndItsAlternatives) {
  StandInEngine engine({.limits = kRoomyForSearch});
  GenerationRequest request{.prompt = made_up_prompt(20, 3), .max_tokens = 6};
  request.contrastive_search = {.alpha = 0.6f, .top_k = 4};
  request.sampling.top_logprobs = 3;
  const StandInSampler sampler(engine.options());
  auto stream = engine->submit(request);
  ASSERT_TRUE(stream.ok());
  uint64_t read = 0;
  for (const TokenId token : request.prompt) read = StandInSampler::mix(read, token);
  while (const auto token = stream->next()) {
    const auto top = sampler.top(read, 4);
    ASSERT_EQ(token->top.size(), 3u);
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(token->top[i].id, top[i].id);
    const auto own = std::ranges::find(top, token->id, &params::TokenLogprob::id);
    ASSERT_NE(own, top.end());
    EXPECT_EQ(token->logprob, own->logprob);
    read = StandInSampler::mix(read, token->id);
  }
}

TEST(EngineContrastive, ARequestWithoutMemoryForHiddenStatesEndsAlone) {
  StandInEngine engine({.limits = kRoomyForSearch}, {}, nullptr, true);
  GenerationRequest request{.prompt = made_up_prompt(20, 3), .max_tokens = 12};
  GenerationRequest searching = request;
  searching.contrastive_search = {.alpha = 0.6f, .top_k = 4};
  auto streams = engine->submit({searching, request, searching});
  ASSERT_TRUE(streams.ok());
  engine.executor().faults.hidden.arm(7);
  engine->resume();
  uint32_t failed = 0;
  for (size_t i = 0; i < 3; ++i) {
    const std::vector<TokenId> ids = read_ids((*streams)[i]);
    const GenerationEnd& end = (*streams)[i].end();
    if (end.reason == FinishReason::kError) {
      ++failed;
      EXPECT_EQ(end.message,
                "contrastive search has no memory for hidden states: the stand-in has no room");
      continue;
    }
    EXPECT_EQ(ids, expected_alone(engine, i == 1 ? request : searching));
  }
  EXPECT_EQ(failed, 1u);
}

TEST(EngineContrastive, RefusesWhatItCannotBeCombinedWith) {
  StandInEngine engine({.limits = kRoomyForSearch});
  const auto refusal = [&](auto change) {
    GenerationRequest request{.prompt = made_up_prompt(20, 3), .max_tokens = 5};
    request.contrastive_search = {.alpha = 0.6f, .top_k = 4};
    change(request);
    const auto stream = engine->submit(request);
    return stream.ok() ? std::string("accepted") : stream.error().message;
  };
  EXPECT_EQ(refusal([](GenerationRequest& request) { request.contrastive_search.top_k = 1; }),
            "contrastive search needs a top_k between 2 and 20, not 1");
  EXPECT_EQ(refusal([](GenerationRequest& request) { request.contrastive_search.alpha = 2; }),
            "penalty_alpha of contrastive search must be greater than 0 and at most 1");
  EXPECT_EQ(refusal([](GenerationRequest& request) { request.guidance.scale = 2; }),
            "contrastive search and guidance cannot be combined");
  EXPECT_EQ(refusal([](GenerationRequest& request) { request.contrast_beta = 1.0f; }),
            "contrastive search and contrastive decoding cannot be combined; leave out cd_alpha and cd_beta");
  EXPECT_EQ(refusal([](GenerationRequest& request) { request.prompt_logprobs = true; }),
            "contrastive search and log-probabilities or embeddings of the prompt cannot be "
            "combined");
  StandInEngine small({.limits = {.max_sequences = 4,
                                  .max_step_tokens = 64,
                                  .context = 128,
                                  .pool_blocks = 4,
                                  .max_proposed = 40}});
  GenerationRequest request{.prompt = made_up_prompt(20, 3), .max_tokens = 5};
  request.contrastive_search = {.alpha = 0.6f, .top_k = 4};
  EXPECT_EQ(small->submit(request).error().message,
            "25 tokens and 4 candidates for each need 5 blocks of 16 tokens; the KV cache has 4");
}

}  // namespace
}  // namespace hearth::testing
