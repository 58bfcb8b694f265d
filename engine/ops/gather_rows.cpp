#include "engine/ops/gather_rows.h"

#include "params/gather_rows.h"

namespace hearth {

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
