// Tables of kernel choices for devices we do not have.
#include <gtest/gtest.h>

#include "engine/ops/matmul/family.h"
#include "engine/ops/norm.h"
#include "tests/support/fake_devices.h"

namespace hearth {
namespace {

using testing::fake_devices;
using testing::FakeDevice;
using testing::half_fragments;
using testing::with_matrices;

const std::vector<FakeDevice> kDevices = fake_devices();

MatmulShape shape_of(WeightFormat format, uint32_t rows, uint32_t outputs = 4096) {
  return {.format = format, .rows = rows, .inputs = 4096, .outputs = outputs};
}

TEST(KernelChoice, CpuDevicesGetKernelsWithoutBarriers) {
  for (const FakeDevice& device : kDevices) {
    const bool cpu = device.caps.type == DeviceType::kCpu;
    const MatmulPlan matmul = choose_matmul(device.caps, shape_of(WeightFormat::kF16, 1));
    EXPECT_EQ(matmul.multiply.pipeline.kernel, cpu ? "matmul_invocation.f16" : "matvec_team.f16")
        << device.name;
    const KernelPlan norm = choose_rms_norm(device.caps, {1, 4096});
    if (cpu) {
      EXPECT_EQ(norm.pipeline.constants.workgroup_size(), device.caps.subgroup_size) << device.name;
    }
  }
}

TEST(KernelChoice, IntegerDotsAreUsedForQuantizedWeightsWhereFast) {
  for (FakeDevice device : kDevices) {
    const bool cpu = device.caps.type == DeviceType::kCpu;
    for (const bool fast : {false, true}) {
      device.caps.features.integer_dot = fast;
      // Eight lanes of a subgroup find the scale of a piece of x together.
      const bool integer = fast && device.caps.subgroup_size >= 8;
      const MatmulPlan plan = choose_matmul(device.caps, shape_of(WeightFormat::kQ4K, 1));
      EXPECT_EQ(plan.multiply.pipeline.kernel, cpu       ? "matmul_invocation.q4_k"
                                               : integer ? "matvec_integer.q4_k"
                                                         : "matvec_float.q4_k")
          << device.name;
      EXPECT_EQ(plan.scratch_bytes, 0u) << device.name;
    }
  }
}

// In a chain, one workgroup per multiprocessor runs all rounds; with very many outputs, smaller
// workgroups follow each other.
TEST(KernelChoice, OneRowOfFloatsFillsTheDeviceOnce) {
  DeviceCaps caps = with_matrices(kDevices.front().caps);
  ASSERT_EQ(caps.subgroup_size, 32u);
  caps.limits.multiprocessors = 132;
  struct Case {
    WeightFormat format;
    uint32_t outputs, inputs;
    bool ordered;
    uint32_t lanes, teams, step_outputs, rounds;
  };
  constexpr WeightFormat kF16 = WeightFormat::kF16, kF32 = WeightFormat::kF32;
  for (const Case& wanted : std::initializer_list<Case>{{kF16, 6144, 4096, true, 1024, 2, 8, 3},
                                                        {kF16, 4096, 4096, true, 1024, 2, 8, 2},
                                                        {kF16, 28672, 4096, true, 1024, 2, 8, 14},
                                                        {kF16, 4096, 14336, true, 896, 1, 4, 8},
                                                        {kF16, 128256, 4096, true, 256, 1, 4, 8},
                                                        {kF16, 3072, 2048, true, 1024, 4, 8, 1},
                                                        {kF16, 16384, 2048, true, 1024, 4, 8, 4},
                                                        {kF16, 2048, 8192, true, 1024, 1, 8, 2},
                                                        {kF16, 128256, 2048, true, 256, 1, 8, 8},
                                                        {kF16, 57344, 8192, true, 512, 1, 4, 8},
                                                        {kF32, 2048, 8192, true, 1024, 1, 4, 4},
                                                        {kF16, 3, 2048, true, 1024, 4, 2, 1},
                                                        {kF16, 288, 288, true, 1024, 16, 8, 1},
                                                        {kF16, 4096, 4096, false, 256, 1, 4, 2}}) {
    caps.features.ordered_groups = wanted.ordered;
    const KernelPlan plan = choose_matmul(caps, {.format = wanted.format,
                                                 .rows = 1,
                                                 .inputs = wanted.inputs,
                                                 .outputs = wanted.outputs})
                                .multiply;
    SCOPED_TRACE(::testing::Message() << wanted.outputs << " x " << wanted.inputs);
    EXPECT_EQ(plan.pipeline.kernel, variant("matvec_team", wanted.format));
    EXPECT_EQ(plan.pipeline.constants.workgroup_size(), wanted.lanes);
    EXPECT_EQ(plan.pipeline.constants["kOutputs"], wanted.step_outputs);
    EXPECT_EQ(plan.pipeline.constants["kInputs"], wanted.inputs);
    EXPECT_EQ(plan.pipeline.constants["kSubgroups"], wanted.lanes / 32);
    EXPECT_EQ(plan.pipeline.constants["kRounds"], wanted.rounds);
    EXPECT_EQ(plan.pipeline.constants["kTeams"], wanted.teams);
    EXPECT_EQ(plan.groups.x,
              divide_up(wanted.outputs, wanted.step_outputs * wanted.teams * wanted.rounds));
  }
}

TEST(KernelChoice, FloatTeamsFitAnyDevice) {
  for (const FakeDevice& device : kDevices) {
    if (device.caps.type == DeviceType::kCpu) continue;
    for (const uint32_t inputs : {8u, 288u, 4096u, 14336u, 53248u, 131072u})
      for (const uint32_t outputs : {1u, 1000u, 256000u}) {
        SCOPED_TRACE(::testing::Message() << device.name << ", " << outputs << " x " << inputs);
        const MatmulPlan plan = choose_matmul(
            device.caps,
            {.format = WeightFormat::kF16, .rows = 1, .inputs = inputs, .outputs = outputs});
        const KernelConstants& constants = plan.multiply.pipeline.constants;
        if (plan.multiply.pipeline.kernel == "matvec_float.f16") {
          EXPECT_GT(inputs, 8 * 8 * std::min(128u, 32 * device.caps.subgroup_size));
          EXPECT_FALSE(plan.can_norm);
          continue;
        }
        const uint32_t lanes = constants.workgroup_size(), teams = constants["kTeams"];
        EXPECT_LE(lanes, device.caps.limits.max_group_invocations);
        EXPECT_LE(constants["kSubgroups"], 32u);
        EXPECT_EQ(lanes, constants["kSubgroups"] * device.caps.subgroup_size);
        EXPECT_EQ(lanes / teams % device.caps.subgroup_size, 0u);
        EXPECT_LE(divide_up(inputs / 8, lanes / teams), 8u);
        EXPECT_LE(constants["kOutputs"], std::min(outputs, device.caps.subgroup_size));
        EXPECT_LE((constants["kRounds"] * constants["kOutputs"] + 1) * constants["kSubgroups"] * 4,
                  16384u);  // shared bytes
        const uint32_t per_group = constants["kOutputs"] * teams * constants["kRounds"];
        EXPECT_EQ(plan.multiply.groups.x, divide_up(outputs, per_group));
      }
  }
}

// A CPU computes rows together as long as little of it is padding, with work for every core.
TEST(KernelChoice, CpusComputeRowsTogether) {
  const auto cpu = std::ranges::find(kDevices, DeviceType::kCpu,
                                     [](const FakeDevice& device) { return device.caps.type; });
  ASSERT_NE(cpu, std::end(kDevices));
  const auto plan = [&](uint32_t rows, uint32_t outputs) {
    return choose_matmul(
               cpu->caps,
               {.format = WeightFormat::kQ8_0, .rows = rows, .inputs = 288, .outputs = outputs})
        .multiply;
  };
  struct Case {
    uint32_t rows, at_once;
  };
  for (const Case& wanted : std::initializer_list<Case>{{1, 1},
                                                        {3, 3},
                                                        {4, 4},
                                                        {5, 6},
                                                        {8, 8},
                                                        {9, 12},
                                                        {16, 16},
                                                        {18, 6},
                                                        {24, 12},
                                                        {512, 16}}) {
    EXPECT_EQ(plan(wanted.rows, 32000).pipeline.constants["kRows"], wanted.at_once) << wanted.rows;
    EXPECT_EQ(plan(wanted.rows, 32000).groups.y, divide_up(wanted.rows, wanted.at_once));
  }
  EXPECT_EQ(plan(1, 32000).pipeline.constants.workgroup_size(), 64u);
  EXPECT_EQ(plan(1, 288).pipeline.constants.workgroup_size(), 16u);
  EXPECT_EQ(plan(1, 288).groups.x, 18u);
  EXPECT_EQ(plan(1, 8).pipeline.constants.workgroup_size(), cpu->caps.subgroup_size);
}

// There are workgroups for every multiprocessor but no more than needed, because each first
// converts x to integers.
TEST(KernelChoice, IntegerWorkgroupsFillTheDeviceOnce) {
  DeviceCaps caps = kDevices.front().caps;
  caps.features.integer_dot = true;
  caps.limits.multiprocessors = 132;
  struct Case {
    uint32_t rows, outputs, inputs, lanes, teams, step_outputs, rounds;
  };
  for (const Case& wanted : std::initializer_list<Case>{{1, 1024, 4096, 256, 2, 4, 1},
                                                        {1, 4096, 4096, 256, 2, 4, 2},
                                                        {1, 6144, 4096, 256, 2, 4, 3},
                                                        {1, 28672, 4096, 256, 2, 4, 14},
                                                        {1, 128256, 4096, 256, 2, 4, 16},
                                                        {1, 4096, 14336, 448, 1, 4, 8},
                                                        {2, 4096, 14336, 448, 1, 2, 16},
                                                        {1, 16384, 2048, 256, 4, 4, 4},
                                                        {1, 4096, 256, 256, 8, 4, 1},
                                                        {1, 4096, 28672, 448, 1, 2, 16}}) {
    const KernelPlan plan = choose_matmul(caps, {.format = WeightFormat::kQ4K,
                                                 .rows = wanted.rows,
                                                 .inputs = wanted.inputs,
                                                 .outputs = wanted.outputs})
                                .multiply;
    SCOPED_TRACE(::testing::Message() << wanted.outputs << " x " << wanted.inputs);
    EXPECT_EQ(plan.pipeline.constants.workgroup_size(), wanted.lanes);
    EXPECT_EQ(plan.pipeline.constants["kOutputs"], wanted.step_outputs);
    EXPECT_EQ(plan.pipeline.constants["kRounds"], wanted.rounds);
    EXPECT_EQ(plan.pipeline.constants["kTeams"], wanted.teams);
    EXPECT_EQ(plan.groups.x,
              divide_up(wanted.outputs, wanted.step_outputs * wanted.teams * wanted.rounds));
  }
}

TEST(KernelChoice, IntegerWorkgroupsLoadMoreSmallPiecesAtOnce) {
  DeviceCaps caps = kDevices.front().caps;
  caps.features.integer_dot = true;
  caps.limits.multiprocessors = 132;
  const auto outputs_of = [&](WeightFormat format, uint32_t rows, uint32_t outputs,
                              uint32_t inputs = 4096) {
    return choose_matmul(caps,
                         {.format = format, .rows = rows, .inputs = inputs, .outputs = outputs})
        .multiply.pipeline.constants["kOutputs"];
  };
  EXPECT_EQ(outputs_of(WeightFormat::kQ4_0, 1, 14336), 8u);
  EXPECT_EQ(outputs_of(WeightFormat::kQ4_0, 1, 4096), 4u);  // there would be only one round
  EXPECT_EQ(outputs_of(WeightFormat::kQ4_0, 2, 14336), 4u);
  EXPECT_EQ(outputs_of(WeightFormat::kQ4_0, 1, 4096, 14336), 8u);
  EXPECT_EQ(outputs_of(WeightFormat::kQ4K, 1, 14336), 4u);
}

// Products do the work of neighbouring kernels for single rows in a chain, and for tiles that are
// not split. Deterministic products do the same for any number of rows.
TEST(KernelChoice, NormsAndGatesInsideProducts) {
  DeviceCaps caps = with_matrices(kDevices.front().caps);
  const MatmulPlan one = choose_matmul(caps, shape_of(WeightFormat::kF16, 1, 28672));
  EXPECT_TRUE(one.can_norm && one.can_gate);
  const MatmulPlan single = choose_matmul(caps, shape_of(WeightFormat::kF16, 1, 1));
  EXPECT_TRUE(single.can_norm && !single.can_gate);
  for (const uint32_t rows : {8u, 32u, 64u, 256u, 2048u}) {
    const MatmulPlan many = choose_matmul(caps, shape_of(WeightFormat::kF16, rows, 28672));
    EXPECT_TRUE(many.can_gate && !many.reduce) << rows;
    EXPECT_FALSE(many.can_norm) << rows;
  }
  const MatmulPlan split = choose_matmul(caps, shape_of(WeightFormat::kF16, 64, 4096));
  ASSERT_TRUE(split.reduce && !split.can_gate);
  EXPECT_EQ(split.part_bytes,
            uint64_t{split.parts.splits} * split.parts.rows * split.parts.outputs * 4);
  caps.features.integer_dot = true;
  const MatmulPlan integer = choose_matmul(caps, shape_of(WeightFormat::kQ4K, 1));
  EXPECT_TRUE(integer.can_norm && integer.can_gate);
  const MatmulPlan fixed = choose_matmul(caps, shape_of(WeightFormat::kF16, 1, 28672), true);
  EXPECT_FALSE(fixed.can_norm || fixed.can_gate);
}

TEST(KernelChoice, MatrixUnitsAreUsedWhereTheyAreFaster) {
  DeviceCaps caps = kDevices.front().caps;
  caps.features.coopmat = caps.features.float16 = caps.features.integer_dot = true;
  caps.coopmat_shapes = {half_fragments()};
  const auto kernel = [&](WeightFormat format, uint32_t rows) {
    return choose_matmul(caps, shape_of(format, rows)).multiply.pipeline.kernel;
  };
  EXPECT_EQ(kernel(WeightFormat::kF16, 1), "matvec_team.f16");
  EXPECT_EQ(kernel(WeightFormat::kF16, 2), "matmul_coopmat.f16");
  EXPECT_EQ(kernel(WeightFormat::kQ4K, 2), "matvec_integer.q4_k");
  EXPECT_EQ(kernel(WeightFormat::kQ4K, 3), "matmul_coopmat.q4_k");
  // F32 weights keep their precision.
  EXPECT_EQ(kernel(WeightFormat::kF32, 8), "matvec_float.f32");
  EXPECT_EQ(kernel(WeightFormat::kF32, 9), "matmul_tile.f32");
}

TEST(KernelChoice, IntegerWorkgroupsDivideARow) {
  for (FakeDevice device : kDevices) {
    if (device.caps.type == DeviceType::kCpu) continue;
    device.caps.features.integer_dot = true;
    for (const uint32_t inputs : {256u, 768u, 4096u, 14336u, 28672u, 131072u}) {
      for (const auto& [rows, outputs] : std::initializer_list<std::pair<uint32_t, uint32_t>>{
               {1, 1000}, {2, 1000}, {3, 1000}, {8, 1000}, {1, 3}, {2, 1}}) {
        const MatmulShape shape{
            .format = WeightFormat::kQ4K, .rows = rows, .inputs = inputs, .outputs = outputs};
        const KernelPlan plan = choose_matmul(device.caps, shape).multiply;
        if (plan.pipeline.kernel == "matvec_float.q4_k") {
          EXPECT_TRUE(inputs > 4096 || device.caps.subgroup_size < 8) << device.name;
          continue;
        }
        const KernelConstants& constants = plan.pipeline.constants;
        const uint32_t teams = constants["kTeams"], team_lanes = constants.workgroup_size() / teams;
        EXPECT_EQ(8 % teams, 0u) << device.name;
        EXPECT_EQ(team_lanes % device.caps.subgroup_size, 0u) << device.name;
        EXPECT_GE(team_lanes * constants["kPieces"] * kPieceWeights, inputs) << device.name;
        EXPECT_LE(constants.workgroup_size(), device.caps.limits.max_group_invocations)
            << device.name;
        EXPECT_EQ(constants["kSubgroups"] * device.caps.subgroup_size, constants.workgroup_size())
            << device.name;
        EXPECT_GE(plan.groups.x * constants["kOutputs"] * teams * constants["kRounds"], outputs)
            << device.name;
        EXPECT_LE(constants["kOutputs"], outputs) << device.name;
        EXPECT_GE(plan.groups.y * constants["kRows"], rows) << device.name;
      }
    }
  }
}

TEST(KernelChoice, HalvesAreWrittenWhereTheWidthAllows) {
  EXPECT_TRUE(can_write_form(RowForm::kHalves, 4104));
  EXPECT_FALSE(can_write_form(RowForm::kHalves, 4100));
  EXPECT_TRUE(can_write_form(RowForm::kFloats, 4100));
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

TEST(KernelChoice, WorkgroupsAreWholeSubgroupsWithinTheLimit) {
  for (const FakeDevice& device : kDevices) {
    for (const uint32_t width : {1u, 63u, 288u, 4096u, 16384u}) {
      const uint32_t lanes =
          choose_rms_norm(device.caps, {5, width}).pipeline.constants.workgroup_size();
      EXPECT_EQ(lanes % device.caps.subgroup_size, 0u) << device.name;
      EXPECT_GE(lanes, device.caps.subgroup_size) << device.name;
      EXPECT_LE(lanes, device.caps.limits.max_group_invocations) << device.name;
    }
  }
}

TEST(KernelChoice, MatrixVectorWorkgroupsCoverEveryOutputAndRow) {
  for (const FakeDevice& device : kDevices) {
    for (const uint32_t outputs : {1u, 7u, 32u, 1000u, 128256u}) {
      for (const uint32_t rows : {2u, 3u, 8u}) {
        const KernelPlan plan =
            choose_matmul(device.caps, shape_of(WeightFormat::kF16, rows, outputs)).multiply;
        const bool cpu = device.caps.type == DeviceType::kCpu;
        const uint32_t lanes = plan.pipeline.constants.workgroup_size();
        const uint32_t per_group =
            cpu ? lanes : lanes / device.caps.subgroup_size * plan.pipeline.constants["kOutputs"];
        EXPECT_GE(plan.groups.x * per_group, outputs) << device.name;
        EXPECT_LT((plan.groups.x - 1) * per_group, outputs) << device.name << ": an idle group";
        EXPECT_GE(plan.groups.y * plan.pipeline.constants["kRows"], rows) << device.name;
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
