// The memory allocated for steps is enough for each of them, whatever its size and context.
#include <gtest/gtest.h>

#include "engine/model/activations.h"
#include "engine/model/step_inputs.h"
#include "engine/ops/attention.h"
#include "engine/ops/matmul.h"
#include "engine/ops/sampling.h"
#include "tests/support/fake_devices.h"

namespace hearth::testing {
namespace {

ModelConfig config_with_heads(uint32_t heads, uint32_t kv_heads) {
  ModelConfig config;
  config.layers = 1;
  config.width = config.mlp_width = heads * 64;
  config.heads = heads;
  config.kv_heads = kv_heads;
  config.head_size = 64;
  config.vocabulary = 100;
  return config;
}

TEST(StepMemory, IsEnoughForStepsOfEverySizeAndContext) {
  const StepLimits limits{.rows = 600, .sequences = 600, .logit_rows = 600, .context = 5000};
  for (const FakeDevice& device : fake_devices()) {
    for (const auto& [heads, kv_heads] : {std::pair{32u, 8u}, {8u, 1u}, {16u, 2u}}) {
      const ModelConfig config = config_with_heads(heads, kv_heads);
      const ActivationSizes sizes = activation_sizes(device.caps, config, {}, limits);
      const uint64_t input_bytes = step_input_bytes(device.caps, config, limits, 1);
      for (uint32_t count = 1; count <= limits.sequences; count += 7) {
        for (const uint32_t tokens : {1u, 191u, 192u, 700u, 800u, 3500u, 5000u}) {
          StepBucket bucket = choose_bucket(count, count, 1, count);
          bucket.context = bucket_context(tokens);
          const AttentionShape shape =
              step_attention_shape(config, limits.kv, bucket, limits.context);
          const AttentionCapacity capacity = choose_attention(device.caps, shape).capacity;
          ASSERT_LE(attention_partial_bytes(capacity, shape), sizes.attention_partials)
              << device.name << ", " << count << " sequences of " << tokens;
          ASSERT_LE(attention_count_bytes(capacity, shape), sizes.attention_counts) << device.name;
          const uint64_t blocks = divide_up(limits.context, params::kTokensPerBlock);
          ASSERT_LE(step_layout(bucket, capacity, 1, false).block_tables + count * blocks * 4,
                    input_bytes)
              << device.name << ", " << count << " sequences of " << tokens;

          // The same number of rows in trees, with all that a step may carry.
          StepBucket trees = choose_bucket(count, (count + 2) / 3, 3, count);
          trees.context = bucket.context;
          trees.trees = true;
          trees.extras = kStepCommits | kStepMixes | kStepRowExtras | kStepStages;
          const AttentionShape tree_shape =
              step_attention_shape(config, limits.kv, trees, limits.context);
          const AttentionCapacity room = choose_attention(device.caps, tree_shape).capacity;
          ASSERT_LE(attention_partial_bytes(room, tree_shape), sizes.attention_partials)
              << device.name << ", " << count << " tree rows after " << tokens;
          ASSERT_LE(attention_count_bytes(room, tree_shape), sizes.attention_counts);
          ASSERT_LE(step_layout(trees, room, 1, false).block_tables + (count + 2) / 3 * blocks * 4 +
                        step_word_bytes(config, limits),
                    input_bytes)
              << device.name << ", " << count << " tree rows after " << tokens;
        }
      }
    }
  }
}

// Scratch memory and counters of products, whose last tiles are shared at some step sizes.
TEST(StepMemory, IsEnoughForTheProductsOfEverySize) {
  DeviceCaps caps = with_matrices(fake_devices().front().caps);
  caps.limits.multiprocessors = 132;
  const StepLimits limits{.rows = 600, .sequences = 600, .logit_rows = 600, .context = 5000};
  const std::vector<ModelMatmul> matmuls = {
      {.format = WeightFormat::kF16, .inputs = 4096, .outputs = 28672},
      {.format = WeightFormat::kQ4K, .inputs = 14336, .outputs = 4096}};
  const ActivationSizes sizes = activation_sizes(caps, config_with_heads(32, 8), matmuls, limits);
  uint32_t shared = 0;
  for (uint32_t count = 1; count <= limits.rows; ++count) {
    for (const ModelMatmul& matmul : matmuls) {
      const MatmulPlan plan = choose_matmul(caps, {.format = matmul.format,
                                                   .rows = bucket_size(count),
                                                   .inputs = matmul.inputs,
                                                   .outputs = matmul.outputs,
                                                   .sibling_outputs = matmul.sibling_outputs});
      ASSERT_LE(plan.scratch_bytes, sizes.matmul_scratch) << count;
      if (!plan.shared) continue;
      ++shared;
      ASSERT_LE(plan.shared->count_bytes, sizes.matmul_counts) << count;
    }
  }
  EXPECT_GT(shared, 0u);
}

// Lists of wanted rows are padded to a power of two, or to the number of rows.
TEST(StepMemory, IsEnoughForLogitsOfEveryNumberOfRows) {
  DeviceCaps caps = with_matrices(fake_devices().front().caps);
  caps.limits.multiprocessors = 132;
  const StepLimits limits{.rows = 600, .sequences = 300, .logit_rows = 300, .context = 5000};
  const ModelMatmul matmul{
      .format = WeightFormat::kF16, .inputs = 4096, .outputs = 4096, .of_logits = true};
  const ModelConfig config = config_with_heads(32, 8);
  const ActivationSizes sizes =
      activation_sizes(caps, config, std::span<const ModelMatmul>(&matmul, 1), limits);
  for (uint32_t count = 1; count <= limits.rows; ++count) {
    const uint32_t wanted = std::min(count, limits.logit_rows);
    const StepBucket bucket = choose_bucket(count, 1, count + 1, wanted);
    ASSERT_GE(bucket.logit_rows, wanted);
    ASSERT_LE(bucket.logit_rows, bucket.rows) << count;
    ASSERT_LE(uint64_t{bucket.logit_rows} * config.width * 4, sizes.picked) << count;
    ASSERT_LE(uint64_t{bucket.logit_rows} * 4, sizes.sampling_counts) << count;
    for (const bool greedy : {false, true}) {
      const SamplingShape shape{
          .rows = bucket.logit_rows, .vocab = config.vocabulary, .greedy = greedy};
      ASSERT_LE(choose_sampling(caps, shape).scratch_bytes(), sizes.sampling_scratch) << count;
    }
    const MatmulPlan plan = choose_matmul(caps, {.format = matmul.format,
                                                 .rows = bucket.logit_rows,
                                                 .inputs = matmul.inputs,
                                                 .outputs = matmul.outputs});
    ASSERT_LE(plan.scratch_bytes, sizes.matmul_scratch) << count;
  }
  EXPECT_EQ(choose_bucket(8, 1, 8, 0).logit_rows, 0u);
}

}  // namespace
}  // namespace hearth::testing
