// Attention of prompts whose scores stay in their lanes. If the device's lanes do not hold such
// fragments, the emulated kernel runs, which loads and stores the same.
#include "params/attention_lanes.h"

#include <fmt/format.h>

#include "tests/support/attention.h"

namespace hearth::testing {
namespace {

constexpr double kLanesLimit = 1e-5;  // NMSE; queries and weights are f16

class AttentionLanesTest : public AttentionGpuTest {
 protected:
  // Processes prompts with this kernel, `keys` keys per tile, in splits of `split_keys`.
  AttentionPlan lanes_plan(const AttentionCase& test, uint32_t keys, uint32_t split_keys) {
    constexpr uint32_t kLanes = 32;
    const AttentionShape shape = shape_of(test);
    const bool real = device().caps().features.lane_fragments;
    const uint32_t subgroups = real && keys > 32 ? 8 : 4;  // emulation has room for four
    const uint32_t rows = subgroups * 16;
    DeviceCaps caps = device().caps();
    caps.features.coopmat = false;
    AttentionPlan plan = choose_attention(caps, shape, false);
    const uint32_t group = test.heads / test.kv_heads;
    plan.tuning.many_tokens = rows / group;
    plan.tuning.split_keys = split_keys;
    plan.capacity = attention_capacity(plan.tuning, shape.bucket);
    plan.few.groups.x = plan.capacity.few;
    plan.writes_halves = true;  // for prompts
    plan.many = KernelPlan{
        .pipeline = {.kernel = fmt::format("attention_lanes{}{}.{}", real ? "" : "_emulated",
                                           test.sinks.empty() ? "" : "_sinks",
                                           test.kv == KvFormat::kF16 ? "f16" : "q8_0"),
                     .constants =
                         params::AttentionLanesConstants{.kWorkgroupSize = subgroups * kLanes,
                                                         .kSubgroups = subgroups,
                                                         .kHeadSize = test.head_size,
                                                         .kKeys = keys},
                     .subgroup_size = real ? kLanes : 0},
        .groups = {.x = plan.capacity.many,
                   .y = test.kv_heads * divide_up(plan.tuning.many_tokens * group, rows)}};
    return plan;
  }

  void check(const AttentionCase& test, uint32_t keys, uint32_t split_keys,
             RowForm form = RowForm::kFloats) {
    const AttentionData data = make_attention_data(test, test.head_size + test.window);
    const AttentionPlan plan = lanes_plan(test, keys, split_keys);
    EXPECT_LT(nmse(attend(test, data, plan, form), reference_attention(test, data)), kLanesLimit)
        << plan.many->pipeline.kernel << " window " << test.window << " cap " << test.soft_cap
        << " splits of " << split_keys;
  }
};

// Prompts that begin and end anywhere, with single tokens between them; windows, caps, splits.
TEST_F(AttentionLanesTest, PromptsWindowsCapsAndSplits) {
  AttentionCase test{.kv = KvFormat::kF16,
                     .heads = 6,
                     .kv_heads = 2,
                     .head_size = 96,
                     .sequences = {{36, 1}, {0, 40}, {17, 9}, {60, 31}, {30, 3}, {0, 1}}};
  check(test, 32, 1024);
  check(test, 32, params::kTokensPerBlock);
  test.window = 21;
  check(test, 32, 1024);
  test.window = 0;
  test.soft_cap = 5.0f;
  check(test, 32, 1024);
}

TEST_F(AttentionLanesTest, Sinks) {
  const AttentionCase test{.kv = KvFormat::kF16,
                           .heads = 2,
                           .kv_heads = 1,
                           .head_size = 32,
                           .sequences = {{0, 40}, {60, 31}, {36, 1}},
                           .sinks = {2.0f, -1.0f}};
  check(test, 32, 1024);
  check(test, 32, params::kTokensPerBlock);
}

TEST_F(AttentionLanesTest, Q8Cache) {
  const AttentionCase test{.kv = KvFormat::kQ8_0,
                           .heads = 2,
                           .kv_heads = 1,
                           .head_size = 32,
                           .sequences = {{0, 70}, {33, 20}}};
  check(test, 64, 1024, RowForm::kHalves);
}

}  // namespace
}  // namespace hearth::testing
