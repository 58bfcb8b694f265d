// attention_lanes: prompts on matrix units, for devices with a known fragment layout and heads
// whose queries and sums fit into registers.
#include "params/attention_lanes.h"

#include "engine/ops/attention/family.h"

namespace hearth {
namespace {

constexpr uint32_t kSubgroupRows = 16;

AttentionLanesGroup lanes_group(const AttentionRequest& request) {
  return request.shape.kv == KvFormat::kF16 ? request.tuning.lanes : request.tuning.quantized_lanes;
}

HeadTile lanes_tile(const AttentionRequest& request) {
  const uint32_t rows = lanes_group(request).subgroups * kSubgroupRows;
  return {.tokens = rows / heads_of_group(request.shape), .rows = rows};
}

bool supports_attention_lanes(const AttentionRequest& request) {
  const auto& [caps, shape, tuning, one_token, tokens, deterministic] = request;
  const auto [subgroups, keys] = lanes_group(request);
  const uint32_t shared_bytes = 2 * keys * shape.head_size * 2 + 16;
  return caps.features.lane_fragments && shape.head_size % 32 == 0 && shape.head_size <= 128 &&
         lanes_tile(request).tokens > 0 && shared_bytes <= caps.limits.max_shared_bytes &&
         subgroups * kFragmentLanes <= caps.limits.max_group_invocations;
}

AttentionListPlan plan_attention_lanes(const AttentionRequest& request) {
  const AttentionShape& shape = request.shape;
  const auto [subgroups, keys] = lanes_group(request);
  const HeadTile tile = lanes_tile(request);
  return {.tokens = tile.tokens,
          .kernel = {.pipeline = {.kernel = attention_kernel("attention_lanes", shape),
                                  .constants =
                                      params::AttentionLanesConstants{
                                          .kWorkgroupSize = subgroups * kFragmentLanes,
                                          .kSubgroups = subgroups,
                                          .kHeadSize = shape.head_size,
                                          .kKeys = keys},
                                  .subgroup_size = kFragmentLanes},
                     .groups = tile_groups(shape, tile)}};
}

}  // namespace

const AttentionFamily kAttentionLanes{"attention_lanes", supports_attention_lanes,
                                      plan_attention_lanes};

}  // namespace hearth
