// attention_subgroup: for CPUs, whose workgroups are single subgroups.
#include "params/attention_subgroup.h"

#include "engine/ops/attention/family.h"

namespace hearth {
namespace {

bool supports_attention_subgroup(const AttentionRequest& request) { return is_cpu(request.caps); }

AttentionListPlan plan_attention_subgroup(const AttentionRequest& request) {
  const auto& [caps, shape, tuning, one_token, tokens, deterministic] = request;
  const HeadTile tile = head_tile(shape, 4, one_token);
  return {.tokens = tile.tokens,
          .kernel = {.pipeline = {.kernel = general_attention_kernel("attention_subgroup", shape),
                                  .constants =
                                      params::AttentionSubgroupConstants{
                                          .kWorkgroupSize = caps.subgroup_size,
                                          .kHeadSize = shape.head_size,
                                          .kRows = tile.rows},
                                  .subgroup_size = caps.subgroup_size},
                     .groups = tile_groups(shape, tile)},
          .wanted_groups = 16,  // there are few cores
          .split_keys = 1024};
}

}  // namespace

const AttentionFamily kAttentionSubgroup{"attention_subgroup", supports_attention_subgroup,
                                         plan_attention_subgroup};

}  // namespace hearth
