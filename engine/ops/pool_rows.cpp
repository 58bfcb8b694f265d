#include "engine/ops/pool_rows.h"

#include "params/pool_rows.h"

namespace hearth {

Status record_pool_rows(CommandRecorder& recorder, PipelineStore& pipelines, const KernelPlan& plan,
                        const PoolRows& op) {
  if (op.shape.width == 0 || op.shape.rows == 0)
    return Error{ErrorKind::kInvalid, "rows pooled from an empty matrix"};
  HEARTH_ASSIGN(const Pipeline* pipeline, pipelines.get(plan.pipeline));
  const params::PoolRows params{.x = op.x.address(),
                                .ranges = op.ranges.address(),
                                .y = op.y.address(),
                                .width = op.shape.width,
                                .rows = op.shape.rows};
  recorder.dispatch({.pipeline = *pipeline,
                     .push = params,
                     .groups = plan.groups,
                     .accesses = {reads(op.x), reads(op.ranges), writes(op.y)}});
  return {};
}

}  // namespace hearth
