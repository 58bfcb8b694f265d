// Speculation never changes what a request generates, whatever else happens to it.
#include <gtest/gtest.h>

#include "tests/support/stand_in_engine.h"

namespace hearth {
namespace {

using testing::mixed_request;
using testing::read_ids;
using testing::StandInEngine;
using testing::StandInOptions;

// So few different tokens that earlier text often matches, and guesses are often right.
constexpr uint32_t kVocabulary = 3;

StandInOptions options_with(SchedulerLimits limits) {
  limits.max_proposed = 40;
  return {.limits = limits,
          .vocabulary = kVocabulary,
          .speculation = {.method = SpeculationMethod::kNgram, .max_proposed = 6}};
}

GenerationRequest request_of(uint32_t number) {
  GenerationRequest request = mixed_request(number);
  for (TokenId& id : request.prompt) id %= kVocabulary;
  std::erase_if(request.biases, [](const auto& bias) { return bias.token >= kVocabulary; });
  return request;
}

void expect_outputs_of_plain_decoding(StandInEngine& engine, uint32_t count) {
  std::vector<GenerationRequest> requests;
  for (uint32_t i = 0; i < count; ++i) requests.push_back(request_of(i));
  std::vector<TokenStream> streams;
  for (const GenerationRequest& request : requests) {
    auto stream = engine->submit(request);
    ASSERT_TRUE(stream.ok()) << stream.error().message;
    streams.push_back(std::move(*stream));
  }
  for (uint32_t i = 0; i < count; ++i)
    ASSERT_EQ(read_ids(streams[i]), engine.alone(requests[i])) << "request " << i;
}

TEST(EngineSpeculation, GeneratesWhatPlainDecodingDoesInFewerSteps) {
  StandInEngine engine(options_with(
      {.max_sequences = 8, .max_step_tokens = 256, .context = 256, .pool_blocks = 400}));
  expect_outputs_of_plain_decoding(engine, 120);
  const Metrics& metrics = engine->metrics();
  EXPECT_GT(metrics.accepted_tokens.value(), 60u);
  EXPECT_GT(metrics.proposed_tokens.value(), metrics.accepted_tokens.value());
}

TEST(EngineSpeculation, HoldsUnderEveryPolicyWithFewBlocks) {
  for (const std::string_view name : policy_names())
    for (const Preemption preemption : {Preemption::kRecompute, Preemption::kSwap}) {
      SCOPED_TRACE(name);
      Policy policy = *named_policy(name);
      policy.preemption = preemption;
      policy.batch_window_ms = std::min(policy.batch_window_ms, 1u);
      StandInOptions options = options_with({.max_sequences = 6,
                                             .max_step_tokens = 60,
                                             .context = 128,
                                             .pool_blocks = 14,
                                             .swap_blocks = 30});
      StandInEngine engine(options, policy);
      expect_outputs_of_plain_decoding(engine, 24);
      EXPECT_GT(engine->metrics().accepted_tokens.value(), 5u);
    }
}

TEST(EngineSpeculation, OffProposesNothing) {
  StandInOptions options = options_with(
      {.max_sequences = 8, .max_step_tokens = 256, .context = 256, .pool_blocks = 400});
  options.speculation = {};
  StandInEngine engine(options);
  expect_outputs_of_plain_decoding(engine, 10);
  EXPECT_EQ(engine->metrics().proposed_tokens.value(), 0u);
}

}  // namespace
}  // namespace hearth
