#include <algorithm>
#include <bit>
#include <string>

#include "engine/ops/kernel_choice.h"
#include "engine/ops/tuning/profile.h"
#include "params/attention_lanes.h"
#include "params/attention_rows.h"
#include "params/attention_subgroup.h"
#include "params/attention_tile.h"

namespace hearth {
namespace {

std::string kernel_name(std::string_view kernel, const AttentionShape& shape) {
  return std::string(kernel) + (shape.dealt ? "_dealt" : "") + (shape.sinks ? "_sinks." : ".") +
         std::string(kv_format_name(shape.kv));
}

// The variant of a general kernel that also supports trees, if the step may have any.
std::string general_kernel(const char* kernel, const AttentionShape& shape) {
  return kernel_name(std::string(kernel) + (shape.bucket.trees ? "_tree" : ""), shape);
}

// The query heads per KV head; any number for a shape that record_attention() will refuse.
uint32_t heads_of_group(const AttentionShape& shape) {
  return std::max(1u, shape.heads / std::max(1u, shape.kv_heads));
}

// How many tokens of a sequence a workgroup computes, for tokens x query heads per KV head rows.
struct HeadTile {
  uint32_t tokens, rows;
};

HeadTile choose_tile(const AttentionShape& shape, uint32_t most_rows, bool one_token) {
  const uint32_t tokens = one_token ? 1 : std::max(1u, most_rows / heads_of_group(shape));
  return {.tokens = tokens, .rows = std::min(most_rows, tokens * heads_of_group(shape))};
}

struct ListPlan {
  uint32_t tokens;  // per tile
  KernelPlan plan;  // except the number of items
  // Workgroups that fill the device; more would only mean more splits to merge. 0: as many as for
  // any prompt.
  uint32_t wanted_groups = 0;
  uint32_t split_keys = 128;  // the fewest
};

GroupCount tile_groups(const AttentionShape& shape, const HeadTile& tile) {
  return {.x = 0, .y = shape.kv_heads * divide_up(tile.tokens * heads_of_group(shape), tile.rows)};
}

ListPlan choose_cpu(const DeviceCaps& caps, const AttentionShape& shape, bool one_token) {
  const HeadTile tile = choose_tile(shape, 4, one_token);
  return {.tokens = tile.tokens,
          .plan = {.pipeline = {.kernel = general_kernel("attention_subgroup", shape),
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

// How a workgroup of attention_rows goes over the keys of an item.
struct Pace {
  uint32_t subgroups;  // that divide the keys
  uint32_t in_flight;  // chunks of keys that a lane loads together
  bool overlap;        // whether it loads the next ones meanwhile
  uint32_t split_keys() const { return subgroups < 4 ? 256 : 128; }
};

// Over short contexts, start and end dominate: few sequences finish sooner with many subgroups,
// many sequences with few, which then load ahead. Over long contexts, many subgroups with little
// work each are best.
Pace choose_pace(const PaceTuning& tuning, const AttentionShape& shape, bool deterministic) {
  const bool halves = shape.kv == KvFormat::kF16;
  const uint32_t usual = halves ? 4 : 8;  // more halves need more registers than they gain
  if (deterministic || shape.bucket.sequence_rows > 1) return {4, usual, false};
  if (shape.bucket.sequence_tokens > tuning.short_context) return {8, halves ? 2 : usual, false};
  const uint32_t pairs = shape.bucket.sequences * shape.kv_heads;  // at least one item each
  const uint32_t share = tuning.subgroups / std::max(1u, pairs);
  // Unpacking Q8_0 needs more registers, of which a large workgroup has fewer per lane.
  if (!halves) return {std::bit_floor(std::clamp(share, 2u, 4u)), usual, false};
  return {std::bit_floor(std::clamp(share, 2u, 8u)), share >= 4 ? 2u : usual, true};
}

ListPlan choose_rows(const DeviceCaps& caps, const PaceTuning& tuning, const AttentionShape& shape,
                     bool one_token, bool deterministic) {
  const Pace pace = choose_pace(tuning, shape, deterministic);
  const uint32_t chunk_elements = shape.kv == KvFormat::kF16 ? 8 : 16;
  const uint32_t chunks = std::max(1u, shape.head_size / chunk_elements);
  const uint32_t lanes = std::min(caps.subgroup_size, std::bit_ceil(chunks));
  const uint32_t slice_chunks = divide_up(chunks, lanes);

  // Registers: a slice of the query and of the result for every row, the chunks of a run's keys and
  // values, a score for every row and key.
  const uint32_t most_rows =
      std::clamp(tuning.query_elements / (slice_chunks * chunk_elements), 1u, 8u);
  const HeadTile tile = choose_tile(shape, most_rows, one_token);
  const uint32_t run = std::bit_floor(
      std::clamp(std::min(pace.in_flight / slice_chunks, 32 / tile.rows), 1u, tuning.most_run));

  const uint32_t subgroup_bytes = tile.rows * (shape.head_size + 2) * 4;
  const uint32_t query_bytes = tile.rows * shape.head_size * 4;
  const uint32_t subgroups =
      std::clamp(std::min(group_size(caps, 256) / caps.subgroup_size,
                          (caps.limits.max_shared_bytes - query_bytes) / subgroup_bytes),
                 1u, pace.subgroups);
  return {.tokens = tile.tokens,
          .plan = {.pipeline = {.kernel = general_kernel("attention_rows", shape),
                                .constants =
                                    params::AttentionRowsConstants{
                                        .kWorkgroupSize = subgroups * caps.subgroup_size,
                                        .kSubgroupSize = caps.subgroup_size,
                                        .kSubgroups = subgroups,
                                        .kHeadSize = shape.head_size,
                                        .kRows = tile.rows,
                                        .kStreamLanes = lanes,
                                        .kRun = run,
                                        .kDoubleBuffer = pace.overlap ? 1u : 0u},
                                .subgroup_size = caps.subgroup_size},
                   .groups = tile_groups(shape, tile)},
          .wanted_groups = 2 * tuning.subgroups / pace.subgroups,
          .split_keys = pace.split_keys()};
}

// The same for attention_direct, of whose subgroups few fit on a multiprocessor. With Q8_0 and long
// contexts 2 per item are too few: 64 x 2048 tokens take 164 us on an H200, and 121 with 4.
Pace choose_direct_pace(const PaceTuning& tuning, const AttentionShape& shape) {
  const uint32_t pairs = std::max(1u, shape.bucket.sequences * shape.kv_heads);
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

// For devices with a known fragment layout: single tokens, if the heads of a KV head fit into half
// a fragment.
std::optional<ListPlan> choose_direct(const DeviceCaps& caps, const PaceTuning& tuning,
                                      const AttentionShape& shape) {
  const Pace pace = choose_direct_pace(tuning, shape);
  constexpr uint32_t kLanes = 32, kKeyLanes = 4, kRunKeys = 16, kMostRows = 8;
  const HeadTile tile = choose_tile(shape, kMostRows, true);
  const uint32_t query_bytes = tile.rows * shape.head_size * 4;
  const uint32_t subgroup_bytes = tile.rows * (shape.head_size + 2) * 4;
  if (!caps.features.lane_fragments || shape.f32_only || shape.head_size % 64 != 0 ||
      shape.head_size > 128 || heads_of_group(shape) > kMostRows ||
      query_bytes + pace.subgroups * subgroup_bytes > caps.limits.max_shared_bytes ||
      pace.subgroups * kLanes > caps.limits.max_group_invocations)
    return std::nullopt;
  return ListPlan{.tokens = tile.tokens,
                  .plan = {.pipeline = {.kernel = kernel_name("attention_direct", shape),
                                        .constants =
                                            params::AttentionRowsConstants{
                                                .kWorkgroupSize = pace.subgroups * kLanes,
                                                .kSubgroupSize = kLanes,
                                                .kSubgroups = pace.subgroups,
                                                .kHeadSize = shape.head_size,
                                                .kRows = tile.rows,
                                                .kStreamLanes = kKeyLanes,
                                                .kRun = kRunKeys,
                                                .kDoubleBuffer = pace.overlap ? 1u : 0u},
                                        .subgroup_size = kLanes},
                           .groups = tile_groups(shape, tile)},
                  .wanted_groups = tuning.subgroups / pace.subgroups,
                  .split_keys = pace.split_keys()};
}

// The fragment that attention_tile uses: f16 into f32, the largest one that a subgroup's lanes can
// divide by rows.
std::optional<CoopmatShape> choose_matrix(const DeviceCaps& caps, uint32_t head_size) {
  std::optional<CoopmatShape> best;
  if (!caps.features.coopmat || !caps.features.float16) return best;
  for (const CoopmatShape& shape : caps.coopmat_shapes) {
    const bool types = shape.a == ScalarType::kF16 && shape.b == ScalarType::kF16 &&
                       shape.c == ScalarType::kF32 && shape.result == ScalarType::kF32;
    const bool sizes = shape.m % 8 == 0 && shape.n % 8 == 0 && shape.k % 8 == 0 &&
                       head_size % shape.n == 0 && head_size % shape.k == 0 &&
                       caps.subgroup_size % shape.m == 0;
    if (!types || !sizes) continue;
    if (!best || shape.m * shape.n * shape.k > best->m * best->n * best->k) best = shape;
  }
  return best;
}

// The shared memory that the tiled kernel declares.
uint32_t tile_shared_bytes(uint32_t rows, uint32_t keys, uint32_t head_size) {
  const uint32_t pieces = 2 * keys * (head_size / 8 + 1) + rows * (keys / 4 + 1);
  return pieces * 16 + rows * (4 + 4 + 8);
}

// For devices with a known fragment layout: heads whose queries and sums fit into registers. Two
// small workgroups per multiprocessor wait at different times, but each has to convert a Q8_0 cache
// to halves.
std::optional<ListPlan> choose_lanes(const DeviceCaps& caps, const AttentionShape& shape) {
  constexpr uint32_t kLanes = 32, kSubgroupRows = 16;
  const bool halves = shape.kv == KvFormat::kF16;
  const uint32_t subgroups = halves ? 4 : 8, keys = halves ? 32 : 64;
  const uint32_t shared_bytes = 2 * keys * shape.head_size * 2 + 16;
  const HeadTile tile{.tokens = subgroups * kSubgroupRows / heads_of_group(shape),
                      .rows = subgroups * kSubgroupRows};
  if (!caps.features.lane_fragments || shape.head_size % 32 != 0 || shape.head_size > 128 ||
      tile.tokens == 0 || shared_bytes > caps.limits.max_shared_bytes ||
      subgroups * kLanes > caps.limits.max_group_invocations)
    return std::nullopt;
  return ListPlan{.tokens = tile.tokens,
                  .plan = {.pipeline = {.kernel = kernel_name("attention_lanes", shape),
                                        .constants =
                                            params::AttentionLanesConstants{
                                                .kWorkgroupSize = subgroups * kLanes,
                                                .kSubgroups = subgroups,
                                                .kHeadSize = shape.head_size,
                                                .kKeys = keys},
                                        .subgroup_size = kLanes},
                           .groups = tile_groups(shape, tile)}};
}

std::optional<ListPlan> choose_matrix_tile(const DeviceCaps& caps, const AttentionShape& shape) {
  if (const std::optional<ListPlan> lanes = choose_lanes(caps, shape)) return lanes;
  const std::optional<CoopmatShape> matrix = choose_matrix(caps, shape.head_size);
  if (!matrix) return std::nullopt;
  const uint32_t subgroups = std::min(8u, group_size(caps, 256) / caps.subgroup_size);
  const uint32_t rows = subgroups * matrix->m;
  if (heads_of_group(shape) > rows) return std::nullopt;
  // The smallest tile of keys that the lanes can divide, or the largest with few enough products to
  // be unrolled.
  constexpr uint32_t kMostProducts = 16;
  const uint32_t row_lanes = caps.subgroup_size / matrix->m;
  uint32_t tile_keys = 0;
  for (const uint32_t keys : {16u, 32u, 64u}) {
    if (keys % matrix->n != 0 || keys % matrix->k != 0 || keys / 8 % row_lanes != 0) continue;
    const uint32_t products = keys / matrix->n * (shape.head_size / matrix->k);
    if (tile_keys != 0 && products > kMostProducts) break;
    if (tile_shared_bytes(rows, keys, shape.head_size) > caps.limits.max_shared_bytes) break;
    tile_keys = keys;
  }
  if (tile_keys == 0) return std::nullopt;
  CoopmatShape halves = *matrix;
  halves.c = halves.result = ScalarType::kF16;
  const bool direct = std::ranges::find(caps.coopmat_shapes, halves) != caps.coopmat_shapes.end();
  const HeadTile tile{.tokens = rows / heads_of_group(shape), .rows = rows};
  return ListPlan{.tokens = tile.tokens,
                  .plan = {.pipeline = {.kernel = kernel_name("attention_tile", shape),
                                        .constants =
                                            params::AttentionTileConstants{
                                                .kWorkgroupSize = subgroups * caps.subgroup_size,
                                                .kSubgroupSize = caps.subgroup_size,
                                                .kSubgroups = subgroups,
                                                .kHeadSize = shape.head_size,
                                                .kM = matrix->m,
                                                .kN = matrix->n,
                                                .kK = matrix->k,
                                                .kKeys = tile_keys,
                                                .kDirect = direct ? 1u : 0u},
                                        .subgroup_size = caps.subgroup_size},
                           .groups = tile_groups(shape, tile)}};
}

ListPlan choose_few(const DeviceCaps& caps, const AttentionShape& shape, bool one_token,
                    bool deterministic) {
  if (is_cpu(caps)) return choose_cpu(caps, shape, one_token);
  const PaceTuning tuning = tuning_profile(caps).attention;
  if (one_token && !deterministic && !shape.bucket.trees && !too_little_for_direct(tuning, shape))
    if (const std::optional<ListPlan> direct = choose_direct(caps, tuning, shape)) return *direct;
  return choose_rows(caps, tuning, shape, one_token, deterministic);
}

}  // namespace

AttentionPlan choose_attention(const DeviceCaps& caps, const AttentionShape& shape,
                               bool deterministic) {
  const bool cpu = is_cpu(caps);
  std::optional<ListPlan> many;
  if (!cpu && !deterministic && !shape.f32_only && shape.bucket.sequence_rows > 1)
    many = choose_matrix_tile(caps, shape);
  // Tiles of several tokens read the keys before a tree less often.
  const bool one_token =
      deterministic || (many && !shape.bucket.trees) || shape.bucket.sequence_rows <= 1;
  const ListPlan few = choose_few(caps, shape, one_token, deterministic);
  const uint32_t wanted_groups =
      many ? tuning_profile(caps).attention.prompt_groups : few.wanted_groups;
  AttentionPlan plan{
      .few = few.plan,
      .tuning = {.few_tokens = few.tokens,
                 .many_tokens = many ? many->tokens : 0,
                 .split_keys = deterministic ? kDeterministicSplit : few.split_keys,
                 .wanted_items = divide_up(wanted_groups, std::max(1u, shape.kv_heads)),
                 .fixed_splits = deterministic,
                 .dealt = shape.dealt}};
  plan.capacity = attention_capacity(plan.tuning, shape.bucket);
  plan.few.groups.x = plan.capacity.few;
  plan.writes_halves = !cpu && !shape.dealt;
  // Not if the result must equal, to the last bit, that of rope_kv, which prompts use; nor if the
  // token's block may be elsewhere.
  plan.ropes = !cpu && !shape.dealt && !deterministic && !shape.bucket.trees &&
               shape.bucket.sequence_rows <= 1 && plan.few.groups.y == shape.kv_heads;
  if (plan.capacity.many > 0) {
    plan.many = many->plan;
    plan.many->groups.x = plan.capacity.many;
  }
  return plan;
}

}  // namespace hearth
