// How products of a few rows are divided into workgroups, for devices we do not have.
#include <gtest/gtest.h>

#include "engine/ops/matmul.h"
#include "tests/support/fake_devices.h"

namespace hearth {
namespace {

using testing::fake_devices;
using testing::half_fragments;
using testing::with_matrices;

constexpr WeightFormat kHalf = WeightFormat::kF16, kFourBits = WeightFormat::kQ4K;

DeviceCaps with_lane_fragments() {
  DeviceCaps caps =
      with_matrices(fake_devices().front().caps, {half_fragments(), half_fragments(8)});
  caps.limits.multiprocessors = 132;
  caps.features.integer_dot = caps.features.lane_fragments = true;
  return caps;
}

// The products of llama-8b and llama-1b as they were measured: k in as few splits as registers
// allow, and one wave of workgroups that stay to the end.
TEST(FewRowsChoice, WorkgroupsFillTheDevice) {
  const DeviceCaps caps = with_lane_fragments();
  struct Case {
    WeightFormat format;
    uint32_t rows, outputs, inputs;
    uint32_t subgroups, splits, rounds, groups;  // groups: per split of k
  };
  for (const Case& wanted : std::initializer_list<Case>{{kFourBits, 2, 28672, 4096, 32, 1, 14, 128},
                                                        {kFourBits, 8, 4096, 14336, 28, 4, 8, 32},
                                                        {kFourBits, 8, 6144, 4096, 32, 1, 3, 128},
                                                        {kFourBits, 8, 4096, 4096, 32, 1, 2, 128},
                                                        {kFourBits, 9, 28672, 4096, 16, 1, 14, 128},
                                                        {kFourBits, 16, 4096, 14336, 14, 4, 8, 32},
                                                        {kHalf, 2, 28672, 4096, 16, 1, 14, 128},
                                                        {kHalf, 8, 4096, 14336, 14, 4, 8, 32},
                                                        {kHalf, 8, 128256, 4096, 16, 1, 61, 132},
                                                        {kFourBits, 8, 8192, 28672, 32, 7, 29, 18},
                                                        {kHalf, 8, 16384, 2048, 8, 1, 4, 256},
                                                        {kHalf, 8, 48, 128, 2, 1, 1, 3}}) {
    const MatmulPlan plan = choose_matmul(caps, {.format = wanted.format,
                                                 .rows = wanted.rows,
                                                 .inputs = wanted.inputs,
                                                 .outputs = wanted.outputs});
    const KernelConstants& constants = plan.multiply.pipeline.constants;
    SCOPED_TRACE(::testing::Message()
                 << wanted.rows << " x " << wanted.outputs << " x " << wanted.inputs);
    ASSERT_TRUE(plan.multiply.pipeline.kernel.starts_with("matmul_team."));
    EXPECT_EQ(constants.workgroup_size(), 32 * wanted.subgroups);
    EXPECT_EQ(constants["kInputs"], wanted.inputs);
    EXPECT_EQ(constants["kSplits"], wanted.splits);
    EXPECT_EQ(constants["kSubgroups"], wanted.subgroups);
    EXPECT_EQ(constants["kRounds"], wanted.rounds);
    EXPECT_EQ(constants["kColumns"], wanted.rows > 8 ? 2u : 1u);
    EXPECT_EQ(plan.multiply.groups.x, 1u);
    EXPECT_EQ(plan.multiply.groups.y, wanted.groups);
    EXPECT_EQ(plan.multiply.groups.z, wanted.splits);
    const uint32_t resident =
        (wanted.format == kFourBits && wanted.rows <= 8 ? 32 : 16) / constants["kSubgroups"];
    EXPECT_LE(wanted.groups * wanted.splits, 132 * resident);
    EXPECT_EQ(plan.form, RowForm::kHalves);
    EXPECT_EQ(plan.can_gate, wanted.splits == 1);
    EXPECT_FALSE(plan.can_norm);
    EXPECT_EQ(plan.can_share_norm, wanted.splits == 1);
    ASSERT_EQ(plan.reduce.has_value(), wanted.splits > 1);
    EXPECT_EQ(plan.parts.rows, wanted.splits == 1 ? 0 : constants["kColumns"] * 8);
    EXPECT_EQ(
        plan.part_bytes,
        wanted.splits == 1 ? 0 : uint64_t{4} * wanted.splits * plan.parts.rows * wanted.outputs);
    EXPECT_EQ(plan.scratch_bytes, plan.part_bytes + wanted.rows * wanted.inputs * 2);
  }
}

TEST(FewRowsChoice, OnlyWhereItIsFasterAndFits) {
  DeviceCaps caps = with_lane_fragments();
  const auto few = [&](WeightFormat format, uint32_t rows, uint32_t inputs = 4096) {
    const MatmulShape shape{.format = format, .rows = rows, .inputs = inputs, .outputs = 4096};
    return choose_matmul(caps, shape).multiply.pipeline.kernel.starts_with("matmul_team.");
  };
  EXPECT_FALSE(few(kHalf, 1) || few(kFourBits, 1));
  EXPECT_TRUE(few(kHalf, 8) && few(kFourBits, 16) && few(WeightFormat::kBf16, 2));
  EXPECT_FALSE(few(kHalf, 9) || few(kFourBits, 17));
  EXPECT_FALSE(few(WeightFormat::kF32, 4));
  EXPECT_TRUE(few(kHalf, 4, 2880)) << "rows may end within a block";
  EXPECT_FALSE(few(kHalf, 4, 4096 + 16)) << "but not within a piece";
  caps.limits.max_group_invocations = 512;
  EXPECT_TRUE(few(kHalf, 4) && !few(kFourBits, 4) && few(kFourBits, 12));
  caps.limits.max_group_invocations = 1024;
  caps.limits.max_shared_bytes = 17 * 1024;
  EXPECT_TRUE(few(kHalf, 4) && !few(kFourBits, 4) && !few(kFourBits, 12));
  caps = with_lane_fragments();
  caps.features.lane_fragments = false;
  EXPECT_FALSE(few(kHalf, 4) || few(kFourBits, 4));
  caps = with_lane_fragments();
  EXPECT_EQ(choose_matmul(caps, {.format = kHalf, .rows = 4, .inputs = 4096, .outputs = 64}, true)
                .multiply.pipeline.kernel,
            "matvec_float.f16")
      << "deterministic";
}

}  // namespace
}  // namespace hearth
