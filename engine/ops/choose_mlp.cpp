#include "engine/ops/kernel_choice.h"
#include "params/mlp_activation.h"

namespace hearth {

KernelPlan choose_mlp(const DeviceCaps& caps, const MlpShape& shape) {
  const uint32_t units = shape.width % 4 == 0 ? shape.width / 4 : shape.width;
  const uint32_t lanes = group_size(caps, is_cpu(caps) ? 64 : 256);
  // If there are enough rows to fill the device, larger workgroups mean fewer to start.
  const uint32_t step = is_cpu(caps) ? 4 : shape.rows >= 64 ? 2 : 1;
  return {.pipeline = {.kernel = "mlp_activation",
                       .constants =
                           params::MlpActivationConstants{
                               .kWorkgroupSize = lanes,
                               .kActivation = static_cast<uint32_t>(shape.activation),
                               .kUnroll = step,
                               .kForm = static_cast<uint32_t>(shape.form)}},
          .groups = {.x = divide_up(units, lanes * step), .y = shape.rows}};
}

}  // namespace hearth
