// attention_direct: single tokens on matrix units, for devices with a known fragment layout, if the
// heads of a KV head fit into half a fragment.
#include <algorithm>
#include <bit>

#include "engine/ops/attention/family.h"
#include "params/attention_rows.h"

namespace hearth {
namespace {

constexpr uint32_t kFragmentRows = 8;

// Few of its subgroups fit on a multiprocessor. Over long contexts an item gets more of them if
// items do not fill the device, or if the cache has to be unpacked.
Pace choose_direct_pace(const AttentionRequest& request) {
  const auto& [caps, shape, tuning, one_token, tokens, deterministic] = request;
  const AttentionDirectTuning& direct = tuning.direct;
  const uint32_t pairs = std::max(1u, tokens * shape.kv_heads);
  if (shape.bucket.sequence_tokens <= tuning.short_context)
    return {std::bit_floor(std::clamp(tuning.subgroups / pairs, 1u, direct.most_subgroups)), 0,
            true};
  const bool more = pairs < tuning.subgroups / direct.long_subgroups || shape.kv != KvFormat::kF16;
  return {more ? direct.more_long_subgroups : direct.long_subgroups, 0, true};
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
          .split_keys = pace.split_keys(request.tuning)};
}

}  // namespace

const AttentionFamily kAttentionDirect{"attention_direct", supports_attention_direct,
                                       plan_attention_direct};

}  // namespace hearth
