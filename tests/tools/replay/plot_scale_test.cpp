// Axes: round ticks, and where values lie between them.
#include "tools/replay/plot_scale.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hearth::testing {
namespace {

using ::testing::ElementsAre;

TEST(PlotScale, LinearTicksAreRoundNumbers) {
  EXPECT_THAT(PlotScale::linear(0, 97, 6).ticks(), ElementsAre(0, 20, 40, 60, 80, 100));
  EXPECT_THAT(PlotScale::linear(0, 100, 6).ticks(), ElementsAre(0, 20, 40, 60, 80, 100));
  EXPECT_THAT(PlotScale::linear(0, 0.0009, 4).ticks(), ElementsAre(0, 0.0005, 0.001));
  EXPECT_THAT(PlotScale::linear(0, 0.3, 4).ticks(), ElementsAre(0, 0.1, 0.2, 0.3));
  EXPECT_THAT(PlotScale::linear(-3, 4, 6).ticks(), ElementsAre(-4, -2, 0, 2, 4));
  EXPECT_THAT(PlotScale::linear(912, 987, 6).ticks(), ElementsAre(900, 920, 940, 960, 980, 1000));
}

TEST(PlotScale, LinearTicksCoverAnyRange) {
  for (const double low : {0.0, 1e-9, 0.37, 5.0, 12345.0})
    for (const double span : {0.0, 1e-6, 0.2, 7.0, 3e5, 1e12})
      for (const size_t most : {3u, 5u, 11u}) {
        SCOPED_TRACE(::testing::Message() << low << " + " << span << ", " << most);
        const PlotScale scale = PlotScale::linear(low, low + span, most);
        EXPECT_GE(scale.ticks().size(), 2u);
        EXPECT_LE(scale.ticks().size(), most);
        EXPECT_LE(scale.low(), low * (1 + 1e-9));
        EXPECT_GE(scale.high(), (low + span) * (1 - 1e-9));
        for (size_t i = 1; i < scale.ticks().size(); ++i)
          EXPECT_LT(scale.ticks()[i - 1], scale.ticks()[i]);
      }
}

TEST(PlotScale, EqualEndsGoDownToZero) {
  EXPECT_THAT(PlotScale::linear(5, 5, 3).ticks(), ElementsAre(0, 5));
  EXPECT_THAT(PlotScale::linear(0, 0, 3).ticks(), ElementsAre(0, 0.5, 1));
  EXPECT_EQ(PlotScale::linear(-5, -5, 3).high(), 0);
}

TEST(PlotScale, LogarithmicTicksAreRoundNumbers) {
  EXPECT_THAT(PlotScale::logarithmic(0.012, 0.9, 7).ticks(),
              ElementsAre(0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1));
  EXPECT_THAT(PlotScale::logarithmic(0.012, 0.9, 6).ticks(), ElementsAre(0.01, 0.03, 0.1, 0.3, 1));
  EXPECT_THAT(PlotScale::logarithmic(0.5, 4e4, 7).ticks(),
              ElementsAre(0.1, 1, 10, 100, 1000, 1e4, 1e5));
  EXPECT_THAT(PlotScale::logarithmic(0.5, 4e4, 6).ticks(), ElementsAre(0.1, 10, 1000, 1e5));
  EXPECT_THAT(PlotScale::logarithmic(1, 1, 7).ticks(), ElementsAre(1, 2));
  EXPECT_THAT(PlotScale::logarithmic(2, 5, 7).ticks(), ElementsAre(2, 5));
}

TEST(PlotScale, LogarithmicTicksCoverAnyRange) {
  for (const double low : {1e-9, 0.037, 1.0, 9.99})
    for (const double factor : {1.0, 1.5, 40.0, 1e4, 1e15})
      for (const size_t most : {3u, 7u}) {
        SCOPED_TRACE(::testing::Message() << low << " * " << factor << ", " << most);
        const PlotScale scale = PlotScale::logarithmic(low, low * factor, most);
        EXPECT_GE(scale.ticks().size(), 2u);
        EXPECT_LE(scale.ticks().size(), most);
        EXPECT_LE(scale.low(), low * (1 + 1e-6));
        EXPECT_GE(scale.high(), low * factor * (1 - 1e-6));
      }
}

TEST(PlotScale, PlacesValuesBetweenTheTicks) {
  const PlotScale linear = PlotScale::linear(0, 10, 6);
  EXPECT_DOUBLE_EQ(linear.place(0), 0);
  EXPECT_DOUBLE_EQ(linear.place(2.5), 0.25);
  EXPECT_DOUBLE_EQ(linear.place(10), 1);
  EXPECT_DOUBLE_EQ(linear.place(-3), 0);
  EXPECT_DOUBLE_EQ(linear.place(30), 1);
  const PlotScale logarithmic = PlotScale::logarithmic(0.01, 100, 5);
  EXPECT_NEAR(logarithmic.place(1), 0.5, 1e-12);
  EXPECT_NEAR(logarithmic.place(10), 0.75, 1e-12);
  EXPECT_EQ(logarithmic.place(0), 0);
}

TEST(PlotNumber, IsShort) {
  EXPECT_EQ(plot_number(0), "0");
  EXPECT_EQ(plot_number(0.25), "0.25");
  EXPECT_EQ(plot_number(0.1 + 0.2), "0.3");
  EXPECT_EQ(plot_number(999), "999");
  EXPECT_EQ(plot_number(1000), "1,000");
  EXPECT_EQ(plot_number(-12000), "-12,000");
  EXPECT_EQ(plot_number(123456), "123,456");
  EXPECT_EQ(plot_number(1234.5), "1,234.5");
  EXPECT_EQ(plot_number(2e6), "2e+06");
}

TEST(TimeUnit, AvoidsZeros) {
  EXPECT_EQ(time_unit(0, 20).name, "s");
  EXPECT_EQ(time_unit(0, 1).name, "s");
  EXPECT_EQ(time_unit(0, 0.4).name, "ms");
  EXPECT_EQ(time_unit(0, 1e-4).name, "µs");
  EXPECT_EQ(time_unit(0.005, 5).name, "ms");
  EXPECT_EQ(time_unit(0.005, 500).name, "s");
  EXPECT_EQ(time_unit(0, 0.4).per_second, 1000);
}

}  // namespace
}  // namespace hearth::testing
