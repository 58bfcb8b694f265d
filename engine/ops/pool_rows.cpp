#include "engine/ops/pool_rows.h"

#include "params/pool_rows.h"

namespace hearth {

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
