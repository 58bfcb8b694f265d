#include "ui/data/speed_meter.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(SpeedMeter, MeasuresTheLastSecondAndKeepsTheLastSpeed) {
  SpeedMeter meter;
  EXPECT_EQ(meter.tokens_per_s(), 0);
  double now = 0;
  uint64_t tokens = 0;
  for (; now < 3; now += 0.1) meter.update(tokens += 5, now);
  EXPECT_NEAR(meter.tokens_per_s(), 50, 1);
  for (; now < 5; now += 0.1) meter.update(tokens += 10, now);
  EXPECT_NEAR(meter.tokens_per_s(), 100, 1);
  for (; now < 30; now += 0.1) meter.update(tokens, now);
  EXPECT_NEAR(meter.tokens_per_s(), 100, 1);
}

// The pause between two answers must not count as slowness.
TEST(SpeedMeter, APauseIsNotPartOfTheSpeed) {
  SpeedMeter meter;
  double now = 0;
  uint64_t tokens = 0;
  for (; now < 2; now += 0.1) meter.update(tokens += 5, now);
  for (; now < 60; now += 0.1) meter.update(tokens, now);
  for (; now < 60.6; now += 0.1) meter.update(tokens += 5, now);
  EXPECT_NEAR(meter.tokens_per_s(), 50, 10);
}

TEST(SpeedMeter, AnotherEngineBeginsAtZero) {
  SpeedMeter meter;
  for (int i = 0; i < 20; ++i) meter.update(static_cast<uint64_t>(i) * 5, i * 0.1);
  EXPECT_GT(meter.tokens_per_s(), 10);
  meter.update(0, 0);
  EXPECT_EQ(meter.tokens_per_s(), 0);
}

}  // namespace
}  // namespace hearth
