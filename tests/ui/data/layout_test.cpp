#include "ui/data/layout.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

constexpr Box kWhole{10, 20, 1000, 600};
constexpr size_t at(Region region) { return static_cast<size_t>(region); }

double area(const Box& box) { return double{box.width} * double{box.height}; }

bool overlap(const Box& a, const Box& b) {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}

TEST(LayoutTest, EverySetOfRegionsFillsTheWindowWithoutOverlap) {
  for (uint32_t set = 1; set < (1u << kRegions); ++set) {
    std::array<bool, kRegions> used{};
    for (size_t i = 0; i < kRegions; ++i) used[i] = (set >> i & 1) != 0;
    Splits splits = default_splits();
    const Arrangement arrangement = arrange(kWhole, 0, splits, used);
    double sum = 0;
    for (size_t i = 0; i < kRegions; ++i) {
      EXPECT_EQ(arrangement.regions[i].empty(), !used[i]) << set;
      if (!used[i]) continue;
      sum += area(arrangement.regions[i]);
      for (size_t j = 0; j < i; ++j) {
        Box inner = arrangement.regions[i];
        inner = {inner.x + 0.01f, inner.y + 0.01f, inner.width - 0.02f, inner.height - 0.02f};
        EXPECT_FALSE(used[j] && overlap(inner, arrangement.regions[j])) << set;
      }
    }
    EXPECT_NEAR(sum, area(kWhole), 1.0) << set;
  }
}

TEST(LayoutTest, GapsAreOnlyBetweenNeighbours) {
  Splits splits = default_splits();
  std::array<bool, kRegions> used{};
  used[at(Region::kLeft)] = used[at(Region::kTop)] = true;
  const Arrangement arrangement = arrange(kWhole, 8, splits, used);
  const Box& left = arrangement.regions[at(Region::kLeft)];
  const Box& top = arrangement.regions[at(Region::kTop)];
  EXPECT_FLOAT_EQ(left.x, 10);
  EXPECT_FLOAT_EQ(left.x + left.width + 8, top.x);
  EXPECT_NEAR(top.x + top.width, 1010, 0.01);
  ASSERT_EQ(arrangement.splitters.size(), 1u);
  EXPECT_FLOAT_EQ(arrangement.splitters[0].box.x, left.x + left.width);
}

TEST(LayoutTest, ADraggedSplitterFollowsTheMouseUpToALimit) {
  Splits splits = default_splits();
  std::array<bool, kRegions> used{};
  used[at(Region::kLeft)] = used[at(Region::kTop)] = used[at(Region::kSideTop)] = true;
  const float before = arrange(kWhole, 0, splits, used).regions[at(Region::kLeft)].width;
  Arrangement arrangement = arrange(kWhole, 0, splits, used);
  drag(arrangement.splitters.at(0), 50);
  EXPECT_NEAR(arrange(kWhole, 0, splits, used).regions[at(Region::kLeft)].width, before + 50, 0.1);
  arrangement = arrange(kWhole, 0, splits, used);
  drag(arrangement.splitters.at(0), -5000);
  EXPECT_GT(arrange(kWhole, 0, splits, used).regions[at(Region::kLeft)].width, 50);
}

TEST(LayoutTest, TextIsSmallerInASmallWindow) {
  EXPECT_EQ(fitting_scale(1600, 1000), 1);
  EXPECT_EQ(fitting_scale(3840, 2160), 1);
  EXPECT_FLOAT_EQ(fitting_scale(1280, 720), 0.8f);
  EXPECT_FLOAT_EQ(fitting_scale(1440, 1000), 0.9f);
  EXPECT_FLOAT_EQ(fitting_scale(400, 300), 0.8f);
}

}  // namespace
}  // namespace hearth
