#include "runtime/chain.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

constexpr uint64_t kPlaces = 0x10000;
uint64_t link(uint64_t i) { return kPlaces + (i + 1) * kChainStride; }

TEST(Chain, BeforeTheFirstBarrierNobodyArrives) {
  Chain chain(kPlaces);
  EXPECT_EQ(chain.add(4).place, 0u);
  EXPECT_FALSE(chain.can_follow());
  chain.restart();
  EXPECT_EQ(chain.add(4).place, link(0));
  EXPECT_TRUE(chain.can_follow());
}

TEST(Chain, ALinkWaitsForAllOfTheOneBefore) {
  Chain chain(kPlaces);
  chain.restart();
  EXPECT_EQ(chain.add(4).wait, 0u);
  EXPECT_EQ(chain.add(3).place, link(0));  // beside the first
  EXPECT_FALSE(chain.behind());
  chain.follow();
  EXPECT_TRUE(chain.behind());
  const ChainPush push = chain.add(9);
  EXPECT_EQ(push.place, link(1));
  EXPECT_EQ(push.wait, 7u);
  EXPECT_EQ(push.groups, 0u);
  chain.follow();
  EXPECT_EQ(chain.add(1).wait, 9u);
}

TEST(Chain, OfALargeDispatchOnlyTheLastGroupArrives) {
  Chain chain(kPlaces);
  chain.restart();
  chain.add(5);
  constexpr uint32_t kMany = Chain::kManyGroups + 1;
  for (uint64_t i = 1; i < kChainStride / kCountStride; ++i) {
    const ChainPush push = chain.add(kMany);
    EXPECT_EQ(push.place, link(0) + i * kCountStride);
    EXPECT_EQ(push.groups, kMany);
  }
  // No count is left for one more: its groups arrive one by one.
  const ChainPush last = chain.add(kMany);
  EXPECT_EQ(last.place, link(0));
  EXPECT_EQ(last.groups, 0u);
  chain.follow();
  EXPECT_EQ(chain.add(1).wait, 5u + (kChainStride / kCountStride - 1) + kMany);
}

TEST(Chain, NobodyWaitsForACommandThatDoesNotArrive) {
  Chain chain(kPlaces);
  chain.restart();
  chain.add(4);
  chain.add_foreign();
  EXPECT_FALSE(chain.can_follow());
  chain.restart();
  const ChainPush push = chain.add(2);
  EXPECT_EQ(push.place, link(1)) << "the first link's place is used up";
  EXPECT_EQ(push.wait, 0u);
}

TEST(Chain, EndsWhereItsMemoryEnds) {
  Chain chain(kPlaces);
  chain.restart();
  uint64_t links = 0;
  for (; chain.add(1).place != 0 && chain.can_follow(); ++links) chain.follow();
  EXPECT_EQ(link(links) + kChainStride, kPlaces + kChainBytes);
  chain.restart();
  EXPECT_EQ(chain.add(1).place, 0u);
  EXPECT_FALSE(chain.can_follow());
}

TEST(Chain, OffWithoutMemory) {
  Chain chain;
  EXPECT_FALSE(chain.on());
  chain.restart();
  EXPECT_EQ(chain.add(1).place, 0u);
  EXPECT_FALSE(chain.can_follow());
}

}  // namespace
}  // namespace hearth
