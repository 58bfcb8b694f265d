#include "tests/support/matmul.h"

#include <deque>

#include <gmock/gmock.h>

#include "params/matvec_float.h"
#include "params/matvec_integer.h"
#include "params/matvec_team.h"

namespace hearth::testing {
namespace {

class MatmulTest : public MatmulFixture {
 protected:
  void check_every_format(const DeviceCaps& caps) {
    for (const FormatInfo& info : all_formats()) {
      const uint32_t block = std::max(info.block_weights, 32u);
      check(caps, {.format = info.format, .rows = 1, .inputs = block, .outputs = 1});
      check(caps, {.format = info.format, .rows = 3, .inputs = block * 3, .outputs = 37});
      // The number of rows per workgroup is a constant, and decoding does not depend on it.
      // Lavapipe takes seconds to compile all.
      if (is_cpu(device().caps()) && info.format != WeightFormat::kQ4K) continue;
      check(caps, {.format = info.format, .rows = 2, .inputs = block * 3, .outputs = 37});
      check(caps, {.format = info.format, .rows = 8, .inputs = 1024, .outputs = 130});
      check(caps, {.format = info.format, .rows = 13, .inputs = 512, .outputs = 19});
    }
  }

  // Lavapipe takes seconds to compile a kernel that is unrolled for a GPU. There one format of each
  // kind is enough: all share the kernel, and other tests check the decoding of each.
  void check_gpu_formats(bool integer_dot) {
    if (!is_cpu(device().caps())) return check_every_format(gpu_caps(integer_dot));
    for (const WeightFormat format :
         {WeightFormat::kF32, WeightFormat::kF16, WeightFormat::kBf16, WeightFormat::kQ8_0,
          WeightFormat::kQ4K, WeightFormat::kQ6K}) {
      if (integer_dot && format_info(format).is_float()) continue;
      DeviceCaps caps = gpu_caps(integer_dot);
      caps.features.coopmat = false;
      check(caps, {.format = format, .rows = 1, .inputs = 256, .outputs = 1});
      check(caps, {.format = format, .rows = 2, .inputs = 768, .outputs = 37});
    }
    // Two pieces share a word of scales, and rows have an odd number of pieces.
    DeviceCaps caps = gpu_caps(integer_dot);
    caps.features.coopmat = false;
    if (integer_dot)
      check(caps, {.format = WeightFormat::kMxfp4, .rows = 2, .inputs = 96, .outputs = 37});
  }
};

TEST_F(MatmulTest, EveryFormatAsChosenForThisDevice) { check_every_format(device().caps()); }

TEST_F(MatmulTest, EveryFormatAsChosenForAGpu) { check_gpu_formats(false); }

TEST_F(MatmulTest, EveryFormatAsChosenForAGpuWithIntegerDotProducts) { check_gpu_formats(true); }

TEST_F(MatmulTest, FloatFormatsWithRaggedInputs) {
  DeviceCaps gpu = gpu_caps(false);
  if (is_cpu(device().caps())) gpu.features.coopmat = false;  // slow to compile
  for (const WeightFormat format : {WeightFormat::kF32, WeightFormat::kF16, WeightFormat::kBf16}) {
    for (const uint32_t inputs : {8u, 24u, 72u, 1000u, 2056u}) {
      const MatmulShape shape{.format = format, .rows = 2, .inputs = inputs, .outputs = 33};
      check(device().caps(), shape);
      check(gpu, shape);
    }
  }
}

TEST_F(MatmulTest, EveryShapeOfTheMatrixVectorKernels) {
  DeviceCaps caps = gpu_caps(true);
  caps.features.coopmat = false;  // with it, five rows would use a tile kernel
  const uint32_t subgroup = device().caps().subgroup_size;
  constexpr uint32_t kSubgroups = 3;
  struct Case {
    WeightFormat format;
    uint32_t rows_at_once, outputs;
    uint32_t last;  // steps ahead of the float kernel, rounds of the integer one
    uint32_t teams = 1;
  };
  for (const Case& test : std::initializer_list<Case>{{WeightFormat::kF16, 1, 1, 1},
                                                      {WeightFormat::kF16, 1, 3, 3},
                                                      {WeightFormat::kF16, 2, 1, 3},
                                                      {WeightFormat::kF16, 2, 3, 1},
                                                      {WeightFormat::kQ8_0, 1, 4, 3},
                                                      {WeightFormat::kQ8_0, 2, 1, 1},
                                                      {WeightFormat::kQ8_0, 1, 2, 2, 2},
                                                      {WeightFormat::kQ4_0, 1, 8, 2, 2},
                                                      {WeightFormat::kQ4K, 2, 4, 3},
                                                      {WeightFormat::kQ4K, 2, 2, 1, 4}}) {
    const bool integer = !format_info(test.format).is_float();
    if (integer && subgroup < 8) continue;
    const MatmulShape shape{.format = test.format, .rows = 5, .inputs = 1280, .outputs = 37};
    const Weights weights = random_weights(test.format, shape.outputs, shape.inputs);
    const std::vector<float> x = random_floats(size_t{shape.rows} * shape.inputs, 1);
    MatmulPlan plan = choose_matmul(caps, shape);
    const uint32_t team_lanes = subgroup * kSubgroups, lanes = team_lanes * test.teams;
    plan.multiply.groups.y = divide_up(shape.rows, test.rows_at_once);
    if (integer) {
      const uint32_t pieces = divide_up(shape.inputs / kPieceWeights, team_lanes);
      plan.multiply.pipeline.constants =
          params::MatvecIntegerConstants{.kWorkgroupSize = lanes,
                                         .kRows = test.rows_at_once,
                                         .kOutputs = test.outputs,
                                         .kPieces = pieces,
                                         .kSubgroups = kSubgroups * test.teams,
                                         .kRounds = test.last,
                                         .kTeams = test.teams};
      plan.multiply.groups.x = divide_up(shape.outputs, test.outputs * test.last * test.teams);
    } else {
      plan.multiply.pipeline.constants = params::MatvecFloatConstants{.kWorkgroupSize = lanes,
                                                                      .kRows = test.rows_at_once,
                                                                      .kOutputs = test.outputs,
                                                                      .kAhead = test.last};
      plan.multiply.groups.x = divide_up(shape.outputs, test.outputs * kSubgroups);
    }
    EXPECT_LT(nmse(multiply(plan, shape, weights, x),
                   reference_matmul(weights.values, x, shape.rows, shape.inputs, shape.outputs)),
              limit(plan))
        << format_info(test.format).name << ": " << test.rows_at_once << " rows, " << test.outputs
        << " outputs, " << test.teams << " teams";
  }
}

TEST_F(MatmulTest, BiasSoftCapAndResidualInThatOrder) {
  constexpr float kCap = 2.0f;
  DeviceCaps lanes_only = gpu_caps(true);
  lanes_only.features.coopmat = false;
  struct Case {
    WeightFormat format;
    uint32_t rows, inputs, outputs;
    bool reduced;
  };
  constexpr WeightFormat kF16 = WeightFormat::kF16, kQ8 = WeightFormat::kQ8_0;
  // Few rows run matrix-vector kernels, more rows run tiles, whose partial sums, if k is split, are
  // added at the end. If outputs are a multiple of four, four are stored together.
  for (const auto& [format, rows, inputs, outputs, reduced] :
       std::initializer_list<Case>{{kF16, 1, 1024, 50, false},
                                   {kF16, 3, 64, 50, false},
                                   {kF16, 9, 1024, 50, true},
                                   {kF16, 9, 1024, 52, true},
                                   {kF16, 9, 64, 50, false},
                                   {kF16, 9, 64, 52, false},
                                   {kQ8, 2, 256, 50, false}}) {
    SCOPED_TRACE(::testing::Message() << format_info(format).name << ", " << rows << " x "
                                      << outputs << " x " << inputs);
    const Weights weights = random_weights(format, outputs, inputs);
    const std::vector<float> bias = random_floats(outputs, 3);
    const Buffer weight_buffer = filled(weights.device), bias_buffer = filled(bias);
    const MatmulShape shape{.format = format, .rows = rows, .inputs = inputs, .outputs = outputs};
    const std::vector<float> x = random_floats(rows * inputs, 2, 2.0f);
    const std::vector<float> residual = random_floats(rows * outputs, 4);
    std::vector<double> reference = reference_matmul(weights.values, x, rows, inputs, outputs);
    for (size_t i = 0; i < reference.size(); ++i)
      reference[i] = kCap * std::tanh((reference[i] + bias[i % outputs]) / kCap) + residual[i];
    const Buffer x_buffer = filled(x);
    for (const DeviceCaps& caps : {device().caps(), lanes_only, gpu_caps(true)}) {
      const MatmulPlan plan = choose_matmul(caps, shape);
      EXPECT_EQ(plan.reduce.has_value(), reduced && !is_cpu(caps));
      const Buffer scratch = poisoned(std::max<uint64_t>(plan.scratch_bytes, 16));
      const Buffer y_buffer = filled(residual);  // the residual is added in place
      run([&](CommandRecorder& recorder) {
        return record_matmul(recorder, pipelines(), plan,
                             {.weight = weight_buffer.all(),
                              .x = x_buffer.all(),
                              .y = y_buffer.all(),
                              .bias = bias_buffer.all(),
                              .residual = y_buffer.all(),
                              .soft_cap = kCap,
                              .scratch = scratch.all(),
                              .shape = shape});
      });
      EXPECT_LT(nmse(read<float>(y_buffer), reference), limit(plan))
          << plan.multiply.pipeline.kernel;
    }
  }
}

// Independent products of the same rows, with scratch memory for all and for one.
TEST_F(MatmulTest, IndependentProductsRunSideBySide) {
  constexpr uint32_t kRows = 9, kInputs = 1024;
  const std::vector<float> x = random_floats(kRows * kInputs, 2);
  const Buffer x_buffer = filled(x);
  std::vector<PlannedMatmul> products;
  std::vector<MatmulChoice> choices;
  std::vector<Weights> weights;
  std::deque<Buffer> buffers, results;  // slices point to them
  uint64_t all = 0, most = 0;
  for (const uint32_t outputs : {50u, 20u, 36u}) {
    const MatmulShape shape{
        .format = WeightFormat::kF16, .rows = kRows, .inputs = kInputs, .outputs = outputs};
    const MatmulPlan plan = choose_matmul(gpu_caps(true), shape);
    ASSERT_TRUE(plan.reduce);
    choices.push_back({plan, shape});
    weights.push_back(random_weights(shape.format, outputs, kInputs));
    buffers.push_back(filled(weights.back().device));
    results.push_back(poisoned(kRows * outputs * 4));
    products.push_back({plan,
                        {.weight = buffers.back().all(),
                         .x = x_buffer.all(),
                         .y = results.back().all(),
                         .shape = shape}});
    all += (plan.scratch_bytes + 15) / 16 * 16;
    most = std::max(most, plan.scratch_bytes);
  }
  const auto barriers_with = [&](uint64_t scratch_bytes) {
    const Buffer scratch = poisoned(scratch_bytes);
    auto recorder = CommandRecorder::begin(device());
    EXPECT_TRUE(recorder.ok());
    const std::vector<size_t> turns = plan_matmul_turns(choices, scratch_bytes);
    EXPECT_EQ(turns.size(), scratch_bytes == all ? 1u : 3u);
    EXPECT_TRUE(record_matmuls(*recorder, pipelines(), products, turns, scratch.all()).ok());
    const auto commands = recorder->finish();
    EXPECT_TRUE(commands.ok());
    EXPECT_TRUE(device().compute().run(*commands).ok());
    for (size_t i = 0; i < products.size(); ++i) {
      const auto& [plan, op] = products[i];
      EXPECT_LT(nmse(read<float>(results[i]),
                     reference_matmul(weights[i].values, x, kRows, kInputs, op.shape.outputs)),
                limit(plan));
    }
    return commands->barriers();
  };
  EXPECT_LT(barriers_with(all), barriers_with(most));
}

// Split products of the same rows, with one matrix of partial sums for both.
TEST_F(MatmulTest, SplitProductsShareOneMatrixOfPartialSums) {
  constexpr uint32_t kRows = 9, kInputs = 1024, kFirst = 80, kSecond = 48;
  const std::vector<float> x = random_floats(kRows * kInputs, 2);
  const Buffer x_buffer = filled(x);
  const Weights first = random_weights(WeightFormat::kF16, kFirst, kInputs);
  const Weights second = random_weights(WeightFormat::kF16, kSecond, kInputs);
  const Buffer first_buffer = filled(first.device), second_buffer = filled(second.device);
  const auto planned = [&](const Buffer& weight, uint32_t outputs, uint32_t sibling_outputs) {
    const MatmulShape shape{.format = WeightFormat::kF16,
                            .rows = kRows,
                            .inputs = kInputs,
                            .outputs = outputs,
                            .sibling_outputs = sibling_outputs};
    return PlannedMatmul{choose_matmul(gpu_caps(true), shape),
                         {.weight = weight.all(), .x = x_buffer.all(), .shape = shape}};
  };
  const std::vector<PlannedMatmul> products = {planned(first_buffer, kFirst, kSecond),
                                               planned(second_buffer, kSecond, kFirst)};
  const uint64_t needed = products[0].plan.scratch_bytes + products[1].plan.scratch_bytes;
  const double most = limit(products.front().plan);

  const Buffer scratch = poisoned(needed);
  const auto choices_of = [](std::span<const PlannedMatmul> matmuls) {
    std::vector<MatmulChoice> choices;
    for (const auto& [plan, op] : matmuls) choices.push_back({plan, op.shape});
    return choices;
  };
  const PartsPlan parts =
      plan_matmul_parts(choices_of(products), scratch.bytes()).value_or(PartsPlan{});
  ASSERT_GT(parts.splits, 1u);
  run([&](CommandRecorder& recorder) {
    return record_matmul_parts(recorder, pipelines(), products, parts, scratch.all());
  });
  ASSERT_EQ(parts.row_stride, kFirst + kSecond);
  const std::vector<float> left = read<float>(scratch);
  const auto sums = [&](uint32_t column, uint32_t outputs) {
    std::vector<float> values;
    for (uint32_t r = 0; r < kRows; ++r)
      for (uint32_t n = 0; n < outputs; ++n) {
        float sum = 0;
        for (uint32_t s = 0; s < parts.splits; ++s)
          sum +=
              left[parts.offset / 4 + s * parts.split_stride + r * parts.row_stride + column + n];
        values.push_back(sum);
      }
    return values;
  };
  EXPECT_LT(nmse(sums(0, kFirst), reference_matmul(first.values, x, kRows, kInputs, kFirst)), most);
  EXPECT_LT(
      nmse(sums(kFirst, kSecond), reference_matmul(second.values, x, kRows, kInputs, kSecond)),
      most);

  // Only if they can be side by side.
  const auto can_leave_parts = [&](std::span<const PlannedMatmul> matmuls, uint64_t room) {
    return plan_matmul_parts(choices_of(matmuls), room).has_value();
  };
  EXPECT_TRUE(can_leave_parts(products, needed));
  EXPECT_FALSE(can_leave_parts(products, needed - 16));
  std::vector<PlannedMatmul> unlike = products;
  ++unlike.back().plan.parts.splits;
  EXPECT_FALSE(can_leave_parts(unlike, needed));
  std::vector<PlannedMatmul> whole = products;
  whole.back().plan.reduce.reset();
  EXPECT_FALSE(can_leave_parts(whole, needed));
}

// Rows of several chunks per lane, or that leave lanes without any; outputs that end in the middle
// of a team's. If two teams stored the same result, its residual would be added twice.
TEST_F(MatmulTest, TeamsSplitRowsOfFloats) {
  struct Case {
    WeightFormat format;
    uint32_t inputs, outputs, team_subgroups, teams, step_outputs, rounds;
    bool gate;
  };
  constexpr WeightFormat kF32 = WeightFormat::kF32, kF16 = WeightFormat::kF16,
                         kBf16 = WeightFormat::kBf16;
  for (const Case& test : std::initializer_list<Case>{{kF16, 328, 37, 3, 2, 4, 3, false},
                                                      {kF16, 328, 40, 3, 2, 4, 3, true},
                                                      {kF16, 384, 5, 6, 1, 4, 1, false},
                                                      {kF32, 40, 37, 3, 3, 2, 2, false},
                                                      {kBf16, 96, 40, 2, 2, 2, 4, true},
                                                      {kBf16, 8, 3, 1, 4, 1, 1, false}}) {
    SCOPED_TRACE(::testing::Message()
                 << format_info(test.format).name << ", " << test.outputs << " x " << test.inputs);
    const MatmulShape shape{
        .format = test.format, .rows = 1, .inputs = test.inputs, .outputs = test.outputs};
    MatmulPlan plan = choose_matmul(gpu_caps(true), shape);
    ASSERT_TRUE(plan.can_norm);
    const uint32_t subgroups = test.team_subgroups * test.teams;
    plan.can_gate = true;
    plan.multiply.pipeline.constants =
        params::MatvecTeamConstants{.kWorkgroupSize = subgroups * device().caps().subgroup_size,
                                    .kOutputs = test.step_outputs,
                                    .kInputs = test.inputs,
                                    .kSubgroups = subgroups,
                                    .kRounds = test.rounds,
                                    .kTeams = test.teams};
    plan.multiply.groups.x = divide_up(test.outputs, test.step_outputs * test.teams * test.rounds);
    const Weights weights = random_weights(test.format, test.outputs, test.inputs);
    const std::vector<float> x = random_floats(test.inputs, 5, 3.0f);
    const std::vector<float> norm = random_floats(test.inputs, 6);
    const std::vector<float> residual = random_floats(test.outputs, 7);
    const Buffer weight = filled(weights.device), x_buffer = filled(x), norm_buffer = filled(norm);
    const Buffer y = filled(residual);
    Matmul op{.weight = weight.all(),
              .x = x_buffer.all(),
              .y = y.all(),
              .norm_weight = norm_buffer.all(),
              .norm_epsilon = 1e-1f,
              .shape = shape};
    if (test.gate) {
      op.gate = MlpActivation::kSilu;
    } else {
      op.residual = y.all();
    }
    run([&](CommandRecorder& recorder) { return record_matmul(recorder, pipelines(), plan, op); });
    const std::vector<double> normed = reference_rms_norm(x, norm, 1, test.inputs, 1e-1);
    const std::vector<float> row(normed.begin(), normed.end());
    std::vector<double> wanted =
        reference_matmul(weights.values, row, 1, test.inputs, test.outputs);
    if (test.gate) {
      wanted = reference_gated(wanted, 1, test.outputs, MlpActivation::kSilu);
      // Memory after the results is unchanged.
      wanted.insert(wanted.end(), residual.begin() + test.outputs / 2, residual.end());
    } else {
      for (uint32_t n = 0; n < test.outputs; ++n) wanted[n] += residual[n];
    }
    EXPECT_LT(nmse(read<float>(y), wanted), limit(plan));
  }
}

// The RMS norm of one row, fused into the product: rows of one piece and of many, teams of any
// size.
TEST_F(MatmulTest, FusedNormOfOneRow) {
  for (const WeightFormat format : {WeightFormat::kF16, WeightFormat::kQ8_0, WeightFormat::kQ4K}) {
    // Eight lanes quantize a piece of x.
    const bool integer = !format_info(format).is_float();
    if (integer && device().caps().subgroup_size < 8) continue;
    for (const uint32_t inputs : {256u, 1280u, 4352u}) {
      const MatmulShape shape{.format = format, .rows = 1, .inputs = inputs, .outputs = 70};
      const MatmulPlan plan = choose_matmul(gpu_caps(true), shape);
      ASSERT_TRUE(plan.can_norm);
      const Weights weights = random_weights(format, shape.outputs, inputs);
      const std::vector<float> x = random_floats(inputs, 5, 3.0f), norm = random_floats(inputs, 6);
      const Buffer weight = filled(weights.device), x_buffer = filled(x),
                   norm_buffer = filled(norm);
      const Buffer y = poisoned(shape.outputs * 4);
      run([&](CommandRecorder& recorder) {
        return record_matmul(recorder, pipelines(), plan,
                             {.weight = weight.all(),
                              .x = x_buffer.all(),
                              .y = y.all(),
                              .norm_weight = norm_buffer.all(),
                              .norm_epsilon = 1e-1f,
                              .shape = shape});
      });
      const std::vector<double> normed = reference_rms_norm(x, norm, 1, inputs, 1e-1);
      const std::vector<float> rows(normed.begin(), normed.end());
      EXPECT_LT(
          nmse(read<float>(y), reference_matmul(weights.values, rows, 1, inputs, shape.outputs)),
          limit(plan))
          << inputs;
    }
  }
}

// Several rows of small F32 matrices, such as routers: every row in workgroups of its own, which
// norm it.
TEST_F(MatmulTest, FusedNormOfARoutersRows) {
  for (const uint32_t inputs : {96u, 1288u}) {
    const MatmulShape shape{
        .format = WeightFormat::kF32, .rows = 3, .inputs = inputs, .outputs = 37};
    const MatmulPlan plan = choose_matmul(gpu_caps(true), shape);
    ASSERT_TRUE(plan.can_norm && plan.multiply.pipeline.kernel == "matvec_team.f32");
    const Weights weights = random_weights(shape.format, shape.outputs, inputs);
    const std::vector<float> x = random_floats(size_t{shape.rows} * inputs, 5, 3.0f);
    const std::vector<float> norm = random_floats(inputs, 6), bias = random_floats(37, 7);
    const Buffer weight = filled(weights.device), x_buffer = filled(x), norm_buffer = filled(norm);
    const Buffer y = poisoned(shape.rows * shape.outputs * 4), bias_buffer = filled(bias);
    run([&](CommandRecorder& recorder) {
      return record_matmul(recorder, pipelines(), plan,
                           {.weight = weight.all(),
                            .x = x_buffer.all(),
                            .y = y.all(),
                            .bias = bias_buffer.all(),
                            .norm_weight = norm_buffer.all(),
                            .norm_epsilon = 1e-1f,
                            .shape = shape});
    });
    const std::vector<double> normed = reference_rms_norm(x, norm, shape.rows, inputs, 1e-1);
    const std::vector<float> rows(normed.begin(), normed.end());
    std::vector<double> wanted =
        reference_matmul(weights.values, rows, shape.rows, inputs, shape.outputs);
    for (size_t i = 0; i < wanted.size(); ++i) wanted[i] += bias[i % shape.outputs];
    EXPECT_LT(nmse(read<float>(y), wanted), limit(plan)) << inputs;
  }
}

TEST_F(MatmulTest, DeterministicRowsAreBitEqualAloneAndInABatch) {
  for (const WeightFormat format : {WeightFormat::kF16, WeightFormat::kQ8_0}) {
    const MatmulShape batch{.format = format, .rows = 11, .inputs = 768, .outputs = 40};
    const Weights weights = random_weights(format, batch.outputs, batch.inputs);
    const std::vector<float> x = random_floats(size_t{batch.rows} * batch.inputs, 5);
    for (const DeviceCaps& caps : {device().caps(), gpu_caps(false), gpu_caps(true)}) {
      const std::vector<float> together =
          multiply(choose_matmul(caps, batch, true), batch, weights, x);
      for (const uint32_t row : {0u, 3u, 10u}) {
        MatmulShape alone = batch;
        alone.rows = 1;
        const std::vector<float> row_x(x.begin() + row * batch.inputs,
                                       x.begin() + (row + 1) * batch.inputs);
        const std::vector<float> single =
            multiply(choose_matmul(caps, alone, true), alone, weights, row_x);
        for (uint32_t n = 0; n < batch.outputs; ++n)
          ASSERT_EQ(single[n], together[row * batch.outputs + n]) << row << ", " << n;
      }
    }
  }
}

TEST_F(MatmulTest, UnsupportedShapesAreRefused) {
  const Buffer any = poisoned(64);
  const auto refuse = [&](const MatmulShape& shape, const char* says) {
    auto recorder = CommandRecorder::begin(device());
    ASSERT_OK(recorder);
    const Status status =
        record_matmul(*recorder, pipelines(), choose_matmul(gpu_caps(true), shape),
                      {.weight = any.all(), .x = any.all(), .y = any.all(), .shape = shape});
    ASSERT_FALSE(status.ok()) << says;
    EXPECT_EQ(status.error().kind, ErrorKind::kInvalid);
    EXPECT_THAT(status.error().message, ::testing::HasSubstr(says));
    ASSERT_OK(recorder->finish());
  };
  refuse({.format = WeightFormat::kF16, .rows = 0, .inputs = 8, .outputs = 1}, "0 rows");
  refuse({.format = WeightFormat::kF16, .rows = 1, .inputs = 12, .outputs = 1}, "multiples of 8");
  refuse({.format = WeightFormat::kQ4K, .rows = 1, .inputs = 96, .outputs = 1}, "multiples of 256");
  refuse({.format = WeightFormat::kF32, .rows = 9, .inputs = 8192, .outputs = 1025}, "scratch");
}

}  // namespace
}  // namespace hearth::testing
