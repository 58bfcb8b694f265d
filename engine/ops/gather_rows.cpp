#include "engine/ops/gather_rows.h"

#include "params/gather_rows.h"

namespace hearth {

KernelPlan choose_gather_rows(const DeviceCaps& caps, const GatherRowsShape& shape) {
  const uint32_t units = shape.width % 4 == 0 ? shape.width / 4 : shape.width;
  const uint32_t lanes = group_size(caps, 256);
  return {.pipeline = {.kernel = "gather_rows",
                       .constants = params::GatherRowsConstants{.kWorkgroupSize = lanes}},
          .groups = {.x = divide_up(units, lanes), .y = shape.rows}};
}

OpCost gather_rows_cost(const GatherRowsShape& shape) {
  return {.activation_bytes = 8.0 * shape.rows * shape.width};
}

Status record_gather_rows(CommandRecorder& recorder, PipelineStore& pipelines,
                          const KernelPlan& plan, const GatherRows& op) {
  if (op.shape.width == 0 || op.shape.source_rows == 0)
    return Error{ErrorKind::kInvalid, "rows picked from an empty matrix"};
  HEARTH_ASSIGN(const Pipeline* pipeline, pipelines.get(plan.pipeline));
  const params::GatherRows params{.x = op.x,
                                  .indices = op.indices,
                                  .y = op.y,
                                  .width = op.shape.width,
                                  .source_rows = op.shape.source_rows};
  recorder.dispatch({.pipeline = *pipeline, .arguments = params, .groups = plan.groups});
  return {};
}

}  // namespace hearth
