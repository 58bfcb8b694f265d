#include "ui/data/frame_pacer.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(FramePacer, CheapFramesAreDrawnAtTheFullRate) {
  FramePacer pacer({.busy_per_s = 20, .idle_per_s = 5, .most_share = 0.06, .cores = 2});
  EXPECT_EQ(pacer.frames_per_s(false), 20);
  EXPECT_EQ(pacer.frames_per_s(true), 5);
  for (int i = 0; i < 50; ++i) pacer.drawn(0.001);
  EXPECT_EQ(pacer.frames_per_s(false), 20);
}

TEST(FramePacer, CostlyFramesTakeNoMoreThanTheirShare) {
  FramePacer pacer({.busy_per_s = 20, .most_share = 0.06, .cores = 2});
  for (int i = 0; i < 50; ++i) pacer.drawn(0.010);
  // 12 frames of 10 ms are 120 ms of the 2 s that two cores have.
  EXPECT_NEAR(pacer.frames_per_s(false), 12, 1e-6);
  for (int i = 0; i < 200; ++i) pacer.drawn(10);
  EXPECT_EQ(pacer.frames_per_s(false), 4);
}

TEST(FramePacer, WithoutAShareTheCostDoesNotMatter) {
  FramePacer pacer({.busy_per_s = 60, .idle_per_s = 10});
  pacer.drawn(1);
  EXPECT_EQ(pacer.frames_per_s(false), 60);
}

// A script wants every frame, and a low limit also holds while nothing happens.
TEST(FramePacer, IdleIsNeverFasterThanBusy) {
  FramePacer pacer({.busy_per_s = 2, .idle_per_s = 10});
  EXPECT_EQ(pacer.frames_per_s(true), 2);
}

}  // namespace
}  // namespace hearth
