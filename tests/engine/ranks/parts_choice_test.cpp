// Which way of running a decode step is chosen, by the times that each took.
#include "engine/ranks/parts_choice.h"

#include <gtest/gtest.h>

namespace hearth::testing {
namespace {

// Runs steps that take as long as given, and returns how many of them were divided.
uint32_t divided_of(PartsChoice& choice, uint32_t steps, uint32_t rows, double whole,
                    double divided) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < steps; ++i) {
    const bool divides = choice.divides(rows);
    count += divides ? 1 : 0;
    choice.took(rows, divides, divides ? divided : whole);
  }
  return count;
}

TEST(PartsChoice, TakesTheFasterWayAfterATrialOfBoth) {
  PartsChoice slow, fast;
  divided_of(slow, 2 * PartsChoice::kTrialSteps, 64, 6e-3, 8e-3);
  EXPECT_EQ(divided_of(slow, 500, 64, 6e-3, 8e-3), 0u);
  divided_of(fast, 2 * PartsChoice::kTrialSteps, 64, 6e-3, 4e-3);
  EXPECT_EQ(divided_of(fast, 500, 64, 6e-3, 4e-3), 500u);
}

TEST(PartsChoice, TriesTheOtherWayAgainAndRarely) {
  PartsChoice choice;
  divided_of(choice, 2 * PartsChoice::kTrialSteps, 64, 6e-3, 8e-3);
  const uint32_t tried = divided_of(
      choice, 10 * (PartsChoice::kTrialInterval + PartsChoice::kTrialSteps), 64, 6e-3, 8e-3);
  EXPECT_EQ(tried, 10 * PartsChoice::kTrialSteps);
  // What became faster is chosen after the next trial.
  divided_of(choice, PartsChoice::kTrialInterval + PartsChoice::kTrialSteps, 64, 6e-3, 3e-3);
  EXPECT_EQ(divided_of(choice, 500, 64, 6e-3, 3e-3), 500u);
}

TEST(PartsChoice, SizesAreChosenApart) {
  PartsChoice choice;
  divided_of(choice, 2 * PartsChoice::kTrialSteps, 8, 4e-3, 5e-3);
  divided_of(choice, 2 * PartsChoice::kTrialSteps, 500, 20e-3, 11e-3);
  EXPECT_EQ(divided_of(choice, 100, 8, 4e-3, 5e-3), 0u);
  EXPECT_EQ(divided_of(choice, 100, 500, 20e-3, 11e-3), 100u);
}

TEST(PartsChoice, StepsThatOverlapATrialOfTheOtherWayDoNotCount) {
  PartsChoice choice;
  for (uint32_t i = 0; i < 2 * PartsChoice::kTrialSteps; ++i) {
    const bool divides = choice.divides(64);
    const bool first = i % PartsChoice::kTrialSteps < PartsChoice::kUncounted;
    choice.took(64, divides, first ? 1.0 : divides ? 5e-3 : 6e-3);
  }
  EXPECT_EQ(divided_of(choice, 100, 64, 6e-3, 5e-3), 100u);
}

}  // namespace
}  // namespace hearth::testing
