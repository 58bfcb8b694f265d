#include "runtime/hazards.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

// Only the identity of a Buffer matters to Hazards, so empty ones do.
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

TEST_F(HazardsTest, ReadsRunSideBySide) {
  EXPECT_FALSE(add({reads(a())}));
  EXPECT_FALSE(add({reads(a())}));
}

TEST_F(HazardsTest, ReadAfterWrite) {
  EXPECT_FALSE(add({writes(a())}));
  EXPECT_TRUE(add({reads(a())}));
}

TEST_F(HazardsTest, WriteAfterRead) {
  EXPECT_FALSE(add({reads(a())}));
  EXPECT_TRUE(add({writes(a())}));
}

TEST_F(HazardsTest, WriteAfterWrite) {
  EXPECT_FALSE(add({writes(a())}));
  EXPECT_TRUE(add({writes(a())}));
}

TEST_F(HazardsTest, ReadWriteCountsAsBoth) {
  EXPECT_FALSE(add({reads_writes(a())}));
  EXPECT_TRUE(add({reads(a())}));
  EXPECT_TRUE(add({reads_writes(a())}));
}

TEST_F(HazardsTest, OtherBuffersAndOtherRangesDoNotMeet) {
  EXPECT_FALSE(add({writes(a(0, 50))}));
  EXPECT_FALSE(add({writes(a(50, 50))}));
  EXPECT_FALSE(add({writes(b())}));
  EXPECT_TRUE(add({reads(a(49, 1))}));
}

TEST_F(HazardsTest, ABarrierSettlesAllThatCameBefore) {
  EXPECT_FALSE(add({writes(a())}));
  EXPECT_FALSE(add({writes(b())}));
  EXPECT_TRUE(add({reads(a())}));
  EXPECT_FALSE(add({reads(b())})) << "the barrier for a covers b too";
  EXPECT_TRUE(add({writes(a())})) << "but what ran after it counts again";
}

TEST_F(HazardsTest, ACommandDoesNotMeetItself) { EXPECT_FALSE(add({reads(a()), writes(a())})); }

TEST_F(HazardsTest, AWriterAlongAnotherMeetsReadersOnly) {
  EXPECT_FALSE(add({writes(a())}));
  EXPECT_FALSE(add({writes_along(a(10, 50))}));
  EXPECT_FALSE(add({writes_along(a(20, 50))}));
  EXPECT_TRUE(add({reads(a(60, 1))}));
  EXPECT_TRUE(add({writes_along(a())})) << "it was read";
  EXPECT_TRUE(add({writes(a(10, 1))}));
}

TEST_F(HazardsTest, ClearForgets) {
  EXPECT_FALSE(add({writes(a())}));
  hazards_.clear();
  EXPECT_FALSE(add({reads(a())}));
}

}  // namespace
}  // namespace hearth
