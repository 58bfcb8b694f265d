#include "runtime/hazards.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

// Only the identity of a Buffer matters to Hazards, so empty ones are enough.
class HazardsTest : public ::testing::Test {
 protected:
  bool add(std::initializer_list<Access> accesses) {
    return hazards_.add({accesses.begin(), accesses.size()});
  }
  BufferSlice a(uint64_t from = 0, uint64_t bytes = 100) { return {&a_, from, bytes}; }
  BufferSlice b(uint64_t from = 0, uint64_t bytes = 100) { return {&b_, from, bytes}; }

  Buffer a_, b_;
  Hazards hazards_;
};

TEST_F(HazardsTest, ReadsNeedNoBarrier) {
  EXPECT_FALSE(add({reads(a())}));
  EXPECT_FALSE(add({reads(a())}));
}

TEST_F(HazardsTest, ReadAfterWriteNeedsABarrier) {
  EXPECT_FALSE(add({writes(a())}));
  EXPECT_TRUE(add({reads(a())}));
}

TEST_F(HazardsTest, WriteAfterReadNeedsABarrier) {
  EXPECT_FALSE(add({reads(a())}));
  EXPECT_TRUE(add({writes(a())}));
}

TEST_F(HazardsTest, WriteAfterWriteNeedsABarrier) {
  EXPECT_FALSE(add({writes(a())}));
  EXPECT_TRUE(add({writes(a())}));
}

TEST_F(HazardsTest, ReadWriteCountsAsReadAndWrite) {
  EXPECT_FALSE(add({reads_writes(a())}));
  EXPECT_TRUE(add({reads(a())}));
  EXPECT_TRUE(add({reads_writes(a())}));
}

TEST_F(HazardsTest, OtherBuffersAndOtherRangesDoNotConflict) {
  EXPECT_FALSE(add({writes(a(0, 50))}));
  EXPECT_FALSE(add({writes(a(50, 50))}));
  EXPECT_FALSE(add({writes(b())}));
  EXPECT_TRUE(add({reads(a(49, 1))}));
}

TEST_F(HazardsTest, ABarrierCoversEverythingBeforeIt) {
  EXPECT_FALSE(add({writes(a())}));
  EXPECT_FALSE(add({writes(b())}));
  EXPECT_TRUE(add({reads(a())}));
  EXPECT_FALSE(add({reads(b())})) << "the barrier for a also covers b";
  EXPECT_TRUE(add({writes(a())})) << "accesses after the barrier count again";
}

TEST_F(HazardsTest, ACommandDoesNotConflictWithItself) {
  EXPECT_FALSE(add({reads(a()), writes(a())}));
}

TEST_F(HazardsTest, DisjointWritesConflictOnlyWithReads) {
  EXPECT_FALSE(add({writes(a())}));
  EXPECT_FALSE(add({writes_disjoint(a(10, 50))}));
  EXPECT_FALSE(add({writes_disjoint(a(20, 50))}));
  EXPECT_TRUE(add({reads(a(60, 1))}));
  EXPECT_TRUE(add({writes_disjoint(a())})) << "it was read";
  EXPECT_TRUE(add({writes(a(10, 1))}));
}

TEST_F(HazardsTest, ClearForgetsEarlierAccesses) {
  EXPECT_FALSE(add({writes(a())}));
  hazards_.clear();
  EXPECT_FALSE(add({reads(a())}));
}

}  // namespace
}  // namespace hearth
