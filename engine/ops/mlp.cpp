#include "engine/ops/mlp.h"

#include <fmt/format.h>

#include "engine/ops/tuning/profile.h"
#include "params/mlp_activation.h"

namespace hearth {

KernelPlan choose_mlp(const DeviceCaps& caps, const MlpShape& shape) {
  const uint32_t units = shape.width % 4 == 0 ? shape.width / 4 : shape.width;
  const uint32_t lanes = group_size(caps, is_cpu(caps) ? 64 : 256);
  // If there are enough rows to fill the device, larger workgroups mean fewer to start.
  const uint32_t many_rows = tuning_profile(caps).activation.many_rows;
  const uint32_t step = is_cpu(caps) ? 4 : shape.rows >= many_rows ? 2 : 1;
  return {.pipeline = {.kernel = "mlp_activation",
                       .constants =
                           params::MlpActivationConstants{
                               .kWorkgroupSize = lanes,
                               .kActivation = static_cast<uint32_t>(shape.activation),
                               .kUnroll = step,
                               .kForm = static_cast<uint32_t>(shape.form)}},
          .groups = {.x = divide_up(units, lanes * step), .y = shape.rows}};
}

OpCost mlp_cost(const MlpShape& shape) {
  const double values = 1.0 * shape.rows * shape.width;
  return {.activation_bytes = 12 * values, .operations = 6 * values};
}

void use_fused_gate_up(Mlp& op, const BufferSlice& gate_up) {
  const uint64_t rows = op.shape.rows;
  const uint64_t width = op.shape.width;
  op.stride = 2 * op.shape.width;
  const uint64_t bytes = ((rows - 1) * op.stride + width) * 4;
  op.gate = gate_up.slice(0, bytes);
  op.up = gate_up.slice(width * 4, bytes);
}

Status record_mlp(CommandRecorder& recorder, PipelineStore& pipelines, const KernelPlan& plan,
                  const Mlp& op) {
  const uint32_t width = op.shape.width;
  const uint32_t stride = op.stride == 0 ? width : op.stride;
  if (width == 0 || stride < width || (width % 4 == 0 && stride % 4 != 0))
    return Error{
        ErrorKind::kInvalid,
        fmt::format("MLP activation of width {} with rows {} floats apart", width, stride)};
  HEARTH_ASSIGN(const Pipeline* pipeline, pipelines.get(plan.pipeline));
  const params::MlpActivation params{
      .gate = op.gate, .up = op.up, .y = op.y, .width = width, .stride = stride};
  recorder.dispatch({.pipeline = *pipeline, .arguments = params, .groups = plan.groups});
  return {};
}

}  // namespace hearth
