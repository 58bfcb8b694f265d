// Mixtures of experts from logits to the sum, with every kernel that can compute their products.
#include "engine/ops/experts.h"

#include <fmt/format.h>

#include "engine/ops/experts/scratch.h"
#include "params/expert_tiles.h"
#include "params/experts_few.h"
#include "params/experts_one_row.h"
#include "params/half_rows.h"
#include "params/matmul_direct.h"
#include "params/matmul_wide.h"
#include "tests/support/matmul.h"
#include "tests/support/reference_experts.h"

namespace hearth::testing {
namespace {

// NMSE. A row goes through two products; rounding in the first is amplified by the gates.
constexpr double kExpertsFloatLimit = 1e-9, kExpertsHalfLimit = 1e-5, kExpertsIntegerLimit = 3e-6;

class ExpertsTest : public MatmulFixture {
 protected:
  struct Case {
    ExpertsShape shape;
    bool biases = false;
    bool table = false;  // experts' matrices in an order of their own, found by a table
    float logit_scale = 2.0f;
    uint32_t favourite = ~0u;  // an expert that every row chooses
    bool norm = false;         // of x
  };

  // One weight of all experts on the device.
  struct DeviceWeights {
    Buffer matrices, table, bias;
    uint64_t stride = 0;
    ExpertWeights weights() const {
      ExpertWeights weights{.matrices = matrices.all(), .stride_bytes = stride};
      if (table) weights.table = table.all();
      if (bias) weights.bias = bias.all();
      return weights;
    }
  };

  DeviceWeights make_weights(const Case& test, WeightFormat format, uint32_t outputs,
                             uint32_t inputs, std::vector<std::vector<float>>& values,
                             std::vector<float>& bias) {
    const uint32_t experts = test.shape.experts;
    DeviceWeights device_weights;
    std::vector<std::byte> all;
    uint64_t stride = 0;
    for (uint32_t e = 0; e < experts; ++e) {
      Weights weights = random_weights(format, outputs, inputs, 0.1f, 1000 * e);
      stride = (weights.device.size() + 255) / 256 * 256;
      weights.device.resize(stride);
      all.insert(all.end(), weights.device.begin(), weights.device.end());
      values.push_back(std::move(weights.values));
    }
    if (test.table) {
      // Experts from the last to the first.
      std::vector<std::byte> reversed;
      for (uint32_t e = experts; e-- > 0;)
        reversed.insert(reversed.end(), all.begin() + static_cast<ptrdiff_t>(e * stride),
                        all.begin() + static_cast<ptrdiff_t>((e + 1) * stride));
      device_weights.matrices = filled(reversed);
      std::vector<uint64_t> addresses;
      for (uint32_t e = 0; e < experts; ++e)
        addresses.push_back(device_weights.matrices.address() + (experts - 1 - e) * stride);
      device_weights.table = filled(addresses);
    } else {
      device_weights.matrices = filled(all);
      device_weights.stride = stride;
    }
    if (test.biases) {
      bias = random_floats(size_t{experts} * outputs, outputs, 0.5f);
      std::vector<float> padded = bias;
      padded.resize(bias.size() + kBiasPadBytes / 4, std::numeric_limits<float>::quiet_NaN());
      device_weights.bias = filled(padded);
    }
    return device_weights;
  }

  static double limit_of(const ExpertsPlan& plan) {
    if (plan.halves) return kExpertsHalfLimit;
    const auto is_integer = [](const ExpertProduct& product) {
      return product.kernel.pipeline.kernel.find("_integer.") != std::string::npos;
    };
    const bool integer = is_integer(plan.gate_up) || is_integer(plan.down);
    return integer ? kExpertsIntegerLimit : kExpertsFloatLimit;
  }

  void check(const Case& test, const ExpertsPlan& plan) { check(test, plan, limit_of(plan)); }

  void check(const Case& test, const ExpertsPlan& plan, double limit) {
    const ExpertsShape& shape = test.shape;
    ExpertValues values;
    const DeviceWeights gate_up = make_weights(test, shape.gate_up, 2 * shape.mlp_width,
                                               shape.width, values.gate_up, values.gate_up_bias);
    const DeviceWeights down =
        make_weights(test, shape.down, shape.width, shape.mlp_width, values.down, values.down_bias);
    const std::vector<float> x = random_floats(size_t{shape.rows} * shape.width, shape.rows);
    std::vector<float> logits =
        random_floats(size_t{shape.rows} * shape.experts, 17 + shape.rows, test.logit_scale);
    if (test.favourite < shape.experts)
      for (uint32_t r = 0; r < shape.rows; ++r) logits[r * shape.experts + test.favourite] = 30;
    const std::vector<float> before = random_floats(size_t{shape.rows} * shape.width, 5, 0.1f);
    const std::vector<float> norm = random_floats(shape.width, 6);
    std::vector<float> normed = x;
    if (test.norm) {
      const std::vector<double> rows = reference_rms_norm(x, norm, shape.rows, shape.width, 0.1);
      normed.assign(rows.begin(), rows.end());
    }
    std::vector<double> wanted = reference_experts(shape, values, normed, logits);
    for (size_t i = 0; i < wanted.size(); ++i) wanted[i] += before[i];

    std::vector<float> padded = before;
    padded.resize(before.size() + shape.width, std::numeric_limits<float>::quiet_NaN());
    const Buffer x_buffer = filled(x), logit_buffer = filled(logits), y_buffer = filled(padded);
    const Buffer scratch = poisoned(plan.scratch_bytes), norm_buffer = filled(norm);
    Experts op{.x = x_buffer.all(),
               .logits = logit_buffer.all(),
               .y = y_buffer.slice(0, before.size() * 4),
               .gate_up = gate_up.weights(),
               .down = down.weights(),
               .scratch = scratch.all(),
               .shape = shape};
    if (test.norm) op.norm = {norm_buffer.all(), 0.1f};
    run([&](CommandRecorder& recorder) { return record_experts(recorder, pipelines(), plan, op); });
    std::vector<float> y = read<float>(y_buffer);
    for (size_t i = before.size(); i < y.size(); ++i)
      EXPECT_TRUE(std::isnan(y[i])) << "written past the end";
    y.resize(before.size());
    EXPECT_LT(nmse(y, wanted), limit)
        << plan.gate_up.kernel.pipeline.kernel << " and " << plan.down.kernel.pipeline.kernel
        << ": " << shape.rows << " rows, " << shape.used << " of " << shape.experts << " experts, "
        << shape.width << " x " << shape.mlp_width << ", tiles of " << plan.tile_rows;
  }

  void check(const DeviceCaps& caps, const Case& test, bool deterministic = false) {
    check(test, choose_experts(caps, test.shape, deterministic));
  }

  // A GPU with this device's subgroups, with or without matrix units.
  DeviceCaps some_gpu(bool matrices, bool integer_dot = false) {
    DeviceCaps caps = gpu_caps(integer_dot);
    if (!matrices) caps.features.coopmat = caps.features.lane_fragments = false;
    return caps;
  }

  static ExpertsShape small(WeightFormat format, uint32_t rows) {
    const uint32_t block = std::max(format_info(format).block_weights, 32u);
    return {.gate_up = format,
            .down = format,
            .rows = rows,
            .experts = 5,
            .used = 2,
            .width = 2 * block,
            .mlp_width = block};
  }
};

TEST_F(ExpertsTest, EveryFormatAsChosenForThisDevice) {
  for (const FormatInfo& info : all_formats())
    check(device().caps(), {.shape = small(info.format, 2)});
  for (const WeightFormat format : {WeightFormat::kF16, WeightFormat::kQ4K})
    check(device().caps(), {.shape = small(format, 11)});
}

TEST_F(ExpertsTest, DifferentFormatsForTheTwoProducts) {
  ExpertsShape shape = small(WeightFormat::kQ4K, 9);
  shape.down = WeightFormat::kQ6K;
  check(device().caps(), {.shape = shape});
  shape.gate_up = WeightFormat::kF32;
  shape.down = WeightFormat::kQ8_0;
  check(device().caps(), {.shape = shape});
}

// One pair of a row and an expert per tile.
TEST_F(ExpertsTest, FewRowsOnAGpu) {
  for (const auto& [format, integer_dot] :
       {std::pair(WeightFormat::kF16, false), std::pair(WeightFormat::kQ4K, false),
        std::pair(WeightFormat::kMxfp4, true)}) {
    const ExpertsShape shape = small(format, 2);
    const ExpertsPlan plan = choose_experts(some_gpu(true, integer_dot), shape);
    EXPECT_FALSE(plan.group);
    check({.shape = shape, .biases = true}, plan);
  }
}

// The first product chooses the experts and norms its row; for quantized weights the second one
// adds up the row's experts.
TEST_F(ExpertsTest, FewRowsNormChooseAndAddUpInTheTwoProducts) {
  const bool integer_dot = device().caps().subgroup_size >= 8;  // lanes that quantize a piece of x
  DeviceCaps caps = some_gpu(true, integer_dot);
  const bool fragments = caps.features.lane_fragments;
  // Small subgroups make many workgroups, and the first product chooses only if they run at once.
  if (!integer_dot) caps.limits.multiprocessors = 1024;
  for (const WeightFormat format : {WeightFormat::kF16, WeightFormat::kMxfp4, WeightFormat::kQ4K}) {
    const bool integer = integer_dot && format != WeightFormat::kF16;
    if (!integer && format != WeightFormat::kF16) continue;
    // With fragments, MXFP4 would get experts_few.
    caps.features.lane_fragments = fragments && format != WeightFormat::kMxfp4;
    ExpertsShape shape = small(format, 3);
    shape.experts = 13;
    shape.used = 3;
    // Lanes with pieces of several experts, and some with none.
    shape.mlp_width = format == WeightFormat::kMxfp4 ? 32 * 11 : 256;
    shape.width = format == WeightFormat::kMxfp4 ? 160 : 512;
    shape.activation = ExpertActivation::kLimited;
    const ExpertsPlan plan = choose_experts(caps, shape);
    EXPECT_TRUE(plan.can_norm() && !plan.route && !plan.group);
    EXPECT_EQ(plan.combine.has_value(), !integer);
    check({.shape = shape, .biases = true, .table = true, .norm = true}, plan);
    shape.over_all = true;
    check({.shape = shape}, choose_experts(caps, shape));
  }
}

// A kernel of its own chooses if the products have too many workgroups to do it in each.
TEST_F(ExpertsTest, ManyWorkgroupsDoNotChooseThemselves) {
  DeviceCaps caps = some_gpu(true, device().caps().subgroup_size >= 8);
  caps.limits.multiprocessors = 1;
  ExpertsShape shape = small(WeightFormat::kQ8_0, 6);
  shape.experts = 70;
  const ExpertsPlan plan = choose_experts(caps, shape);
  EXPECT_TRUE(plan.route && !plan.group);
  check({.shape = shape, .biases = true}, plan);
}

// Without matrix units, and for F32.
TEST_F(ExpertsTest, TilesOfManyRowsOnAPlainGpu) {
  for (const WeightFormat format : {WeightFormat::kF32, WeightFormat::kMxfp4}) {
    const ExpertsShape shape = small(format, 45);
    const ExpertsPlan plan = choose_experts(some_gpu(false), shape);
    EXPECT_TRUE(plan.group && plan.gate_up.kernel.pipeline.kernel.starts_with("experts_tile"));
    check({.shape = shape, .biases = true}, plan);
  }
}

// The kernel on cooperative matrices, with k that is no multiple of its step.
TEST_F(ExpertsTest, TilesOnMatrixUnits) {
  if (!device().caps().features.coopmat) GTEST_SKIP() << "no cooperative matrices";
  DeviceCaps caps = some_gpu(true);
  caps.features.lane_fragments = false;
  ExpertsShape shape = small(WeightFormat::kMxfp4, 21);
  shape.width = 96;
  shape.mlp_width = 160;
  shape.activation = ExpertActivation::kLimited;
  const ExpertsPlan plan = choose_experts(caps, shape);
  EXPECT_TRUE(plan.gate_up.kernel.pipeline.kernel.starts_with("experts_coopmat"));
  check({.shape = shape, .biases = true}, plan);
}

// Kernels that fill fragments from registers, emulated where lanes do not hold such fragments.
TEST_F(ExpertsTest, TilesOfFragmentsFromRegisters) {
  constexpr uint32_t kLanes = 32, kSubgroups = 2;
  const bool real = device().caps().features.lane_fragments;
  for (const auto& [format, name] : {std::pair(WeightFormat::kMxfp4, std::string("direct")),
                                     std::pair(WeightFormat::kQ4K, std::string("wide"))}) {
    const bool direct = name == "direct";  // whose rows may end within a step of 128
    const ExpertsShape shape{.gate_up = format,
                             .down = format,
                             .rows = 13,
                             .experts = 3,
                             .used = 2,
                             .width = direct ? 192u : 256u,
                             .mlp_width = direct ? 320u : 256u,
                             .activation = ExpertActivation::kLimited};
    ExpertsPlan plan = choose_experts(some_gpu(false), shape);
    plan.tile_rows = direct ? 16 : 32;
    plan.tiles = shape.rows * shape.used / plan.tile_rows + shape.experts;
    plan.halves = true;
    plan.prepare =
        KernelPlan{.pipeline = {.kernel = "half_rows",
                                .constants = params::HalfRowsConstants{.kWorkgroupSize = kLanes}},
                   .groups = {.x = 1, .y = shape.rows}};
    const auto product = [&](uint32_t outputs) {
      const uint32_t tile_outputs = 32;
      const KernelConstants constants =
          direct
              ? KernelConstants(params::MatmulDirectConstants{.kWorkgroupSize = kSubgroups * kLanes,
                                                              .kTileRows = 16,
                                                              .kTileOutputs = tile_outputs,
                                                              .kSubgroupOutputs = 16,
                                                              .kSubgroups = kSubgroups})
              : KernelConstants(params::MatmulWideConstants{.kWorkgroupSize = kSubgroups * kLanes,
                                                            .kTileRows = 32,
                                                            .kTileOutputs = tile_outputs,
                                                            .kSubgroupRows = 16,
                                                            .kSubgroupOutputs = 32,
                                                            .kSubgroups = kSubgroups});
      return ExpertProduct{
          .kernel = {.pipeline = {.kernel =
                                      fmt::format("experts_{}{}.{}", name, real ? "" : "_emulated",
                                                  format_info(format).header),
                                  .constants = constants,
                                  .subgroup_size = real ? kLanes : 0},
                     .groups = {.x = plan.tiles, .y = divide_up(outputs, tile_outputs)}},
          .half_results = true};
    };
    plan.gate_up = product(2 * shape.mlp_width);
    plan.down = product(shape.width);
    plan.scratch_bytes = expert_scratch(plan, shape).total_bytes;
    check({.shape = shape, .biases = true}, plan);
  }
}

// All rows of a step at once, with workgroups that begin and end within an expert's outputs;
// emulated where lanes do not hold such fragments. The second product may also be the one that adds
// up experts.
TEST_F(ExpertsTest, AllRowsOfAStepFromRegisters) {
  constexpr uint32_t kLanes = 32, kSubgroups = 2;
  const bool real = device().caps().features.lane_fragments;
  const uint32_t lanes = device().caps().subgroup_size;
  for (const uint32_t rows : {1u, 5u, 8u}) {
    for (const bool norm : {false, true}) {
      ExpertsShape shape{.gate_up = WeightFormat::kMxfp4,
                         .down = WeightFormat::kMxfp4,
                         .rows = rows,
                         .experts = 11,
                         .used = 3,
                         .width = 160,  // the second subgroup has one piece
                         .mlp_width = 352,
                         .activation = ExpertActivation::kLimited};
      shape.over_all = !norm;
      ExpertsPlan plan = choose_experts(some_gpu(false), shape);
      const auto product = [&](uint32_t inputs, bool first) {
        return ExpertProduct{
            .kernel = {.pipeline = {.kernel =
                                        fmt::format("experts_few{}.mxfp4", real ? "" : "_emulated"),
                                    .constants =
                                        params::ExpertsFewConstants{
                                            .kWorkgroupSize = kSubgroups * kLanes,
                                            .kInputs = inputs,
                                            .kSubgroups = kSubgroups,
                                            .kUsed = shape.used,
                                            .kExperts = shape.experts,
                                            .kLaneExperts = divide_up(shape.experts, lanes),
                                            .kRoutes = first ? 1u : 0u,
                                            .kOverAll = shape.over_all ? 1u : 0u},
                                    .subgroup_size = lanes},
                       .groups = {.x = 1, .y = 7}},
            .half_results = first,
            .can_norm = true,
            .all_rows = true};
      };
      plan.route.reset();
      plan.group.reset();
      plan.tile_rows = 1;
      plan.tiles = rows * shape.used;
      plan.halves = true;
      plan.gate_up = product(shape.width, true);
      plan.down = product(shape.mlp_width, false);
      plan.combine = choose_experts(some_gpu(false), {.gate_up = WeightFormat::kF16,
                                                      .down = WeightFormat::kF16,
                                                      .rows = rows,
                                                      .experts = 1024,
                                                      .used = shape.used,
                                                      .width = shape.width,
                                                      .mlp_width = 32})
                         .combine;
      ASSERT_TRUE(plan.combine);
      plan.scratch_bytes = expert_scratch(plan, shape).total_bytes;
      check({.shape = shape, .biases = true, .norm = norm}, plan);
      if (rows != 1 || lanes < 8) continue;
      DeviceCaps caps = some_gpu(true, true);
      caps.features.lane_fragments = false;
      plan.down = choose_experts(caps, shape).down;
      ASSERT_TRUE(plan.down.kernel.pipeline.kernel.starts_with("experts_sum_integer"));
      plan.combine.reset();
      plan.halves = plan.gate_up.half_results = false;
      plan.scratch_bytes = expert_scratch(plan, shape).total_bytes;
      check({.shape = shape, .biases = true, .norm = norm}, plan, kExpertsHalfLimit);
    }
  }
}

// One row at a time, with workgroups that begin and end within an expert's outputs and have unequal
// numbers of rounds; emulated where lanes do not hold such fragments.
TEST_F(ExpertsTest, OneRowFromRegisters) {
  constexpr uint32_t kLanes = 32, kSubgroups = 2;
  const bool real = device().caps().features.lane_fragments;
  const uint32_t lanes = device().caps().subgroup_size;
  struct Variant {
    uint32_t used, width, mlp_width, ahead;
    bool norm, table;
  };
  // The second subgroup has one piece; odd numbers of pieces and of experts; several pieces per
  // lane.
  for (const Variant& test :
       {Variant{4, 160, 352, 2, true, false}, Variant{3, 352, 160, 1, false, true},
        Variant{1, 96, 640, 3, true, true}}) {
    const ExpertsShape shape{.gate_up = WeightFormat::kMxfp4,
                             .down = WeightFormat::kMxfp4,
                             .rows = 1,
                             .experts = 11,
                             .used = test.used,
                             .width = test.width,
                             .mlp_width = test.mlp_width,
                             .activation = ExpertActivation::kLimited,
                             .over_all = !test.norm};
    ExpertsPlan plan = choose_experts(some_gpu(false), shape);
    const auto product = [&](uint32_t inputs, uint32_t results, bool first) {
      const uint32_t all = results / 8 * (first ? shape.used : 1), groups = std::min(all, 7u);
      return ExpertProduct{
          .kernel = {.pipeline = {.kernel = fmt::format("experts_one_row{}.mxfp4",
                                                        real ? "" : "_emulated"),
                                  .constants =
                                      params::ExpertsOneRowConstants{
                                          .kWorkgroupSize = kSubgroups * kLanes,
                                          .kInputs = inputs,
                                          .kResults = results,
                                          .kSubgroups = kSubgroups,
                                          .kRounds = divide_up(all, groups),
                                          .kAhead = test.ahead,
                                          .kUsed = shape.used,
                                          .kLaneExperts = divide_up(shape.experts, lanes),
                                          .kOverAll = shape.over_all ? 1u : 0u},
                                  .subgroup_size = lanes},
                     .groups = {.x = 1, .y = groups}},
          .half_results = first,
          .can_norm = true,
          .all_rows = true,
          .sums = !first};
    };
    plan.route.reset();
    plan.group.reset();
    plan.combine.reset();
    plan.tile_rows = 1;
    plan.tiles = shape.used;
    plan.halves = true;
    plan.gate_up = product(shape.width, shape.mlp_width, true);
    plan.down = product(shape.mlp_width, shape.width, false);
    plan.scratch_bytes = expert_scratch(plan, shape).total_bytes;
    check({.shape = shape, .biases = true, .table = test.table, .norm = test.norm}, plan);
    check({.shape = shape, .norm = test.norm}, plan);
  }
}

TEST_F(ExpertsTest, BiasesAndTheLimitedActivation) {
  ExpertsShape shape = small(WeightFormat::kF32, 3);
  shape.activation = ExpertActivation::kLimited;
  check(device().caps(), {.shape = shape, .biases = true});
  shape.rows = 24;
  check(device().caps(), {.shape = shape, .biases = true});
}

TEST_F(ExpertsTest, WeightsThatAreSharesOfAllExperts) {
  ExpertsShape shape = small(WeightFormat::kF32, 6);
  shape.over_all = true;
  check(device().caps(), {.shape = shape});
}

// All experts used, one expert only, one that every row chooses, more experts than pairs, and more
// than a subgroup has lanes.
TEST_F(ExpertsTest, UnusualNumbersOfExperts) {
  for (const DeviceCaps& caps : {device().caps(), some_gpu(false)}) {
    const bool cpu = is_cpu(caps);
    for (const auto& [rows, experts, used] : std::initializer_list<std::array<uint32_t, 3>>{
             {7, 3, 3}, {9, 1, 1}, {3, 128, 8}, {40, 70, 5}}) {
      if (!cpu && used != 5) continue;  // each takes seconds to compile on a CPU
      ExpertsShape shape = small(WeightFormat::kF32, rows);
      shape.experts = experts;
      shape.used = used;
      check(caps, {.shape = shape});
    }
    check(caps, {.shape = small(WeightFormat::kF32, 30), .favourite = 3});
  }
}

TEST_F(ExpertsTest, ExpertsInSeveralBuffersAreFoundByATable) {
  check(device().caps(), {.shape = small(WeightFormat::kQ8_0, 2), .table = true});
  check(device().caps(), {.shape = small(WeightFormat::kF16, 30), .table = true});
}

TEST_F(ExpertsTest, DeterministicRowsHaveTheSameBitsInEveryBatch) {
  for (const DeviceCaps& caps : {device().caps(), some_gpu(true)}) {
    const ExpertsPlan alone = choose_experts(caps, small(WeightFormat::kF16, 1), true);
    const ExpertsPlan batch = choose_experts(caps, small(WeightFormat::kF16, 40), true);
    EXPECT_EQ(alone.tile_rows, 1u);
    EXPECT_EQ(batch.tile_rows, 1u);
    EXPECT_EQ(alone.down.kernel.pipeline.kernel, batch.down.kernel.pipeline.kernel);
    EXPECT_EQ(alone.down.kernel.pipeline.constants, batch.down.kernel.pipeline.constants);
    EXPECT_EQ(alone.gate_up.kernel.pipeline.constants, batch.gate_up.kernel.pipeline.constants);
  }
}

// The lists of a grouped step: equal logits, and logits that are not numbers.
TEST_F(ExpertsTest, TilesHoldOneExpertEachInTheOrderOfRows) {
  const ExpertsShape shape{.gate_up = WeightFormat::kF32,
                           .down = WeightFormat::kF32,
                           .rows = 6,
                           .experts = 4,
                           .used = 2,
                           .width = 8,
                           .mlp_width = 8};
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> logits = {1, 1, 1, 1, 0, 3, 2, 1, nan, nan, nan, nan,
                                     5, 0, 9, 0, 0, 0, 0, 7, nan, -1,  nan, -2};
  const std::vector<uint32_t> expected = {0, 1, 1, 2, 0, 1, 2, 0, 3, 0, 1, 3};
  for (const DeviceCaps& caps : {device().caps(), some_gpu(false)}) {
    ExpertsPlan plan = choose_experts(caps, shape);
    ASSERT_TRUE(plan.group);
    const ExpertScratch places = expert_scratch(plan, shape);
    const Buffer scratch = poisoned(plan.scratch_bytes), logit_buffer = filled(logits);
    const Buffer x = filled(random_floats(48, 1)), y = filled(random_floats(48, 2));
    const Buffer weights = filled(random_floats(4 * 16 * 8, 3));
    run([&](CommandRecorder& recorder) {
      return record_experts(recorder, pipelines(), plan,
                            {.x = x.all(),
                             .logits = logit_buffer.all(),
                             .y = y.all(),
                             .gate_up = {.matrices = weights.all(), .stride_bytes = 16 * 8 * 4},
                             .down = {.matrices = weights.all(), .stride_bytes = 8 * 8 * 4},
                             .scratch = scratch.all(),
                             .shape = shape});
    });
    const std::vector<uint32_t> words = read<uint32_t>(scratch);
    const auto list = [&](const ExpertScratch::Part& part) {
      const auto begin = words.begin() + static_cast<ptrdiff_t>(part.offset / 4);
      return std::vector<uint32_t>(begin, begin + static_cast<ptrdiff_t>(part.bytes / 4));
    };
    const std::vector<uint32_t> chosen = list(places.chosen), tiles = list(places.tiles),
                                sources = list(places.sources), pairs = list(places.places);
    EXPECT_EQ(chosen, expected);
    std::vector<uint32_t> wanted_tiles, wanted_places(12), wanted_rows;
    for (uint32_t e = 0; e < shape.experts; ++e) {
      uint32_t count = 0;
      for (uint32_t pair = 0; pair < 12; ++pair) {
        if (expected[pair] != e) continue;
        wanted_places[pair] = static_cast<uint32_t>(wanted_tiles.size()) * plan.tile_rows + count++;
      }
      wanted_tiles.resize(wanted_tiles.size() + divide_up(count, plan.tile_rows), e);
    }
    wanted_tiles.resize(plan.tiles, params::kNoExpert);
    EXPECT_EQ(tiles, wanted_tiles);
    EXPECT_EQ(pairs, wanted_places);
    for (uint32_t pair = 0; pair < 12; ++pair) EXPECT_EQ(sources[pairs[pair]], pair / 2);
  }
}

TEST_F(ExpertsTest, ShapesWithoutAKernelAreRefused) {
  const Buffer buffer = poisoned(1 << 16);
  const auto refused = [&](const ExpertsShape& shape) {
    auto recorder = CommandRecorder::begin(device());
    EXPECT_TRUE(recorder.ok());
    ExpertsShape valid = small(WeightFormat::kQ8_0, 2);
    const Experts op{.x = buffer.all(),
                     .logits = buffer.all(),
                     .y = buffer.all(),
                     .gate_up = {.matrices = buffer.all(), .stride_bytes = 256},
                     .down = {.matrices = buffer.all(), .stride_bytes = 256},
                     .scratch = buffer.all(),
                     .shape = shape};
    return !record_experts(*recorder, pipelines(), choose_experts(device().caps(), valid), op).ok();
  };
  ExpertsShape shape = small(WeightFormat::kQ8_0, 2);
  EXPECT_FALSE(refused(shape));
  shape.used = 6;
  EXPECT_TRUE(refused(shape));
  shape.used = 0;
  EXPECT_TRUE(refused(shape));
  shape = small(WeightFormat::kQ8_0, 2);
  shape.mlp_width = 48;
  EXPECT_TRUE(refused(shape));
}

}  // namespace
}  // namespace hearth::testing
