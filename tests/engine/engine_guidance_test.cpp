// Guidance with a negative prompt: every token follows from the tokens of both the request and its
// shadow, whatever else happens to the two. On the stand-in executor, whose answer is wrong if any
// block of either is wrong.
#include <gtest/gtest.h>

#include "tests/support/stand_in_engine.h"

namespace hearth::testing {
namespace {

constexpr SchedulerLimits kRoomyForTwo{
    .max_sequences = 8, .max_step_tokens = 64, .context = 128, .pool_blocks = 512};
// The longest request needs 7 blocks, and its shadow as many.
constexpr SchedulerLimits kTightForTwo{.max_sequences = 8,
                                       .max_step_tokens = 64,
                                       .context = 128,
                                       .pool_blocks = 15,
                                       .swap_blocks = 20};

// Two thirds of the requests have guidance, with negative prompts of all lengths.
GenerationRequest guided_request(uint32_t number) {
  GenerationRequest request = mixed_request(number);
  if (number % 3 == 0) return request;
  request.guidance.scale = 1.5f;
  const auto tokens = static_cast<uint32_t>(StandInSampler::mix(number, 5) % 70);
  request.guidance.negative_prompt = made_up_prompt(tokens, 1000 + number, number % 4 * 10);
  return request;
}

void expect_guided_ids(StandInEngine& engine, uint32_t count) {
  std::vector<std::pair<GenerationRequest, TokenStream>> asked;
  for (uint32_t number = 0; number < count; ++number) {
    const GenerationRequest request = guided_request(number);
    const uint32_t completions = number % 6 == 5 ? 3 : 1;
    auto streams = engine->submit_n(request, completions);
    ASSERT_TRUE(streams.ok()) << streams.error().message;
    for (uint32_t i = 0; i < completions; ++i) {
      asked.emplace_back(request, std::move((*streams)[i]));
      asked.back().first.sampling.seed += i;
    }
  }
  for (size_t i = 0; i < asked.size(); ++i) {
    ASSERT_EQ(read_ids(asked[i].second), engine.alone(asked[i].first)) << "request " << i;
    EXPECT_EQ(asked[i].second.end().reason, FinishReason::kLength);
  }
  engine->inspect([](const Scheduler& scheduler) {
    EXPECT_TRUE(scheduler.idle());
    EXPECT_EQ(scheduler.counts().blocks_used, 0u);
    EXPECT_EQ(scheduler.check_integrity(), std::nullopt);
  });
}

TEST(EngineGuidance, SameIdsUnderEveryNamedPolicyAndChunk) {
  for (const std::string_view name : policy_names())
    for (const uint32_t chunk : {0u, 1u})
      for (const SchedulerLimits& limits : {kRoomyForTwo, kTightForTwo}) {
        SCOPED_TRACE(std::string(name) + ", chunks of " + std::to_string(chunk) + ", " +
                     std::to_string(limits.pool_blocks) + " blocks");
        Policy policy = *named_policy(name);
        policy.max_chunk_tokens = chunk;
        StandInEngine engine({.limits = limits}, policy);
        expect_guided_ids(engine, 9);
      }
}

TEST(EngineGuidance, SameIdsAfterPreemption) {
  for (const Preemption preemption : {Preemption::kRecompute, Preemption::kSwap})
    for (const KvAllocation kv : {KvAllocation::kOnDemand, KvAllocation::kReserve}) {
      StandInEngine engine({.limits = kTightForTwo}, {.kv = kv, .preemption = preemption});
      expect_guided_ids(engine, 30);
      const Metrics& metrics = engine->metrics();
      if (kv != KvAllocation::kOnDemand) continue;
      EXPECT_GT((preemption == Preemption::kSwap ? metrics.preemptions_swap
                                                 : metrics.preemptions_recompute)
                    .value(),
                3u);
    }
}

TEST(EngineGuidance, SameIdsWithSpeculationForTheOthers) {
  StandInOptions options{.limits = kRoomyForTwo};
  options.speculation = {.method = SpeculationMethod::kNgram};
  StandInEngine engine(options);
  expect_guided_ids(engine, 20);
}

TEST(EngineGuidance, WithoutANegativePromptThePromptsLastTokenStandsForIt) {
  StandInEngine engine({.limits = kRoomyForTwo});
  GenerationRequest request{.prompt = made_up_prompt(20, 3), .max_tokens = 12};
  request.guidance.scale = 2;
  auto stream = engine->submit(request);
  ASSERT_TRUE(stream.ok());
  EXPECT_EQ(read_ids(*stream), engine.alone(request));
}

TEST(EngineGuidance, AScaleOfOneCostsNothing) {
  StandInEngine engine({.limits = kRoomyForTwo}, {}, nullptr, true);
  GenerationRequest request{.prompt = made_up_prompt(20, 3), .max_tokens = 12};
  request.guidance.negative_prompt = made_up_prompt(30, 4);
  auto stream = engine->submit(request);
  ASSERT_TRUE(stream.ok());
  engine->resume();
  GenerationRequest plain = request;
  plain.guidance = {};
  EXPECT_EQ(read_ids(*stream), engine.alone(plain));
  EXPECT_EQ(engine.executor().rows, 20u + 11);
}

TEST(EngineGuidance, CancellingARequestFreesItsShadow) {
  StandInEngine engine({.limits = kTightForTwo});
  GenerationRequest request{.prompt = made_up_prompt(20, 3), .max_tokens = 60};
  request.guidance = {.scale = 2, .negative_prompt = made_up_prompt(40, 4)};
  engine.executor().delay = std::chrono::milliseconds(1);
  for (int i = 0; i < 3; ++i) {
    auto stream = engine->submit(request);
    ASSERT_TRUE(stream.ok());
    ASSERT_TRUE(stream->next());
    drop(std::move(*stream));
  }
  engine->drain();
  engine->inspect([](const Scheduler& scheduler) {
    EXPECT_TRUE(scheduler.idle());
    EXPECT_EQ(scheduler.counts().blocks_used, 0u);
  });
}

TEST(EngineGuidance, RefusesWhatItCannotBeCombinedWith) {
  StandInEngine engine({.limits = kRoomyForTwo});
  const auto refusal = [&](auto change) {
    GenerationRequest request{.prompt = made_up_prompt(20, 3), .max_tokens = 5};
    request.guidance.scale = 2;
    change(request);
    const auto stream = engine->submit(request);
    return stream.ok() ? std::string("accepted") : stream.error().message;
  };
  EXPECT_EQ(refusal([](GenerationRequest& request) { request.beam.beams = 2; }),
            "guidance and beam search cannot be combined");
  EXPECT_EQ(refusal([](GenerationRequest& request) { request.contrast_beta = 1.0f; }),
            "guidance and contrastive decoding cannot be combined; leave out cd_alpha and cd_beta");
  EXPECT_EQ(refusal([](GenerationRequest& request) { request.guidance.scale = -1; }),
            "the guidance scale must be between 0 and 100");
  EXPECT_EQ(refusal([](GenerationRequest& request) { request.prompt_logprobs = true; }),
            "guidance does not report the prompt's log-probabilities");
  EXPECT_EQ(refusal([](GenerationRequest& request) { request.guidance.negative_prompt = {5000}; }),
            "token id 5000 is not in the vocabulary of 5000");
  EXPECT_EQ(refusal([](GenerationRequest& request) {
              request.guidance.negative_prompt = made_up_prompt(130, 1);
            }),
            "a negative prompt of 130 tokens and up to 1 new token make 131; the context holds "
            "128");
}

}  // namespace
}  // namespace hearth::testing
