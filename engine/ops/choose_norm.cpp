#include "engine/ops/kernel_choice.h"

namespace hearth {

KernelPlan choose_rms_norm(const DeviceCaps& caps, const RmsNormShape& shape) {
  // On a CPU a group of one subgroup needs no barrier. On a GPU a row is one group, wide enough
  // that each lane reads a few vec4 at once.
  const uint32_t lanes =
      is_cpu(caps) ? caps.subgroup_size : group_size(caps, std::clamp(shape.width / 4, 64u, 512u));
  return {.pipeline = {.kernel = "rms_norm", .constants = {lanes}}, .groups = {.x = shape.rows}};
}

}  // namespace hearth
