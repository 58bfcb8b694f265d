#include "ui/data/block_map.h"

#include <gtest/gtest.h>

#include "tests/ui/data/step_records.h"

namespace hearth {
namespace {

using test::decode;
using test::step;
using test::view_of;

EngineView pool(std::vector<BlockView> blocks, std::vector<SequenceView> sequences = {}) {
  EngineView view = view_of({});
  view.has_snapshot = true;
  view.blocks = std::move(blocks);
  view.sequences = std::move(sequences);
  view.snapshot_step = 100;
  return view;
}

BlockView owned(RequestId owner, uint32_t filled, uint32_t references = 1, uint64_t hash = 0) {
  return {.state = BlockState::kOwned,
          .owner = owner,
          .references = references,
          .filled = filled,
          .hash = hash,
          .last_use = 98};
}

TEST(BlockMap, AnEmptyEngineHasNoBlocks) {
  BlockMap map;
  map.update({});
  map.update(view_of({}));
  EXPECT_EQ(map.stats().blocks, 0u);
  EXPECT_EQ(map.stats().wasted_share(), 0);
  EXPECT_EQ(map.reservation_at(0), nullptr);
}

TEST(BlockMap, StatsOfAKnownPool) {
  BlockMap map;
  const EngineView view = pool({owned(1, 16, 3, 0xabc),
                                owned(1, 4),
                                {},
                                {},
                                {.state = BlockState::kCached},
                                {},
                                owned(2, 0),
                                {.state = BlockState::kWithheld}});
  map.update(view);
  const PoolStats& stats = map.stats();
  EXPECT_EQ(stats.blocks, 8u);
  EXPECT_EQ(stats.owned, 3u);
  EXPECT_EQ(stats.cached, 1u);
  EXPECT_EQ(stats.free, 3u);
  EXPECT_EQ(stats.withheld, 1u);
  EXPECT_EQ(stats.shared, 1u);
  EXPECT_EQ(stats.saved_blocks, 2u);
  EXPECT_EQ(stats.reserved, 1u);
  EXPECT_EQ(stats.tokens, 20u);
  EXPECT_EQ(stats.wasted_slots, 28u);
  EXPECT_DOUBLE_EQ(stats.wasted_share(), 28.0 / 48);
  EXPECT_EQ(stats.free_runs, 2u);
  EXPECT_EQ(stats.longest_free_run, 2u);
  EXPECT_EQ(map.steps_since_read(view.blocks[0]), 2u);
}

TEST(BlockMap, ReservationGivesEachRequestRoomForItsLongestAnswer) {
  BlockMap map;
  map.update(pool(std::vector<BlockView>(10),
                  {{.id = 1, .state = SequenceState::kRunning, .computed = 20, .max_tokens = 65},
                   {.id = 2, .state = SequenceState::kRunning, .computed = 5, .max_tokens = 200},
                   {.id = 3, .state = SequenceState::kRunning, .computed = 1, .max_tokens = 66},
                   {.id = 4, .state = SequenceState::kWaiting, .max_tokens = 16}}));
  ASSERT_EQ(map.reservations().size(), 2u);
  EXPECT_EQ(map.reservations()[0].blocks,
            4u);  // 64 tokens: the last sampled one never enters the cache
  EXPECT_EQ(map.reservations()[0].filled, 2u);
  EXPECT_EQ(map.reservations()[1].request, 3u);
  EXPECT_EQ(map.reservations()[1].first, 4u);
  EXPECT_EQ(map.reservations()[1].blocks, 5u);
  EXPECT_EQ(map.running(), 3u);
  EXPECT_EQ(map.would_wait(), 1u) << "the second does not fit beside the first";
  EXPECT_EQ(map.reserved_stats().owned, 9u);
  EXPECT_EQ(map.reserved_stats().free, 1u);
  EXPECT_EQ(map.reserved_stats().wasted_slots, 9u * 16 - 21);
  ASSERT_NE(map.reservation_at(4), nullptr);
  EXPECT_EQ(map.reservation_at(4)->request, 3u);
  EXPECT_EQ(map.reservation_at(3)->request, 1u);
  EXPECT_EQ(map.reservation_at(9), nullptr);
}

TEST(BlockMap, ACopiedBlockIsMarkedForAWhile) {
  BlockMap map;
  map.update(pool({owned(1, 7, 2), {}, {}}));
  // Sequence 2 writes to the block it shared and gets a copy of it. Sequence 3's block is new, not
  // a copy.
  StepRecord record = step(101, 1.0, {decode(2, 7)});
  record.blocks_copied = 1;
  EngineView after = pool({owned(1, 7), owned(3, 1), owned(2, 8)});
  after.new_steps = {record};
  after.snapshot_step = 101;
  map.update(after);
  EXPECT_EQ(map.copies(), 1u);
  EXPECT_EQ(map.recent_copies(), 1u);
  EXPECT_FALSE(map.recently_copied(0));
  EXPECT_FALSE(map.recently_copied(1));
  EXPECT_TRUE(map.recently_copied(2));

  after.new_steps.clear();
  after.snapshot_step = 101 + BlockMap::kCopyMarkSteps;
  map.update(after);
  EXPECT_FALSE(map.recently_copied(2));
  EXPECT_EQ(map.recent_copies(), 0u);
}

TEST(BlockMap, WithoutASnapshotTheCountsAreShown) {
  BlockMap map;
  map.update(pool({owned(1, 16), {}}));
  EngineView remote = view_of({});
  remote.counts = {.blocks_used = 6,
                   .blocks_cached = 3,
                   .blocks_free = 1,
                   .blocks_shared = 2,
                   .kv_tokens = 90,
                   .wasted_tokens = 6};
  map.update(remote);
  EXPECT_FALSE(map.has_snapshot());
  EXPECT_EQ(map.stats().blocks, 10u);
  EXPECT_EQ(map.stats().owned, 6u);
  EXPECT_DOUBLE_EQ(map.stats().wasted_share(), 6.0 / 96);
}

TEST(BlockMap, ANewEngineResetsEverything) {
  BlockMap map;
  StepRecord record = step(1, 1.0);
  record.blocks_copied = 3;
  EngineView view = pool({owned(1, 16), {}});
  view.new_steps = {record};
  map.update(view);
  EngineView other = pool({{}, {}, {}});
  other.generation = 2;
  map.update(other);
  EXPECT_EQ(map.copies(), 0u);
  EXPECT_EQ(map.stats().free, 3u);
}

TEST(BlockMap, MissedStepsDoNotMatter) {
  BlockMap map;
  map.update(pool({owned(1, 16), {}}));
  EngineView later = pool({{}, owned(2, 3)});
  later.missed_steps = 500;
  later.snapshot_step = 700;
  map.update(later);
  EXPECT_EQ(map.stats().owned, 1u);
  EXPECT_FALSE(map.recently_copied(1));
}

TEST(BlockMap, ALargePoolIsCountedOncePerSnapshot) {
  std::vector<BlockView> blocks(65536);
  for (size_t i = 0; i < blocks.size(); ++i)
    if (i % 3 != 0) blocks[i] = owned(i % 64 + 1, 16);
  EngineView view = pool(std::move(blocks));
  BlockMap map;
  map.update(view);
  EXPECT_EQ(map.stats().owned, 65536u - 21846u);
  // The same snapshot, recognised by its step, is not counted again: this change goes unnoticed.
  view.blocks[0] = owned(1, 16);
  map.update(view);
  EXPECT_EQ(map.stats().owned, 65536u - 21846u);
  ++view.snapshot_step;
  map.update(view);
  EXPECT_EQ(map.stats().owned, 65536u - 21845u);
}

}  // namespace
}  // namespace hearth
