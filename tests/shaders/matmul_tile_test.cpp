// Products of many rows: the tile kernels, and features that only they have.
#include <tuple>

#include "tests/support/matmul.h"

namespace hearth::testing {
namespace {

class MatmulTileTest : public MatmulFixture {
 protected:
  // For tests that change the constants of matmul_coopmat: every product uses it.
  DeviceCaps coopmat_caps() {
    DeviceCaps caps = gpu_caps(true);
    caps.features.lane_fragments = false;
    return caps;
  }
};

// A plan for matmul_coopmat with an unrolled loop over k. Lavapipe would take minutes to compile
// the tiles that have it, so a small tile gets it, with the fewest possible slices per step. If two
// steps are unrolled, the weights of two steps are in flight.
MatmulPlan with_unrolled_steps(MatmulPlan plan, const MatmulShape& shape) {
  KernelConstants& constants = plan.multiply.pipeline.constants;
  const bool is_float = format_info(shape.format).is_float();
  constants.set("kTileInputs", std::max(2 * constants["kFragmentInputs"], is_float ? 16u : 32u));
  const uint32_t steps = shape.inputs / constants["kTileInputs"] / constants["kSplits"];
  const uint32_t unrolled = is_float && steps % 2 == 0 ? 2 : 1;
  constants.set("kUnrolledSteps", unrolled);
  constants.set("kAhead", unrolled);
  return plan;
}

// One fragment across per subgroup of matmul_coopmat, so that gates and their ups are in different
// subgroups.
MatmulPlan in_single_fragments(MatmulPlan plan, uint32_t subgroup_size) {
  KernelConstants& constants = plan.multiply.pipeline.constants;
  const uint32_t fragment = constants["kFragmentOutputs"];
  const uint32_t subgroups = constants["kSubgroups"] * (constants["kSubgroupOutputs"] / fragment);
  constants.set("kSubgroups", subgroups);
  constants.set("kWorkgroupSize", subgroups * subgroup_size);
  constants.set("kSubgroupOutputs", fragment);
  return plan;
}

// Every tile with and without matrix units, ragged in every direction, with and without split-k.
TEST_F(MatmulTileTest, EveryTileWithRaggedShapes) {
  for (const bool coopmat : {false, true}) {
    DeviceCaps caps = gpu_caps(true);
    if (coopmat && !caps.features.coopmat) continue;  // lavapipe at a vector width of 128
    caps.features.coopmat = coopmat;
    // Lavapipe takes seconds to compile a tile, and a minute for large ones on matrix units it does
    // not have. There a quantized format gets one tile of each kind.
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

// Unrolled loops over k, with and without split-k, ragged in rows and outputs.
TEST_F(MatmulTileTest, UnrolledLoops) {
  const DeviceCaps caps = coopmat_caps();
  if (!coopmat_shape(caps)) GTEST_SKIP() << "no matrix units";
  for (const WeightFormat format : {WeightFormat::kF16, WeightFormat::kQ4K}) {
    for (const uint32_t inputs : {256u, 1024u}) {
      const MatmulShape shape{.format = format, .rows = 13, .inputs = inputs, .outputs = 150};
      const MatmulPlan plan = choose_matmul(caps, shape);
      EXPECT_EQ(plan.reduce.has_value(), inputs == 1024);
      // Lavapipe compiles those without a split once, for GatesAndUps.
      if (inputs == 1024 || !is_cpu(device().caps()))
        check_plan(with_unrolled_steps(plan, shape), shape);
    }
    if (is_cpu(device().caps())) continue;
    check(caps, {.format = format, .rows = 200, .inputs = 4096, .outputs = 150});
    check(caps, {.format = format, .rows = 200, .inputs = 256, .outputs = 8300});
    check(caps, {.format = format, .rows = 1000, .inputs = 768, .outputs = 2100});
  }
}

// The tiles that large models get, at every number of rows with its own tile: wide ones, narrow
// fragments, and tail tiles, a few more tiles than multiprocessors. Checks a sample of the outputs;
// all would take a CPU minutes.
TEST_F(MatmulTileTest, LargeProducts) {
  const DeviceCaps& caps = device().caps();
  if (is_cpu(caps) || !coopmat_shape(caps)) GTEST_SKIP() << "for devices with matrix units";
  constexpr uint32_t kEvery = 61;
  for (const auto& [format, outputs, inputs] :
       std::initializer_list<std::tuple<WeightFormat, uint32_t, uint32_t>>{
           {WeightFormat::kF16, 28672, 512},
           {WeightFormat::kF16, 4096, 4096},
           {WeightFormat::kF16, 19000, 2048},
           {WeightFormat::kQ8_0, 28672, 512},
           {WeightFormat::kQ4K, 28672, 512},
           {WeightFormat::kQ4K, 2048, 11008},
           {WeightFormat::kQ6K, 4096, 4096}}) {
    const Weights weights = random_weights(format, outputs, inputs);
    std::vector<float> values;  // of the sampled outputs
    for (uint32_t n = 0; n < outputs; n += kEvery)
      values.insert(values.end(), weights.values.begin() + size_t{n} * inputs,
                    weights.values.begin() + size_t{n + 1} * inputs);
    for (const uint32_t rows :
         {1u, 2u, 8u, 16u, 30u, 48u, 64u, 80u, 96u, 112u, 128u, 144u, 160u, 192u, 256u, 400u}) {
      const MatmulShape shape{.format = format, .rows = rows, .inputs = inputs, .outputs = outputs};
      const MatmulPlan plan = choose_matmul(caps, shape);
      const std::vector<float> x = random_floats(size_t{rows} * inputs, inputs + rows);
      const std::vector<float> y = multiply(plan, shape, weights, x);
      std::vector<float> some;
      for (uint32_t r = 0; r < rows; ++r)
        for (uint32_t n = 0; n < outputs; n += kEvery) some.push_back(y[size_t{r} * outputs + n]);
      EXPECT_LT(nmse(some, reference_matmul(values, x, rows, inputs, divide_up(outputs, kEvery))),
                limit(plan))
          << plan.multiply.pipeline.kernel << ": " << rows << " x " << outputs << " x " << inputs;
    }
  }
}

// Tail tiles with several splits each: small ones, so that lavapipe can compile them, with unequal
// splits of k, ragged in rows and outputs, and with a residual or gates after the sum. Run twice,
// because counters must be zero again.
TEST_F(MatmulTileTest, TailTiles) {
  const DeviceCaps caps = coopmat_caps();
  if (!coopmat_shape(caps)) GTEST_SKIP() << "no matrix units";
  const MatmulShape shape{.format = WeightFormat::kF16, .rows = 13, .inputs = 256, .outputs = 152};
  const Weights weights = random_weights(shape.format, shape.outputs, shape.inputs, 0.3f);
  const std::vector<float> x = random_floats(size_t{shape.rows} * shape.inputs, 5);
  const std::vector<double> sums =
      reference_matmul(weights.values, x, shape.rows, shape.inputs, shape.outputs);
  MatmulPlan plan = choose_matmul(caps, shape);
  KernelConstants& constants = plan.multiply.pipeline.constants;
  constants.set("kTileInputs", 2 * constants["kFragmentInputs"]);  // four steps or more
  split_tail_tiles(plan);

  const Buffer weight_buffer = filled(weights.device), x_buffer = filled(x);
  const Buffer scratch = poisoned(plan.scratch_bytes);
  const Buffer counts = zero_counts(plan);
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
  EXPECT_EQ(read<uint32_t>(counts), read<uint32_t>(zero_counts(plan)));
}

// Scales that are subnormal, or zero, in f16.
TEST_F(MatmulTileTest, SmallWeightsKeepTheirPrecision) {
  DeviceCaps caps = gpu_caps(true);
  if (!coopmat_shape(caps)) GTEST_SKIP() << "no matrix units";
  check(caps, {.format = WeightFormat::kQ8_0, .rows = 9, .inputs = 96, .outputs = 150}, 1e-4f);
}

// An earlier kernel may have written x in the form the plan wants.
TEST_F(MatmulTileTest, PreparedRowsAreUsedAsTheyAre) {
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
    with.x = scratch.all();  // not read
    with.prepared = prepared.all();
    return record_matmul(recorder, pipelines(), plan, with);
  });
  EXPECT_LT(nmse(read<float>(y_buffer),
                 reference_matmul(weights.values, x, shape.rows, shape.inputs, shape.outputs)),
            limit(plan));
}

// Gates and ups combined in the kernel that computes them: matrix-vector kernels, and tiles.
TEST_F(MatmulTileTest, GatesAndUps) {
  const bool small_only =
      is_cpu(device().caps());  // slow to compile: see EveryTileWithRaggedShapes
  for (const WeightFormat format : {WeightFormat::kF16, WeightFormat::kQ8_0}) {
    for (const uint32_t rows : {1u, 9u, 10u, 30u, 64u, 128u, 300u}) {
      if (rows > 16 && small_only) continue;
      const bool unrolled = rows == 10;
      const MatmulShape shape{.format = format, .rows = rows, .inputs = 96, .outputs = 2 * 76};
      const DeviceCaps caps = coopmat_caps();
      MatmulPlan plan = choose_matmul(caps, shape);
      const bool vector = plan.form == RowForm::kFloats;
      if (vector && rows > 1) continue;  // lavapipe at a vector width of 128 has no matrix units
      if (vector && !plan.can_gate) {
        // Only large matrices get two outputs per subgroup, and with them this.
        plan.multiply.pipeline.constants.set("kOutputs", 2u);
        plan.can_gate = true;
      }
      ASSERT_TRUE(plan.can_gate) << rows;
      if (unrolled) plan = with_unrolled_steps(plan, shape);
      for (const MlpActivation activation : {MlpActivation::kSilu, MlpActivation::kGeluTanh}) {
        for (const bool halves : {false, true}) {
          if (halves && vector) continue;
          // One of each on lavapipe, which takes seconds to compile them; decoding is the same.
          if (small_only && !vector &&
              (halves != (activation == MlpActivation::kGeluTanh) || (halves && unrolled) ||
               format != WeightFormat::kF16))
            continue;
          check_gates(plan, shape, activation, halves);
          if (rows == 9 && !halves)
            check_gates(in_single_fragments(plan, caps.subgroup_size), shape, activation);
        }
      }
    }
  }
}

}  // namespace
}  // namespace hearth::testing
