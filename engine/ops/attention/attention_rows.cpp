// attention_rows: any shape on any GPU, in floats. A stream of lanes goes over the keys of an item.
#include "params/attention_rows.h"

#include <algorithm>
#include <bit>

#include "engine/ops/attention/family.h"

namespace hearth {
namespace {

// Over short contexts, start and end dominate: few sequences finish sooner with many subgroups,
// many sequences with few, which then load ahead. Over long contexts, many subgroups with little
// work each are best.
Pace choose_pace(const PaceTuning& tuning, const AttentionShape& shape, bool deterministic) {
  const AttentionRowsTuning& rows = tuning.rows;
  const bool halves = shape.kv == KvFormat::kF16;
  // More halves need more registers than they gain.
  const uint32_t usual = halves ? rows.loads : rows.quantized_loads;
  if (deterministic || shape.bucket.sequence_rows > 1)
    return {rows.several_rows_subgroups, usual, false};
  if (shape.bucket.sequence_tokens > tuning.short_context)
    return {rows.long_subgroups, halves ? rows.many_subgroups_loads : usual, false};
  const uint32_t pairs = shape.bucket.sequences * shape.kv_heads;  // at least one item each
  const uint32_t share = tuning.subgroups / std::max(1u, pairs);
  // Unpacking Q8_0 needs more registers, of which a large workgroup has fewer per lane.
  const uint32_t most = halves ? rows.most_subgroups : rows.most_quantized_subgroups;
  const uint32_t subgroups = std::bit_floor(std::clamp(share, rows.fewest_subgroups, most));
  if (!halves) return {subgroups, usual, false};
  return {subgroups, subgroups > rows.fewest_subgroups ? rows.many_subgroups_loads : usual, true};
}

bool supports_attention_rows(const AttentionRequest&) { return true; }

AttentionListPlan plan_attention_rows(const AttentionRequest& request) {
  const auto& [caps, shape, tuning, one_token, tokens, deterministic] = request;
  const Pace pace = choose_pace(tuning, shape, deterministic);
  const uint32_t chunk_elements = shape.kv == KvFormat::kF16 ? 8 : 16;
  const uint32_t chunks = std::max(1u, shape.head_size / chunk_elements);
  const uint32_t lanes = std::min(caps.subgroup_size, std::bit_ceil(chunks));
  const uint32_t slice_chunks = divide_up(chunks, lanes);

  // Registers: a slice of the query and of the result for every row, the chunks of a run's keys and
  // values, a score for every row and key.
  const uint32_t most_rows =
      std::clamp(tuning.rows.query_elements / (slice_chunks * chunk_elements), 1u, 8u);
  const HeadTile tile = head_tile(shape, most_rows, one_token);
  const uint32_t run = std::bit_floor(
      std::clamp(std::min(pace.in_flight / slice_chunks, tuning.rows.most_scores / tile.rows), 1u,
                 tuning.rows.most_run));

  const uint32_t subgroup_bytes = tile.rows * (shape.head_size + 2) * 4;
  const uint32_t query_bytes = tile.rows * shape.head_size * 4;
  const uint32_t subgroups =
      std::clamp(std::min(group_size(caps, 256) / caps.subgroup_size,
                          (caps.limits.max_shared_bytes - query_bytes) / subgroup_bytes),
                 1u, pace.subgroups);
  return {.tokens = tile.tokens,
          .kernel = {.pipeline = {.kernel = general_attention_kernel("attention_rows", shape),
                                  .constants =
                                      params::AttentionRowsConstants{
                                          .kWorkgroupSize = subgroups * caps.subgroup_size,
                                          .kSubgroupSize = caps.subgroup_size,
                                          .kSubgroups = subgroups,
                                          .kHeadSize = shape.head_size,
                                          .kRows = tile.rows,
                                          .kStreamLanes = lanes,
                                          .kRun = run,
                                          .kDoubleBuffer =
                                              pace.overlap && tuning.rows.loads_ahead ? 1u : 0u},
                                  .subgroup_size = caps.subgroup_size},
                     .groups = tile_groups(shape, tile)},
          .wanted_groups = tuning.rows.waves * tuning.subgroups / pace.subgroups,
          .split_keys = pace.split_keys(tuning)};
}

}  // namespace

const AttentionFamily kAttentionRows{"attention_rows", supports_attention_rows,
                                     plan_attention_rows};

}  // namespace hearth
