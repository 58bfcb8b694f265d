// attention_lanes: prompts on matrix units, for devices with a known fragment layout and heads
// whose queries and sums fit into registers.
#include "params/attention_lanes.h"

#include "engine/ops/attention/family.h"

namespace hearth {
namespace {

constexpr uint32_t kSubgroupRows = 16;

// Two small workgroups per multiprocessor wait at different times, but each has to convert a Q8_0
// cache to halves.
struct LanesGroup {
  uint32_t subgroups, keys;  // keys at a time
};
LanesGroup lanes_group(KvFormat kv) {
  return kv == KvFormat::kF16 ? LanesGroup{4, 32} : LanesGroup{8, 64};
}

HeadTile lanes_tile(const AttentionShape& shape) {
  const uint32_t rows = lanes_group(shape.kv).subgroups * kSubgroupRows;
  return {.tokens = rows / heads_of_group(shape), .rows = rows};
}

bool supports_attention_lanes(const AttentionRequest& request) {
  const auto& [caps, shape, tuning, one_token, tokens, deterministic] = request;
  const auto [subgroups, keys] = lanes_group(shape.kv);
  const uint32_t shared_bytes = 2 * keys * shape.head_size * 2 + 16;
  return caps.features.lane_fragments && shape.head_size % 32 == 0 && shape.head_size <= 128 &&
         lanes_tile(shape).tokens > 0 && shared_bytes <= caps.limits.max_shared_bytes &&
         subgroups * kFragmentLanes <= caps.limits.max_group_invocations;
}

AttentionListPlan plan_attention_lanes(const AttentionRequest& request) {
  const AttentionShape& shape = request.shape;
  const auto [subgroups, keys] = lanes_group(shape.kv);
  const HeadTile tile = lanes_tile(shape);
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
