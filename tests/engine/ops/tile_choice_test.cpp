// Which tiles products of many rows get, on devices we do not have.
#include <gtest/gtest.h>

#include "engine/ops/matmul.h"
#include "tests/support/fake_devices.h"

namespace hearth {
namespace {

using testing::fake_devices;
using testing::FakeDevice;
using testing::half_fragments;
using testing::with_matrices;

const std::vector<FakeDevice> kTileDevices = fake_devices();

MatmulShape tile_shape(WeightFormat format, uint32_t rows, uint32_t outputs = 4096) {
  return {.format = format, .rows = rows, .inputs = 4096, .outputs = outputs};
}

TEST(TileChoice, TilesFitTheDevice) {
  for (FakeDevice device : kTileDevices) {
    if (device.caps.type == DeviceType::kCpu) continue;
    for (const bool coopmat : {false, true}) {
      device.caps.features.coopmat = device.caps.features.float16 = coopmat;
      device.caps.coopmat_shapes = {half_fragments()};
      for (const uint32_t rows : {9u, 16u, 17u, 64u, 65u, 128u, 129u, 2048u}) {
        const MatmulPlan plan = choose_matmul(device.caps, tile_shape(WeightFormat::kQ4K, rows));
        const KernelConstants& constants = plan.multiply.pipeline.constants;
        EXPECT_EQ(plan.multiply.pipeline.kernel,
                  coopmat ? "matmul_coopmat.q4_k" : "matmul_tile.q4_k");
        EXPECT_GE(plan.multiply.groups.x * constants["kTileRows"], rows);
        EXPECT_GE(plan.multiply.groups.y * constants["kTileOutputs"], 4096u);
        EXPECT_EQ(plan.multiply.groups.z, constants["kSplits"]);
        EXPECT_EQ(plan.reduce.has_value(), constants["kSplits"] > 1);
        const uint64_t sums = uint64_t{plan.multiply.groups.x} * constants["kTileRows"] *
                              plan.multiply.groups.y * constants["kTileOutputs"];
        EXPECT_EQ(plan.part_bytes, constants["kSplits"] > 1 ? constants["kSplits"] * sums * 4 : 0);
        EXPECT_EQ(plan.form, coopmat ? RowForm::kHalves : RowForm::kFloats);
        EXPECT_EQ(plan.scratch_bytes, plan.part_bytes + (coopmat ? rows * 4096 * 2 : 0));
        EXPECT_LE(constants.workgroup_size(), device.caps.limits.max_group_invocations)
            << device.name;
        const uint32_t tile = constants["kTileRows"] + constants["kTileOutputs"];
        EXPECT_LE(coopmat ? tile * (constants["kTileInputs"] / 8 + 1) * 16
                          : tile * (constants["kTileInputs"] / 4 + 2) * 16,
                  device.caps.limits.max_shared_bytes)
            << device.name;
        if (rows <= 64 && device.caps.limits.max_group_invocations >= 256) {
          EXPECT_EQ(plan.multiply.groups.x, 1u) << "the weights are read once";
        }
      }
    }
  }
}

// Checks that all full waves are whole tiles, and that the workgroups of the other tiles fit into
// one more.
void check_shared(const MatmulPlan& plan, uint32_t last_splits) {
  constexpr uint32_t kAtOnce = 132;
  const auto& [multiply, whole, count_bytes] = *plan.shared;
  const KernelConstants& constants = multiply.pipeline.constants;
  const uint32_t left = plan.multiply.groups.x * plan.multiply.groups.y - whole;
  EXPECT_EQ(constants["kTailSplits"], last_splits);
  EXPECT_EQ(plan.multiply.pipeline.constants["kTailSplits"], 1u);
  EXPECT_EQ(whole % kAtOnce, 0u);
  EXPECT_GT(whole, 0u);
  EXPECT_LE(left * last_splits, kAtOnce);
  EXPECT_EQ(multiply.groups.x, whole + left * last_splits);
  EXPECT_EQ(multiply.groups.y * multiply.groups.z, 1u);
  EXPECT_EQ(count_bytes, left * 4);
  EXPECT_EQ(plan.part_bytes,
            uint64_t{left} * last_splits * constants["kTileRows"] * constants["kTileOutputs"] * 4);
  EXPECT_FALSE(plan.reduce);
}

// The tiles of llama-8b's products on a device with 132 multiprocessors, as measured: one workgroup
// per multiprocessor where possible, and few splits of k.
TEST(TileChoice, TilesFillTheDevice) {
  DeviceCaps caps = with_matrices(kTileDevices.front().caps, {half_fragments(), half_fragments(8)});
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
    const KernelConstants& constants = plan.multiply.pipeline.constants;
    SCOPED_TRACE(::testing::Message()
                 << wanted.rows << " x " << wanted.outputs << " x " << wanted.inputs);
    EXPECT_EQ(constants["kTileRows"], wanted.tile_rows);
    EXPECT_EQ(constants["kTileOutputs"], wanted.tile_outputs);
    EXPECT_EQ(constants["kSplits"], wanted.splits);
    EXPECT_EQ(constants["kAhead"], wanted.ahead);
    EXPECT_EQ(constants["kUnrolledSteps"], wanted.round);
    EXPECT_EQ(constants["kSubgroupOutputs"] % constants["kFragmentOutputs"],
              0u);  // parts consist of whole fragments
    EXPECT_EQ(plan.can_gate, wanted.splits == 1);
    ASSERT_EQ(plan.shared.has_value(), wanted.last_splits > 1);
    if (plan.shared) check_shared(plan, wanted.last_splits);
    if (wanted.round == 0) continue;
    EXPECT_EQ(wanted.round % wanted.ahead, 0u);
    EXPECT_EQ(wanted.inputs % (constants["kTileInputs"] * wanted.round), 0u);
  }
}

// Products that run at the same time on the same rows are planned as one: the segments of a qkv
// whose values are in another format have the same tiles and splits, and together fit on the device
// at once.
TEST(TileChoice, SiblingProductsAreSplitInTheSameWay) {
  DeviceCaps caps = with_matrices(kTileDevices.front().caps, {half_fragments(), half_fragments(8)});
  caps.limits.multiprocessors = 132;
  caps.features.integer_dot = true;
  const auto plan = [&](WeightFormat format, uint32_t rows, uint32_t outputs,
                        uint32_t sibling_outputs) {
    return choose_matmul(caps, {.format = format,
                                .rows = rows,
                                .inputs = 4096,
                                .outputs = outputs,
                                .sibling_outputs = sibling_outputs});
  };
  for (uint32_t i = 2 * 3; i <= 2 * 512; ++i) {
    const uint32_t rows = i / 2;
    caps.features.lane_fragments = i % 2 != 0;
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

// Fragments of half the width allow tiles that eight subgroups divide evenly; devices without them
// use another tile.
TEST(TileChoice, FragmentsDivideTheParts) {
  DeviceCaps caps = with_matrices(kTileDevices.front().caps);
  caps.limits.multiprocessors = 132;
  const auto fragment_outputs = [&](uint32_t rows, uint32_t outputs) {
    const KernelConstants constants =
        choose_matmul(caps, tile_shape(WeightFormat::kF16, rows, outputs))
            .multiply.pipeline.constants;
    EXPECT_EQ(constants["kSubgroupRows"] % constants["kFragmentRows"], 0u) << rows;
    EXPECT_EQ(constants["kSubgroupOutputs"] % constants["kFragmentOutputs"], 0u) << rows;
    return constants["kFragmentOutputs"];
  };
  caps.coopmat_shapes = {half_fragments(), half_fragments(8)};
  EXPECT_EQ(fragment_outputs(64, 28672), 8u);
  EXPECT_EQ(fragment_outputs(64, 4096), 16u);
  caps.coopmat_shapes = {half_fragments()};
  EXPECT_EQ(fragment_outputs(64, 28672), 16u);
  EXPECT_EQ(fragment_outputs(96, 28672), 16u);
}

// With a known fragment layout, up to 64 rows of quantized weights go straight into fragments, and
// f16 weights where that is faster: not gate and up, whose tiles fill the device.
TEST(TileChoice, WeightsGoStraightIntoFragments) {
  DeviceCaps caps = with_matrices(kTileDevices.front().caps, {half_fragments(), half_fragments(8)});
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
  for (const uint32_t rows : {17u, 32u, 40u, 48u, 64u, 65u, 96u}) {
    EXPECT_EQ(kernel(WeightFormat::kQ4K, rows, 28672, 4096), "matmul_direct.q4_k") << rows;
    EXPECT_EQ(kernel(WeightFormat::kQ6K, rows, 4096, 14336), "matmul_direct.q6_k") << rows;
  }
  EXPECT_EQ(kernel(WeightFormat::kQ4K, 96, 4096, 4096), "matmul_direct.q4_k");
  EXPECT_EQ(kernel(WeightFormat::kQ4K, 96, 6144, 4096), "matmul_direct.q4_k");
  EXPECT_EQ(kernel(WeightFormat::kQ4K, 97, 28672, 4096), "matmul_coopmat.q4_k");
  EXPECT_EQ(kernel(WeightFormat::kF16, 64, 28672, 4096), "matmul_coopmat.f16");
  EXPECT_EQ(kernel(WeightFormat::kF16, 64, 4096, 14336), "matmul_direct.f16");
  // Its blocks have 128 inputs.
  EXPECT_EQ(kernel(WeightFormat::kQ8_0, 64, 4096, 4096 + 32), "matmul_coopmat.q8_0");

  const MatmulPlan gates = plan(WeightFormat::kQ4K, 64, 28672, 4096);
  const MatmulPlan split = plan(WeightFormat::kQ4K, 64, 4096, 14336);
  EXPECT_TRUE(gates.can_gate);
  EXPECT_FALSE(gates.reduce.has_value());
  ASSERT_TRUE(split.reduce.has_value());
  EXPECT_FALSE(split.can_gate);
  for (const MatmulPlan& each : {gates, split}) {
    const KernelConstants& constants = each.multiply.pipeline.constants;
    EXPECT_EQ(constants.workgroup_size(), 32 * constants["kSubgroups"]);
    EXPECT_EQ(constants["kTileOutputs"], constants["kSubgroupOutputs"] * constants["kSubgroups"]);
    EXPECT_EQ(constants["kSplits"], each.multiply.groups.z);
    EXPECT_EQ(each.form, RowForm::kHalves);
  }
}

// With a known fragment layout, products of many rows get tiles that would not fit into shared
// memory with padding.
TEST(TileChoice, ManyRowsGetWideTiles) {
  DeviceCaps caps = with_matrices(kTileDevices.front().caps, {half_fragments(), half_fragments(8)});
  caps.limits.multiprocessors = 132;
  caps.limits.max_shared_bytes = 48 * 1024;
  caps.features.lane_fragments = true;
  struct Case {
    WeightFormat format;
    uint32_t rows, outputs, inputs;
    uint32_t tile_rows, tile_outputs, splits, last_splits = 1;
  };
  constexpr WeightFormat kF16 = WeightFormat::kF16, kQ4K = WeightFormat::kQ4K;
  const auto plan = [&](const Case& wanted) {
    return choose_matmul(caps, {.format = wanted.format,
                                .rows = wanted.rows,
                                .inputs = wanted.inputs,
                                .outputs = wanted.outputs});
  };
  for (const Case& wanted : std::initializer_list<Case>{
           {kF16, 128, 28672, 4096, 128, 256, 1},    {kF16, 128, 4096, 14336, 128, 192, 6},
           {kF16, 128, 6144, 4096, 128, 192, 4},     {kF16, 128, 4096, 4096, 128, 192, 6},
           {kF16, 160, 28672, 4096, 160, 192, 1, 5}, {kF16, 160, 4096, 14336, 160, 192, 6},
           {kF16, 160, 6144, 4096, 160, 192, 4},     {kF16, 160, 4096, 4096, 160, 128, 4},
           {kF16, 192, 28672, 4096, 192, 192, 1, 5}, {kF16, 192, 4096, 14336, 192, 192, 6},
           {kF16, 192, 6144, 4096, 192, 192, 4},     {kF16, 192, 4096, 4096, 192, 128, 4},
           {kF16, 256, 128256, 4096, 128, 256, 1},   {kF16, 256, 4096, 14336, 256, 128, 4},
           {kF16, 256, 4096, 4096, 256, 128, 4},     {kF16, 2048, 28672, 4096, 128, 256, 1},
           {kF16, 2048, 4096, 14336, 128, 256, 1},   {kF16, 2048, 6144, 4096, 128, 256, 1},
           {kF16, 2048, 4096, 4096, 128, 256, 1},    {kF16, 1024, 5120, 4096, 128, 256, 1, 4},
           {kQ4K, 128, 28672, 4096, 128, 224, 1},    {kQ4K, 128, 4096, 14336, 128, 192, 6},
           {kQ4K, 256, 4096, 14336, 256, 128, 4},    {kQ4K, 2048, 28672, 4096, 256, 128, 1}}) {
    const MatmulPlan chosen = plan(wanted);
    const KernelConstants& constants = chosen.multiply.pipeline.constants;
    SCOPED_TRACE(::testing::Message()
                 << wanted.rows << " x " << wanted.outputs << " x " << wanted.inputs);
    ASSERT_TRUE(chosen.multiply.pipeline.kernel.starts_with("matmul_wide."));
    EXPECT_EQ(constants.workgroup_size(), 32 * constants["kSubgroups"]);
    EXPECT_EQ(constants["kTileRows"], wanted.tile_rows);
    EXPECT_EQ(constants["kTileOutputs"], wanted.tile_outputs);
    EXPECT_EQ(constants["kSplits"], wanted.splits);
    EXPECT_EQ(constants["kTileRows"] / constants["kSubgroupRows"] *
                  (constants["kTileOutputs"] / constants["kSubgroupOutputs"]),
              constants["kSubgroups"]);
    EXPECT_LE((constants["kTileRows"] + constants["kTileOutputs"]) * 64 * 2,
              caps.limits.max_shared_bytes);
    const bool whole = wanted.rows % constants["kTileRows"] == 0 &&
                       wanted.outputs % constants["kTileOutputs"] == 0;
    const bool constant =
        whole && constants["kTileOutputs"] > constants["kTileRows"] && wanted.format == kF16;
    EXPECT_EQ(constants["kInputs"], constant ? wanted.inputs : 0);
    EXPECT_EQ(chosen.can_gate, wanted.splits == 1);
    ASSERT_EQ(chosen.shared.has_value(), wanted.last_splits > 1);
    if (chosen.shared) check_shared(chosen, wanted.last_splits);
    EXPECT_FALSE(chosen.rest.has_value());
  }
  EXPECT_EQ(plan({kF16, 2000, 4096, 4096}).multiply.pipeline.constants["kInputs"], 0u);  // ragged
  const auto kernel = [&](const Case& wanted) { return plan(wanted).multiply.pipeline.kernel; };
  EXPECT_EQ(kernel({kF16, 2048, 4096, 4096 + 32}), "matmul_coopmat.f16");  // not whole steps
  caps.limits.max_shared_bytes = 32 * 1024;
  EXPECT_EQ(kernel({kF16, 2048, 4096, 4096}), "matmul_coopmat.f16");
  caps.limits.max_shared_bytes = 48 * 1024;
  caps.features.lane_fragments = false;
  EXPECT_EQ(kernel({kF16, 2048, 4096, 4096}), "matmul_coopmat.f16");
}

// One wave of large tiles and one of smaller ones, where two waves of large ones would be half
// empty.
TEST(TileChoice, SmallerTilesForTheRest) {
  DeviceCaps caps = with_matrices(kTileDevices.front().caps, {half_fragments(), half_fragments(8)});
  caps.limits.multiprocessors = 132;
  caps.limits.max_shared_bytes = 48 * 1024;
  caps.features.lane_fragments = true;
  const auto plan = [&](uint32_t rows, uint32_t outputs, uint32_t sibling_outputs = 0) {
    return choose_matmul(caps, {.format = WeightFormat::kF16,
                                .rows = rows,
                                .inputs = 4096,
                                .outputs = outputs,
                                .sibling_outputs = sibling_outputs});
  };
  const auto tile = [](const KernelPlan& kernel) {
    const KernelConstants& constants = kernel.pipeline.constants;
    return std::array{constants["kTileRows"], constants["kTileOutputs"],
                      constants["kInputs"]};  // and inputs of whole tiles
  };
  const auto groups = [](const KernelPlan& kernel) {
    return std::array{kernel.groups.x, kernel.groups.y, kernel.groups.z};
  };
  const MatmulPlan whole = plan(256, 28672);  // 64 * 256 + 64 * 192
  ASSERT_TRUE(whole.rest.has_value());
  EXPECT_EQ(tile(whole.multiply), (std::array{128u, 256u, 4096u}));
  EXPECT_EQ(groups(whole.multiply), (std::array{2u, 64u, 1u}));
  EXPECT_EQ(tile(whole.rest->multiply), (std::array{128u, 192u, 4096u}));
  EXPECT_EQ(groups(whole.rest->multiply), (std::array{2u, 64u, 1u}));
  EXPECT_EQ(whole.rest->first_output, 64u * 256);
  EXPECT_TRUE(whole.can_gate);
  EXPECT_FALSE(whole.shared || whole.reduce);

  const MatmulPlan partly = plan(256, 28680);
  ASSERT_TRUE(partly.rest.has_value());
  EXPECT_EQ(tile(partly.multiply), (std::array{128u, 256u, 4096u}));
  EXPECT_EQ(tile(partly.rest->multiply), (std::array{128u, 192u, 0u}));
  const MatmulPlan ragged = plan(250, 28680);  // not a sum of both: as many large ones as possible
  ASSERT_TRUE(ragged.rest.has_value());
  EXPECT_EQ(tile(ragged.multiply), (std::array{128u, 256u, 0u}));
  EXPECT_EQ(groups(ragged.multiply), (std::array{2u, 66u, 1u}));
  EXPECT_EQ(tile(ragged.rest->multiply), (std::array{128u, 192u, 0u}));
  EXPECT_EQ(groups(ragged.rest->multiply), (std::array{2u, 62u, 1u}));
  EXPECT_EQ(ragged.rest->first_output, 66u * 256);

  EXPECT_FALSE(plan(256, 66 * 256).rest.has_value());   // one full wave
  EXPECT_FALSE(plan(256, 132 * 256).rest.has_value());  // two
  EXPECT_FALSE(plan(256, 131 * 256).rest.has_value());  // the rest needs a wave of large ones
  EXPECT_FALSE(plan(256, 28672, 4096).rest.has_value());
}

}  // namespace
}  // namespace hearth
