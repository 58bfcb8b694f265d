#include <algorithm>

#include <fmt/format.h>

#include "engine/ops/matmul/family.h"
#include "params/half_rows.h"
#include "params/matmul_reduce.h"

namespace hearth {

std::span<const MatmulFamily* const> matmul_families() {
  static constexpr const MatmulFamily* kFamilies[] = {&kMatmulInvocation, &kMatmulTeam,
                                                      &kMatvecTeam,       &kMatmulTiles,
                                                      &kMatvecInteger,    &kMatvecFloat};
  return kFamilies;
}

MatmulPlan choose_matmul(const DeviceCaps& caps, const MatmulShape& shape, bool deterministic) {
  const MatmulRequest request{caps, shape, deterministic};
  return first_supporting(matmul_families(), request)->plan(request);
}

uint32_t matvec_rows(const MatmulRequest& request) {
  return request.deterministic ? kDeterministicRows
                               : std::clamp(request.shape.rows, 1u, kMaxMatvecRows);
}

std::string variant(std::string_view kernel, WeightFormat format) {
  return fmt::format("{}.{}", kernel, format_info(format).header);
}

// Matrix units use f16, which loses nothing for weights of 16 bits or fewer. F32 weights keep their
// precision.
bool matrix_units(const DeviceCaps& caps, WeightFormat format) {
  return format != WeightFormat::kF32 && coopmat_shape(caps).has_value();
}

void take_halves(const DeviceCaps& caps, const MatmulShape& shape, MatmulPlan& plan) {
  const uint32_t lanes = group_size(caps, 128);
  plan.form = RowForm::kHalves;
  plan.prepare =
      KernelPlan{.pipeline = {.kernel = "half_rows",
                              .constants = params::HalfRowsConstants{.kWorkgroupSize = lanes}},
                 .groups = {.x = divide_up(shape.inputs / 8, lanes), .y = shape.rows}};
  plan.prepared_bytes = row_form_bytes(plan.form, shape.rows, shape.inputs);
}

void leave_parts(const DeviceCaps& caps, const MatmulShape& shape, uint32_t splits,
                 uint32_t tile_rows, MatmulPlan& plan) {
  const uint32_t lanes = group_size(caps, 256);
  plan.reduce =
      KernelPlan{.pipeline = {.kernel = "matmul_reduce",
                              .constants = params::MatmulReduceConstants{.kWorkgroupSize = lanes,
                                                                         .kSplits = splits,
                                                                         .kTileRows = tile_rows}},
                 .groups = {.x = divide_up(shape.outputs, 4 * lanes), .y = shape.rows}};
  plan.parts = {.splits = splits,
                .rows = divide_up(shape.rows, tile_rows) * tile_rows,
                .outputs = divide_up(shape.outputs, kPartUnit) * kPartUnit};
  plan.part_bytes = uint64_t{splits} * plan.parts.rows * plan.parts.outputs * 4;
}

}  // namespace hearth
