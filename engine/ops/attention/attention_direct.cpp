// attention_direct: single tokens on matrix units, for devices with a known fragment layout, if the
// heads of a KV head fit into half a fragment.
#include <algorithm>
#include <bit>

#include "engine/ops/attention/family.h"
#include "params/attention_rows.h"

namespace hearth {
namespace {

constexpr uint32_t kFragmentRows = 8;

// Few of its subgroups fit on a multiprocessor. With Q8_0 and long contexts 2 per item are too few:
// 64 x 2048 tokens take 164 us on an H200, and 121 with 4.
Pace choose_direct_pace(const AttentionRequest& request) {
  const auto& [caps, shape, tuning, one_token, tokens, deterministic] = request;
  const uint32_t pairs = std::max(1u, tokens * shape.kv_heads);
  if (shape.bucket.sequence_tokens > tuning.short_context)
    return {pairs < tuning.subgroups / 2 || shape.kv != KvFormat::kF16 ? 4u : 2u, 0, true};
  return {std::bit_floor(std::clamp(tuning.subgroups / pairs, 1u, 8u)), 0, true};
}

// A step of one token also waits for instructions to be fetched, and the code of attention_direct
// for large heads is large.
bool too_little_for_direct(const PaceTuning& tuning, const AttentionShape& shape) {
  return shape.bucket.sequences == 1 && shape.bucket.sequence_rows == 1 &&
         shape.head_size > tuning.short_direct_head &&
         shape.bucket.sequence_tokens <= tuning.short_context;
}

HeadTile direct_tile(const AttentionShape& shape) {
  return head_tile(shape, kFragmentRows, /*one_token=*/true);
}

bool supports_attention_direct(const AttentionRequest& request) {
  const auto& [caps, shape, tuning, one_token, tokens, deterministic] = request;
  if (!one_token || deterministic || shape.bucket.trees || too_little_for_direct(tuning, shape))
    return false;
  const Pace pace = choose_direct_pace(request);
  const HeadTile tile = direct_tile(shape);
  const uint32_t query_bytes = tile.rows * shape.head_size * 4;
  const uint32_t subgroup_bytes = tile.rows * (shape.head_size + 2) * 4;
  return caps.features.lane_fragments && !shape.f32_only && shape.head_size % 64 == 0 &&
         shape.head_size <= 128 && heads_of_group(shape) <= kFragmentRows &&
         query_bytes + pace.subgroups * subgroup_bytes <= caps.limits.max_shared_bytes &&
         pace.subgroups * kFragmentLanes <= caps.limits.max_group_invocations;
}

AttentionListPlan plan_attention_direct(const AttentionRequest& request) {
  constexpr uint32_t kKeyLanes = 4, kRunKeys = 16;
  const AttentionShape& shape = request.shape;
  const Pace pace = choose_direct_pace(request);
  const HeadTile tile = direct_tile(shape);
  return {.tokens = tile.tokens,
          .kernel = {.pipeline = {.kernel = attention_kernel("attention_direct", shape),
                                  .constants =
                                      params::AttentionRowsConstants{
                                          .kWorkgroupSize = pace.subgroups * kFragmentLanes,
                                          .kSubgroupSize = kFragmentLanes,
                                          .kSubgroups = pace.subgroups,
                                          .kHeadSize = shape.head_size,
                                          .kRows = tile.rows,
                                          .kStreamLanes = kKeyLanes,
                                          .kRun = kRunKeys,
                                          .kDoubleBuffer = pace.overlap ? 1u : 0u},
                                  .subgroup_size = kFragmentLanes},
                     .groups = tile_groups(shape, tile)},
          .wanted_groups = request.tuning.subgroups / pace.subgroups,
          .split_keys = pace.split_keys()};
}

}  // namespace

const AttentionFamily kAttentionDirect{"attention_direct", supports_attention_direct,
                                       plan_attention_direct};

}  // namespace hearth
