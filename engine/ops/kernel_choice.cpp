#include "engine/ops/kernel_choice.h"

#include <algorithm>

namespace hearth {
namespace {

uint32_t divide_up(uint32_t a, uint32_t b) { return a / b + (a % b != 0 ? 1 : 0); }

bool is_cpu(const DeviceCaps& caps) { return caps.type == DeviceType::kCpu; }

// The largest multiple of the subgroup size that is no more than `wanted` and than the device's
// limit.
uint32_t group_size(const DeviceCaps& caps, uint32_t wanted) {
  const uint32_t most = std::min(wanted, caps.limits.max_group_invocations);
  return std::max(1u, most / caps.subgroup_size) * caps.subgroup_size;
}

}  // namespace

KernelPlan choose_rms_norm(const DeviceCaps& caps, const RmsNormShape& shape) {
  // On a CPU a group of one subgroup needs no barrier. On a GPU a row is one group, wide enough
  // that each lane reads a few vec4 at once.
  const uint32_t lanes = is_cpu(caps) ? caps.subgroup_size
                                      : group_size(caps, std::clamp(shape.width / 4, 64u, 512u));
  return {.pipeline = {.kernel = "rms_norm", .constants = {lanes}},
          .groups = {.x = shape.rows}};
}

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
