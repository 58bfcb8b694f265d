#include "engine/ranks/row_division_cost.h"

#include <gtest/gtest.h>

namespace hearth::testing {
namespace {

// A link with this latency, and this time for each byte.
MeetingCost cost_of(double latency, double byte_seconds) {
  return {.link = {{0, latency}, {1 << 20, latency + byte_seconds * (1 << 20)}}};
}

// Two ranks send half of the sums and half of the normed rows instead of all sums: 3/4 of the bytes
// if those are f16, and as many if they are f32.
TEST(RowDivisionCost, TwoRanksSendFewerBytesIfNormedRowsAreHalves) {
  const MeetingCost cost = cost_of(0, 1e-9);
  const double bytes = 4.0 * 512 * 1024;
  EXPECT_NEAR(seconds_saved(cost, {.rows = 512, .width = 1024, .ranks = 2, .halves = true}),
              bytes / 4 * 1e-9, 1e-12);
  EXPECT_NEAR(seconds_saved(cost, {.rows = 512, .width = 1024, .ranks = 2}), 0, 1e-12);
}

TEST(RowDivisionCost, ASecondMeetingCostsAMessageAndASubmission) {
  MeetingCost cost = cost_of(30e-6, 1e-9);
  cost.submit_seconds = 50e-6;
  const DividedSum few{.rows = 16, .width = 1024, .ranks = 2, .halves = true};
  EXPECT_NEAR(seconds_saved(cost, few), 4 * 16 * 1024 / 4 * 1e-9 - 80e-6, 1e-12);
  DividedSum many = few;
  many.rows = 512;
  EXPECT_GT(seconds_saved(cost, many), 0);
}

// Of two ranks, 9/8 of what crossed before leaves and enters a device if normed rows are f16, and
// 3/2 if they are f32.
TEST(RowDivisionCost, RowsLeaveAndEnterTheDeviceTwice) {
  MeetingCost cost = cost_of(0, 0);
  cost.byte_seconds = 1e-10;
  const double bytes = 4.0 * 256 * 512;
  EXPECT_NEAR(seconds_saved(cost, {.rows = 256, .width = 512, .ranks = 2, .halves = true}),
              -bytes * 0.25 * 1e-10, 1e-15);
  EXPECT_NEAR(seconds_saved(cost, {.rows = 256, .width = 512, .ranks = 2}), -bytes * 1e-10, 1e-15);
}

// Three ranks divide adding up 16 MiB anyway, so that only the form of normed rows is left to gain.
TEST(RowDivisionCost, ThreeRanksGainLessWhereTheyDivideAdding) {
  const MeetingCost cost = cost_of(0, 1e-9);
  const auto saved_per_byte = [&](uint32_t rows, bool halves) {
    return seconds_saved(cost, {.rows = rows, .width = 1024, .ranks = 3, .halves = halves}) /
           (4.0 * rows * 1024);
  };
  EXPECT_NEAR(saved_per_byte(2048, false), 2e-9 / 3, 1e-15);
  EXPECT_NEAR(saved_per_byte(4096, false), 0, 1e-15);
  EXPECT_NEAR(saved_per_byte(4096, true), 1e-9 / 3, 1e-15);
}

}  // namespace
}  // namespace hearth::testing
