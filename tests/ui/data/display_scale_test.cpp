// How large the dashboard is drawn, on displays that we do not have.
#include "ui/data/display_scale.h"

#include <utility>

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(DisplayScale, WhatTheDesktopSaysCounts) {
  EXPECT_EQ(display_scale({.reported = 2, .width = 1600, .height = 1000}), 2);
  EXPECT_EQ(display_scale({.reported = 1.25f, .width = 3840, .height = 2160}), 1.25f);
  EXPECT_EQ(display_scale({.reported = 1, .trusted = true, .width = 3840, .height = 2160}), 1);
}

TEST(DisplayScale, UsualWindowsAreDrawnAtOne) {
  for (const auto& [width, height] :
       {std::pair(1280, 720), {1600, 1000}, {1920, 1080}, {2560, 1440}, {3440, 1440}, {0, 0}})
    EXPECT_EQ(display_scale({.width = width, .height = height, .dots_per_inch = 96}), 1)
        << width << " x " << height;
}

TEST(DisplayScale, ALargeWindowIsScaledAsAWhole) {
  EXPECT_EQ(display_scale({.width = 3840, .height = 2160}), 2);
  EXPECT_EQ(display_scale({.width = 3200, .height = 1800}), 1.5f);
  EXPECT_EQ(display_scale({.width = 7680, .height = 4320}), 4);
  // A window as wide as two monitors is no taller than one.
  EXPECT_EQ(display_scale({.width = 3840, .height = 1080}), 1);
}

TEST(DisplayScale, ADenseMonitorIsScaledAsLongAsThereIsRoom) {
  EXPECT_EQ(display_scale({.width = 2560, .height = 1440, .dots_per_inch = 210}), 1.5f);
  // A small laptop: all panels would no longer fit at 1.5.
  EXPECT_EQ(display_scale({.width = 1920, .height = 1080, .dots_per_inch = 157}), 1);
  // A size that no monitor has.
  EXPECT_EQ(display_scale({.width = 2560, .height = 1440, .dots_per_inch = 6000}), 1);
}

}  // namespace
}  // namespace hearth
