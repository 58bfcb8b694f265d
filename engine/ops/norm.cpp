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
      .x = op.x.address(),
      .residual = residual.address(),
      .weight = op.weight.address(),
      .y = op.y.address(),
      .scales = op.scales ? op.scales->address() : 0,
      .width = op.shape.width,
      .residual_stride = op.residual_stride == 0 ? op.shape.width : op.residual_stride,
      .partial_stride = op.partial_stride,
      .epsilon = op.epsilon};
  recorder.dispatch(
      {.pipeline = *pipeline,
       .push = params,
       .groups = plan.groups,
       .accesses = {add ? reads_writes(op.x) : reads(op.x), reads(residual), reads(op.weight),
                    writes(op.y), op.scales ? writes(*op.scales) : reads(op.weight)}});
  return {};
}

}  // namespace hearth
