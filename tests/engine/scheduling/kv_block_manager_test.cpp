#include "engine/scheduling/kv_block_manager.h"

#include <random>

#include <gtest/gtest.h>

#include "engine/scheduling/swap_pool.h"

namespace hearth {
namespace {

constexpr BlockHash hash_of(std::uint64_t number) { return {.low = number * 977, .high = number}; }

TEST(KvBlockManager, AllocatesEveryBlockOnce) {
  KvBlockManager blocks(3);
  EXPECT_EQ(blocks.allocate(1), 0u);
  EXPECT_EQ(blocks.allocate(1), 1u);
  EXPECT_EQ(blocks.allocate(2), 2u);
  EXPECT_EQ(blocks.available(), 0u);
  blocks.release(1, 1);
  EXPECT_EQ(blocks.available(), 1u);
  EXPECT_EQ(blocks.allocate(3), 1u);
  EXPECT_EQ(blocks.owner(1), 3u);
  EXPECT_EQ(blocks.check_integrity(), std::nullopt);
}

TEST(KvBlockManager, ASharedBlockIsFreedWithItsLastReference) {
  KvBlockManager blocks(2);
  const BlockId block = blocks.allocate(1);
  blocks.share(block);
  blocks.release(block, 1);
  EXPECT_EQ(blocks.state(block), BlockState::kOwned);
  EXPECT_EQ(blocks.available(), 1u);
  blocks.release(block, 2);
  EXPECT_EQ(blocks.state(block), BlockState::kFree);
  EXPECT_EQ(blocks.check_integrity(), std::nullopt);
}

TEST(KvBlockManager, ASmallerPoolWithholdsFreeThenCachedThenReleasedBlocks) {
  KvBlockManager blocks(6);
  for (std::uint64_t i = 0; i < 4; ++i) blocks.remember(blocks.allocate(1), hash_of(i));
  blocks.release(3, 1);
  blocks.release(2, 2);
  blocks.set_pool(5);
  EXPECT_EQ(blocks.free(), 1u);
  EXPECT_EQ(blocks.state(5), BlockState::kWithheld) << "the highest of the free ones";
  EXPECT_EQ(blocks.used() + blocks.cached() + blocks.free(), 5u);
  blocks.set_pool(3);
  EXPECT_EQ(blocks.free(), 0u);
  EXPECT_EQ(blocks.cached(), 1u);
  EXPECT_EQ(blocks.find(hash_of(3)), std::nullopt) << "the oldest is evicted first";
  EXPECT_EQ(blocks.find(hash_of(2)), 2u);
  EXPECT_EQ(blocks.check_integrity(), std::nullopt);
  // Two are in use, and the pool is to have one.
  blocks.set_pool(1);
  EXPECT_EQ(blocks.excess(), 1u);
  EXPECT_EQ(blocks.available(), 0u);
  EXPECT_EQ(blocks.used(), 2u);
  EXPECT_EQ(blocks.check_integrity(), std::nullopt);
  blocks.release(1, 3);
  EXPECT_EQ(blocks.excess(), 0u);
  EXPECT_EQ(blocks.state(1), BlockState::kWithheld);
  EXPECT_EQ(blocks.find(hash_of(1)), std::nullopt);
  EXPECT_EQ(blocks.check_integrity(), std::nullopt);
  blocks.release(0, 4);
  EXPECT_EQ(blocks.cached(), 1u) << "there is no excess any more";
  blocks.set_pool(6);
  EXPECT_EQ(blocks.free(), 5u);
  EXPECT_EQ(blocks.allocate(2), 1u) << "the lowest first";
  EXPECT_EQ(blocks.check_integrity(), std::nullopt);
}

TEST(KvBlockManager, FindableBlocksStayCachedAndComeBack) {
  KvBlockManager blocks(2);
  const BlockId block = blocks.allocate(1);
  blocks.remember(block, hash_of(1));
  EXPECT_EQ(blocks.find(hash_of(1)), block) << "also while its owner runs";
  blocks.release(block, 7);
  EXPECT_EQ(blocks.state(block), BlockState::kCached);
  EXPECT_EQ(blocks.last_use(block), 7u);
  EXPECT_EQ(blocks.available(), 2u) << "a cached block is available";
  blocks.share(block);
  EXPECT_EQ(blocks.state(block), BlockState::kOwned);
  EXPECT_EQ(blocks.cached(), 0u);
  EXPECT_EQ(blocks.check_integrity(), std::nullopt);
}

TEST(KvBlockManager, EvictsTheLeastRecentlyReleasedAndOnlyWhenNoneIsFree) {
  KvBlockManager blocks(4);
  for (std::uint64_t i = 0; i < 3; ++i) blocks.remember(blocks.allocate(1), hash_of(i));
  blocks.release(1, 1);
  blocks.release(0, 2);
  blocks.release(2, 3);
  blocks.share(1);  // used again: now the most recent
  blocks.release(1, 4);
  EXPECT_EQ(blocks.allocate(2), 3u) << "the free one";
  EXPECT_EQ(blocks.allocate(2), 0u);
  EXPECT_EQ(blocks.find(hash_of(0)), std::nullopt);
  EXPECT_EQ(blocks.allocate(2), 2u);
  EXPECT_EQ(blocks.find(hash_of(1)), 1u);
  EXPECT_EQ(blocks.evictions(), 2u);
  EXPECT_EQ(blocks.check_integrity(), std::nullopt);
}

TEST(KvBlockManager, FindsTheFirstOfEqualBlocks) {
  KvBlockManager blocks(2);
  const BlockId first = blocks.allocate(1), second = blocks.allocate(2);
  blocks.remember(first, hash_of(5));
  blocks.remember(second, hash_of(5));
  EXPECT_EQ(blocks.find(hash_of(5)), first);
  blocks.release(second, 1);
  EXPECT_EQ(blocks.state(second), BlockState::kFree);
  EXPECT_EQ(blocks.check_integrity(), std::nullopt);
}

TEST(KvBlockManager, ForgettingFreesCachedBlocks) {
  KvBlockManager blocks(3);
  const BlockId owned = blocks.allocate(1), cached = blocks.allocate(1);
  blocks.remember(owned, hash_of(1));
  blocks.remember(cached, hash_of(2));
  blocks.release(cached, 1);
  blocks.forget_all();
  EXPECT_EQ(blocks.find(hash_of(1)), std::nullopt);
  EXPECT_EQ(blocks.state(cached), BlockState::kFree);
  blocks.release(owned, 2);
  EXPECT_EQ(blocks.free(), 3u);
  EXPECT_EQ(blocks.check_integrity(), std::nullopt);
}

TEST(KvBlockManager, StaysConsistentUnderRandomUse) {
  KvBlockManager blocks(12);
  std::vector<BlockId> held;
  std::mt19937 random(11);
  for (std::uint64_t step = 0; step < 20'000; ++step) {
    const std::uint64_t key = random() % 20;
    switch (random() % 6) {
      case 0:
      case 1:
        if (blocks.available() > 0) held.push_back(blocks.allocate(step));
        break;
      case 2:
        if (!held.empty()) blocks.remember(held[random() % held.size()], hash_of(key));
        break;
      case 3:
        if (const auto block = blocks.find(hash_of(key))) {
          blocks.share(*block);
          held.push_back(*block);
        }
        break;
      case 4:
      case 5:
        if (!held.empty()) {
          std::swap(held[random() % held.size()], held.back());
          blocks.release(held.back(), step);
          held.pop_back();
        }
        break;
    }
    if (random() % 2000 == 0) blocks.forget_all();
    std::uint64_t references = 0;
    for (BlockId block = 0; block < blocks.total(); ++block) references += blocks.references(block);
    ASSERT_EQ(references, held.size());
    ASSERT_EQ(blocks.check_integrity(), std::nullopt);
  }
}

TEST(SwapPool, AllocatesEveryBlockOnce) {
  SwapPool pool(2);
  const BlockId first = pool.allocate(), second = pool.allocate();
  EXPECT_NE(first, second);
  EXPECT_EQ(pool.available(), 0u);
  EXPECT_EQ(pool.used(), 2u);
  pool.release(first);
  EXPECT_EQ(pool.allocate(), first);
}

}  // namespace
}  // namespace hearth
