#include "engine/ops/attention_work.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "engine/ops/kernel_plan.h"
#include "params/paged_kv.h"

namespace hearth {
namespace {

using params::AttentionItem;
using params::StepSequence;

uint32_t mask_of(std::span<const uint32_t> ancestors, uint32_t row) {
  return row < ancestors.size() ? ancestors[row] : 0;
}

// A tree is at the end of its sequence.
bool has_tree(const StepSequence& sequence, std::span<const uint32_t> ancestors) {
  return sequence.rows > 0 && mask_of(ancestors, sequence.first_row + sequence.rows - 1) != 0;
}

bool is_few(const StepSequence& sequence, const AttentionTuning& tuning,
            std::span<const uint32_t> ancestors) {
  if (tuning.few_tokens == 0) return false;
  return tuning.many_tokens == 0 || sequence.rows <= tuning.few_tokens ||
         has_tree(sequence, ancestors);
}

// How much earlier a row is on its own path than in the cache: the tree rows that are not on it.
uint32_t rows_off_path(uint32_t mask) {
  return static_cast<uint32_t>(std::bit_width(mask) - std::popcount(mask));
}

// Where the splits of a tile end: at `first`, then every `length` keys, and the last at key_end.
struct Splits {
  uint32_t first, length;
};

Splits splits_of(uint32_t key_begin, uint32_t key_end, bool fixed, uint32_t split_keys) {
  if (fixed) return {round_up(key_begin + 1, split_keys), split_keys};
  // The nearest number of splits of about equal length, each beginning at a block boundary.
  const uint32_t count = std::max(1u, (key_end - key_begin + split_keys / 2) / split_keys);
  const uint32_t begin = key_begin / params::kTokensPerBlock * params::kTokensPerBlock;
  const uint32_t length = round_up(divide_up(key_end - begin, count), params::kTokensPerBlock);
  return {begin + length, length};
}

}  // namespace

AttentionCapacity attention_capacity(const AttentionTuning& tuning, const AttentionBucket& bucket) {
  const uint32_t sequences = std::min(bucket.sequences, bucket.rows);
  const auto most_tiles = [&](uint32_t tile_tokens, uint32_t tiled_sequences) {
    // Every sequence may end with a partial tile.
    if (tuning.dealt) return bucket.rows;
    return std::min(bucket.rows, bucket.rows / tile_tokens + tiled_sequences);
  };
  uint32_t few_tiles = tuning.dealt ? bucket.rows : sequences, many_tiles = 0;
  if (tuning.few_tokens == 0) few_tiles = 0;
  if (bucket.sequence_rows > tuning.few_tokens) {
    if (tuning.few_tokens != 0 && (tuning.many_tokens == 0 || bucket.trees))
      few_tiles = most_tiles(tuning.few_tokens, sequences);
    if (tuning.many_tokens != 0)
      many_tiles = most_tiles(tuning.many_tokens,
                              std::min(sequences, bucket.rows / (tuning.few_tokens + 1)));
  }

  AttentionCapacity capacity{.few = few_tiles, .many = many_tiles};
  if (tuning.fixed_splits) {
    const uint32_t splits = divide_up(bucket.sequence_tokens, tuning.split_keys);
    capacity.few *= splits;
    capacity.many *= splits;
    if (splits > 1)
      capacity.slots =
          capacity.few * tuning.few_tokens + capacity.many * std::max(tuning.many_tokens, 1u);
    return capacity;
  }
  // A tile of k keys becomes round(k / split) items, or one. Splits are at least all keys / wanted
  // long, so there are at most `wanted` items beyond one per tile; and only tiles of at least 1.5
  // splits are split, so at most 4/3 * wanted items have partial results.
  if (bucket.sequence_tokens >= tuning.split_keys + tuning.split_keys / 2) {
    const uint32_t most_splits = divide_up(bucket.sequence_tokens, tuning.split_keys);
    const auto add_splits = [&](uint32_t tiles, uint32_t tile_tokens) {
      const uint32_t wanted = tuning.wanted_items;
      capacity.slots += std::min(wanted + divide_up(wanted, 3), tiles * most_splits) *
                        std::min(tile_tokens, bucket.sequence_rows);
      return tiles + std::min(wanted, tiles * (most_splits - 1));
    };
    capacity.few = add_splits(few_tiles, tuning.few_tokens);
    if (many_tiles > 0) capacity.many = add_splits(many_tiles, tuning.many_tokens);
  }
  return capacity;
}

AttentionPlanner::Tile AttentionPlanner::dealt_tile(const AttentionStep& step, size_t sequence,
                                                    Tile tile) {
  const DealtTables& dealt = *step.dealt;
  const uint32_t position = tile.first_position, mask = mask_of(step.ancestors, tile.first_row);
  tile.block_table = dealt.own_table(sequence);
  tile.counts_sinks = dealt.has(sequence, position);
  tile.key_begin = dealt.keys_before(sequence, tile.key_begin);
  if (mask == 0) {
    tile.key_end = dealt.keys_before(sequence, tile.key_end);
    // If these rows' keys are elsewhere, all rows see the same keys here.
    tile.first_position = tile.counts_sinks ? dealt.keys_before(sequence, position) : tile.key_end;
    return tile;
  }
  const uint32_t tree_begin = position + 1 - static_cast<uint32_t>(std::bit_width(mask));
  uint32_t path = mask, here = 0, own = 0;
  // A window that is shorter than the path leaves its last tokens.
  while (step.window != 0 && static_cast<uint32_t>(std::popcount(path)) > step.window)
    path &= path - 1;
  for (uint32_t i = 0; i < static_cast<uint32_t>(std::bit_width(mask)); ++i) {
    if (!dealt.has(sequence, tree_begin + i)) continue;
    own |= (path >> i & 1) << here;
    ++here;
  }
  work_.ancestors[tile.first_row] = own;
  tile.key_end =
      dealt.keys_before(sequence, tree_begin) + static_cast<uint32_t>(std::bit_width(own));
  tile.key_begin = std::min(tile.key_begin, dealt.keys_before(sequence, tree_begin));
  tile.first_position = own == 0 ? tile.key_end : tile.key_end - 1;
  return tile;
}

void AttentionPlanner::cut_into_tiles(const AttentionStep& step, const AttentionTuning& tuning,
                                      bool few) {
  const auto& [sequences, members, window, ancestors, dealt] = step;
  tiles_.clear();
  const uint32_t tile_tokens = few ? tuning.few_tokens : tuning.many_tokens;
  for (size_t i = 0; i < sequences.size(); ++i) {
    const StepSequence& sequence = sequences[i];
    if (is_few(sequence, tuning, ancestors) != few) continue;
    uint32_t tokens = 0;
    for (uint32_t token = 0; token < sequence.rows; token += tokens) {
      tokens = std::min(tile_tokens, sequence.rows - token);
      if (dealt != nullptr) {
        const uint32_t slot = (sequence.first_position + token) % params::kTokensPerBlock;
        const bool alone = window != 0 || has_tree(sequence, ancestors);
        tokens = std::min(tokens, alone ? 1 : params::kTokensPerBlock - slot);
      }
      const uint32_t first_end = sequence.first_position + token + (i < members ? 1 : 0);
      // The window of a tree row begins earlier by the rows that are not on its path.
      uint32_t window_end = first_end;
      for (uint32_t t = 0; t < tokens && !ancestors.empty(); ++t)
        window_end = std::min(
            window_end,
            first_end + t - rows_off_path(mask_of(ancestors, sequence.first_row + token + t)));
      const Tile tile{.first_row = sequence.first_row + token,
                      .first_position = sequence.first_position + token,
                      .tokens = tokens,
                      .block_table = sequence.block_table,
                      .key_begin = window == 0 ? 0 : window_end - std::min(window, window_end),
                      .key_end = first_end + tokens - 1};
      if (dealt == nullptr)
        tiles_.push_back(tile);
      else if (const Tile own = dealt_tile(step, i, tile); own.keys() > 0)
        tiles_.push_back(own);
    }
  }
  // The longest first, so that none of them starts when the others are nearly done.
  std::sort(tiles_.begin(), tiles_.end(), [](const Tile& a, const Tile& b) {
    return a.keys() != b.keys() ? a.keys() > b.keys() : a.first_row < b.first_row;
  });
}

void AttentionPlanner::add_tiles(const AttentionTuning& tuning, std::vector<AttentionItem>& items) {
  uint64_t keys = 0;
  for (const Tile& tile : tiles_) keys += tile.keys();
  uint32_t split_keys = tuning.split_keys;
  if (!tuning.fixed_splits) {
    const uint64_t wanted = std::max(tuning.wanted_items, 1u);
    split_keys = std::max(split_keys, static_cast<uint32_t>(divide_up(keys, wanted)));
  }
  for (const Tile& tile : tiles_) add_tile(tile, tuning, split_keys, items);
}

void AttentionPlanner::add_tile(const Tile& tile, const AttentionTuning& tuning,
                                uint32_t split_keys, std::vector<AttentionItem>& items) {
  const Splits splits = splits_of(tile.key_begin, tile.key_end, tuning.fixed_splits, split_keys);
  const uint32_t count =
      splits.first >= tile.key_end ? 1 : 1 + divide_up(tile.key_end - splits.first, splits.length);
  uint32_t begin = tile.key_begin, end = splits.first;
  for (uint32_t split = 0; split < count; ++split, begin = end, end += splits.length) {
    end = std::min(end, tile.key_end);
    items.push_back(
        {.first_row = tile.first_row,
         .first_position = tile.first_position,
         .tokens = tile.tokens,
         .block_table = tile.block_table,
         .key_begin = begin,
         .key_end = end,
         .splits = count,
         .split = split,
         .partial = (count == 1 ? 0 : slots_) | (tile.counts_sinks ? 0 : params::kSinksElsewhere)});
  }
  if (count > 1) slots_ += count * tile.tokens;
}

Status AttentionPlanner::plan(const AttentionStep& step, const AttentionTuning& tuning,
                              const AttentionCapacity& capacity) {
  work_.few.clear();
  work_.many.clear();
  slots_ = 0;
  if (step.dealt != nullptr) work_.ancestors.assign(step.ancestors.size(), 0);
  cut_into_tiles(step, tuning, true);
  add_tiles(tuning, work_.few);
  if (tuning.many_tokens != 0) {
    cut_into_tiles(step, tuning, false);
    add_tiles(tuning, work_.many);
  }
  if (work_.few.size() > capacity.few || work_.many.size() > capacity.many ||
      slots_ > capacity.slots)
    return Error{ErrorKind::kInvalid,
                 fmt::format("attention work of {} and {} items and {} slots is more than the "
                             "bucket's {}, {} and {}",
                             work_.few.size(), work_.many.size(), slots_, capacity.few,
                             capacity.many, capacity.slots)};
  work_.few.resize(capacity.few);
  work_.many.resize(capacity.many);
  return {};
}

Result<AttentionWork> plan_attention(std::span<const StepSequence> sequences, uint32_t window,
                                     const AttentionTuning& tuning,
                                     const AttentionCapacity& capacity,
                                     std::span<const uint32_t> ancestors) {
  AttentionPlanner planner;
  HEARTH_TRY(planner.plan({.sequences = sequences,
                           .members = sequences.size(),
                           .window = window,
                           .ancestors = ancestors},
                          tuning, capacity));
  return planner.work();
}

}  // namespace hearth
