#include "engine/ops/matmul.h"

#include <fmt/format.h>

#include "params/half_rows.h"
#include "params/matmul.h"
#include "params/split_rows.h"

namespace hearth {
namespace {

Status check(const MatmulPlan& plan, const Matmul& op) {
  const MatmulShape& shape = op.shape;
  const FormatInfo& format = format_info(shape.format);
  const uint32_t unit = format.is_float() ? kFloatInputUnit : format.block_weights;
  if (shape.rows == 0 || shape.outputs == 0 || shape.inputs == 0 || shape.inputs % unit != 0)
    return Error{ErrorKind::kInvalid,
                 fmt::format("no kernel for a product of {} x {} {} weights with {} rows: inputs "
                             "come in multiples of {}",
                             shape.outputs, shape.inputs, format.name, shape.rows, unit)};
  if (plan.scratch_bytes > 0 && (!op.scratch || op.scratch->bytes < plan.scratch_bytes))
    return Error{ErrorKind::kInvalid,
                 fmt::format("this product needs {} bytes of scratch", plan.scratch_bytes)};
  return {};
}

uint32_t epilogue(const Matmul& op) {
  return (op.bias ? params::kEpilogueBias : 0) | (op.soft_cap != 0 ? params::kEpilogueSoftCap : 0) |
         (op.residual ? params::kEpilogueResidual : 0);
}

// Dispatches one kernel of the plan: from x to y, with the op's other arguments.
Status dispatch(CommandRecorder& recorder, PipelineStore& pipelines, const KernelPlan& kernel,
                const Matmul& op, const BufferSlice& x, const BufferSlice& y, bool last) {
  PipelineInfo info = kernel.pipeline;
  info.constants[kEpilogueConstant] = last ? epilogue(op) : 0;
  HEARTH_ASSIGN(const Pipeline* pipeline, pipelines.get(info));
  const params::Matmul params{.weight = op.weight.address(),
                              .x = x.address(),
                              .y = y.address(),
                              .bias = op.bias ? op.bias->address() : 0,
                              .residual = op.residual ? op.residual->address() : 0,
                              .rows = op.shape.rows,
                              .inputs = op.shape.inputs,
                              .outputs = op.shape.outputs,
                              .soft_cap = op.soft_cap};
  recorder.dispatch(
      {.pipeline = *pipeline,
       .push = params,
       .groups = kernel.groups,
       .accesses = {reads(op.weight), reads(x), writes(y), reads(op.bias.value_or(op.weight)),
                    reads(op.residual.value_or(op.x))}});
  return {};
}

}  // namespace

Status record_prepare(CommandRecorder& recorder, PipelineStore& pipelines, const MatmulPlan& plan,
                      const Matmul& op, const BufferSlice& prepared) {
  HEARTH_ASSIGN(const Pipeline* pipeline, pipelines.get(plan.prepare->pipeline));
  const auto dispatch = [&](const auto& params) {
    recorder.dispatch({.pipeline = *pipeline,
                       .push = params,
                       .groups = plan.prepare->groups,
                       .accesses = {reads(op.x), writes(prepared)}});
  };
  if (plan.form == RowForm::kSplit)
    dispatch(params::SplitRows{.x = op.x.address(),
                               .split = prepared.address(),
                               .pieces = op.shape.rows * (op.shape.inputs / kPieceWeights)});
  else
    dispatch(
        params::HalfRows{.x = op.x.address(), .y = prepared.address(), .width = op.shape.inputs});
  return {};
}

Status record_matmul(CommandRecorder& recorder, PipelineStore& pipelines, const MatmulPlan& plan,
                     const Matmul& op) {
  HEARTH_TRY(check(plan, op));
  BufferSlice x = op.x;
  if (plan.prepare && op.prepared) {
    x = *op.prepared;
  } else if (plan.prepare) {
    x = op.scratch->slice(0, plan.prepared_bytes);
    HEARTH_TRY(record_prepare(recorder, pipelines, plan, op, x));
  }
  if (!plan.reduce) return dispatch(recorder, pipelines, plan.multiply, op, x, op.y, true);
  const BufferSlice parts = op.scratch->slice(plan.prepared_bytes, plan.part_bytes);
  HEARTH_TRY(dispatch(recorder, pipelines, plan.multiply, op, x, parts, false));
  return dispatch(recorder, pipelines, *plan.reduce, op, parts, op.y, true);
}

}  // namespace hearth
