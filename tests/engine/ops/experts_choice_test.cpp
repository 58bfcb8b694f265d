#include <gtest/gtest.h>

#include "engine/ops/experts/scratch.h"
#include "tests/support/fake_devices.h"

namespace hearth::testing {
namespace {

ExpertsShape qwen_experts(uint32_t rows) {
  return {.gate_up = WeightFormat::kQ4K,
          .down = WeightFormat::kQ4K,
          .rows = rows,
          .experts = 128,
          .used = 8,
          .width = 2048,
          .mlp_width = 768};
}

// Rows of 2880: no multiple of 128.
ExpertsShape gpt_oss_experts(uint32_t rows) {
  return {.gate_up = WeightFormat::kMxfp4,
          .down = WeightFormat::kMxfp4,
          .rows = rows,
          .experts = 32,
          .used = 4,
          .width = 2880,
          .mlp_width = 2880};
}

DeviceCaps h200_like() {
  DeviceCaps caps =
      with_matrices(fake_devices().front().caps, {half_fragments(), half_fragments(8)});
  caps.features.integer_dot = caps.features.lane_fragments = true;
  caps.limits.multiprocessors = 132;
  return caps;
}

std::string family_of(const ExpertProduct& product) {
  const std::string& kernel = product.kernel.pipeline.kernel;
  return kernel.substr(0, kernel.find('.'));
}

TEST(ExpertsChoice, ATileIsAPairUntilExpertsShareRows) {
  for (const uint32_t rows : {1u, 8u, 16u}) {
    const ExpertsPlan plan = choose_experts(h200_like(), qwen_experts(rows));
    EXPECT_FALSE(plan.group || plan.prepare) << rows;
    EXPECT_EQ(plan.tile_rows, 1u);
    EXPECT_EQ(plan.tiles, rows * 8);
    EXPECT_EQ(family_of(plan.gate_up), "experts_integer");
    EXPECT_EQ(family_of(plan.down), "experts_sum_integer");
    EXPECT_EQ(plan.gate_up.kernel.groups.y, rows * 8);
    EXPECT_EQ(plan.down.kernel.groups.y, rows);
  }
}

// With few rows a layer's experts are two kernels, which choose, norm and add up on the way.
TEST(ExpertsChoice, FewRowsNeedTwoKernels) {
  for (const uint32_t rows : {1u, 8u}) {
    for (const ExpertsShape& shape : {qwen_experts(rows), gpt_oss_experts(rows)}) {
      const ExpertsPlan plan = choose_experts(h200_like(), shape);
      EXPECT_TRUE(plan.can_norm());
      EXPECT_FALSE(plan.route || plan.group) << rows;
      // With more rows of MXFP4, experts are read once for all of them, so the next norm adds up.
      EXPECT_EQ(plan.combine.has_value(), shape.down == WeightFormat::kMxfp4 && rows > 1) << rows;
    }
  }
}

TEST(ExpertsChoice, FewRowsOfMxfp4ReadEachExpertOnce) {
  const ExpertsPlan plan = choose_experts(h200_like(), gpt_oss_experts(8));
  EXPECT_EQ(family_of(plan.gate_up), "experts_few");
  EXPECT_EQ(family_of(plan.down), "experts_few");
  EXPECT_TRUE(plan.halves && plan.gate_up.half_results);
  EXPECT_EQ(plan.gate_up.kernel.groups.y, 132u);
  EXPECT_FALSE(plan.gate_up.sums || plan.down.sums);
  // A row's result must not depend on the number of rows.
  EXPECT_EQ(family_of(choose_experts(h200_like(), gpt_oss_experts(8), true).gate_up),
            "experts_integer");
}

// One row has a kernel of its own, unless the parts of x of too many experts had to be in
// registers.
TEST(ExpertsChoice, OneRowOfMxfp4AddsUpItsExperts) {
  ExpertsShape shape = gpt_oss_experts(1);
  const ExpertsPlan plan = choose_experts(h200_like(), shape);
  for (const ExpertProduct* product : {&plan.gate_up, &plan.down}) {
    EXPECT_EQ(family_of(*product), "experts_one_row");
    EXPECT_EQ(product->kernel.groups.y, 132u);
    // 23 subgroups of 32 lanes with 128 inputs each are the first to hold 2880.
    EXPECT_EQ(product->kernel.pipeline.constants.workgroup_size(), 23 * 32u);
  }
  EXPECT_TRUE(plan.halves && plan.gate_up.half_results && plan.down.sums && !plan.combine);
  shape.used = 5;
  EXPECT_EQ(family_of(choose_experts(h200_like(), shape).down), "experts_few");
  EXPECT_EQ(family_of(choose_experts(h200_like(), gpt_oss_experts(1), true).gate_up),
            "experts_integer");
}

// Workgroups that stay until the end leave hardly any multiprocessor idle.
TEST(ExpertsChoice, WorkgroupsOfFewRowsFillTheDeviceOnce) {
  for (const uint32_t rows : {1u, 2u, 4u, 8u, 16u}) {
    const ExpertsPlan plan = choose_experts(h200_like(), qwen_experts(rows));
    for (const ExpertProduct* product : {&plan.gate_up, &plan.down}) {
      const GroupCount& groups = product->kernel.groups;
      EXPECT_LE(groups.x * groups.y, 2 * 132u) << rows;
      EXPECT_GE(groups.x * groups.y, 2 * 132u * 8 / 10) << rows;
    }
  }
}

TEST(ExpertsChoice, TilesGrowWithTheRowsOfAnExpert) {
  uint32_t before = 1;
  for (const uint32_t rows : {32u, 64u, 256u, 1024u, 8192u}) {
    const ExpertsPlan plan = choose_experts(h200_like(), qwen_experts(rows));
    EXPECT_TRUE(plan.group && plan.prepare && plan.halves) << rows;
    EXPECT_GE(plan.tile_rows, before) << rows;
    EXPECT_EQ(plan.gate_up.kernel.groups.x, plan.tiles);
    EXPECT_EQ(plan.down.kernel.groups.x, plan.tiles);
    before = plan.tile_rows;
  }
  EXPECT_EQ(choose_experts(h200_like(), qwen_experts(64)).tile_rows, 16u);
  EXPECT_GE(before, 64u);
}

// 2880 is not a multiple of the 128 inputs of a step; few rows still get their kernel.
TEST(ExpertsChoice, RowsThatAreNoMultipleOf128) {
  for (const uint32_t rows : {16u, 64u, 256u}) {
    const ExpertsPlan plan = choose_experts(h200_like(), gpt_oss_experts(rows));
    EXPECT_EQ(family_of(plan.gate_up), "experts_direct") << rows;
    EXPECT_EQ(family_of(plan.down), "experts_direct") << rows;
  }
}

// An unmeasured device, even one whose fragment layout is known, has only the tiles for any matrix
// units.
TEST(ExpertsChoice, UnmeasuredDevicesUseTilesForAnyMatrixUnits) {
  DeviceCaps rtx_4090 = h200_like();
  rtx_4090.device_id = 0x2684;
  for (const uint32_t rows : {64u, 256u, 2048u}) {
    for (const ExpertsShape& shape : {qwen_experts(rows), gpt_oss_experts(rows)}) {
      const ExpertsPlan plan = choose_experts(rtx_4090, shape);
      EXPECT_EQ(family_of(plan.gate_up), "experts_coopmat") << rows;
      EXPECT_EQ(family_of(plan.down), "experts_coopmat") << rows;
      if (rows == 64) {
        EXPECT_EQ(plan.tile_rows, 16u);
      }
    }
  }
}

// Every choice has room for any distribution of rows over experts, and fits every device.
TEST(ExpertsChoice, RoomForTheWorstCase) {
  for (const FakeDevice& device : fake_devices()) {
    for (const bool matrices : {false, true}) {
      if (matrices && device.cpu()) continue;
      const DeviceCaps caps = matrices ? with_matrices(device.caps) : device.caps;
      for (const uint32_t rows : {1u, 3u, 17u, 100u, 2048u}) {
        for (const ExpertsShape& shape : {qwen_experts(rows), gpt_oss_experts(rows)}) {
          const ExpertsPlan plan = choose_experts(caps, shape);
          const uint32_t pairs = rows * shape.used;
          // All pairs but one per other expert go to one expert.
          const uint32_t others = std::min(shape.experts, pairs) - 1;
          EXPECT_GE(plan.tiles, others + divide_up(pairs - others, plan.tile_rows))
              << device.name << ", " << rows;
          EXPECT_LE(plan.tiles, kMostExpertTiles);
          EXPECT_EQ(plan.group.has_value(), plan.tile_rows > 1);
          if (plan.group) {
            EXPECT_LE(plan.group->pipeline.constants.workgroup_size(), 32 * caps.subgroup_size)
                << device.name << ": more subgroups than every device allows";
          }
          for (const ExpertProduct* product : {&plan.gate_up, &plan.down}) {
            const PipelineInfo& pipeline = product->kernel.pipeline;
            EXPECT_LE(pipeline.constants.workgroup_size(), caps.limits.max_group_invocations)
                << device.name << ", " << pipeline.kernel;
            EXPECT_TRUE(pipeline.constants.has(product->half_results ? "kHalfResults" : "kGate"));
          }
          EXPECT_EQ(plan.scratch_bytes, expert_scratch(plan, shape).total_bytes);
        }
      }
    }
  }
}

TEST(ExpertsChoice, DeterministicRowsAreNeverGrouped) {
  const ExpertsPlan plan = choose_experts(h200_like(), qwen_experts(512), true);
  EXPECT_FALSE(plan.group);
  EXPECT_EQ(plan.tiles, 512u * 8);
}

}  // namespace
}  // namespace hearth::testing
