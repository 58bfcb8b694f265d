#include "engine/ops/matmul.h"

#include <deque>

#include <gmock/gmock.h>

#include "engine/weights/quantize.h"
#include "engine/weights/repack.h"
#include "tests/support/compare.h"
#include "tests/support/gpu.h"
#include "tests/support/reference.h"
#include "tests/support/row_form.h"

namespace hearth::testing {
namespace {

// NMSE. Products of halves are exact in f32; integer kernels keep 15 bits of x.
constexpr double kFloatLimit = 1e-10;
constexpr double kIntegerLimit = 1e-7;
constexpr double kHalfLimit = 1e-6;  // matrix units take x, and weights, as f16

// A random matrix in device layout, and the values it stands for.
struct Weights {
  std::vector<std::byte> device;
  std::vector<float> values;
};

Weights random_weights(WeightFormat format, uint32_t outputs, uint32_t inputs, float size = 0.05f) {
  const FormatInfo& info = format_info(format);
  const std::vector<float> floats =
      random_floats(size_t{outputs} * inputs, outputs * 31 + inputs, size);
  const uint64_t blocks = uint64_t{outputs} * inputs / info.block_weights;
  std::vector<std::byte> file(blocks * info.block_bytes);
  const size_t row_bytes = file.size() / outputs;
  for (uint32_t n = 0; n < outputs; ++n) {
    const Status status =
        quantize_row(format, std::span(floats).subspan(size_t{n} * inputs, inputs),
                     std::span(file).subspan(n * row_bytes, row_bytes));
    EXPECT_TRUE(status.ok());
  }
  Weights weights;
  weights.device.resize(device_layout(format, blocks).total_bytes);
  repack_matrix(format, file, weights.device);
  weights.values.resize(floats.size());
  for (uint32_t n = 0; n < outputs; ++n)
    dequantize_row(format, weights.device.data(), {outputs, inputs}, n,
                   weights.values.data() + size_t{n} * inputs);
  return weights;
}

// A plan for matmul_coopmat with its loop over k in rounds: lavapipe would take minutes to compile
// the tiles that have it, so a small tile gets it, of as few slices a step as there can be. Where a
// round is of two steps, the weights of two are on their way.
MatmulPlan in_rounds(MatmulPlan plan, const MatmulShape& shape) {
  constexpr size_t kTileInputs = 4, kSplits = 5, kFragmentInputs = 10, kAhead = 12, kRound = 16;
  std::vector<uint32_t>& constants = plan.multiply.pipeline.constants;
  const bool is_float = format_info(shape.format).is_float();
  constants[kTileInputs] = std::max(2 * constants[kFragmentInputs], is_float ? 16u : 32u);
  const uint32_t steps = shape.inputs / constants[kTileInputs] / constants[kSplits];
  constants[kRound] = constants[kAhead] = is_float && steps % 2 == 0 ? 2 : 1;
  return plan;
}

class MatmulTest : public GpuTest {
 protected:
  DeviceCaps gpu_caps(bool integer_dot) {
    DeviceCaps caps = device().caps();
    caps.type = DeviceType::kDiscrete;
    caps.features.integer_dot = integer_dot;
    return caps;
  }

  // Runs the product and returns y, having checked that nothing past its end was written.
  std::vector<float> multiply(const MatmulPlan& plan, const MatmulShape& shape,
                              const Weights& weights, const std::vector<float>& x) {
    const Buffer weight_buffer = filled(weights.device), x_buffer = filled(x);
    const Buffer scratch = poisoned(std::max<uint64_t>(plan.scratch_bytes, 16));
    const Buffer counts =
        filled(std::vector<uint32_t>(plan.shared ? plan.shared->count_bytes / 4 : 1, 0));
    const size_t count = size_t{shape.rows} * shape.outputs;
    const Buffer y_buffer = poisoned((count + shape.outputs) * 4);
    run([&](CommandRecorder& recorder) {
      return record_matmul(recorder, pipelines(), plan,
                           {.weight = weight_buffer.all(),
                            .x = x_buffer.all(),
                            .y = y_buffer.slice(0, count * 4),
                            .scratch = scratch.all(),
                            .counts = counts.all(),
                            .shape = shape});
    });
    std::vector<float> y = read<float>(y_buffer);
    for (size_t i = count; i < y.size(); ++i)
      EXPECT_TRUE(std::isnan(y[i])) << "written past the end";
    y.resize(count);
    return y;
  }

  static double limit(const MatmulPlan& plan) {
    const std::string& kernel = plan.multiply.pipeline.kernel;
    if (kernel.starts_with("matmul_coopmat")) return kHalfLimit;
    return kernel.starts_with("matvec_integer") ? kIntegerLimit : kFloatLimit;
  }

  void check(const DeviceCaps& caps, const MatmulShape& shape, float weight_size = 0.05f) {
    check_plan(choose_matmul(caps, shape), shape, weight_size);
  }

  void check_plan(const MatmulPlan& plan, const MatmulShape& shape, float weight_size = 0.05f) {
    const Weights weights = random_weights(shape.format, shape.outputs, shape.inputs, weight_size);
    const std::vector<float> x =
        random_floats(size_t{shape.rows} * shape.inputs, shape.inputs + shape.rows);
    const double error =
        nmse(multiply(plan, shape, weights, x),
             reference_matmul(weights.values, x, shape.rows, shape.inputs, shape.outputs));
    EXPECT_LT(error, limit(plan)) << plan.multiply.pipeline.kernel << ": " << shape.rows << " x "
                                  << shape.outputs << " x " << shape.inputs;
  }

  void check_every_format(const DeviceCaps& caps) {
    for (const FormatInfo& info : all_formats()) {
      const uint32_t block = std::max(info.block_weights, 32u);
      check(caps, {.format = info.format, .rows = 1, .inputs = block, .outputs = 1});
      check(caps, {.format = info.format, .rows = 2, .inputs = block * 3, .outputs = 37});
      check(caps, {.format = info.format, .rows = 3, .inputs = block * 3, .outputs = 37});
      check(caps, {.format = info.format, .rows = 8, .inputs = 1024, .outputs = 130});
      check(caps, {.format = info.format, .rows = 13, .inputs = 512, .outputs = 19});
    }
  }

  // Lavapipe takes seconds to compile a kernel that is unrolled for a GPU. There one format of each
  // kind has to do: all share the kernel, and how each is decoded is tested elsewhere.
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
    // Two pieces share a word of scales, and rows have an odd number of them.
    DeviceCaps caps = gpu_caps(integer_dot);
    caps.features.coopmat = false;
    if (integer_dot)
      check(caps, {.format = WeightFormat::kMxfp4, .rows = 2, .inputs = 96, .outputs = 37});
  }
};

TEST_F(MatmulTest, EveryFormatAsChosenHere) { check_every_format(device().caps()); }

TEST_F(MatmulTest, EveryFormatAsChosenForAGpu) { check_gpu_formats(false); }

TEST_F(MatmulTest, EveryFormatAsChosenForAGpuWithIntegerDots) { check_gpu_formats(true); }

// Every tile with and without matrix units, ragged in every direction, with and without a split of
// k.
TEST_F(MatmulTest, EveryTile) {
  for (const bool coopmat : {false, true}) {
    DeviceCaps caps = gpu_caps(true);
    if (coopmat && !caps.features.coopmat) continue;  // lavapipe at a vector width of 128
    caps.features.coopmat = coopmat;
    // Lavapipe takes seconds to compile a tile, and a minute the large ones of matrix units it does
    // not have. There a format that is decoded gets one tile of each kind.
    const bool slow = is_cpu(device().caps()), small_only = coopmat && slow;
    for (const WeightFormat format : {WeightFormat::kF16, WeightFormat::kQ8_0}) {
      for (const uint32_t rows : {9u, 16u, 31u, 40u, 64u, 90u, 130u, 260u}) {
        if ((small_only && rows > 16) ||
            (slow && !coopmat && rows != 31 && rows != 260 && format == WeightFormat::kQ8_0))
          continue;
        check(caps, {.format = format, .rows = rows, .inputs = 96, .outputs = 150});
      }
    }
    check(caps, {.format = WeightFormat::kF16, .rows = 10, .inputs = 1000, .outputs = 70});
    if (small_only) continue;
    check(caps, {.format = WeightFormat::kF32, .rows = 20, .inputs = 296, .outputs = 70});
    check(caps, {.format = WeightFormat::kQ4K, .rows = 100, .inputs = 2048, .outputs = 300});
    if (slow) continue;
    check(caps, {.format = WeightFormat::kF16, .rows = 20, .inputs = 1000, .outputs = 70});
    check(caps, {.format = WeightFormat::kQ4K, .rows = 13, .inputs = 1280, .outputs = 65});
    check(caps, {.format = WeightFormat::kQ4K, .rows = 33, .inputs = 512, .outputs = 65});
  }
}

// Loops over k in rounds, with and without a split of k, ragged in rows and outputs.
TEST_F(MatmulTest, TilesInRounds) {
  const DeviceCaps caps = gpu_caps(true);
  if (!coopmat_shape(caps)) GTEST_SKIP() << "no matrix units";
  for (const WeightFormat format : {WeightFormat::kF16, WeightFormat::kQ4K}) {
    for (const uint32_t inputs : {256u, 1024u}) {
      const MatmulShape shape{.format = format, .rows = 13, .inputs = inputs, .outputs = 150};
      const MatmulPlan plan = choose_matmul(caps, shape);
      EXPECT_EQ(plan.reduce.has_value(), inputs == 1024);
      if (inputs == 1024 || format == WeightFormat::kF16) check_plan(in_rounds(plan, shape), shape);
    }
    if (is_cpu(device().caps())) continue;
    check(caps, {.format = format, .rows = 200, .inputs = 4096, .outputs = 150});
    check(caps, {.format = format, .rows = 200, .inputs = 256, .outputs = 8300});
    check(caps, {.format = format, .rows = 1000, .inputs = 768, .outputs = 2100});
    // Some tiles more than multiprocessors, which are then shared.
    const MatmulShape more{.format = format,
                           .rows = 130,
                           .inputs = 2048,
                           .outputs = 128 * multiprocessors(caps) + 1000};
    EXPECT_TRUE(choose_matmul(caps, more).shared);
    check(caps, more);
  }
}

// The last tiles shared by several groups each: small ones, so that lavapipe can compile them, with
// shares of k that are not equal, ragged in rows and outputs, and with a residual or gates after
// the sum. Twice, because counts must be zero again.
TEST_F(MatmulTest, SharedTiles) {
  constexpr size_t kTileRows = 2, kTileOutputs = 3, kTileInputs = 4, kFragmentInputs = 10;
  constexpr size_t kShare = 17;
  constexpr uint32_t kWhole = 1, kGroups = 3;
  const DeviceCaps caps = gpu_caps(true);
  if (!coopmat_shape(caps)) GTEST_SKIP() << "no matrix units";
  const MatmulShape shape{.format = WeightFormat::kF16, .rows = 13, .inputs = 256, .outputs = 152};
  const Weights weights = random_weights(shape.format, shape.outputs, shape.inputs, 0.3f);
  const std::vector<float> x = random_floats(size_t{shape.rows} * shape.inputs, 5);
  const std::vector<double> sums =
      reference_matmul(weights.values, x, shape.rows, shape.inputs, shape.outputs);
  MatmulPlan plan = choose_matmul(caps, shape);
  ASSERT_FALSE(plan.reduce || plan.shared);
  SharedTiles shared{.multiply = plan.multiply, .whole_tiles = kWhole};
  std::vector<uint32_t>& constants = shared.multiply.pipeline.constants;
  constants[kTileInputs] = 2 * constants[kFragmentInputs];  // four rounds or more
  constants[kShare] = kGroups;
  const uint32_t left = plan.multiply.groups.x * plan.multiply.groups.y - kWhole;
  ASSERT_GT(left, 0u);
  shared.multiply.groups = {.x = kWhole + left * kGroups};
  shared.count_bytes = uint64_t{left} * 4;
  plan.part_bytes = uint64_t{left} * kGroups * constants[kTileRows] * constants[kTileOutputs] * 4;
  plan.scratch_bytes = plan.prepared_bytes + plan.part_bytes;
  plan.shared = shared;

  const Buffer weight_buffer = filled(weights.device), x_buffer = filled(x);
  const Buffer scratch = poisoned(plan.scratch_bytes);
  const Buffer counts = filled(std::vector<uint32_t>(left, 0));
  for (const bool gates : {false, true}) {
    const uint32_t results = gates ? shape.outputs / 2 : shape.outputs;
    std::vector<double> reference;
    for (uint32_t r = 0; r < shape.rows; ++r) {
      for (uint32_t n = 0; n < results; ++n) {
        const double sum = sums[r * shape.outputs + n];
        reference.push_back(gates
                                ? sum / (1 + std::exp(-sum)) * sums[r * shape.outputs + results + n]
                                : sum + x[n % shape.inputs]);
      }
    }
    std::vector<float> residual;
    for (uint32_t i = 0; i < shape.rows * results; ++i)
      residual.push_back(x[i % results % shape.inputs]);
    const Buffer residual_buffer = filled(residual);
    const Buffer y_buffer = poisoned(reference.size() * 4);
    for (const bool again : {false, true}) {
      Matmul op{.weight = weight_buffer.all(),
                .x = x_buffer.all(),
                .y = y_buffer.all(),
                .scratch = scratch.all(),
                .counts = counts.all(),
                .shape = shape};
      if (gates)
        op.gate = MlpActivation::kSilu;
      else
        op.residual = residual_buffer.all();
      run([&](CommandRecorder& recorder) {
        return record_matmul(recorder, pipelines(), plan, op);
      });
      EXPECT_LT(nmse(read<float>(y_buffer), reference), limit(plan)) << gates << again;
    }
  }
  EXPECT_EQ(read<uint32_t>(counts), std::vector<uint32_t>(left, 0));
}

// Scales that f16 has only as subnormal numbers, or not at all.
TEST_F(MatmulTest, SmallWeightsKeepTheirPrecision) {
  DeviceCaps caps = gpu_caps(true);
  if (!coopmat_shape(caps)) GTEST_SKIP() << "no matrix units";
  check(caps, {.format = WeightFormat::kQ8_0, .rows = 9, .inputs = 96, .outputs = 150}, 1e-4f);
}

// A kernel that ran before may have left x as the plan wants it.
TEST_F(MatmulTest, PreparedRowsAreUsedAsTheyAre) {
  const MatmulShape shape{.format = WeightFormat::kQ8_0, .rows = 9, .inputs = 96, .outputs = 150};
  const MatmulPlan plan = choose_matmul(gpu_caps(true), shape);
  if (!plan.prepare) GTEST_SKIP() << "no matrix units";
  const Weights weights = random_weights(shape.format, shape.outputs, shape.inputs);
  const std::vector<float> x = random_floats(size_t{shape.rows} * shape.inputs, 5);
  const Buffer weight_buffer = filled(weights.device), x_buffer = filled(x);
  const Buffer scratch = poisoned(plan.scratch_bytes), prepared = poisoned(plan.prepared_bytes);
  const Buffer y_buffer = poisoned(size_t{shape.rows} * shape.outputs * 4);
  const Matmul op{.weight = weight_buffer.all(),
                  .x = x_buffer.all(),
                  .y = y_buffer.all(),
                  .scratch = scratch.all(),
                  .shape = shape};
  run([&](CommandRecorder& recorder) -> Status {
    HEARTH_TRY(record_prepare(recorder, pipelines(), plan, op, prepared.all()));
    Matmul with = op;
    with.x = scratch.all();  // not looked at
    with.prepared = prepared.all();
    return record_matmul(recorder, pipelines(), plan, with);
  });
  EXPECT_LT(nmse(read<float>(y_buffer),
                 reference_matmul(weights.values, x, shape.rows, shape.inputs, shape.outputs)),
            limit(plan));
}

TEST_F(MatmulTest, RaggedInputsOfFloatFormats) {
  DeviceCaps gpu = gpu_caps(false);
  if (is_cpu(device().caps())) gpu.features.coopmat = false;  // slow to compile: see EveryTile
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
  caps.features.coopmat = false;  // with it, five rows would be a tile's work
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
      plan.multiply.pipeline.constants = {
          lanes, 0, test.rows_at_once, test.outputs, pieces, kSubgroups * test.teams, test.last, 0,
          0,     0, test.teams};
      plan.multiply.groups.x = divide_up(shape.outputs, test.outputs * test.last * test.teams);
    } else {
      plan.multiply.pipeline.constants = {lanes, 0, test.rows_at_once, test.outputs, test.last, 0,
                                          0,     0};
      plan.multiply.groups.x = divide_up(shape.outputs, test.outputs * kSubgroups);
    }
    EXPECT_LT(nmse(multiply(plan, shape, weights, x),
                   reference_matmul(weights.values, x, shape.rows, shape.inputs, shape.outputs)),
              kIntegerLimit)
        << format_info(test.format).name << ": " << test.rows_at_once << " rows, " << test.outputs
        << " outputs, " << test.teams << " teams";
  }
}

TEST_F(MatmulTest, BiasSoftCapAndResidualInThatOrder) {
  constexpr float kCap = 2.0f;
  DeviceCaps lanes_only = gpu_caps(true);
  lanes_only.features.coopmat = false;
  struct Case {
    uint32_t rows, inputs, outputs;
    bool reduced;
  };
  // Few rows run matrix-vector kernels, more run tiles, whose parts of k, if there are any, are
  // added up in the end. Where outputs are a multiple of four, four are stored together.
  for (const auto& [rows, inputs, outputs, reduced] :
       std::initializer_list<Case>{{1, 1024, 50, false},
                                   {9, 1024, 50, true},
                                   {9, 1024, 52, true},
                                   {9, 64, 50, false},
                                   {9, 64, 52, false}}) {
    SCOPED_TRACE(::testing::Message() << rows << " x " << outputs << " x " << inputs);
    const Weights weights = random_weights(WeightFormat::kF16, outputs, inputs);
    const std::vector<float> bias = random_floats(outputs, 3);
    const Buffer weight_buffer = filled(weights.device), bias_buffer = filled(bias);
    const MatmulShape shape{
        .format = WeightFormat::kF16, .rows = rows, .inputs = inputs, .outputs = outputs};
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

// Products of the same rows that do not depend on each other, with scratch for all and for one.
TEST_F(MatmulTest, ProductsSideBySide) {
  constexpr uint32_t kRows = 9, kInputs = 1024;
  const std::vector<float> x = random_floats(kRows * kInputs, 2);
  const Buffer x_buffer = filled(x);
  std::vector<PlannedMatmul> products;
  std::vector<Weights> weights;
  std::deque<Buffer> buffers, results;  // slices point to them
  uint64_t all = 0, most = 0;
  for (const uint32_t outputs : {50u, 20u, 36u}) {
    const MatmulShape shape{
        .format = WeightFormat::kF16, .rows = kRows, .inputs = kInputs, .outputs = outputs};
    const MatmulPlan plan = choose_matmul(gpu_caps(true), shape);
    ASSERT_TRUE(plan.reduce);
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
    EXPECT_TRUE(record_matmuls(*recorder, pipelines(), products, scratch.all()).ok());
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

// A norm between two products of one row: the first begins it, the second finishes it.
TEST_F(MatmulTest, ANormBetweenTwoProducts) {
  for (const WeightFormat format : {WeightFormat::kF16, WeightFormat::kF32, WeightFormat::kQ8_0}) {
    const uint32_t width = format == WeightFormat::kQ8_0 ? 1024 : 1000;
    const MatmulShape first{.format = format, .rows = 1, .inputs = 96, .outputs = width};
    const MatmulShape second{.format = format, .rows = 1, .inputs = width, .outputs = 70};
    const MatmulPlan begin = choose_matmul(gpu_caps(true), first);
    const MatmulPlan finish = choose_matmul(gpu_caps(true), second);
    ASSERT_TRUE(begin.emit_constant && finish.norm_constant);
    const Weights a = random_weights(format, first.outputs, first.inputs);
    const Weights b = random_weights(format, second.outputs, second.inputs);
    const std::vector<float> x = random_floats(first.inputs, 5, 3.0f);
    const std::vector<float> residual = random_floats(first.outputs, 7);
    const std::vector<float> norm = random_floats(first.outputs, 6);
    const Buffer a_buffer = filled(a.device), b_buffer = filled(b.device), x_buffer = filled(x);
    const Buffer norm_buffer = filled(norm), h_buffer = filled(residual);
    const Buffer scaled = poisoned(first.outputs * 4), y_buffer = poisoned(second.outputs * 4);
    const Buffer squares = poisoned(square_bytes(begin) + 16);
    const BufferSlice used = squares.slice(0, square_bytes(begin));
    run([&](CommandRecorder& recorder) -> Status {
      HEARTH_TRY(record_matmul(
          recorder, pipelines(), begin,
          {.weight = a_buffer.all(),
           .x = x_buffer.all(),
           .y = h_buffer.all(),
           .residual = h_buffer.all(),
           .begin_norm =
               NormBegin{.weight = norm_buffer.all(), .scaled = scaled.all(), .squares = used},
           .shape = first}));
      return record_matmul(recorder, pipelines(), finish,
                           {.weight = b_buffer.all(),
                            .x = scaled.all(),
                            .y = y_buffer.all(),
                            .squares = used,
                            .norm_epsilon = 1e-1f,
                            .shape = second});
    });
    std::vector<double> h = reference_matmul(a.values, x, 1, first.inputs, first.outputs);
    for (size_t i = 0; i < h.size(); ++i) h[i] += residual[i];
    EXPECT_LT(nmse(read<float>(h_buffer), h), limit(begin));
    const std::vector<float> rounded(h.begin(), h.end());
    const std::vector<double> normed = reference_rms_norm(rounded, norm, 1, second.inputs, 1e-1);
    const std::vector<float> rows(normed.begin(), normed.end());
    EXPECT_LT(nmse(read<float>(y_buffer),
                   reference_matmul(b.values, rows, 1, second.inputs, second.outputs)),
              limit(finish));
  }
}

// Gates and ups are put together where they are made: by matrix-vector kernels, and by tiles.
TEST_F(MatmulTest, GatesAndUps) {
  const bool small_only = is_cpu(device().caps());  // slow to compile: see EveryTile
  for (const WeightFormat format : {WeightFormat::kF16, WeightFormat::kQ8_0}) {
    for (const uint32_t rows : {1u, 9u, 10u, 30u, 64u, 128u, 300u}) {
      if (rows > 16 && small_only) continue;
      const bool rounds = rows == 10;
      const MatmulShape shape{.format = format, .rows = rows, .inputs = 96, .outputs = 2 * 76};
      DeviceCaps caps = gpu_caps(true);
      MatmulPlan plan = choose_matmul(caps, shape);
      const bool vector = plan.form == RowForm::kFloats;
      if (vector && rows > 1) continue;  // lavapipe at a vector width of 128 has no matrix units
      if (vector && !plan.gate_constant) {
        // Only large matrices get two outputs a subgroup, and with them this.
        plan.multiply.pipeline.constants[3] = 2;
        plan.gate_constant = 6;
      }
      ASSERT_TRUE(plan.gate_constant) << rows;
      if (rounds) plan = in_rounds(plan, shape);
      const Weights weights = random_weights(format, shape.outputs, shape.inputs, 0.3f);
      const std::vector<float> x = random_floats(size_t{rows} * shape.inputs, 5);
      const std::vector<double> sums =
          reference_matmul(weights.values, x, rows, shape.inputs, shape.outputs);
      const uint32_t results = shape.outputs / 2;
      for (const MlpActivation activation : {MlpActivation::kSilu, MlpActivation::kGeluTanh}) {
        for (const bool halves : {false, true}) {
          if (halves && vector) continue;
          // One of each on lavapipe, which takes seconds to compile them; decoding is the same.
          if (small_only && !vector &&
              (halves != (activation == MlpActivation::kGeluTanh) || (halves && rounds) ||
               format != WeightFormat::kF16))
            continue;
          std::vector<double> reference;
          for (uint32_t r = 0; r < rows; ++r) {
            for (uint32_t n = 0; n < results; ++n) {
              const double gate = sums[r * shape.outputs + n];
              const double u = activation == MlpActivation::kSilu
                                   ? gate
                                   : 1.5957691216057308 * (gate + 0.044715 * gate * gate * gate);
              reference.push_back(gate / (1 + std::exp(-u)) *
                                  sums[r * shape.outputs + results + n]);
            }
          }
          const Buffer weight_buffer = filled(weights.device), x_buffer = filled(x);
          const Buffer scratch = poisoned(std::max<uint64_t>(plan.scratch_bytes, 16));
          const Buffer y_buffer = poisoned(reference.size() * (halves ? 2 : 4) + 64);
          run([&](CommandRecorder& recorder) {
            return record_matmul(recorder, pipelines(), plan,
                                 {.weight = weight_buffer.all(),
                                  .x = x_buffer.all(),
                                  .y = y_buffer.slice(0, y_buffer.bytes() - 64),
                                  .scratch = scratch.all(),
                                  .gate = activation,
                                  .half_results = halves,
                                  .shape = shape});
          });
          std::vector<float> y =
              halves ? read_halves(read<uint32_t>(y_buffer)) : read<float>(y_buffer);
          for (size_t i = reference.size(); i < y.size(); ++i)
            EXPECT_TRUE(std::isnan(y[i])) << "written past the end";
          y.resize(reference.size());
          EXPECT_LT(nmse(y, reference), vector ? 2 * limit(plan) : 2 * kHalfLimit)
              << rows << (halves ? " halves" : " floats");
        }
      }
    }
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

TEST_F(MatmulTest, WhatNoKernelTakesIsRefused) {
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
  refuse({.format = WeightFormat::kF32, .rows = 9, .inputs = 1024, .outputs = 1}, "scratch");
}

}  // namespace
}  // namespace hearth::testing
