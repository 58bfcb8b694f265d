#include "engine/ops/pool_rows.h"

#include "params/pool_rows.h"
#include "tests/support/compare.h"
#include "tests/support/gpu.h"

namespace hearth::testing {
namespace {

class PoolRowsTest : public GpuTest {};

TEST_F(PoolRowsTest, AddsRangesAndLeavesPaddingUnchanged) {
  constexpr uint32_t kRows = 70;
  const std::vector<params::PoolRange> ranges = {{.first_row = 0, .rows = params::kMaxPoolRows},
                                                 {.first_row = 69, .rows = 1},
                                                 {},
                                                 {.first_row = 5, .rows = 3},
                                                 {.first_row = 68, .rows = 9}};
  for (const uint32_t width : {1u, 3u, 64u, 257u, 5000u}) {
    const PoolRowsShape shape{
        .ranges = static_cast<uint32_t>(ranges.size()), .width = width, .rows = kRows};
    const std::vector<float> x = random_floats(size_t{kRows} * width, width);
    const Buffer x_buffer = filled(x), range_buffer = filled(ranges);
    const Buffer y_buffer = poisoned(ranges.size() * width * 4);
    run([&](CommandRecorder& recorder) {
      return record_pool_rows(
          recorder, pipelines(), choose_pool_rows(device().caps(), shape),
          {.x = x_buffer.all(), .ranges = range_buffer.all(), .y = y_buffer.all(), .shape = shape});
    });
    const std::vector<float> y = read<float>(y_buffer);
    for (size_t i = 0; i < ranges.size(); ++i) {
      std::vector<double> wanted(width, 0.0);
      const uint32_t end = std::min(ranges[i].first_row + ranges[i].rows, kRows);
      for (uint32_t row = ranges[i].first_row; row < end; ++row)
        for (uint32_t c = 0; c < width; ++c) wanted[c] += x[size_t{row} * width + c];
      const std::span<const float> got = std::span(y).subspan(i * width, width);
      if (ranges[i].rows == 0)
        EXPECT_TRUE(std::ranges::all_of(got, [](float value) { return std::isnan(value); }));
      else
        EXPECT_LT(nmse(got, wanted), 1e-10) << "width " << width << ", range " << i;
    }
  }
}

TEST_F(PoolRowsTest, AnEmptyMatrixIsRefused) {
  const Buffer any = poisoned(64);
  const PoolRowsShape shape{.ranges = 1, .width = 4, .rows = 0};
  ASSERT_ASSIGN(CommandRecorder recorder, CommandRecorder::begin(device()));
  const Status status =
      record_pool_rows(recorder, pipelines(), choose_pool_rows(device().caps(), shape),
                       {.x = any.all(), .ranges = any.all(), .y = any.all(), .shape = shape});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, ErrorKind::kInvalid);
}

}  // namespace
}  // namespace hearth::testing
