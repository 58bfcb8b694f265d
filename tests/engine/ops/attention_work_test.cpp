#include "engine/ops/attention_work.h"

#include <bit>
#include <map>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "params/paged_kv.h"

namespace hearth {
namespace {

using params::AttentionItem;
using params::StepSequence;

struct Batch {
  std::vector<StepSequence> sequences;
  std::vector<uint32_t> ancestors = {};  // if there are trees
  AttentionBucket bucket;
};

Batch random_batch(std::mt19937& generator) {
  const auto up_to = [&](uint32_t most) {
    return std::uniform_int_distribution<uint32_t>(0, most)(generator);
  };
  Batch batch{.sequences = {}, .bucket = {.sequence_tokens = 1 + up_to(5000)}};
  const uint32_t most_rows = up_to(1) == 0 ? 1 : 1 + up_to(300);
  const uint32_t count = 1 + up_to(20);
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t rows =
        std::min(up_to(2) == 0 ? 1 : up_to(most_rows), batch.bucket.sequence_tokens);
    batch.sequences.push_back({.first_row = batch.bucket.rows,
                               .rows = rows,
                               .first_position = up_to(batch.bucket.sequence_tokens - rows),
                               .block_table = 7 * i});
    batch.bucket.rows += rows;
    batch.bucket.sequence_rows = std::max(batch.bucket.sequence_rows, rows);
  }
  batch.bucket.sequences = count;
  return batch;
}

// Makes the last rows of most sequences a tree, up to 32 of them.
void add_trees(std::mt19937& generator, Batch& batch) {
  const auto up_to = [&](uint32_t most) {
    return std::uniform_int_distribution<uint32_t>(0, most)(generator);
  };
  batch.bucket.trees = true;
  batch.ancestors.assign(batch.bucket.rows, 0);
  for (const StepSequence& sequence : batch.sequences) {
    const uint32_t rows = std::min(sequence.rows, up_to(32));
    uint32_t* const masks = batch.ancestors.data() + sequence.first_row + sequence.rows - rows;
    for (uint32_t i = 0; i < rows; ++i) {
      const uint32_t parent = up_to(i);
      masks[i] = (parent == i ? 0 : masks[parent]) | 1u << i;
    }
  }
}

// Checks that every key a row sees is in exactly one item, that the items of a tile refer to each
// other, and that partial results do not overlap.
void expect_complete(const Batch& batch, uint32_t window, const AttentionTuning& tuning,
                     const AttentionWork& work, const AttentionCapacity& capacity) {
  std::map<uint32_t, std::vector<AttentionItem>> of_row;
  std::set<uint32_t> slots;
  for (const auto* items : {&work.few, &work.many}) {
    for (const AttentionItem& item : *items) {
      if (item.tokens == 0) continue;
      ASSERT_LE(item.tokens, items == &work.few ? tuning.few_tokens : tuning.many_tokens);
      ASSERT_LT(item.key_begin, item.key_end);
      for (uint32_t token = 0; token < item.tokens; ++token) {
        of_row[item.first_row + token].push_back(item);
        if (item.splits == 1) continue;
        const uint32_t slot = item.partial + item.split * item.tokens + token;
        ASSERT_LT(slot, capacity.slots);
        ASSERT_TRUE(slots.insert(slot).second) << "a slot used twice";
      }
    }
  }
  for (const StepSequence& sequence : batch.sequences) {
    for (uint32_t i = 0; i < sequence.rows; ++i) {
      const uint32_t end = sequence.first_position + i + 1;
      uint32_t path_end = end;
      if (!batch.ancestors.empty()) {
        const uint32_t mask = batch.ancestors[sequence.first_row + i];
        path_end -= static_cast<uint32_t>(std::bit_width(mask) - std::popcount(mask));
      }
      uint32_t next = window == 0 ? 0 : path_end - std::min(window, path_end);
      const auto& items = of_row[sequence.first_row + i];
      ASSERT_FALSE(items.empty());
      ASSERT_LE(items.front().key_begin, next);
      for (size_t split = 0; split < items.size(); ++split) {
        const AttentionItem& item = items[split];
        if (split > 0) {
          ASSERT_EQ(item.key_begin, items[split - 1].key_end);
        }
        ASSERT_EQ(item.first_position - sequence.first_position,
                  item.first_row - sequence.first_row);
        ASSERT_LE(item.first_row + item.tokens, sequence.first_row + sequence.rows);
        ASSERT_EQ(item.block_table, sequence.block_table);
        ASSERT_EQ(item.splits, items.size());
        ASSERT_EQ(item.split, split);
        ASSERT_EQ(item.partial, items.front().partial);
        next = std::max(next, item.key_end);
      }
      ASSERT_GE(next, end);
    }
  }
}

const AttentionTuning kTunings[] = {
    {.few_tokens = 1, .many_tokens = 16, .split_keys = 256, .wanted_items = 64},
    {.few_tokens = 1, .many_tokens = 16, .split_keys = 16, .wanted_items = 7},
    {.few_tokens = 2, .many_tokens = 0, .split_keys = 64, .wanted_items = 300},
    {.few_tokens = 4, .many_tokens = 64, .split_keys = 1024, .wanted_items = 1},
    {.few_tokens = 1, .many_tokens = 0, .split_keys = 512, .wanted_items = 9, .fixed_splits = true},
    {.few_tokens = 0, .many_tokens = 16, .split_keys = 128, .wanted_items = 64},
};

TEST(AttentionWork, CoversEveryKeyOnceWithinTheCapacity) {
  std::mt19937 generator(5);
  for (int round = 0; round < 300; ++round) {
    const Batch batch = random_batch(generator);
    for (const AttentionTuning& tuning : kTunings) {
      for (const uint32_t window : {0u, 1u, 100u, 1000u}) {
        const AttentionCapacity capacity = attention_capacity(tuning, batch.bucket);
        const auto work = plan_attention(batch.sequences, window, tuning, capacity);
        ASSERT_TRUE(work.ok()) << work.error().message;
        ASSERT_EQ(work->few.size(), capacity.few);
        ASSERT_EQ(work->many.size(), capacity.many);
        expect_complete(batch, window, tuning, *work, capacity);
        if (HasFatalFailure()) return;
      }
    }
  }
}

// A tree row's window is counted along its path, and trees are never in the list of prompts.
TEST(AttentionWork, CoversEveryKeyOfTreesWithinTheCapacity) {
  std::mt19937 generator(6);
  for (int round = 0; round < 200; ++round) {
    Batch batch = random_batch(generator);
    add_trees(generator, batch);
    for (const AttentionTuning& tuning : kTunings) {
      if (tuning.few_tokens == 0) continue;  // trees need that list
      for (const uint32_t window : {0u, 1u, 20u, 1000u}) {
        const AttentionCapacity capacity = attention_capacity(tuning, batch.bucket);
        const auto work =
            plan_attention(batch.sequences, window, tuning, capacity, batch.ancestors);
        ASSERT_TRUE(work.ok()) << work.error().message;
        expect_complete(batch, window, tuning, *work, capacity);
        if (HasFatalFailure()) return;
        for (const AttentionItem& item : work->many)
          for (uint32_t i = 0; i < item.tokens; ++i)
            ASSERT_EQ(batch.ancestors[item.first_row + i], 0u);
      }
    }
  }
}

TEST(AttentionWork, OneLongSequenceIsSplitForTheWholeDevice) {
  const std::vector<StepSequence> one{
      {.first_row = 0, .rows = 1, .first_position = 32767, .block_table = 0}};
  const AttentionTuning tuning{.few_tokens = 1, .split_keys = 256, .wanted_items = 64};
  const AttentionCapacity capacity = attention_capacity(
      tuning, {.rows = 1, .sequences = 1, .sequence_rows = 1, .sequence_tokens = 32768});
  const auto work = plan_attention(one, 0, tuning, capacity);
  ASSERT_TRUE(work.ok());
  uint32_t items = 0;
  for (const AttentionItem& item : work->few) {
    if (item.tokens == 0) continue;
    ++items;
    EXPECT_EQ(item.key_end - item.key_begin, 512u);
  }
  EXPECT_EQ(items, 64u);
}

// Items without work still cost workgroups.
TEST(AttentionWork, RoomForSplitsDependsOnTheLongestSequence) {
  const AttentionTuning tuning{.few_tokens = 1, .split_keys = 128, .wanted_items = 128};
  AttentionBucket bucket{.rows = 1, .sequences = 1, .sequence_rows = 1, .sequence_tokens = 767};
  EXPECT_EQ(attention_capacity(tuning, bucket), (AttentionCapacity{.few = 6, .slots = 6}));
  bucket.sequence_tokens = 1 << 20;
  EXPECT_EQ(attention_capacity(tuning, bucket), (AttentionCapacity{.few = 129, .slots = 171}));
}

TEST(AttentionWork, ShortSequencesAreNotSplit) {
  std::vector<StepSequence> sequences;
  for (uint32_t i = 0; i < 8; ++i)
    sequences.push_back(
        {.first_row = i, .rows = 1, .first_position = 383 - 16 * i, .block_table = 0});
  const AttentionTuning tuning{.few_tokens = 1, .split_keys = 256, .wanted_items = 64};
  const AttentionCapacity capacity = attention_capacity(
      tuning, {.rows = 8, .sequences = 8, .sequence_rows = 1, .sequence_tokens = 383});
  EXPECT_EQ(capacity, (AttentionCapacity{.few = 8})) << "and no room is reserved for it";
}

// Padding rows have no key of their own in the cache, and must not write one.
TEST(AttentionWork, PaddingSeesTheKeysBeforeIt) {
  const std::vector<StepSequence> sequences{
      {.first_row = 0, .rows = 1, .first_position = 40, .block_table = 3},
      {.first_row = 1, .rows = 1, .first_position = 40, .block_table = 3}};
  AttentionPlanner planner;
  ASSERT_TRUE(planner
                  .plan({.sequences = sequences, .members = 1},
                        {.few_tokens = 1, .wanted_items = 4}, {.few = 2})
                  .ok());
  const std::vector<AttentionItem>& items = planner.work().few;
  EXPECT_EQ(items[0].first_row, 0u);
  EXPECT_EQ(items[0].key_end, 41u);
  EXPECT_EQ(items[1].first_row, 1u);
  EXPECT_EQ(items[1].first_position, 40u);
  EXPECT_EQ(items[1].key_end, 40u);
}

TEST(AttentionWork, TheLongestWorkComesFirst) {
  const std::vector<StepSequence> sequences{
      {.first_row = 0, .rows = 1, .first_position = 9, .block_table = 0},
      {.first_row = 1, .rows = 1, .first_position = 99, .block_table = 0},
      {.first_row = 2, .rows = 1, .first_position = 49, .block_table = 0}};
  const AttentionTuning tuning{.few_tokens = 1, .wanted_items = 4};
  const auto work = plan_attention(sequences, 0, tuning, {.few = 3});
  ASSERT_TRUE(work.ok());
  EXPECT_EQ(work->few[0].first_row, 1u);
  EXPECT_EQ(work->few[1].first_row, 2u);
  EXPECT_EQ(work->few[2].first_row, 0u);
}

// A row's splits do not depend on the batch or on the chunk the row is in.
TEST(AttentionWork, FixedSplitsDependOnlyOnTheRow) {
  const AttentionTuning tuning{.few_tokens = 1, .split_keys = 64, .fixed_splits = true};
  const AttentionBucket bucket{
      .rows = 40, .sequences = 2, .sequence_rows = 30, .sequence_tokens = 500};
  const AttentionCapacity capacity = attention_capacity(tuning, bucket);
  const std::vector<StepSequence> batch{
      {.first_row = 0, .rows = 10, .first_position = 400, .block_table = 0},
      {.first_row = 10, .rows = 30, .first_position = 100, .block_table = 0}};
  const auto together = plan_attention(batch, 90, tuning, capacity);
  ASSERT_TRUE(together.ok());
  for (uint32_t row = 0; row < 30; ++row) {
    const std::vector<StepSequence> alone{
        {.first_row = 0, .rows = 1, .first_position = 100 + row, .block_table = 0}};
    const auto single = plan_attention(alone, 90, tuning, capacity);
    ASSERT_TRUE(single.ok());
    std::vector<std::pair<uint32_t, uint32_t>> expected, found;
    for (const AttentionItem& item : single->few)
      if (item.tokens > 0) expected.emplace_back(item.key_begin, item.key_end);
    for (const AttentionItem& item : together->few)
      if (item.tokens > 0 && item.first_row == 10 + row)
        found.emplace_back(item.key_begin, item.key_end);
    EXPECT_EQ(found, expected) << row;
  }
}

TEST(AttentionWork, MoreThanTheBucketIsRefused) {
  const std::vector<StepSequence> sequences{
      {.first_row = 0, .rows = 1, .first_position = 9, .block_table = 0},
      {.first_row = 1, .rows = 1, .first_position = 9, .block_table = 0}};
  const auto work = plan_attention(sequences, 0, {.few_tokens = 1}, {.few = 1});
  ASSERT_FALSE(work.ok());
  EXPECT_EQ(work.error().kind, ErrorKind::kInvalid);
}

}  // namespace
}  // namespace hearth
