#include "ui/data/timeline_window.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

// 80 pixels at 8 pixels per column: ten of a hundred columns are visible.
TimelineWindow ten_of_a_hundred() {
  TimelineWindow window;
  window.set_width(80);
  window.update(0, 100);
  return window;
}

TEST(TimelineWindow, FollowsTheNewest) {
  TimelineWindow window = ten_of_a_hundred();
  EXPECT_EQ(window.first_visible(), 90u);
  EXPECT_EQ(window.end_visible(), 100u);
  window.update(0, 103);
  EXPECT_EQ(window.end_visible(), 103u);
}

TEST(TimelineWindow, StartsAtTheLeftWhileColumnsAreFew) {
  TimelineWindow window;
  window.set_width(80);
  window.update(0, 4);
  EXPECT_EQ(window.first_visible(), 0u);
  EXPECT_EQ(window.end_visible(), 4u);
  EXPECT_FLOAT_EQ(window.x_of(2, 50), 66);
  EXPECT_EQ(window.column_at(window.column_of(66, 50)), 2u);
  EXPECT_EQ(window.column_at(window.column_of(100, 50)), 4u) << "no column there";
}

TEST(TimelineWindow, StaysPutUntilItsColumnsAreDropped) {
  TimelineWindow window = ten_of_a_hundred();
  window.follow(false);
  window.update(0, 150);
  EXPECT_EQ(window.first_visible(), 90u);
  window.update(95, 200);
  EXPECT_EQ(window.first_visible(), 95u);
  window.follow(true);
  EXPECT_EQ(window.end_visible(), 200u);
}

TEST(TimelineWindow, MovingBackStopsFollowingAndMovingToTheNewestResumesIt) {
  TimelineWindow window = ten_of_a_hundred();
  window.move(-30.5);
  EXPECT_FALSE(window.following());
  EXPECT_DOUBLE_EQ(window.from(), 59.5);
  EXPECT_EQ(window.first_visible(), 59u);
  EXPECT_EQ(window.end_visible(), 70u);
  window.move(-1000);
  EXPECT_EQ(window.first_visible(), 0u);
  window.move(1000);
  EXPECT_TRUE(window.following());
  EXPECT_EQ(window.end_visible(), 100u);
}

TEST(TimelineWindow, ZoomKeepsTheColumnUnderTheMouse) {
  TimelineWindow window = ten_of_a_hundred();
  window.move(-40);
  window.zoom(2, 0.5);
  EXPECT_DOUBLE_EQ(window.pixels_per_column(), 16);
  EXPECT_DOUBLE_EQ(window.from(), 52.5);  // 55 stays in the middle
  window.zoom(1e9, 0.5);
  EXPECT_DOUBLE_EQ(window.pixels_per_column(), TimelineWindow::kMaxPixels);
  window.zoom(1e-9, 0.5);
  EXPECT_DOUBLE_EQ(window.pixels_per_column(), TimelineWindow::kMinPixels);
  EXPECT_EQ(window.first_visible(), 0u);

  TimelineWindow following = ten_of_a_hundred();
  following.zoom(2, 0);
  EXPECT_EQ(following.end_visible(), 100u);
}

TEST(TimelineWindow, ANewEngineIsFollowed) {
  TimelineWindow window = ten_of_a_hundred();
  window.move(-50);
  window.update(0, 2);
  EXPECT_TRUE(window.following());
  EXPECT_EQ(window.end_visible(), 2u);
}

}  // namespace
}  // namespace hearth
