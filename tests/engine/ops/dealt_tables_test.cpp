// Attention on ranks that share a pool of KV blocks: together they see every key that a row sees,
// and no other, each once.
#include "engine/ops/dealt_tables.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "engine/ops/attention_work.h"
#include "params/paged_kv.h"

namespace hearth {
namespace {

using params::AttentionItem;
using params::kTokensPerBlock;
using params::StepSequence;

struct DealtStep {
  std::vector<StepSequence> sequences;
  std::vector<uint32_t> tables, ancestors;
  AttentionBucket bucket;
};

// Sequences with blocks of any ranks, and trees at the ends of some.
DealtStep random_dealt_step(std::mt19937& generator) {
  const auto up_to = [&](uint32_t most) {
    return std::uniform_int_distribution<uint32_t>(0, most)(generator);
  };
  DealtStep step{.bucket = {.sequences = 1 + up_to(4), .sequence_tokens = 400}};
  std::vector<uint32_t> pool(step.bucket.sequences * 400 / kTokensPerBlock);
  std::iota(pool.begin(), pool.end(), 0u);
  std::shuffle(pool.begin(), pool.end(), generator);
  const bool trees = up_to(1) == 0;
  for (uint32_t i = 0; i < step.bucket.sequences; ++i) {
    const uint32_t rows = up_to(2) == 0 ? 1 : 1 + up_to(60), before = up_to(400 - rows);
    step.sequences.push_back({.first_row = step.bucket.rows,
                              .rows = rows,
                              .first_position = before,
                              .block_table = static_cast<uint32_t>(step.tables.size())});
    for (uint32_t key = 0; key < before + rows; key += kTokensPerBlock) {
      step.tables.push_back(pool.back());
      pool.pop_back();
    }
    step.bucket.rows += rows;
    step.bucket.sequence_rows = std::max(step.bucket.sequence_rows, rows);
    step.ancestors.resize(step.bucket.rows);
    const uint32_t tree = trees ? std::min(rows, up_to(32)) : 0;
    for (uint32_t row = 0; row < tree; ++row) {
      uint32_t* const masks = step.ancestors.data() + step.bucket.rows - tree;
      const uint32_t parent = up_to(row);
      masks[row] = (parent == row ? 0 : masks[parent]) | 1u << row;
    }
  }
  if (!trees) step.ancestors.clear();
  step.bucket.trees = trees;
  return step;
}

// The positions that a row sees, by the rules of the kernels for a device with all keys.
std::vector<uint32_t> seen_positions(const DealtStep& step, const StepSequence& sequence,
                                     uint32_t row, uint32_t window) {
  const uint32_t position = sequence.first_position + row;
  const uint32_t mask = step.ancestors.empty() ? 0 : step.ancestors[sequence.first_row + row];
  std::vector<uint32_t> seen;
  const uint32_t tree = mask == 0 ? position + 1 : position + 1 - std::bit_width(mask);
  for (uint32_t key = 0; key < tree; ++key) seen.push_back(key);
  for (uint32_t i = 0; i < 32; ++i)
    if ((mask >> i & 1) != 0) seen.push_back(tree + i);
  if (window != 0 && seen.size() > window)
    seen.erase(seen.begin(), seen.end() - static_cast<ptrdiff_t>(window));
  return seen;
}

// What the rows of an item see of the rank's keys: shaders/common/attention_work.glsl, without a
// window.
std::vector<uint32_t> seen_by_item(const AttentionItem& item, uint32_t token, uint32_t mask) {
  std::vector<uint32_t> seen;
  const uint32_t position = item.first_position + token;
  const uint32_t tree = mask == 0 ? position + 1 : position + 1 - std::bit_width(mask);
  for (uint32_t key = item.key_begin; key < std::min(tree, item.key_end); ++key)
    seen.push_back(key);
  for (uint32_t i = 0; i < 32; ++i)
    if ((mask >> i & 1) != 0 && tree + i >= item.key_begin && tree + i < item.key_end)
      seen.push_back(tree + i);
  return seen;
}

const AttentionTuning kDealtTunings[] = {
    {.few_tokens = 1, .many_tokens = 16, .split_keys = 64, .wanted_items = 64, .dealt = true},
    {.few_tokens = 4, .many_tokens = 0, .split_keys = 16, .wanted_items = 300, .dealt = true},
    {.few_tokens = 1, .many_tokens = 64, .split_keys = 256, .wanted_items = 1, .dealt = true},
    {.few_tokens = 1, .split_keys = 48, .wanted_items = 9, .fixed_splits = true, .dealt = true},
};

void expect_every_key_once(const DealtStep& step, const AttentionTuning& tuning, uint32_t ranks,
                           uint32_t window) {
  // By row, the blocks and slots that all ranks see; and how often its sink is counted.
  std::map<uint32_t, std::vector<std::pair<uint32_t, uint32_t>>> seen;
  std::map<uint32_t, uint32_t> sinks;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    const BlockDeal deal{.rank = rank, .ranks = ranks};
    DealtTables dealt;
    dealt.deal(deal, step.sequences, step.tables);
    AttentionPlanner planner;
    const Status planned = planner.plan({.sequences = step.sequences,
                                         .members = step.sequences.size(),
                                         .window = window,
                                         .ancestors = step.ancestors,
                                         .dealt = &dealt},
                                        tuning, attention_capacity(tuning, step.bucket));
    ASSERT_TRUE(planned.ok()) << planned.error().message;
    for (const auto* list : {&planner.work().few, &planner.work().many})
      for (const AttentionItem& item : *list)
        for (uint32_t token = 0; token < item.tokens; ++token) {
          const uint32_t row = item.first_row + token;
          if (item.split == 0 && (item.partial & params::kSinksElsewhere) == 0) ++sinks[row];
          const uint32_t mask =
              step.ancestors.empty() ? 0 : planner.work().ancestors[item.first_row + token];
          for (const uint32_t key : seen_by_item(item, token, mask)) {
            const uint32_t place = dealt.words()[item.block_table + key / kTokensPerBlock];
            seen[row].emplace_back(place * ranks + rank, key % kTokensPerBlock);
          }
        }
  }
  for (const StepSequence& sequence : step.sequences)
    for (uint32_t row = 0; row < sequence.rows; ++row) {
      std::vector<std::pair<uint32_t, uint32_t>> expected;
      for (const uint32_t key : seen_positions(step, sequence, row, window))
        expected.emplace_back(step.tables[sequence.block_table + key / kTokensPerBlock],
                              key % kTokensPerBlock);
      std::vector<std::pair<uint32_t, uint32_t>>& actual = seen[sequence.first_row + row];
      std::ranges::sort(expected);
      std::ranges::sort(actual);
      ASSERT_EQ(actual, expected) << "row " << row << " of " << sequence.rows << " at "
                                  << sequence.first_position << ", window " << window;
      ASSERT_EQ(sinks[sequence.first_row + row], 1u);
    }
}

TEST(DealtTables, RanksTogetherSeeEveryKeyOnce) {
  std::mt19937 generator(11);
  for (int round = 0; round < 60; ++round) {
    const DealtStep step = random_dealt_step(generator);
    for (const AttentionTuning& tuning : kDealtTunings)
      for (const uint32_t ranks : {2u, 3u})
        for (const uint32_t window : {0u, 1u, 5u, 40u, 1000u}) {
          expect_every_key_once(step, tuning, ranks, window);
          if (::testing::Test::HasFatalFailure()) return;
        }
  }
}

TEST(DealtTables, KeysAreWrittenWhereTheirBlockIs) {
  const std::vector<StepSequence> sequences{{.rows = 40, .first_position = 8, .block_table = 1}};
  const std::vector<uint32_t> tables{9, 4, 7, 6};
  DealtTables dealt;
  dealt.deal({.rank = 0, .ranks = 2}, sequences, tables);
  using params::kElsewhere;
  EXPECT_EQ(dealt.words(), (std::vector<uint32_t>{kElsewhere, 2, kElsewhere, 3, 2, 3}));
  EXPECT_EQ(dealt.own_table(0), 4u);
  EXPECT_TRUE(dealt.has(0, 15));
  EXPECT_FALSE(dealt.has(0, 16));
  EXPECT_EQ(dealt.keys_before(0, 20), 16u);
  EXPECT_EQ(dealt.keys_before(0, 35), 19u);
  EXPECT_EQ(dealt.keys_before(0, 48), 32u);
}

TEST(BlockDeal, EveryBlockHasOnePlaceOnOneRank) {
  for (const uint32_t ranks : {1u, 2u, 3u}) {
    std::map<std::pair<uint32_t, uint32_t>, uint32_t> blocks;
    for (uint32_t block = 0; block < 20; ++block) {
      uint32_t holders = 0;
      for (uint32_t rank = 0; rank < ranks; ++rank) {
        const BlockDeal deal{.rank = rank, .ranks = ranks};
        if (!deal.has(block)) continue;
        ++holders;
        EXPECT_LT(deal.place(block), deal.places(20));
        EXPECT_TRUE(blocks.emplace(std::pair(rank, deal.place(block)), block).second);
      }
      EXPECT_EQ(holders, 1u);
    }
  }
}

}  // namespace
}  // namespace hearth
