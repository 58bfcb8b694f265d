#include "engine/ops/matvec.h"

#include <fmt/format.h>

#include "params/matvec.h"

namespace hearth {

Status record_matvec(CommandRecorder& recorder, PipelineStore& pipelines, const KernelPlan& plan,
                     const Matvec& op) {
  const MatvecShape& shape = op.shape;
  if (shape.rows < 1 || shape.rows > kMaxMatvecRows || shape.inputs % 8 != 0)
    return Error{ErrorKind::kInvalid,
                 fmt::format("matrix-vector product of {} rows and {} inputs: 1 to {} rows and "
                             "inputs in multiples of 8 are possible",
                             shape.rows, shape.inputs, kMaxMatvecRows)};
  HEARTH_ASSIGN(const Pipeline* pipeline, pipelines.get(plan.pipeline));
  const params::Matvec params{.weight = op.weight.address(),
                              .x = op.x.address(),
                              .y = op.y.address(),
                              .inputs = shape.inputs,
                              .outputs = shape.outputs};
  recorder.dispatch({.pipeline = *pipeline,
                     .push = params,
                     .groups = plan.groups,
                     .accesses = {reads(op.weight), reads(op.x), writes(op.y)}});
  return {};
}

}  // namespace hearth
