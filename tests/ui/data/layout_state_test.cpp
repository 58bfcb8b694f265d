#include "ui/data/layout_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hearth {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;

TEST(LayoutState, IsTheSameAfterSavingAndReading) {
  LayoutState state{.hidden = {"roofline"}, .front = {"chat"}, .zoom = 1.25f};
  state.regions["kv"] = Region::kLeft;
  state.splits[1] = 0.4f;
  EXPECT_EQ(read_layout(json::parse(layout_json(state).dump())), state);
}

TEST(LayoutState, WhatIsMissingOrWrongHasItsDefault) {
  EXPECT_EQ(read_layout(json()), LayoutState());
  EXPECT_EQ(read_layout(json::parse("[1, 2]")), LayoutState());
  const LayoutState state = read_layout(json::parse(
      R"({"hidden": ["chat", 3], "front": 7, "zoom": 99, "weights": {"left": -1, "top": "x"},
          "regions": {"kv": "nowhere", "chat": "side_top", "models": 1}})"));
  EXPECT_THAT(state.hidden, ElementsAre("chat"));
  EXPECT_TRUE(state.front.empty());
  EXPECT_EQ(state.zoom, kMaxZoom);
  EXPECT_EQ(state.splits, default_splits());
  ASSERT_EQ(state.regions.size(), 1u);
  EXPECT_EQ(state.regions.at("chat"), Region::kSideTop);
}

TEST(LayoutState, APresetShowsItsPanelsWhereTheyBelong) {
  constexpr std::string_view kPanels[] = {"chat",    "timeline",  "kv",
                                          "latency", "occupancy", "control"};
  LayoutState state{.hidden = {"latency"}};
  state.regions["timeline"] = Region::kSideTop;
  const auto presets = layout_presets();
  const LayoutState all = apply_preset(presets[0], state, kPanels);
  EXPECT_TRUE(all.hidden.empty());
  EXPECT_TRUE(all.regions.empty());
  EXPECT_EQ(all.zoom, state.zoom);
  ASSERT_EQ(presets[1].name, "Classroom");
  const LayoutState classroom = apply_preset(presets[1], state, kPanels);
  EXPECT_THAT(classroom.hidden, ElementsAre("chat", "kv"));
  EXPECT_GT(classroom.zoom, 1.2f);
}

TEST(LayoutState, EveryRegionHasAKey) {
  for (size_t i = 0; i < kRegions; ++i) {
    const auto region = static_cast<Region>(i);
    EXPECT_EQ(part_of(region).region, region);
    EXPECT_EQ(region_with_key(part_of(region).key), region);
  }
  EXPECT_EQ(region_with_key("centre"), std::nullopt);
  EXPECT_EQ(region_with_key("nowhere"), std::nullopt);
}

}  // namespace
}  // namespace hearth
