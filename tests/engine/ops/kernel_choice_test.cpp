// Kernel choice for devices we do not have, pinned down as tables.
#include "engine/ops/kernel_choice.h"

#include <gtest/gtest.h>

#include "tests/support/fake_devices.h"

namespace hearth {
namespace {

using testing::fake_devices;
using testing::FakeDevice;

const std::vector<FakeDevice> kDevices = fake_devices();

MatmulShape shape_of(WeightFormat format, uint32_t rows, uint32_t outputs = 4096) {
  return {.format = format, .rows = rows, .inputs = 4096, .outputs = outputs};
}

TEST(KernelChoice, CpuDevicesGetTheTierWithoutBarriers) {
  for (const FakeDevice& device : kDevices) {
    const bool cpu = device.caps.type == DeviceType::kCpu;
    const MatmulPlan matmul = choose_matmul(device.caps, shape_of(WeightFormat::kF16, 1));
    EXPECT_EQ(matmul.multiply.pipeline.kernel, cpu ? "matmul_invocation.f16" : "matvec_float.f16")
        << device.name;
    const KernelPlan norm = choose_rms_norm(device.caps, {1, 4096});
    if (cpu) {
      EXPECT_EQ(norm.pipeline.constants[0], device.caps.subgroup_size) << device.name;
    }
  }
}

TEST(KernelChoice, IntegerDotsServeQuantizedWeightsWhereTheyAreFast) {
  for (FakeDevice device : kDevices) {
    const bool cpu = device.caps.type == DeviceType::kCpu;
    for (const bool fast : {false, true}) {
      device.caps.features.integer_dot = fast;
      const MatmulPlan plan = choose_matmul(device.caps, shape_of(WeightFormat::kQ4K, 1));
      EXPECT_EQ(plan.multiply.pipeline.kernel, cpu    ? "matmul_invocation.q4_k"
                                               : fast ? "matvec_integer.q4_k"
                                                      : "matvec_float.q4_k")
          << device.name;
      EXPECT_EQ(plan.prepare.has_value(), fast && !cpu) << device.name;
      EXPECT_EQ(plan.scratch_bytes > 0, fast && !cpu) << device.name;
      EXPECT_FALSE(choose_matmul(device.caps, shape_of(WeightFormat::kF16, 1)).prepare);
    }
  }
}

TEST(KernelChoice, TilesFitTheDevice) {
  for (FakeDevice device : kDevices) {
    if (device.caps.type == DeviceType::kCpu) continue;
    for (const bool coopmat : {false, true}) {
      device.caps.features.coopmat = device.caps.features.float16 = coopmat;
      device.caps.coopmat_shapes = {
          {16, 16, 16, ScalarType::kF16, ScalarType::kF16, ScalarType::kF32, ScalarType::kF32}};
      for (const uint32_t rows : {9u, 16u, 17u, 64u, 65u, 128u, 129u, 2048u}) {
        const MatmulPlan plan = choose_matmul(device.caps, shape_of(WeightFormat::kQ4K, rows));
        const auto& constants = plan.multiply.pipeline.constants;
        EXPECT_EQ(plan.multiply.pipeline.kernel,
                  coopmat ? "matmul_coopmat.q4_k" : "matmul_tile.q4_k");
        EXPECT_GE(plan.multiply.groups.x * constants[2], rows);
        EXPECT_GE(plan.multiply.groups.y * constants[3], 4096u);
        EXPECT_EQ(plan.multiply.groups.z, constants[5]);
        EXPECT_EQ(plan.reduce.has_value(), constants[5] > 1);
        const uint64_t sums =
            uint64_t{plan.multiply.groups.x} * constants[2] * plan.multiply.groups.y * constants[3];
        EXPECT_EQ(plan.part_bytes, constants[5] > 1 ? constants[5] * sums * 4 : 0);
        EXPECT_EQ(plan.form, coopmat ? RowForm::kHalves : RowForm::kFloats);
        EXPECT_EQ(plan.scratch_bytes, plan.part_bytes + (coopmat ? rows * 4096 * 2 : 0));
        EXPECT_LE(constants[0], device.caps.limits.max_group_invocations) << device.name;
        const uint32_t tile = constants[2] + constants[3];
        EXPECT_LE(coopmat ? tile * (constants[4] / 8 + 1) * 16 : tile * (constants[4] / 4 + 2) * 16,
                  device.caps.limits.max_shared_bytes)
            << device.name;
        if (rows <= 64 && device.caps.limits.max_group_invocations >= 256) {
          EXPECT_EQ(plan.multiply.groups.x, 1u) << "the weights are read once";
        }
      }
    }
  }
}

// Where kernels wait for each other on the GPU, a product of one row loads more before it waits.
TEST(KernelChoice, OneRowProductsInAChainLoadMoreAtOnce) {
  DeviceCaps caps = kDevices.front().caps;
  ASSERT_EQ(caps.subgroup_size, 32u);
  struct Case {
    uint32_t outputs, inputs, rows;
    bool ordered;
    uint32_t step_outputs, ahead;
  };
  for (const Case& wanted : std::initializer_list<Case>{{4096, 4096, 1, false, 1, 4},
                                                        {28672, 4096, 1, false, 2, 1},
                                                        {4096, 4096, 1, true, 2, 8},
                                                        {4096, 14336, 1, true, 2, 8},
                                                        {28672, 4096, 1, true, 4, 2},
                                                        {2048, 8192, 1, true, 1, 16},
                                                        {2048, 2048, 1, true, 2, 8},
                                                        {512, 288, 1, true, 2, 1},
                                                        {4096, 4096, 2, true, 1, 4},
                                                        {4096, 4096, 5, true, 4, 1}}) {
    caps.features.ordered_groups = wanted.ordered;
    caps.features.coopmat = false;
    const MatmulPlan plan = choose_matmul(caps, {.format = WeightFormat::kF16,
                                                 .rows = wanted.rows,
                                                 .inputs = wanted.inputs,
                                                 .outputs = wanted.outputs});
    SCOPED_TRACE(::testing::Message() << wanted.outputs << " x " << wanted.inputs);
    EXPECT_EQ(plan.multiply.pipeline.constants[3], wanted.step_outputs);
    EXPECT_EQ(plan.multiply.pipeline.constants[4], wanted.ahead);
  }
}

TEST(KernelChoice, IntegerProductsOfManyGroupsStayOutOfChains) {
  DeviceCaps caps = kDevices.front().caps;
  caps.features.integer_dot = true;
  for (const auto& [outputs, chains] : {std::pair{2048u, true}, {4096u, false}, {28672u, false}}) {
    const MatmulPlan plan = choose_matmul(caps, shape_of(WeightFormat::kQ4K, 1, outputs));
    ASSERT_EQ(plan.multiply.pipeline.kernel, "matvec_integer.q4_k");
    EXPECT_EQ(plan.multiply.pipeline.chains, chains) << outputs;
    EXPECT_TRUE(
        choose_matmul(caps, shape_of(WeightFormat::kF16, 1, outputs)).multiply.pipeline.chains);
  }
}

// Many rows get the wide tile, where k is whole rounds in every part and it does not pad too much.
TEST(KernelChoice, WideTilesForManyRows) {
  DeviceCaps caps = kDevices.front().caps;
  caps.features.coopmat = caps.features.float16 = true;
  caps.coopmat_shapes = {
      {16, 16, 16, ScalarType::kF16, ScalarType::kF16, ScalarType::kF32, ScalarType::kF32}};
  struct Case {
    WeightFormat format;
    uint32_t rows, outputs, inputs;
    uint32_t tile_rows, splits, round;
  };
  constexpr WeightFormat kF16 = WeightFormat::kF16, kQ4K = WeightFormat::kQ4K;
  for (const Case& wanted :
       std::initializer_list<Case>{{kF16, 2048, 4096, 14336, 256, 1, 8},
                                   {kF16, 2048, 28672, 4096, 256, 1, 8},
                                   {kQ4K, 2048, 4096, 4096, 256, 1, 2},
                                   {kF16, 256, 4096, 4096, 256, 4, 8},
                                   {kF16, 256, 6144, 4096, 256, 2, 8},
                                   {kF16, 200, 28672, 4096, 256, 1, 8},
                                   {kF16, 192, 28672, 4096, 96, 1, 0},
                                   {kF16, 300, 28672, 4096, 128, 1, 0},    // would compute 512
                                   {kF16, 2048, 4096, 4128, 128, 1, 0},    // not whole rounds
                                   {kF16, 256, 3072, 2048, 128, 5, 0}}) {  // not in every part
    const MatmulPlan plan = choose_matmul(caps, {.format = wanted.format,
                                                 .rows = wanted.rows,
                                                 .inputs = wanted.inputs,
                                                 .outputs = wanted.outputs});
    const std::vector<uint32_t>& constants = plan.multiply.pipeline.constants;
    SCOPED_TRACE(::testing::Message()
                 << wanted.rows << " x " << wanted.outputs << " x " << wanted.inputs);
    EXPECT_EQ(constants[2], wanted.tile_rows);
    EXPECT_EQ(constants[5], wanted.splits);
    EXPECT_EQ(constants[16], wanted.round);
    EXPECT_EQ(plan.gate_constant.has_value(), wanted.splits == 1);
    if (wanted.round == 0) continue;
    EXPECT_EQ(wanted.inputs % (constants[4] * wanted.round * wanted.splits), 0u);
  }
  caps.limits.max_shared_bytes = 24 * 1024;
  EXPECT_EQ(choose_matmul(caps, shape_of(kF16, 2048)).multiply.pipeline.constants[2], 128u);
}

// What products can do for their neighbours is for single rows, where kernels wait for each other,
// and for tiles that nobody else has a part of. Deterministic ones do the same at any number of
// rows.
TEST(KernelChoice, NormsAndGatesInsideProducts) {
  DeviceCaps caps = kDevices.front().caps;
  caps.features.coopmat = caps.features.float16 = true;
  caps.coopmat_shapes = {
      {16, 16, 16, ScalarType::kF16, ScalarType::kF16, ScalarType::kF32, ScalarType::kF32}};
  const MatmulPlan one = choose_matmul(caps, shape_of(WeightFormat::kF16, 1, 28672));
  EXPECT_TRUE(one.norm_constant && one.emit_constant && one.gate_constant);
  EXPECT_FALSE(choose_matmul(caps, shape_of(WeightFormat::kF16, 1)).gate_constant);
  for (const uint32_t rows : {8u, 32u, 64u, 256u, 2048u}) {
    const MatmulPlan many = choose_matmul(caps, shape_of(WeightFormat::kF16, rows, 28672));
    EXPECT_TRUE(many.gate_constant && !many.reduce) << rows;
    EXPECT_FALSE(many.norm_constant || many.emit_constant) << rows;
  }
  const MatmulPlan split = choose_matmul(caps, shape_of(WeightFormat::kF16, 64, 4096));
  ASSERT_TRUE(split.reduce && !split.gate_constant);
  EXPECT_EQ(split.part_bytes,
            uint64_t{split.parts.splits} * split.parts.rows * split.parts.outputs * 4);
  const MatmulPlan fixed = choose_matmul(caps, shape_of(WeightFormat::kF16, 1, 28672), true);
  EXPECT_FALSE(fixed.norm_constant || fixed.emit_constant || fixed.gate_constant);
}

TEST(KernelChoice, MatrixUnitsTakeOverWhereTheyAreAhead) {
  DeviceCaps caps = kDevices.front().caps;
  caps.features.coopmat = caps.features.float16 = caps.features.integer_dot = true;
  caps.coopmat_shapes = {
      {16, 16, 16, ScalarType::kF16, ScalarType::kF16, ScalarType::kF32, ScalarType::kF32}};
  const auto kernel = [&](WeightFormat format, uint32_t rows) {
    return choose_matmul(caps, shape_of(format, rows)).multiply.pipeline.kernel;
  };
  EXPECT_EQ(kernel(WeightFormat::kF16, 1), "matvec_float.f16");
  EXPECT_EQ(kernel(WeightFormat::kF16, 2), "matmul_coopmat.f16");
  EXPECT_EQ(kernel(WeightFormat::kQ4K, 3), "matvec_integer.q4_k");
  EXPECT_EQ(kernel(WeightFormat::kQ4K, 4), "matmul_coopmat.q4_k");
  // F32 weights keep their precision.
  EXPECT_EQ(kernel(WeightFormat::kF32, 8), "matvec_float.f32");
  EXPECT_EQ(kernel(WeightFormat::kF32, 9), "matmul_tile.f32");
}

TEST(KernelChoice, IntegerGroupsShareARowOut) {
  for (FakeDevice device : kDevices) {
    if (device.caps.type == DeviceType::kCpu) continue;
    device.caps.features.integer_dot = true;
    for (const uint32_t inputs : {256u, 768u, 4096u, 14336u, 28672u, 131072u}) {
      for (const uint32_t rows : {1u, 2u, 3u, 8u}) {
        const MatmulShape shape{
            .format = WeightFormat::kQ4K, .rows = rows, .inputs = inputs, .outputs = 1000};
        const KernelPlan plan = choose_matmul(device.caps, shape).multiply;
        if (plan.pipeline.kernel == "matvec_float.q4_k") {
          EXPECT_GT(inputs, 4096u) << device.name;
          continue;
        }
        const auto& constants = plan.pipeline.constants;
        EXPECT_GE(constants[0] * constants[4] * kPieceWeights, inputs) << device.name;
        EXPECT_LE(constants[0], device.caps.limits.max_group_invocations) << device.name;
        EXPECT_EQ(constants[5] * device.caps.subgroup_size, constants[0]) << device.name;
        EXPECT_GE(plan.groups.x * constants[3], 1000u) << device.name;
        EXPECT_GE(plan.groups.y * constants[2], rows) << device.name;
      }
    }
  }
}

TEST(KernelChoice, FormsAreWrittenWhereWidthAndSubgroupAllow) {
  const DeviceCaps& nvidia = kDevices.front().caps;
  const DeviceCaps& narrow = kDevices.back().caps;  // subgroups of 4
  EXPECT_TRUE(can_write_form(nvidia, RowForm::kSplit, 4096));
  EXPECT_FALSE(can_write_form(nvidia, RowForm::kSplit, 4100));
  EXPECT_FALSE(can_write_form(narrow, RowForm::kSplit, 4096));
  EXPECT_TRUE(can_write_form(narrow, RowForm::kHalves, 4104));
  EXPECT_FALSE(can_write_form(narrow, RowForm::kHalves, 4100));
  EXPECT_EQ(row_form_bytes(RowForm::kSplit, 2, 64), 4u * 80);
  EXPECT_EQ(row_form_bytes(RowForm::kHalves, 2, 64), 256u);
}

TEST(KernelChoice, DeterministicIsOneShapeForAnyNumberOfRows) {
  for (const FakeDevice& device : kDevices) {
    const auto plan = [&](uint32_t rows) {
      return choose_matmul(device.caps, shape_of(WeightFormat::kQ8_0, rows), true)
          .multiply.pipeline;
    };
    for (const uint32_t rows : {2u, 5u, 8u, 64u, 512u})
      EXPECT_EQ(plan(1), plan(rows)) << device.name;
  }
}

TEST(KernelChoice, GroupsAreWholeSubgroupsWithinTheLimit) {
  for (const FakeDevice& device : kDevices) {
    for (const uint32_t width : {1u, 63u, 288u, 4096u, 16384u}) {
      const uint32_t lanes = choose_rms_norm(device.caps, {5, width}).pipeline.constants[0];
      EXPECT_EQ(lanes % device.caps.subgroup_size, 0u) << device.name;
      EXPECT_GE(lanes, device.caps.subgroup_size) << device.name;
      EXPECT_LE(lanes, device.caps.limits.max_group_invocations) << device.name;
    }
  }
}

TEST(KernelChoice, MatrixVectorGroupsCoverEveryOutputAndRow) {
  for (const FakeDevice& device : kDevices) {
    for (const uint32_t outputs : {1u, 7u, 32u, 1000u, 128256u}) {
      for (const uint32_t rows : {1u, 3u, 8u}) {
        const KernelPlan plan =
            choose_matmul(device.caps, shape_of(WeightFormat::kF16, rows, outputs)).multiply;
        const bool cpu = device.caps.type == DeviceType::kCpu;
        const uint32_t lanes = plan.pipeline.constants[0];
        const uint32_t per_group =
            cpu ? lanes : lanes / device.caps.subgroup_size * plan.pipeline.constants[3];
        EXPECT_GE(plan.groups.x * per_group, outputs) << device.name;
        EXPECT_LT((plan.groups.x - 1) * per_group, outputs) << device.name << ": an idle group";
        EXPECT_GE(plan.groups.y * plan.pipeline.constants[2], rows) << device.name;
      }
    }
  }
}

TEST(KernelChoice, SubgroupKernelsPinTheSizeTheyWerePlannedFor) {
  for (const FakeDevice& device : kDevices) {
    const MatmulPlan plan = choose_matmul(device.caps, shape_of(WeightFormat::kF16, 1));
    if (device.caps.type != DeviceType::kCpu) {
      EXPECT_EQ(plan.multiply.pipeline.subgroup_size, device.caps.subgroup_size) << device.name;
    }
  }
}

}  // namespace
}  // namespace hearth
