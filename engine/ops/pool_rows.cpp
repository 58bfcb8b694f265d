#include "engine/ops/pool_rows.h"

#include "params/pool_rows.h"

namespace hearth {

KernelPlan choose_pool_rows(const DeviceCaps& caps, const PoolRowsShape& shape) {
  const uint32_t lanes = group_size(caps, 256);
  return {.pipeline = {.kernel = "pool_rows",
                       .constants = params::PoolRowsConstants{.kWorkgroupSize = lanes}},
          .groups = {.x = divide_up(shape.width, lanes), .y = shape.ranges}};
}

OpCost pool_rows_cost(const PoolRowsShape& shape) {
  const double values = 1.0 * shape.rows * shape.width;
  return {.activation_bytes = 4 * (values + 1.0 * shape.ranges * shape.width),
          .operations = values};
}

Status record_pool_rows(CommandRecorder& recorder, PipelineStore& pipelines, const KernelPlan& plan,
                        const PoolRows& op) {
  if (op.shape.width == 0 || op.shape.rows == 0)
    return Error{ErrorKind::kInvalid, "rows pooled from an empty matrix"};
  HEARTH_ASSIGN(const Pipeline* pipeline, pipelines.get(plan.pipeline));
  const params::PoolRows params{
      .x = op.x, .ranges = op.ranges, .y = op.y, .width = op.shape.width, .rows = op.shape.rows};
  recorder.dispatch({.pipeline = *pipeline, .arguments = params, .groups = plan.groups});
  return {};
}

}  // namespace hearth
