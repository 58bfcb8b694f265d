// Products by kernels that fill fragments from registers, or by their emulated variants if the
// device's lanes do not hold such fragments.
#pragma once

#include <string_view>

#include <fmt/format.h>

#include "params/half_rows.h"
#include "params/matmul_reduce.h"
#include "tests/support/matmul.h"

namespace hearth::testing {

// A tile, and the number of splits along k.
struct FragmentsTile {
  uint32_t rows, outputs;
  uint32_t splits = 1;
};

class FragmentsFixture : public MatmulFixture {
 protected:
  static constexpr uint32_t kLanes = 32;  // per subgroup

  MatmulPlan fragments_plan(std::string_view kernel, const MatmulShape& shape,
                            const FragmentsTile& tile, KernelConstants constants) {
    const bool real = device().caps().features.lane_fragments;
    const uint32_t down = divide_up(shape.rows, tile.rows);
    MatmulPlan plan{
        .form = RowForm::kHalves,
        .prepare =
            KernelPlan{
                .pipeline = {.kernel = "half_rows",
                             .constants = params::HalfRowsConstants{.kWorkgroupSize = kLanes}},
                .groups = {.x = divide_up(shape.inputs / 8, kLanes), .y = shape.rows}},
        .multiply = {.pipeline = {.kernel = fmt::format("{}{}.{}", kernel, real ? "" : "_emulated",
                                                        format_info(shape.format).header),
                                  .constants = std::move(constants),
                                  .subgroup_size = real ? kLanes : 0},
                     .groups = {.x = down,
                                .y = divide_up(shape.outputs, tile.outputs),
                                .z = tile.splits}},
        .prepared_bytes = row_form_bytes(RowForm::kHalves, shape.rows, shape.inputs)};
    if (tile.splits > 1) {
      plan.reduce = KernelPlan{
          .pipeline = {.kernel = "matmul_reduce",
                       .constants = params::MatmulReduceConstants{.kWorkgroupSize = kLanes,
                                                                  .kSplits = tile.splits,
                                                                  .kTileRows = tile.rows}},
          .groups = {.x = divide_up(shape.outputs, 4 * kLanes), .y = shape.rows}};
      plan.parts = {.splits = tile.splits,
                    .rows = down * tile.rows,
                    .outputs = divide_up(shape.outputs, kPartUnit) * kPartUnit};
      plan.part_bytes = uint64_t{tile.splits} * plan.parts.rows * plan.parts.outputs * 4;
    }
    plan.scratch_bytes = plan.prepared_bytes + plan.part_bytes;
    return plan;
  }
};

}  // namespace hearth::testing
