// How large the dashboard is drawn, on displays that we do not have.
#include "ui/data/display_scale.h"

#include <array>
#include <utility>

#include <gtest/gtest.h>

namespace hearth {
namespace {

using Size = std::pair<int, int>;

float scale_of(Size window, Size monitor, float dots_per_inch = 0) {
  return display_scale({.width = window.first,
                        .height = window.second,
                        .monitor_width = monitor.first,
                        .monitor_height = monitor.second,
                        .dots_per_inch = dots_per_inch});
}

constexpr Size kFullHd(1920, 1080), kQuadHd(2560, 1440), k4K(3840, 2160);

TEST(DisplayScale, WhatTheDesktopSaysCounts) {
  EXPECT_EQ(display_scale({.reported = 2, .width = 1600, .height = 1000}), 2);
  EXPECT_EQ(display_scale({.reported = 1.25f,
                           .width = 3840,
                           .height = 2160,
                           .monitor_width = 3840,
                           .monitor_height = 2160}),
            1.25f);
  EXPECT_EQ(display_scale({.reported = 1,
                           .trusted = true,
                           .width = 3840,
                           .height = 2160,
                           .monitor_width = 3840,
                           .monitor_height = 2160}),
            1);
}

TEST(DisplayScale, UsualMonitorsAreDrawnAtOne) {
  for (const Size& size : {Size(1280, 720), Size(1600, 1000), kFullHd, kQuadHd, Size(3440, 1440)})
    EXPECT_EQ(scale_of(size, size, 96), 1) << size.first << " x " << size.second;
  EXPECT_EQ(display_scale({}), 1);
}

TEST(DisplayScale, ALargeMonitorIsScaledAsAWhole) {
  EXPECT_EQ(scale_of(k4K, k4K), 2);
  EXPECT_EQ(scale_of({3200, 1800}, {3200, 1800}), 1.5f);
  EXPECT_EQ(scale_of({7680, 4320}, {7680, 4320}), 4);
  // A bar of the desktop takes some of the height.
  EXPECT_EQ(scale_of({3840, 2080}, k4K), 2);
  // Two monitors side by side are no taller than one.
  EXPECT_EQ(scale_of({3840, 1080}, kFullHd), 1);
}

TEST(DisplayScale, ANewWindowIsDrawnAtTheScaleItWasMadeFor) {
  EXPECT_EQ(scale_of({3200, 2000}, k4K), 2);
  EXPECT_EQ(scale_of({3200, 2000}, k4K, 163), 2);
  EXPECT_EQ(scale_of({2400, 1500}, {3200, 1800}), 1.5f);
}

TEST(DisplayScale, ASmallWindowKeepsRoomForAllPanels) {
  EXPECT_EQ(scale_of({2560, 1440}, k4K), 1.5f);
  EXPECT_EQ(scale_of({1920, 1080}, k4K), 1);
  EXPECT_EQ(scale_of({1280, 720}, k4K, 163), 1);
}

TEST(DisplayScale, ADenseMonitorIsScaledAsLongAsThereIsRoom) {
  EXPECT_EQ(scale_of(kQuadHd, kQuadHd, 210), 1.5f);
  // A small laptop: all panels would no longer fit at 1.5.
  EXPECT_EQ(scale_of(kFullHd, kFullHd, 157), 1);
  // A size that no monitor has.
  EXPECT_EQ(scale_of(kQuadHd, kQuadHd, 6000), 1);
}

TEST(DisplayScale, AWindowBelongsToTheMonitorThatShowsMostOfIt) {
  constexpr std::array<DesktopBox, 2> kMonitors = {{{0, 0, 1920, 1080}, {1920, 0, 3840, 2160}}};
  EXPECT_EQ(monitor_of({100, 100, 1600, 900}, kMonitors), 0);
  EXPECT_EQ(monitor_of({1000, 100, 1600, 900}, kMonitors), 0);
  EXPECT_EQ(monitor_of({1200, 100, 1600, 900}, kMonitors), 1);
  EXPECT_EQ(monitor_of({-900, 100, 800, 900}, kMonitors), -1);
  EXPECT_EQ(monitor_of({0, 0, 100, 100}, {}), -1);
}

}  // namespace
}  // namespace hearth
