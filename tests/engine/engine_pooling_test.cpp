// Embeddings under every policy, in chunks, preempted and swapped, on the stand-in executor, whose
// hidden states are known exactly.
#include <gtest/gtest.h>

#include "engine/pooling.h"
#include "tests/support/stand_in_engine.h"

namespace hearth::testing {
namespace {

std::vector<float> expected_embedding(const GenerationRequest& request) {
  const size_t first = request.pooling == Pooling::kMean ? 0 : request.prompt.size() - 1;
  std::vector<float> mean(kStandInWidth);
  for (uint32_t column = 0; column < kStandInWidth; ++column) {
    double sum = 0;
    for (size_t i = first; i < request.prompt.size(); ++i)
      sum += stand_in_hidden(request.prompt[i], column);
    mean[column] = static_cast<float>(sum / static_cast<double>(request.prompt.size() - first));
  }
  return mean;
}

TEST(PoolingState, TakesEveryTokenOnce) {
  PoolingState mean(Pooling::kMean, 10);
  EXPECT_EQ(mean.take(0, 4).count, 4u);
  // Preempted: the first tokens are computed again.
  const PoolingState::Tokens again = mean.take(0, 6);
  EXPECT_EQ(again.first, 4u);
  EXPECT_EQ(again.count, 2u);
  EXPECT_EQ(mean.take(0, 6).count, 0u);
  // The generated token is not part of the prompt.
  EXPECT_EQ(mean.take(6, 5).count, 4u);
  PoolingState last(Pooling::kLast, 10);
  EXPECT_EQ(last.take(0, 9).count, 0u);
  EXPECT_EQ(last.take(9, 1).first, 9u);
}

TEST(EnginePooling, EmbeddingsAreExactUnderEveryPolicy) {
  constexpr SchedulerLimits kRoomyPool{
      .max_sequences = 8, .max_step_tokens = 64, .context = 256, .pool_blocks = 512};
  // Room for few requests at a time, so that they are preempted and swapped.
  constexpr SchedulerLimits kTightPool{.max_sequences = 8,
                                   .max_step_tokens = 64,
                                   .context = 256,
                                   .pool_blocks = 16,
                                   .swap_blocks = 24};
  for (const std::string_view name : policy_names())
    for (const Preemption preemption : {Preemption::kRecompute, Preemption::kSwap})
      for (const SchedulerLimits& limits : {kRoomyPool, kTightPool}) {
        Policy policy = *named_policy(name);
        policy.preemption = preemption;
        StandInEngine engine({.limits = limits}, policy);
        std::vector<std::pair<GenerationRequest, TokenStream>> asked;
        for (uint32_t i = 0; i < 24; ++i) {
          // Every third is an ordinary request; some share a prefix with an embedding.
          GenerationRequest request{.prompt = made_up_prompt(20 + i * 7, i / 2, 40),
                                    .max_tokens = 20};
          request.sampling.temperature = 0;
          if (i % 3 != 0) request.pooling = i % 3 == 1 ? Pooling::kMean : Pooling::kLast;
          auto stream = engine->submit(request);
          ASSERT_TRUE(stream.ok()) << stream.error().message;
          asked.emplace_back(std::move(request), std::move(*stream));
        }
        for (auto& [request, stream] : asked) {
          const std::vector<TokenId> ids = read_ids(stream);
          if (request.pooling == Pooling::kNone) {
            EXPECT_EQ(ids, engine.alone(request)) << name;
            EXPECT_TRUE(stream.end().embedding.empty());
          } else {
            EXPECT_EQ(stream.end().embedding, expected_embedding(request))
                << name << ", " << request.prompt.size() << " tokens";
            EXPECT_EQ(stream.end().cached_tokens, 0u);
          }
        }
      }
}

}  // namespace
}  // namespace hearth::testing
