// Kernel choice for devices we do not have, pinned down as tables.
#include "engine/ops/kernel_choice.h"

#include <gtest/gtest.h>

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

TEST(KernelChoice, TilesFitTheDevice) {
  for (FakeDevice device : kDevices) {
    if (device.caps.type == DeviceType::kCpu) continue;
    for (const bool coopmat : {false, true}) {
      device.caps.features.coopmat = device.caps.features.float16 = coopmat;
      device.caps.coopmat_shapes = {half_fragments()};
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

// A CPU takes rows together as far as few are padding, and has work for every core.
TEST(KernelChoice, CpuTakesRowsTogether) {
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
    EXPECT_EQ(plan(wanted.rows, 32000).pipeline.constants[2], wanted.at_once) << wanted.rows;
    EXPECT_EQ(plan(wanted.rows, 32000).groups.y, divide_up(wanted.rows, wanted.at_once));
  }
  EXPECT_EQ(plan(1, 32000).pipeline.constants[0], 64u);
  EXPECT_EQ(plan(1, 288).pipeline.constants[0], 16u);
  EXPECT_EQ(plan(1, 288).groups.x, 18u);
  EXPECT_EQ(plan(1, 8).pipeline.constants[0], cpu->caps.subgroup_size);
}

// There are groups for every multiprocessor, and no more of them than that needs: each first makes
// integers of x.
TEST(KernelChoice, IntegerGroupsFillTheDeviceOnce) {
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
    EXPECT_EQ(plan.pipeline.constants[0], wanted.lanes);
    EXPECT_EQ(plan.pipeline.constants[3], wanted.step_outputs);
    EXPECT_EQ(plan.pipeline.constants[6], wanted.rounds);
    EXPECT_EQ(plan.pipeline.constants[10], wanted.teams);
    EXPECT_EQ(plan.groups.x,
              divide_up(wanted.outputs, wanted.step_outputs * wanted.teams * wanted.rounds));
  }
}

TEST(KernelChoice, IntegerGroupsTakeMoreSmallPiecesAtOnce) {
  DeviceCaps caps = kDevices.front().caps;
  caps.features.integer_dot = true;
  caps.limits.multiprocessors = 132;
  const auto outputs_of = [&](WeightFormat format, uint32_t rows, uint32_t outputs,
                              uint32_t inputs = 4096) {
    return choose_matmul(caps,
                         {.format = format, .rows = rows, .inputs = inputs, .outputs = outputs})
        .multiply.pipeline.constants[3];
  };
  EXPECT_EQ(outputs_of(WeightFormat::kQ4_0, 1, 14336), 8u);
  EXPECT_EQ(outputs_of(WeightFormat::kQ4_0, 1, 4096), 4u);  // one round would be all
  EXPECT_EQ(outputs_of(WeightFormat::kQ4_0, 2, 14336), 4u);
  EXPECT_EQ(outputs_of(WeightFormat::kQ4_0, 1, 4096, 14336), 8u);
  EXPECT_EQ(outputs_of(WeightFormat::kQ4K, 1, 14336), 4u);
}

// All full turns are whole tiles, and the groups of the others fit into one more.
void check_shared(const MatmulPlan& plan, uint32_t last_splits) {
  constexpr uint32_t kAtOnce = 132;
  const auto& [multiply, whole, count_bytes] = *plan.shared;
  const std::vector<uint32_t>& constants = multiply.pipeline.constants;
  const uint32_t left = plan.multiply.groups.x * plan.multiply.groups.y - whole;
  EXPECT_EQ(constants[17], last_splits);
  EXPECT_EQ(plan.multiply.pipeline.constants[17], 1u);
  EXPECT_EQ(whole % kAtOnce, 0u);
  EXPECT_GT(whole, 0u);
  EXPECT_LE(left * last_splits, kAtOnce);
  EXPECT_EQ(multiply.groups.x, whole + left * last_splits);
  EXPECT_EQ(multiply.groups.y * multiply.groups.z, 1u);
  EXPECT_EQ(count_bytes, left * 4);
  EXPECT_EQ(plan.part_bytes, uint64_t{left} * last_splits * constants[2] * constants[3] * 4);
  EXPECT_FALSE(plan.reduce);
}

// The tiles of llama-8b's products on a device of 132 multiprocessors, as they were measured: one
// group on each of them where that can be, and few parts of k.
TEST(KernelChoice, TilesFillTheDevice) {
  DeviceCaps caps = with_matrices(kDevices.front().caps, {half_fragments(), half_fragments(8)});
  caps.limits.multiprocessors = 132;
  struct Case {
    WeightFormat format;
    uint32_t rows, outputs, inputs;
    uint32_t tile_rows, tile_outputs, splits, ahead, round, last_splits = 1;
  };
  constexpr WeightFormat kF16 = WeightFormat::kF16, kQ4K = WeightFormat::kQ4K;
  for (const Case& wanted :
       std::initializer_list<Case>{{kF16, 8, 4096, 4096, 16, 64, 8, 1, 2},
                                   {kF16, 32, 4096, 14336, 32, 128, 8, 1, 2},
                                   {kF16, 32, 6144, 4096, 32, 64, 4, 1, 2},
                                   {kF16, 32, 128256, 4096, 32, 128, 1, 1, 2},
                                   {kF16, 48, 4096, 4096, 48, 96, 6, 1, 0},
                                   {kF16, 64, 28672, 4096, 64, 224, 1, 1, 2},
                                   {kF16, 64, 4096, 14336, 64, 256, 8, 1, 2},
                                   {kF16, 64, 6144, 4096, 64, 96, 4, 1, 2},
                                   {kF16, 64, 4096, 4096, 64, 96, 6, 1, 0},
                                   {kF16, 65, 28672, 4096, 80, 224, 1, 1, 2},
                                   {kF16, 80, 6144, 4096, 80, 192, 4, 1, 0},
                                   {kF16, 80, 4096, 14336, 80, 256, 8, 1, 2},
                                   {kF16, 96, 28672, 4096, 96, 224, 1, 2, 2},
                                   {kF16, 96, 4096, 4096, 96, 128, 4, 1, 2},
                                   {kF16, 97, 28672, 4096, 112, 224, 1, 1, 8},
                                   {kF16, 145, 28672, 4096, 160, 128, 1, 1, 8},
                                   {kF16, 192, 28672, 4096, 192, 128, 1, 2, 2},
                                   {kF16, 224, 28672, 4096, 112, 224, 1, 1, 8},
                                   {kF16, 256, 28672, 4096, 128, 192, 1, 2, 2, 3},
                                   {kF16, 128, 28672, 4096, 128, 192, 1, 2, 2, 4},
                                   {kF16, 128, 4096, 14336, 128, 192, 6, 2, 2},
                                   {kF16, 128, 4096, 4096, 128, 128, 4, 1, 8},
                                   {kF16, 256, 4096, 14336, 128, 192, 3, 2, 2},
                                   {kF16, 256, 6144, 4096, 128, 192, 2, 2, 2},
                                   {kF16, 320, 28672, 4096, 160, 128, 1, 1, 8, 2},
                                   {kF16, 2048, 28672, 4096, 128, 192, 1, 2, 2, 4},
                                   {kF16, 2048, 4096, 14336, 192, 128, 1, 2, 2},
                                   {kQ4K, 48, 28672, 4096, 48, 224, 1, 2, 2},
                                   {kQ4K, 64, 28672, 4096, 64, 224, 1, 1, 2},
                                   {kQ4K, 64, 4096, 4096, 64, 96, 6, 1, 0},
                                   {kQ4K, 64, 4096, 14336, 64, 256, 8, 1, 2},
                                   {kQ4K, 64, 6144, 4096, 64, 96, 4, 1, 2},
                                   {kQ4K, 64, 1024, 4096, 64, 128, 16, 1, 2},
                                   {kQ4K, 96, 6144, 4096, 96, 192, 4, 1, 2},
                                   {kQ4K, 256, 28672, 4096, 128, 192, 1, 1, 2, 3},
                                   {kQ4K, 256, 4096, 14336, 128, 192, 3, 1, 2},
                                   {kQ4K, 512, 28672, 4096, 192, 128, 1, 2, 2, 4},
                                   {kQ4K, 2048, 6144, 4096, 192, 128, 1, 2, 2},
                                   {kF16, 160, 4096, 4160, 160, 128, 4, 1, 0},     // not whole
                                   {kF16, 160, 4096, 4224, 160, 128, 4, 1, 2}}) {  // rounds of 8
    const MatmulPlan plan = choose_matmul(caps, {.format = wanted.format,
                                                 .rows = wanted.rows,
                                                 .inputs = wanted.inputs,
                                                 .outputs = wanted.outputs});
    const std::vector<uint32_t>& constants = plan.multiply.pipeline.constants;
    SCOPED_TRACE(::testing::Message()
                 << wanted.rows << " x " << wanted.outputs << " x " << wanted.inputs);
    EXPECT_EQ(constants[2], wanted.tile_rows);
    EXPECT_EQ(constants[3], wanted.tile_outputs);
    EXPECT_EQ(constants[5], wanted.splits);
    EXPECT_EQ(constants[12], wanted.ahead);
    EXPECT_EQ(constants[16], wanted.round);
    EXPECT_EQ(constants[7] % constants[9], 0u);  // parts of whole fragments
    EXPECT_EQ(plan.gate_constant.has_value(), wanted.splits == 1);
    ASSERT_EQ(plan.shared.has_value(), wanted.last_splits > 1);
    if (plan.shared) check_shared(plan, wanted.last_splits);
    if (wanted.round == 0) continue;
    EXPECT_EQ(wanted.round % wanted.ahead, 0u);
    EXPECT_EQ(wanted.inputs % (constants[4] * wanted.round), 0u);
  }
}

// Products that run at the same time on the same rows are chosen as one: the segments of a qkv
// whose values are in another format have the same tiles and splits, and together fit the device at
// once.
TEST(KernelChoice, ProductsSideBySideAreSplitAlike) {
  DeviceCaps caps = with_matrices(kDevices.front().caps, {half_fragments(), half_fragments(8)});
  caps.limits.multiprocessors = 132;
  caps.features.integer_dot = true;
  const auto plan = [&](WeightFormat format, uint32_t rows, uint32_t outputs, uint32_t beside) {
    return choose_matmul(
        caps,
        {.format = format, .rows = rows, .inputs = 4096, .outputs = outputs, .beside = beside});
  };
  for (uint32_t rows = 3; rows <= 512; ++rows) {
    const MatmulPlan first = plan(WeightFormat::kQ4K, rows, 5120, 1024);
    const MatmulPlan second = plan(WeightFormat::kQ6K, rows, 1024, 5120);
    EXPECT_EQ(first.multiply.pipeline.constants, second.multiply.pipeline.constants) << rows;
    EXPECT_EQ(first.reduce.has_value(), second.reduce.has_value()) << rows;
    EXPECT_FALSE(first.shared || second.shared) << rows;
    if (first.reduce) {
      EXPECT_EQ(first.parts.rows, second.parts.rows) << rows;
    }
  }
  const auto groups = [&](uint32_t rows) {
    const GroupCount first = plan(WeightFormat::kQ4K, rows, 5120, 1024).multiply.groups;
    const GroupCount second = plan(WeightFormat::kQ6K, rows, 1024, 5120).multiply.groups;
    return first.x * first.y * first.z + second.x * second.y * second.z;
  };
  EXPECT_LE(groups(64), 2 * 132u);
  EXPECT_LE(groups(1), 2 * 132u);
}

// Fragments of half the width make tiles possible that eight subgroups share evenly; where the
// device has none, another tile has to do.
TEST(KernelChoice, FragmentsDivideTheParts) {
  DeviceCaps caps = with_matrices(kDevices.front().caps);
  caps.limits.multiprocessors = 132;
  const auto fragment_outputs = [&](uint32_t rows, uint32_t outputs) {
    const std::vector<uint32_t> constants =
        choose_matmul(caps, shape_of(WeightFormat::kF16, rows, outputs))
            .multiply.pipeline.constants;
    EXPECT_EQ(constants[6] % constants[8], 0u) << rows;
    EXPECT_EQ(constants[7] % constants[9], 0u) << rows;
    return constants[9];
  };
  caps.coopmat_shapes = {half_fragments(), half_fragments(8)};
  EXPECT_EQ(fragment_outputs(64, 28672), 8u);
  EXPECT_EQ(fragment_outputs(64, 4096), 16u);
  caps.coopmat_shapes = {half_fragments()};
  EXPECT_EQ(fragment_outputs(64, 28672), 16u);
  EXPECT_EQ(fragment_outputs(96, 28672), 16u);
}

// What products can do for their neighbours is for single rows, where kernels wait for each other,
// and for tiles that nobody else has a part of. Deterministic ones do the same at any number of
// rows.
TEST(KernelChoice, NormsAndGatesInsideProducts) {
  DeviceCaps caps = with_matrices(kDevices.front().caps);
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
  caps.features.integer_dot = true;
  const MatmulPlan integer = choose_matmul(caps, shape_of(WeightFormat::kQ4K, 1));
  EXPECT_TRUE(integer.norm_constant && integer.emit_constant && integer.gate_constant);
  const MatmulPlan fixed = choose_matmul(caps, shape_of(WeightFormat::kF16, 1, 28672), true);
  EXPECT_FALSE(fixed.norm_constant || fixed.emit_constant || fixed.gate_constant);
}

TEST(KernelChoice, MatrixUnitsTakeOverWhereTheyAreAhead) {
  DeviceCaps caps = kDevices.front().caps;
  caps.features.coopmat = caps.features.float16 = caps.features.integer_dot = true;
  caps.coopmat_shapes = {half_fragments()};
  const auto kernel = [&](WeightFormat format, uint32_t rows) {
    return choose_matmul(caps, shape_of(format, rows)).multiply.pipeline.kernel;
  };
  EXPECT_EQ(kernel(WeightFormat::kF16, 1), "matvec_float.f16");
  EXPECT_EQ(kernel(WeightFormat::kF16, 2), "matmul_coopmat.f16");
  EXPECT_EQ(kernel(WeightFormat::kQ4K, 2), "matvec_integer.q4_k");
  EXPECT_EQ(kernel(WeightFormat::kQ4K, 3), "matmul_coopmat.q4_k");
  // F32 weights keep their precision.
  EXPECT_EQ(kernel(WeightFormat::kF32, 8), "matvec_float.f32");
  EXPECT_EQ(kernel(WeightFormat::kF32, 9), "matmul_tile.f32");
}

// Where lanes are known to hold fragments, few rows of quantized weights go straight into them, and
// of halves where that is ahead: not those of gate and up, whose tiles fill the device.
TEST(KernelChoice, FewRowsGoStraightIntoFragments) {
  DeviceCaps caps = with_matrices(kDevices.front().caps, {half_fragments(), half_fragments(8)});
  caps.features.integer_dot = true;
  caps.limits.multiprocessors = 132;
  const auto plan = [&](WeightFormat format, uint32_t rows, uint32_t outputs, uint32_t inputs) {
    return choose_matmul(caps,
                         {.format = format, .rows = rows, .inputs = inputs, .outputs = outputs});
  };
  const auto kernel = [&](WeightFormat format, uint32_t rows, uint32_t outputs, uint32_t inputs) {
    return plan(format, rows, outputs, inputs).multiply.pipeline.kernel;
  };
  EXPECT_EQ(kernel(WeightFormat::kQ4K, 64, 4096, 14336), "matmul_coopmat.q4_k");
  caps.features.lane_fragments = true;
  for (const uint32_t rows : {3u, 16u, 17u, 32u, 40u, 48u, 64u}) {
    EXPECT_EQ(kernel(WeightFormat::kQ4K, rows, 28672, 4096), "matmul_direct.q4_k") << rows;
    EXPECT_EQ(kernel(WeightFormat::kQ6K, rows, 4096, 14336), "matmul_direct.q6_k") << rows;
  }
  EXPECT_EQ(kernel(WeightFormat::kQ4K, 65, 28672, 4096), "matmul_coopmat.q4_k");
  EXPECT_EQ(kernel(WeightFormat::kF16, 64, 28672, 4096), "matmul_coopmat.f16");
  EXPECT_EQ(kernel(WeightFormat::kF16, 64, 4096, 14336), "matmul_direct.f16");
  // Its blocks are of 128 inputs.
  EXPECT_EQ(kernel(WeightFormat::kQ8_0, 64, 4096, 4096 + 32), "matmul_coopmat.q8_0");

  const MatmulPlan gates = plan(WeightFormat::kQ4K, 64, 28672, 4096);
  const MatmulPlan split = plan(WeightFormat::kQ4K, 64, 4096, 14336);
  EXPECT_EQ(gates.gate_constant, 8u);
  EXPECT_FALSE(gates.reduce.has_value());
  ASSERT_TRUE(split.reduce.has_value());
  EXPECT_FALSE(split.gate_constant.has_value());
  for (const MatmulPlan& each : {gates, split}) {
    const auto& constants = each.multiply.pipeline.constants;
    EXPECT_EQ(constants[0], 32 * constants[7]);
    EXPECT_EQ(constants[3], constants[6] * constants[7]);
    EXPECT_EQ(constants[5], each.multiply.groups.z);
    EXPECT_EQ(each.form, RowForm::kHalves);
  }
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
          EXPECT_TRUE(inputs > 4096 || device.caps.subgroup_size < 8) << device.name;
          continue;
        }
        const auto& constants = plan.pipeline.constants;
        const uint32_t teams = constants[10], team_lanes = constants[0] / teams;
        EXPECT_EQ(8 % teams, 0u) << device.name;
        EXPECT_EQ(team_lanes % device.caps.subgroup_size, 0u) << device.name;
        EXPECT_GE(team_lanes * constants[4] * kPieceWeights, inputs) << device.name;
        EXPECT_LE(constants[0], device.caps.limits.max_group_invocations) << device.name;
        EXPECT_EQ(constants[5] * device.caps.subgroup_size, constants[0]) << device.name;
        EXPECT_GE(plan.groups.x * constants[3] * teams * constants[6], 1000u) << device.name;
        EXPECT_GE(plan.groups.y * constants[2], rows) << device.name;
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
