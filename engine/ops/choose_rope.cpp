#include <string>

#include "engine/ops/kernel_choice.h"

namespace hearth {

KernelPlan choose_rope_kv(const DeviceCaps& caps, const RopeKvShape& shape) {
  const uint32_t lanes = group_size(caps, 128);
  const uint32_t subgroups = lanes / caps.subgroup_size;
  return {
      .pipeline = {.kernel = std::string("rope_kv") + (shape.trees ? "_tree" : "") +
                             (shape.dealt ? "_dealt." : ".") +
                             std::string(kv_format_name(shape.kv)),
                   .constants = {lanes, shape.heads, shape.kv_heads, shape.head_size,
                                 shape.rope_dims, shape.pairs == RopePairs::kAdjacent ? 1u : 0u,
                                 shape.head_norms ? 1u : 0u, rope_lane_quads(caps.subgroup_size),
                                 shape.parts, shape.partial_stride / 4},
                   .subgroup_size = caps.subgroup_size},
      .groups = {.x = divide_up(shape.heads + 2 * shape.kv_heads, subgroups), .y = shape.rows}};
}

}  // namespace hearth
