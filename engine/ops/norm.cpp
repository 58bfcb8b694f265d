#include "engine/ops/norm.h"

#include "params/rms_norm.h"

namespace hearth {
Status record_rms_norm(CommandRecorder& recorder, PipelineStore& pipelines, const KernelPlan& plan,
                       const RmsNorm& op) {
  const bool add = op.shape.residuals > 0;
  if (add &&
      (op.residual.buffer == nullptr || (op.x.buffer == op.y.buffer && op.x.offset == op.y.offset)))
    return Error{ErrorKind::kInvalid,
                 "RMS norm that adds a residual needs one, and a result apart from the sum"};
  PipelineInfo info = plan.pipeline;
  if (op.scales) info.constants.set("kWriteScales", 1u);
  HEARTH_ASSIGN(const Pipeline* pipeline, pipelines.get(info));
  const BufferSlice residual = add ? op.residual : op.x;
  const params::RmsNorm params{
      .x = add ? reads_writes(op.x) : reads(op.x),
      .residual = residual,
      .weight = op.weight,
      .y = op.y,
      .scales = op.scales,
      .width = op.shape.width,
      .residual_stride = op.residual_stride == 0 ? op.shape.width : op.residual_stride,
      .partial_stride = op.partial_stride,
      .epsilon = op.epsilon};
  recorder.dispatch({.pipeline = *pipeline, .arguments = params, .groups = plan.groups});
  return {};
}

}  // namespace hearth
