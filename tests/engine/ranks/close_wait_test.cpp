#include "engine/ranks/close_wait.h"

#include <gtest/gtest.h>

namespace hearth::testing {
namespace {

TEST(CloseWait, SleepsMostOfAWaitAndLooksAtItsEnd) {
  CloseWait habit;
  EXPECT_EQ(habit.asleep().count(), 0) << "nothing is known yet";
  EXPECT_EQ(habit.looking().count(), 0);
  for (int i = 0; i < 50; ++i) habit.took(CloseWait::Seconds(3e-3));
  EXPECT_GT(habit.asleep().count(), 2e-3);
  EXPECT_LT(habit.asleep().count(), 3e-3);
  EXPECT_GT((habit.asleep() + habit.looking()).count(), 3e-3);
  EXPECT_LE(habit.looking().count(), 1e-3);
}

TEST(CloseWait, DoesNotLookDuringLongWaits) {
  CloseWait habit;
  for (int i = 0; i < 50; ++i) habit.took(CloseWait::Seconds(2));
  EXPECT_EQ(habit.looking().count(), 0);
  EXPECT_EQ(habit.asleep().count(), 0);
}

}  // namespace
}  // namespace hearth::testing
