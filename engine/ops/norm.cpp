#include "engine/ops/norm.h"

#include "engine/ops/tuning/profile.h"
#include "params/rms_norm.h"

namespace hearth {
namespace {

constexpr uint32_t kMostKept = 8;  // vec4 values that an invocation keeps in registers

}  // namespace

KernelPlan choose_rms_norm(const DeviceCaps& caps, const RmsNormShape& shape, bool deterministic) {
  // A single row finishes sooner with a large workgroup. Several rows finish sooner with fewer
  // lanes each. The order of the sum depends on this.
  const NormTuning tuning = tuning_profile(caps).norm;
  const uint32_t most_lanes =
      shape.rows == 1 && !deterministic ? tuning.one_row_lanes : tuning.lanes;
  // On a CPU a workgroup of one subgroup needs no barrier. On a GPU each row has one workgroup,
  // wide enough that each lane reads a few vec4 at once and keeps them until the sum is known.
  const uint32_t lanes = is_cpu(caps)
                             ? caps.subgroup_size
                             : group_size(caps, std::clamp(shape.width / 4, 64u, most_lanes));
  uint32_t kept = 0;
  if (!is_cpu(caps) && shape.width % 4 == 0) {
    kept = divide_up(shape.width / 4, lanes);
    if (kept > kMostKept) kept = 0;
  }
  return {.pipeline = {.kernel = "rms_norm",
                       .constants =
                           params::RmsNormConstants{.kWorkgroupSize = lanes,
                                                    .kResiduals = shape.residuals,
                                                    .kRegisterQuads = kept,
                                                    .kForm = static_cast<uint32_t>(shape.form)}},
          .groups = {.x = shape.rows}};
}

OpCost rms_norm_cost(const RmsNormShape& shape) {
  const double values = 1.0 * shape.rows * shape.width;
  // With residuals, x is written, too.
  const double touched = shape.residuals > 0 ? 3.0 + shape.residuals : 2;
  return {.memory_bytes = 4.0 * shape.width,
          .activation_bytes = 4 * touched * values,
          .operations = (4.0 + shape.residuals) * values};
}

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
