#include "engine/ops/norm.h"

#include "params/rms_norm.h"

namespace hearth {

Status record_rms_norm(CommandRecorder& recorder, PipelineStore& pipelines, const KernelPlan& plan,
                       const RmsNorm& op) {
  HEARTH_ASSIGN(const Pipeline* pipeline, pipelines.get(plan.pipeline));
  const params::RmsNorm params{.x = op.x.address(),
                               .weight = op.weight.address(),
                               .y = op.y.address(),
                               .width = op.shape.width,
                               .epsilon = op.epsilon};
  recorder.dispatch({.pipeline = *pipeline,
                     .push = params,
                     .groups = plan.groups,
                     .accesses = {reads(op.x), reads(op.weight), writes(op.y)}});
  return {};
}

}  // namespace hearth
