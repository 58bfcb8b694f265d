// Which ceiling limits a piece of work, and how close it came.
#include <gtest/gtest.h>

#include "tools/bench/kernel_bench.h"
#include "tools/bench/model_bench.h"

namespace hearth {
namespace {

constexpr Ceilings kGpu{.read_bytes_per_s = 100, .flops_per_s = 1000, .matrix_flops_per_s = 8000};
constexpr Ceilings kCpu{.read_bytes_per_s = 100, .flops_per_s = 1000};

TEST(CeilingShare, IsOfTheCeilingThatLimitsTheWork) {
  const CeilingShare reading = ceiling_share(50, 100, 1, kGpu, false);
  EXPECT_DOUBLE_EQ(reading.share, 0.5);
  EXPECT_EQ(reading.of, "read");
  const CeilingShare computing = ceiling_share(10, 1200, 2, kGpu, false);
  EXPECT_DOUBLE_EQ(computing.share, 0.6);
  EXPECT_EQ(computing.of, "flops");
  const CeilingShare matrix = ceiling_share(10, 6000, 1, kGpu, true);
  EXPECT_DOUBLE_EQ(matrix.share, 0.75);
  EXPECT_EQ(matrix.of, "matrix");
}

TEST(CeilingShare, OfAModelIsOfMatrixUnitsIfThereAreAny) {
  const Cost cost{.bytes = 1, .flops = 4000};
  EXPECT_EQ(ceiling_share(cost, 1, kGpu).of, "matrix");
  EXPECT_DOUBLE_EQ(ceiling_share(cost, 1, kGpu).share, 0.5);
  EXPECT_EQ(ceiling_share(cost, 8, kCpu).of, "flops");
  EXPECT_DOUBLE_EQ(ceiling_share(cost, 8, kCpu).share, 0.5);
}

TEST(CeilingShare, IsZeroIfATimeOrACeilingIsUnknown) {
  EXPECT_EQ(ceiling_share(1, 1, 0, kGpu, false).share, 0);
  EXPECT_EQ(ceiling_share(1, 1, 1, {}, false).share, 0);
  EXPECT_EQ(ceiling_share(1, 1, 1, kCpu, true).share, 0) << "no matrix units";
}

}  // namespace
}  // namespace hearth
