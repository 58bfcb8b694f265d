// The geometry of the roofline plot for known measurements.
#include "ui/data/roofline_plot.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

RooflineData measured() {
  RooflineData data{.read_bytes_per_s = 1e11, .flops_per_s = 2e12, .matrix_flops_per_s = 3e13};
  data.dots = {
      {.part = "gate and up",
       .step = "decode",
       .calls = 4,
       .seconds = 0.003,
       .bytes = 2e8,
       .flops = 4e8,
       .share = 0.66},
      {.part = "norm", .step = "decode", .calls = 8, .seconds = 0.001, .bytes = 1e6, .flops = 2e6},
      {.part = "gate and up",
       .step = "prompt",
       .calls = 4,
       .seconds = 0.02,
       .bytes = 3e8,
       .flops = 3e11,
       .share = 0.5},
      {.part = "copy", .step = "prompt", .calls = 1, .seconds = 0.001, .bytes = 1e6},
      {.part = "unknown", .step = "prompt", .calls = 1, .seconds = 0.002}};
  return data;
}

TEST(RooflinePlot, DotsAreAtTheirIntensityAndSpeed) {
  const RooflinePlot plot = make_roofline_plot(measured());
  EXPECT_EQ(plot.steps, (std::vector<std::string>{"decode", "prompt"}));
  ASSERT_EQ(plot.marks.size(), 3u);
  EXPECT_DOUBLE_EQ(plot.marks[0].at.x, 2);
  EXPECT_DOUBLE_EQ(plot.marks[0].at.y, 4e8 / 0.003);
  EXPECT_DOUBLE_EQ(plot.marks[0].time_share, 0.75);
  EXPECT_EQ(plot.marks[0].step, 0u);
  EXPECT_EQ(plot.marks[2].dot, 2u);
  EXPECT_EQ(plot.marks[2].step, 1u);
  EXPECT_DOUBLE_EQ(plot.marks[2].at.x, 1000);
  EXPECT_EQ(plot.unplotted, (std::vector<size_t>{3, 4})) << "no arithmetic, or unknown cost";
}

TEST(RooflinePlot, TheRoofIsTheBandwidthSlopeThenTheComputeCeiling) {
  const RooflinePlot plot = make_roofline_plot(measured());
  ASSERT_EQ(plot.roofs.size(), 2u);
  EXPECT_EQ(plot.roofs[0].name, "matrix units");
  for (const RooflinePlot::Roof& roof : plot.roofs) {
    ASSERT_EQ(roof.points.size(), 3u);
    EXPECT_NEAR(roof.points[0].y / roof.points[0].x, 1e11, 1e2);
    EXPECT_NEAR(roof.points[1].y / roof.points[1].x, 1e11, 1e2);
    EXPECT_EQ(roof.points[1].y, roof.points[2].y);
    EXPECT_EQ(roof.points[2].x, plot.x_max);
  }
  EXPECT_EQ(plot.roofs[0].points[1].x, 300);
  EXPECT_EQ(plot.roofs[1].points[1].x, 20);
}

TEST(RooflinePlot, AxesContainEverythingAndEndAtPowersOfTen) {
  const RooflinePlot plot = make_roofline_plot(measured());
  EXPECT_DOUBLE_EQ(plot.x_min, 1);
  EXPECT_DOUBLE_EQ(plot.x_max, 1000);
  EXPECT_DOUBLE_EQ(plot.y_min, 1e9);
  EXPECT_DOUBLE_EQ(plot.y_max, 1e14);
  for (const RooflinePlot::Mark& mark : plot.marks) {
    EXPECT_GE(mark.at.x, plot.x_min);
    EXPECT_LE(mark.at.x, plot.x_max);
    EXPECT_GE(mark.at.y, plot.y_min);
    EXPECT_LE(mark.at.y, plot.y_max);
  }
}

TEST(RooflinePlot, WithoutMeasurementsThereAreOnlyAxes) {
  const RooflinePlot plot = make_roofline_plot({});
  EXPECT_TRUE(plot.roofs.empty());
  EXPECT_TRUE(plot.marks.empty());
  EXPECT_LT(plot.x_min, plot.x_max);
  EXPECT_LT(plot.y_min, plot.y_max);
  RooflineData no_matrix = measured();
  no_matrix.matrix_flops_per_s = 0;
  ASSERT_EQ(make_roofline_plot(no_matrix).roofs.size(), 1u);
  EXPECT_EQ(make_roofline_plot(no_matrix).roofs[0].name, "vector units");
}

}  // namespace
}  // namespace hearth
