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

TEST(RowDivisionCost, ASecondMeetingCostsAMessageAndAWait) {
  MeetingCost cost = cost_of(30e-6, 1e-9);
  cost.submit_seconds = 50e-6;
  const DividedSum few{.rows = 16, .width = 1024, .ranks = 2, .halves = true};
  EXPECT_NEAR(seconds_saved(cost, few), 4 * 16 * 1024 / 4 * 1e-9 - 330e-6, 1e-12);
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

// On the host, two ranks copy and add 3 times the sums, or 1.75 times if rows are divided and
// normed rows are f16. With what was measured on an H200 with two ranks of one process, dividing a
// prompt of 2,048 tokens pays, as it did there: 825 instead of 2,791 ms.
TEST(RowDivisionCost, TheHostCopiesAndAddsLess) {
  MeetingCost cost = cost_of(0, 0);
  cost.host_byte_seconds = 1e-9;
  const double bytes = 4.0 * 256 * 512;
  EXPECT_NEAR(seconds_saved(cost, {.rows = 256, .width = 512, .ranks = 2, .halves = true}),
              bytes * 1.25 * 1e-9, 1e-15);
  EXPECT_NEAR(seconds_saved(cost, {.rows = 256, .width = 512, .ranks = 2}), bytes * 0.5 * 1e-9,
              1e-15);
  const MeetingCost h200{.link = {{256 << 10, 6.9e-6}, {1 << 20, 14.8e-6}, {4 << 20, 78.4e-6}},
                         .submit_seconds = 60e-6,
                         .byte_seconds = 4e-11,
                         .host_byte_seconds = 2e-10};
  EXPECT_GT(seconds_saved(h200, {.rows = 2048, .width = 4096, .ranks = 2, .halves = true}), 5e-3);
  EXPECT_LT(seconds_saved(h200, {.rows = 64, .width = 4096, .ranks = 2, .halves = true}), 0);
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
