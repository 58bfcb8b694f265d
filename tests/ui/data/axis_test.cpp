#include "ui/data/axis.h"

#include <cmath>

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(Axis, NumbersHaveThreeDigitsAndASuitablePrefix) {
  EXPECT_EQ(format_value(0.00125, Unit::kSeconds), "1.25 ms");
  EXPECT_EQ(format_value(12.34, Unit::kSeconds), "12.3 s");
  EXPECT_EQ(format_value(4.2e-5, Unit::kSeconds), "42.0 us");
  EXPECT_EQ(format_value(0, Unit::kSeconds), "0 s");
  EXPECT_EQ(format_value(0.9999e-3, Unit::kSeconds), "1.00 ms");
  EXPECT_EQ(format_value(0.256, Unit::kShare), "25.6 %");
  EXPECT_EQ(format_value(4096, Unit::kPlain), "4096");
  EXPECT_EQ(format_value(65536, Unit::kTokens), "65.5 k tokens");
  EXPECT_EQ(format_value(12345, Unit::kTokensPerSecond), "12.3 k tokens/s");
  EXPECT_EQ(format_value(3.4 * (1ull << 30), Unit::kBytes), "3.40 GiB");
  EXPECT_EQ(format_value(512, Unit::kBytes), "512 B");
  EXPECT_EQ(format_value(2.5e12, Unit::kFlopsPerSecond), "2.50 TFLOP/s");
}

std::vector<std::string> labels(const std::vector<AxisTick>& ticks) {
  std::vector<std::string> labels;
  for (const AxisTick& tick : ticks)
    if (!tick.label.empty()) labels.push_back(tick.label);
  return labels;
}

TEST(Axis, LinearTicksAreRoundInTheirUnit) {
  EXPECT_EQ(labels(axis_ticks(0, 0.02, false, Unit::kSeconds, 4)),
            (std::vector<std::string>{"0", "5", "10", "15", "20 ms"}));
  // Not 1000 MiB: bytes are counted in powers of 1024.
  EXPECT_EQ(labels(axis_ticks(0, 4.0 * (1ull << 30), false, Unit::kBytes, 4)),
            (std::vector<std::string>{"0", "1", "2", "3", "4 GiB"}));
  EXPECT_EQ(labels(axis_ticks(0, 2, false, Unit::kTokens, 8)),
            (std::vector<std::string>{"0", "1", "2 tokens"}));
  EXPECT_EQ(labels(axis_ticks(0, 4000, false, Unit::kPlain, 2)),
            (std::vector<std::string>{"0", "2 k", "4 k"}));
  EXPECT_EQ(labels(axis_ticks(0, 1, false, Unit::kShare, 2)),
            (std::vector<std::string>{"0", "50", "100 %"}));
}

TEST(Axis, LogarithmicTicksAreAtPowersOfTenWithMinorTicksBetween) {
  const std::vector<AxisTick> ticks = axis_ticks(1e-4, 0.1, true, Unit::kSeconds, 6);
  EXPECT_EQ(labels(ticks), (std::vector<std::string>{"100 us", "1 ms", "10 ms", "100 ms"}));
  EXPECT_EQ(ticks.size(), 28u);  // 3 decades of 9, and the end
  EXPECT_EQ(labels(axis_ticks(1e-3, 0.02, true, Unit::kSeconds, 6)),
            (std::vector<std::string>{"1 ms", "2 ms", "5 ms", "10 ms", "20 ms"}));
  // However little room there is, a number says how large things are.
  EXPECT_EQ(labels(axis_ticks(4e-3, 0.3, true, Unit::kSeconds, 1)),
            (std::vector<std::string>{"100 ms"}));
  EXPECT_EQ(labels(axis_ticks(2e-4, 1.2e-2, true, Unit::kSeconds, 1)),
            (std::vector<std::string>{"1 ms"}));
  EXPECT_EQ(labels(axis_ticks(5e-4, 8e-2, true, Unit::kSeconds, 1)),
            (std::vector<std::string>{"10 ms"}));
  EXPECT_EQ(labels(axis_ticks(1e-4, 0.02, true, Unit::kSeconds, 1)),
            (std::vector<std::string>{"1 ms"}));
  EXPECT_EQ(labels(axis_ticks(3e-3, 9e-3, true, Unit::kSeconds, 1)),
            (std::vector<std::string>{"5 ms"}));
}

// Labels need at least 0.8 of the room that an axis with as many of them would give each.
TEST(Axis, LabelsOfShortLogarithmicAxesDoNotCollide) {
  for (const int most : {1, 2, 3, 4, 6, 8})
    for (const double min : {1e-3, 1.9e-3, 2.1e-3, 4e-3, 9e-3})
      for (const double ratio : {1.5, 2.5, 4.5, 10.0, 25.0, 90.0, 2000.0, 1e6}) {
        double before = 0;
        size_t count = 0;
        for (const AxisTick& tick : axis_ticks(min, min * ratio, true, Unit::kSeconds, most)) {
          if (tick.label.empty()) continue;
          ++count;
          const double share = std::log(tick.value / min) / std::log(ratio);
          if (count > 1) {
            EXPECT_GE(share - before, 0.8 / most - 1e-6)
                << min << " to " << min * ratio << ", " << most << " labels: " << tick.label;
          }
          before = share;
        }
        EXPECT_GE(count, 1u) << min << " to " << min * ratio << ", " << most << " labels";
      }
  // Neither 2 nor 5 is on this axis.
  EXPECT_EQ(labels(axis_ticks(2.1e-3, 4.9e-3, true, Unit::kSeconds, 1)),
            (std::vector<std::string>{"3 ms"}));
  // There was room for one label and there were two.
  EXPECT_EQ(labels(axis_ticks(1.9e-3, 9e-3, true, Unit::kSeconds, 1)),
            (std::vector<std::string>{"2 ms"}));
}

// A single label, at 0, would say nothing about the scale.
TEST(Axis, AShortLinearAxisHasTwoLabels) {
  EXPECT_EQ(labels(axis_ticks(0, 0.0497, false, Unit::kSeconds, 2)),
            (std::vector<std::string>{"0", "20", "40 ms"}));
  EXPECT_EQ(labels(axis_ticks(0, 1800, false, Unit::kPlain, 1)),
            (std::vector<std::string>{"0", "1 k"}));
  for (const int most : {1, 2, 3})
    for (double end = 1; end < 100; end *= 1.07)
      EXPECT_GE(labels(axis_ticks(0, end, false, Unit::kSeconds, most)).size(), 2u)
          << end << ", " << most << " labels";
}

TEST(Axis, AnEmptyAxisHasNoTicks) {
  EXPECT_TRUE(axis_ticks(1, 1, false, Unit::kPlain, 5).empty());
  EXPECT_TRUE(axis_ticks(0, 1, true, Unit::kPlain, 5).empty());
}

TEST(Axis, EndsAtARoundNumber) {
  EXPECT_DOUBLE_EQ(axis_end(37, 1), 40);
  EXPECT_DOUBLE_EQ(axis_end(81, 1), 100);
  EXPECT_DOUBLE_EQ(axis_end(0, 4), 4);
  EXPECT_DOUBLE_EQ(axis_end(0.02, 0), 0.02);
  EXPECT_DOUBLE_EQ(axis_end(0, 0), 1);
}

}  // namespace
}  // namespace hearth
