// Products by kernels whose lanes make fragments themselves, or by the models of those kernels
// where the device has no such fragments.
#pragma once

#include <algorithm>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "tests/support/matmul.h"
#include "tests/support/reference_mlp.h"

namespace hearth::testing {

// A tile, and how many groups share the k of each.
struct FragmentsTile {
  uint32_t rows, outputs;
  uint32_t splits = 1;
};

class FragmentsFixture : public MatmulFixture {
 protected:
  static constexpr uint32_t kLanes = 32;  // of a subgroup

  MatmulPlan fragments_plan(std::string_view kernel, const MatmulShape& shape,
                            const FragmentsTile& tile, std::vector<uint32_t> constants) {
    const bool real = device().caps().features.lane_fragments;
    const uint32_t down = divide_up(shape.rows, tile.rows);
    MatmulPlan plan{
        .form = RowForm::kHalves,
        .prepare =
            KernelPlan{.pipeline = {.kernel = "half_rows", .constants = {kLanes}},
                       .groups = {.x = divide_up(shape.inputs / 8, kLanes), .y = shape.rows}},
        .multiply = {.pipeline = {.kernel = fmt::format("{}{}.{}", kernel, real ? "" : "_model",
                                                        format_info(shape.format).header),
                                  .constants = std::move(constants),
                                  .subgroup_size = real ? kLanes : 0},
                     .groups = {.x = down,
                                .y = divide_up(shape.outputs, tile.outputs),
                                .z = tile.splits}},
        .prepared_bytes = row_form_bytes(RowForm::kHalves, shape.rows, shape.inputs)};
    if (tile.splits > 1) {
      plan.reduce = KernelPlan{
          .pipeline = {.kernel = "matmul_reduce", .constants = {kLanes, 0, tile.splits, tile.rows}},
          .groups = {.x = divide_up(shape.outputs, 4 * kLanes), .y = shape.rows}};
      plan.parts = {.splits = tile.splits,
                    .rows = down * tile.rows,
                    .outputs = divide_up(shape.outputs, kPartUnit) * kPartUnit};
      plan.part_bytes = uint64_t{tile.splits} * plan.parts.rows * plan.parts.outputs * 4;
    }
    plan.scratch_bytes = plan.prepared_bytes + plan.part_bytes;
    return plan;
  }

  // Half of the outputs as gates of the others.
  void check_gates(const MatmulPlan& plan, const MatmulShape& shape) {
    const Weights weights = random_weights(shape.format, shape.outputs, shape.inputs, 0.3f);
    const std::vector<float> x = random_floats(size_t{shape.rows} * shape.inputs, 5);
    const std::vector<double> sums =
        reference_matmul(weights.values, x, shape.rows, shape.inputs, shape.outputs);
    const std::vector<double> reference =
        reference_gated(sums, shape.rows, shape.outputs, MlpActivation::kSilu);
    const Buffer weight_buffer = filled(weights.device), x_buffer = filled(x);
    const Buffer scratch = poisoned(plan.scratch_bytes);
    const uint64_t count_bytes = plan.shared ? plan.shared->count_bytes : 4;
    const Buffer counts = filled(std::vector<uint32_t>(count_bytes / 4, 0));
    const Buffer y_buffer = poisoned(reference.size() * 4 + 64);
    run([&](CommandRecorder& recorder) {
      return record_matmul(recorder, pipelines(), plan,
                           {.weight = weight_buffer.all(),
                            .x = x_buffer.all(),
                            .y = y_buffer.slice(0, y_buffer.bytes() - 64),
                            .scratch = scratch.all(),
                            .counts = counts.all(),
                            .gate = MlpActivation::kSilu,
                            .shape = shape});
    });
    std::vector<float> y = read<float>(y_buffer);
    for (size_t i = reference.size(); i < y.size(); ++i)
      EXPECT_TRUE(std::isnan(y[i])) << "written past the end";
    y.resize(reference.size());
    EXPECT_LT(nmse(y, reference), 2 * kHalfLimit);
  }
};

}  // namespace hearth::testing
