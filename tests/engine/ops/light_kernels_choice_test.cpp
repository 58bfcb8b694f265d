// Choices of the small kernels (embedding, norm, rope, MLP activation, gathering rows, copying
// blocks) for devices we do not have.
#include <gtest/gtest.h>

#include "engine/ops/block_copy.h"
#include "engine/ops/embed.h"
#include "engine/ops/gather_rows.h"
#include "engine/ops/hidden_rows.h"
#include "engine/ops/mlp.h"
#include "engine/ops/norm.h"
#include "engine/ops/pool_rows.h"
#include "engine/ops/rope.h"
#include "tests/support/fake_devices.h"

namespace hearth {
namespace {

using testing::fake_devices;
using testing::FakeDevice;

// Checks that workgroups along x, with `per_group` units each, cover `units` and that none is idle.
void expect_cover(const KernelPlan& plan, uint32_t per_group, uint32_t units, const char* device) {
  EXPECT_GE(uint64_t{plan.groups.x} * per_group, units) << device << ": " << plan.pipeline.kernel;
  EXPECT_LT(uint64_t{plan.groups.x - 1} * per_group, units)
      << device << ": an idle group of " << plan.pipeline.kernel;
}

void expect_whole_subgroups(const KernelPlan& plan, const FakeDevice& device) {
  const uint32_t lanes = plan.pipeline.constants.workgroup_size();
  EXPECT_GE(lanes, device.caps.subgroup_size) << device.name;
  EXPECT_EQ(lanes % device.caps.subgroup_size, 0u) << device.name;
  EXPECT_LE(lanes, device.caps.limits.max_group_invocations) << device.name;
}

TEST(RopeKvChoice, OneSubgroupPerHead) {
  for (const FakeDevice& device : fake_devices()) {
    for (const KvFormat kv : {KvFormat::kF16, KvFormat::kQ8_0}) {
      const RopeKvShape shape{.rows = 3,
                              .heads = 32,
                              .kv_heads = 8,
                              .head_size = 128,
                              .rope_dims = 96,
                              .pairs = RopePairs::kHalves,
                              .head_norms = true,
                              .kv = kv};
      const KernelPlan plan = choose_rope_kv(device.caps, shape);
      EXPECT_EQ(plan.pipeline.kernel, kv == KvFormat::kF16 ? "rope_kv.f16" : "rope_kv.q8_0");
      expect_whole_subgroups(plan, device);
      const KernelConstants& constants = plan.pipeline.constants;
      ASSERT_EQ(constants.words().size(), 10u) << "the rest is up to the op";
      EXPECT_EQ(constants["kHeads"], 32u);
      EXPECT_EQ(constants["kKvHeads"], 8u);
      EXPECT_EQ(constants["kHeadSize"], 128u);
      EXPECT_EQ(constants["kRopeDims"], 96u);
      EXPECT_EQ(constants["kAdjacent"], 0u);
      EXPECT_EQ(constants["kHeadNorms"], 1u);
      EXPECT_EQ(plan.groups.y, shape.rows);
      expect_cover(plan, constants.workgroup_size() / device.caps.subgroup_size, 32 + 2 * 8,
                   device.name);
      // The kernel relies on subgroups of the planned size, and on runs of 8 vec4 within one.
      EXPECT_EQ(plan.pipeline.subgroup_size, device.caps.subgroup_size) << device.name;
      EXPECT_GE(constants["kLaneQuads"] * device.caps.subgroup_size, 8u) << device.name;
    }
  }
}

TEST(EmbedChoice, OneInvocationPerPiece) {
  for (const FakeDevice& device : fake_devices()) {
    for (const uint32_t width : {32u, 288u, 2048u, 2087u, 4096u, 8192u}) {
      const KernelPlan plan = choose_embed(
          device.caps,
          {.format = WeightFormat::kQ6K, .rows = 5, .width = width, .vocabulary = 32000});
      EXPECT_EQ(plan.pipeline.kernel, "embed.q6_k");
      EXPECT_EQ(plan.groups.y, 5u);
      expect_whole_subgroups(plan, device);
      expect_cover(plan, plan.pipeline.constants.workgroup_size() * kPieceWeights, width,
                   device.name);
    }
  }
}

TEST(NormChoice, CpusNeedNoBarrierAndGpusReadARowOnce) {
  for (const FakeDevice& device : fake_devices()) {
    for (const uint32_t width : {1u, 63u, 288u, 4096u, 8192u, 100'000u}) {
      const KernelPlan plan =
          choose_rms_norm(device.caps, {.rows = 5, .width = width, .residuals = 1});
      const KernelConstants& constants = plan.pipeline.constants;
      ASSERT_EQ(constants.words().size(), 5u);
      EXPECT_EQ(plan.groups.x, 5u);
      EXPECT_EQ(constants["kResiduals"], 1u) << "the residual";
      EXPECT_EQ(constants["kWriteScales"], 0u) << "no scales unless the op asks for them";
      expect_whole_subgroups(plan, device);
      if (device.cpu()) {
        EXPECT_EQ(constants.workgroup_size(), device.caps.subgroup_size) << device.name;
        EXPECT_EQ(constants["kRegisterQuads"], 0u) << device.name;
      } else if (constants["kRegisterQuads"] > 0) {
        EXPECT_EQ(width % 4, 0u) << device.name;
        EXPECT_GE(constants.workgroup_size() * constants["kRegisterQuads"] * 4, width)
            << device.name;
      }
    }
    if (!device.cpu() && device.caps.limits.max_group_invocations >= 512) {
      EXPECT_GT(choose_rms_norm(device.caps, {.rows = 1, .width = 4096})
                    .pipeline.constants["kRegisterQuads"],
                0u)
          << device.name;
    }
  }
}

// The order in which the squares of a row are added depends on its lanes.
TEST(NormChoice, DeterministicRowsAreSummedInTheSameOrder) {
  for (const FakeDevice& device : fake_devices())
    for (const uint32_t width : {288u, 2304u, 4096u, 8192u})
      EXPECT_EQ(choose_rms_norm(device.caps, {.rows = 1, .width = width}, true).pipeline.constants,
                choose_rms_norm(device.caps, {.rows = 7, .width = width}, true).pipeline.constants)
          << device.name << ", " << width;
}

TEST(MlpChoice, GroupsCoverTheWidth) {
  for (const FakeDevice& device : fake_devices()) {
    for (const uint32_t rows : {1u, 64u, 2048u}) {
      for (const uint32_t width : {1u, 7u, 768u, 14336u}) {
        const KernelPlan plan = choose_mlp(
            device.caps, {.rows = rows, .width = width, .activation = MlpActivation::kGeluTanh});
        EXPECT_EQ(plan.pipeline.constants["kActivation"], 1u);
        EXPECT_EQ(plan.groups.y, rows);
        expect_whole_subgroups(plan, device);
        expect_cover(plan,
                     plan.pipeline.constants.workgroup_size() * plan.pipeline.constants["kUnroll"],
                     width % 4 == 0 ? width / 4 : width, device.name);
      }
    }
  }
}

TEST(GatherRowsChoice, GroupsCoverTheWidth) {
  for (const FakeDevice& device : fake_devices()) {
    for (const uint32_t width : {1u, 7u, 288u, 4096u}) {
      const KernelPlan plan =
          choose_gather_rows(device.caps, {.rows = 3, .width = width, .source_rows = 9});
      EXPECT_EQ(plan.groups.y, 3u);
      expect_whole_subgroups(plan, device);
      expect_cover(plan, plan.pipeline.constants.workgroup_size(),
                   width % 4 == 0 ? width / 4 : width, device.name);
    }
  }
}

TEST(PoolRowsChoice, GroupsCoverTheWidth) {
  for (const FakeDevice& device : fake_devices()) {
    for (const uint32_t width : {1u, 7u, 288u, 4096u}) {
      const KernelPlan plan =
          choose_pool_rows(device.caps, {.ranges = 3, .width = width, .rows = 9});
      EXPECT_EQ(plan.groups.y, 3u);
      expect_whole_subgroups(plan, device);
      expect_cover(plan, plan.pipeline.constants.workgroup_size(), width, device.name);
    }
  }
}

TEST(BlockCopyChoice, GroupsCoverTheLargestBlock) {
  for (const FakeDevice& device : fake_devices()) {
    for (const uint32_t bytes : {16u, 4096u, 32768u}) {
      const KernelPlan plan =
          choose_block_copy(device.caps, {.pairs = 4, .planes = 64, .block_bytes = bytes});
      EXPECT_EQ(plan.groups.y, 4u);
      EXPECT_EQ(plan.groups.z, 64u);
      expect_whole_subgroups(plan, device);
      expect_cover(plan,
                   plan.pipeline.constants.workgroup_size() * plan.pipeline.constants["kAhead"],
                   bytes / 16, device.name);
    }
  }
}

}  // namespace
}  // namespace hearth
