#include "runtime/chain.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

constexpr uint64_t kMemory = 3 * kChainAlignment;
uint64_t link(uint64_t i) { return kMemory + (i + 1) * kChainStride; }

TEST(Chain, DispatchesDoNotArriveBeforeTheFirstBarrier) {
  Chain chain(kMemory);
  EXPECT_EQ(chain.add(4).counter, kMemory);
  EXPECT_FALSE(chain.can_start_link());
  chain.restart();
  EXPECT_EQ(chain.add(4).counter, link(0));
  EXPECT_TRUE(chain.can_start_link());
}

TEST(Chain, ALinkWaitsForAllWorkgroupsOfThePreviousOne) {
  Chain chain(kMemory);
  chain.restart();
  EXPECT_EQ(chain.add(4).wait, 0u);
  EXPECT_EQ(chain.add(3).counter, link(0));  // in the same link
  EXPECT_FALSE(chain.is_waiting());
  chain.start_link();
  EXPECT_TRUE(chain.is_waiting());
  const ChainPush push = chain.add(9);
  EXPECT_EQ(push.counter, link(1));
  EXPECT_EQ(push.wait, 7u);
  EXPECT_EQ(push.groups, 0u);
  chain.start_link();
  EXPECT_EQ(chain.add(1).wait, 9u);
}

TEST(Chain, OnlyTheLastWorkgroupOfALargeDispatchArrives) {
  Chain chain(kMemory);
  chain.restart();
  chain.add(5);
  constexpr uint32_t kMany = Chain::kDefaultLargeDispatch + 1;
  for (uint64_t i = 1; i < kChainStride / kCountStride; ++i) {
    const ChainPush push = chain.add(kMany);
    EXPECT_EQ(push.counter, link(0) + i * kCountStride);
    EXPECT_EQ(push.groups, kMany);
  }
  // No counter is left for one more, so its workgroups arrive one by one.
  const ChainPush last = chain.add(kMany);
  EXPECT_EQ(last.counter, link(0));
  EXPECT_EQ(last.groups, 0u);
  chain.start_link();
  EXPECT_EQ(chain.add(1).wait, 5u + (kChainStride / kCountStride - 1) + kMany);
}

TEST(Chain, TheCallerSaysWhatALargeDispatchIs) {
  Chain chain(kMemory, true, 8);
  chain.restart();
  EXPECT_EQ(chain.add(8).groups, 0u);
  EXPECT_EQ(chain.add(9).groups, 9u);
  chain.start_link();
  EXPECT_EQ(chain.add(1).wait, 8u + 1);
}

TEST(Chain, NoLinkWaitsForACommandThatDoesNotArrive) {
  Chain chain(kMemory);
  chain.restart();
  chain.add(4);
  chain.add_unchained();
  EXPECT_FALSE(chain.can_start_link());
  chain.restart();
  const ChainPush push = chain.add(2);
  EXPECT_EQ(push.counter, link(1)) << "the first link is used up";
  EXPECT_EQ(push.wait, 0u);
}

TEST(Chain, StopsAtTheEndOfItsMemory) {
  Chain chain(kMemory);
  chain.restart();
  uint64_t links = 0;
  for (; chain.add(1).counter != kMemory && chain.can_start_link(); ++links) chain.start_link();
  EXPECT_EQ(link(links) + kChainStride, kMemory + kChainBytes);
  chain.restart();
  EXPECT_EQ(chain.add(1).counter, kMemory);
  EXPECT_FALSE(chain.can_start_link());
}

TEST(Chain, WithoutLinksKernelsOnlySeeWhetherAWaitHasFailed) {
  Chain chain(kMemory, false);
  EXPECT_FALSE(chain.enabled());
  chain.restart();
  EXPECT_EQ(chain.add(4).counter, kMemory);
  EXPECT_EQ(chain.add(4).wait, 0u);
  EXPECT_FALSE(chain.can_start_link());
}

TEST(Chain, NothingWaitsAfterItsEnd) {
  Chain chain(kMemory);
  chain.restart();
  chain.add(4);
  chain.add_unchained();
  chain.end();
  EXPECT_FALSE(chain.enabled());
  chain.restart();
  EXPECT_EQ(chain.add(4).counter, kMemory);
  EXPECT_FALSE(chain.can_start_link());
}

TEST(Chain, IsDisabledWithoutMemory) {
  Chain chain;
  EXPECT_FALSE(chain.enabled());
  chain.restart();
  EXPECT_EQ(chain.add(1).counter, 0u);
  EXPECT_FALSE(chain.can_start_link());
}

}  // namespace
}  // namespace hearth
