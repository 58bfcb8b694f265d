#include "engine/scheduling/queue_rate.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(QueueRate, KnowsNothingAtFirst) {
  QueueRate rate;
  EXPECT_EQ(rate.wait_seconds(1000), 0);
  rate.left(1, 5);
  rate.left(2, 4);
  EXPECT_EQ(rate.wait_seconds(1000), 0);
}

TEST(QueueRate, WaitsAreTheQueueTimesTheInterval) {
  QueueRate rate;
  for (int i = 0; i < 20; ++i) rate.left(0.5 * i, 10);
  EXPECT_NEAR(rate.wait_seconds(6), 3.0, 1e-9);
  EXPECT_EQ(rate.wait_seconds(0), 0);
}

TEST(QueueRate, RequestsThatLeaveTogetherCountEach) {
  QueueRate rate;
  for (int i = 0; i < 40; ++i)
    for (int k = 0; k < 4; ++k) rate.left(2.0 * i, 10);
  EXPECT_NEAR(rate.wait_seconds(10), 5.0, 0.5);
}

TEST(QueueRate, IdleTimesDoNotCount) {
  QueueRate rate;
  for (int i = 0; i < 10; ++i) rate.left(0.1 * i, 1);
  const double before = rate.wait_seconds(10);
  rate.left(1.0, 0);
  // An hour later somebody comes, and does not wait.
  rate.left(3600, 0);
  rate.left(7200, 3);
  rate.left(7200.1, 2);
  EXPECT_NEAR(rate.wait_seconds(10), before, 1e-6);
}

TEST(QueueRate, FollowsAChange) {
  QueueRate rate;
  double now = 0;
  for (int i = 0; i < 200; ++i) rate.left(now += 0.1, 9);
  for (int i = 0; i < 200; ++i) rate.left(now += 1, 9);
  EXPECT_NEAR(rate.wait_seconds(1), 1, 0.01);
}

}  // namespace
}  // namespace hearth
