#include "engine/ops/kernel_choice.h"

namespace hearth {

KernelPlan choose_matvec(const DeviceCaps& caps, const MatvecShape& shape) {
  if (is_cpu(caps)) {
    const uint32_t lanes = group_size(caps, 64);
    return {.pipeline = {.kernel = "matvec_invocation.f16", .constants = {lanes, shape.rows}},
            .groups = {.x = divide_up(shape.outputs, lanes)}};
  }
  // One vector: few outputs a subgroup make many subgroups, and the loads of kAhead steps keep the
  // memory busy. More vectors: each weight is used more often, so registers go to sums instead.
  const uint32_t lanes = group_size(caps, 128);
  const uint32_t outputs = 2;
  const uint32_t ahead = shape.rows <= 2 ? 4 : 2;
  const uint32_t outputs_per_group = outputs * lanes / caps.subgroup_size;
  return {.pipeline = {.kernel = "matvec_subgroup.f16",
                       .constants = {lanes, shape.rows, outputs, ahead},
                       .subgroup_size = caps.subgroup_size},
          .groups = {.x = divide_up(shape.outputs, outputs_per_group)}};
}

}  // namespace hearth
