// Weights that go from memory straight into fragments. Where a device has no such fragments, the
// kernel runs with a model of them: what it loads, and where it puts it, is the same.
#include <cmath>

#include <fmt/format.h>

#include "tests/support/matmul.h"
#include "tests/support/reference_mlp.h"

namespace hearth::testing {
namespace {

class MatmulDirectTest : public MatmulFixture {
 protected:
  // The product in tiles of two subgroups of so many outputs each, which lavapipe compiles in
  // seconds, with `buffers` blocks of x in shared memory and k in `splits` shares.
  MatmulPlan direct_plan(const MatmulShape& shape, uint32_t part_outputs, uint32_t buffers,
                         uint32_t splits) {
    constexpr uint32_t kSubgroups = 2, kLanes = 32;
    const bool real = device().caps().features.lane_fragments;
    const uint32_t tile_rows = divide_up(shape.rows, 16) * 16;
    const char* kernel = real ? "matmul_direct" : "matmul_direct_model";
    MatmulPlan plan{
        .form = RowForm::kHalves,
        .prepare =
            KernelPlan{.pipeline = {.kernel = "half_rows", .constants = {kLanes}},
                       .groups = {.x = divide_up(shape.inputs / 8, kLanes), .y = shape.rows}},
        .multiply = {.pipeline = {.kernel = fmt::format("{}.{}", kernel,
                                                        format_info(shape.format).header),
                                  .constants = {kSubgroups * kLanes, 0, tile_rows,
                                                kSubgroups * part_outputs, buffers, splits,
                                                part_outputs, kSubgroups, 0, 0},
                                  .subgroup_size = real ? kLanes : 0},
                     .groups = {.x = 1,
                                .y = divide_up(shape.outputs, kSubgroups * part_outputs),
                                .z = splits}},
        .prepared_bytes = row_form_bytes(RowForm::kHalves, shape.rows, shape.inputs),
        .gate_constant = 8};
    if (splits > 1) {
      plan.reduce = KernelPlan{
          .pipeline = {.kernel = "matmul_reduce", .constants = {kLanes, 0, splits, tile_rows}},
          .groups = {.x = divide_up(shape.outputs, 4 * kLanes), .y = shape.rows}};
      plan.parts = {.splits = splits,
                    .rows = tile_rows,
                    .outputs = divide_up(shape.outputs, kPartUnit) * kPartUnit};
      plan.part_bytes = uint64_t{splits} * tile_rows * plan.parts.outputs * 4;
    }
    plan.scratch_bytes = plan.prepared_bytes + plan.part_bytes;
    return plan;
  }
};

// Ragged in rows and outputs: shares of k that are not equal with two blocks of x in shared memory,
// and several fragments of rows with one.
TEST_F(MatmulDirectTest, Products) {
  const MatmulShape nibbles{
      .format = WeightFormat::kQ4K, .rows = 13, .inputs = 1792, .outputs = 70};
  check_plan(direct_plan(nibbles, 8, 2, 3), nibbles);
  const MatmulShape halves{.format = WeightFormat::kF16, .rows = 30, .inputs = 384, .outputs = 70};
  check_plan(direct_plan(halves, 8, 1, 1), halves);
}

// Gates and ups in one product.
TEST_F(MatmulDirectTest, GatesAndUps) {
  const MatmulShape shape{.format = WeightFormat::kQ4K, .rows = 11, .inputs = 256, .outputs = 152};
  const MatmulPlan plan = direct_plan(shape, 16, 2, 1);
  const Weights weights = random_weights(shape.format, shape.outputs, shape.inputs, 0.3f);
  const std::vector<float> x = random_floats(size_t{shape.rows} * shape.inputs, 5);
  const std::vector<double> sums =
      reference_matmul(weights.values, x, shape.rows, shape.inputs, shape.outputs);
  const std::vector<double> reference =
      reference_gated(sums, shape.rows, shape.outputs, MlpActivation::kSilu);
  const Buffer weight_buffer = filled(weights.device), x_buffer = filled(x);
  const Buffer scratch = poisoned(plan.scratch_bytes);
  const Buffer y_buffer = poisoned(reference.size() * 4 + 64);
  run([&](CommandRecorder& recorder) {
    return record_matmul(recorder, pipelines(), plan,
                         {.weight = weight_buffer.all(),
                          .x = x_buffer.all(),
                          .y = y_buffer.slice(0, y_buffer.bytes() - 64),
                          .scratch = scratch.all(),
                          .gate = MlpActivation::kSilu,
                          .shape = shape});
  });
  std::vector<float> y = read<float>(y_buffer);
  for (size_t i = reference.size(); i < y.size(); ++i)
    EXPECT_TRUE(std::isnan(y[i])) << "written past the end";
  y.resize(reference.size());
  EXPECT_LT(nmse(y, reference), 2 * kHalfLimit);
}

}  // namespace
}  // namespace hearth::testing
