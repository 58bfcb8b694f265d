#include "engine/memory_plan.h"

#include <gtest/gtest.h>

#include "engine/model/kv_cache.h"
#include "engine/open_model_file.h"
#include "engine/session.h"
#include "tests/support/fake_devices.h"

namespace hearth::testing {
namespace {

constexpr const char* kTiny = HEARTH_SOURCE_DIR "/models/default/hearth-tiny-Q8_0.gguf";

// Each plane of a layer must fit into one allocation, however much memory there is.
TEST(MemoryPlan, NoPlaneIsLargerThanAnAllocation) {
  const auto file = open_model_file(kTiny);
  ASSERT_TRUE(file.ok()) << file.error().message;
  const auto model = plan_model(**file);
  ASSERT_TRUE(model.ok()) << model.error().message;
  DeviceCaps caps = fake_devices().front().caps;
  for (const KvFormat kv : {KvFormat::kF16, KvFormat::kQ8_0}) {
    const MemoryRequest request{
        .limits = {.rows = 64, .sequences = 64, .logit_rows = 64, .context = 0, .kv = kv}};
    const auto blocks = [&](uint64_t allocation_bytes) {
      caps.limits.max_allocation_bytes = allocation_bytes;
      return plan_memory(caps, uint64_t{64} << 30, *model, request).kv_blocks;
    };
    const uint32_t roomy = blocks(uint64_t{1} << 40);
    ASSERT_GT(roomy, 100u);
    const uint64_t plane_bytes =
        kv_bytes_per_block(model->config, kv) / model->config.layers / 2;  // and scales, if any
    EXPECT_LT(blocks(roomy * plane_bytes / 2), roomy);
    EXPECT_EQ(blocks(roomy * plane_bytes / 2),
              most_kv_blocks(model->config, kv, roomy * plane_bytes / 2));
  }
}

// A row needs a workgroup, so the device's limit bounds the rows of a step.
TEST(MemoryPlan, NoStepHasMoreRowsThanTheDeviceAllowsWorkgroups) {
  DeviceCaps caps = fake_devices().front().caps;
  caps.limits.max_group_count = {1u << 31, 65535, 65535};
  const StepLimits limits =
      step_limits({.max_step_tokens = 1'000'000, .logit_rows = 1'000'000}, caps, 4096);
  EXPECT_EQ(limits.rows, 32768u);
  EXPECT_EQ(limits.logit_rows, 32768u);
  EXPECT_EQ(step_limits({.max_step_tokens = 5000}, caps, 4096).rows, 5000u);
}

// Deterministic attention has an item per split and row, even for short sequences.
TEST(MemoryPlan, DeterministicStepsOfLongContextsAreShort) {
  DeviceCaps caps = fake_devices().front().caps;
  caps.limits.max_group_count = {65535, 65535, 65535};
  const auto rows = [&](uint32_t context, uint32_t model_context, bool deterministic = true) {
    return step_limits({.context = context, .deterministic = deterministic}, caps, model_context)
        .rows;
  };
  EXPECT_EQ(rows(0, 131072), 256u);
  EXPECT_EQ(rows(0, 131072, false), 2048u);
  EXPECT_EQ(rows(16384, 131072), 2048u);
  EXPECT_EQ(rows(1'000'000, 32768), 1024u);
  const auto file = open_model_file(kTiny);
  ASSERT_TRUE(file.ok());
  const auto model = plan_model(**file);
  ASSERT_TRUE(model.ok());
  const StepLimits limits{.rows = rows(0, 131072), .context = 131072, .deterministic = true};
  for_step_buckets(limits, [&](const StepBucket& bucket) {
    const AttentionPlan plan = choose_attention(
        caps, step_attention_shape(model->config, limits.kv, bucket, limits.context), true);
    EXPECT_LE(plan.few.groups.x, 65535u) << bucket.rows << " rows";
  });
}

TEST(PoolNotice, SaysWhatHappenedToTooManyBlocks) {
  const MemoryPlan plan{.context = 1024, .kv_blocks = 50};
  EXPECT_EQ(pool_notice({.kv_blocks = 50}, plan), "");
  EXPECT_EQ(pool_notice({}, plan), "");
  EXPECT_EQ(pool_notice({.kv_blocks = 100}, {.context = 512, .kv_blocks = 50}),
            "--kv-blocks 100 is more than fits; using 50");
  EXPECT_EQ(pool_notice({.kv_blocks = 100}, plan),
            "--kv-blocks 100 is more than fits; using 50; the longest sequence has 800 tokens");
  EXPECT_EQ(pool_notice({.context = 1024, .kv_blocks = 50}, plan),
            "--ctx 1024 does not fit into --kv-blocks 50; the longest sequence has 800 tokens");
}

}  // namespace
}  // namespace hearth::testing
