#include "tools/server/memory_budget.h"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(MemoryBudget, LeasesShareItAndGiveItBack) {
  MemoryBudget budget(100);
  {
    MemoryLease first(budget), second(budget);
    EXPECT_TRUE(first.grow_to(60));
    EXPECT_FALSE(second.grow_to(41));
    EXPECT_TRUE(second.grow_to(40));
    EXPECT_EQ(budget.used(), 100u);
    EXPECT_FALSE(first.grow_to(61));
    EXPECT_TRUE(first.grow_to(60)) << "it has as much already";
    first.release();
    EXPECT_TRUE(second.grow_to(100));
    EXPECT_FALSE(second.grow_to(~uint64_t{0}));
    MemoryLease moved = std::move(second);
    second = MemoryLease();
    EXPECT_EQ(budget.used(), 100u);
    moved = MemoryLease(budget);
    EXPECT_EQ(budget.used(), 0u);
    EXPECT_TRUE(moved.grow_to(10));
  }
  EXPECT_EQ(budget.used(), 0u);
}

TEST(MemoryBudget, IsNeverExceededByManyThreads) {
  MemoryBudget budget(1000);
  std::atomic<uint64_t> most = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 2000; ++round) {
        MemoryLease lease(budget);
        for (uint64_t bytes = 50; bytes <= 400 && lease.grow_to(bytes); bytes += 50) {
          uint64_t seen = most;
          const uint64_t used = budget.used();
          while (used > seen && !most.compare_exchange_weak(seen, used)) {
          }
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(most, 1000u);
  EXPECT_GT(most, 0u);
  EXPECT_EQ(budget.used(), 0u);
}

}  // namespace
}  // namespace hearth
