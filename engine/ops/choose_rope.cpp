#include <string>

#include "engine/ops/kernel_choice.h"
#include "params/rope_kv.h"

namespace hearth {

KernelPlan choose_rope_kv(const DeviceCaps& caps, const RopeKvShape& shape) {
  const uint32_t lanes = group_size(caps, 128);
  const uint32_t subgroups = lanes / caps.subgroup_size;
  return {.pipeline = {.kernel = std::string("rope_kv") + (shape.trees ? "_tree" : "") +
                                 (shape.dealt ? "_dealt." : ".") +
                                 std::string(kv_format_name(shape.kv)),
                       .constants =
                           params::RopeKvConstants{
                               .kWorkgroupSize = lanes,
                               .kHeads = shape.heads,
                               .kKvHeads = shape.kv_heads,
                               .kHeadSize = shape.head_size,
                               .kRopeDims = shape.rope_dims,
                               .kAdjacent = shape.pairs == RopePairs::kAdjacent ? 1u : 0u,
                               .kHeadNorms = shape.head_norms ? 1u : 0u,
                               .kLaneQuads = rope_lane_quads(caps.subgroup_size),
                               .kPartials = shape.parts,
                               .kPartialQuads = shape.partial_stride / 4},
                       .subgroup_size = caps.subgroup_size},
          .groups = {.x = divide_up(shape.heads + 2 * shape.kv_heads, subgroups), .y = shape.rows}};
}

}  // namespace hearth
