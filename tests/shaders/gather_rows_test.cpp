#include "engine/ops/gather_rows.h"

#include "params/step.h"
#include "tests/support/compare.h"
#include "tests/support/gpu.h"

namespace hearth::testing {
namespace {

class GatherRowsTest : public GpuTest {};

TEST_F(GatherRowsTest, CopiesRowsAndLeavesPaddingUnchanged) {
  for (const uint32_t width : {1u, 3u, 4u, 64u, 257u, 4096u, 5000u}) {
    constexpr uint32_t kPadding = params::kNoSequence;
    const std::vector<uint32_t> indices = {6, 0, kPadding, 3, 3, 7, kPadding};
    const GatherRowsShape shape{.rows = 6, .width = width, .source_rows = 7};
    const std::vector<float> x = random_floats(size_t{7} * width, width);
    const Buffer x_buffer = filled(x), index_buffer = filled(indices);
    const Buffer y_buffer = poisoned(size_t{7} * width * 4);
    run([&](CommandRecorder& recorder) {
      return record_gather_rows(recorder, pipelines(), choose_gather_rows(device().caps(), shape),
                                {.x = x_buffer.all(),
                                 .indices = index_buffer.all(),
                                 .y = y_buffer.all(),
                                 .shape = shape});
    });
    const std::vector<float> y = read<float>(y_buffer);
    for (size_t r = 0; r < 7; ++r) {
      for (size_t i = 0; i < width; ++i) {
        // Source row 7 does not exist, and row 6 of the result was not requested.
        if (indices[r] < 7 && r < 6) {
          ASSERT_EQ(y[r * width + i], x[indices[r] * width + i]) << r << ", " << i;
        } else {
          ASSERT_TRUE(std::isnan(y[r * width + i])) << r << ", " << i;
        }
      }
    }
  }
}

TEST_F(GatherRowsTest, AnEmptyMatrixIsRefused) {
  const Buffer any = poisoned(64);
  const GatherRowsShape shape{.rows = 1, .width = 4, .source_rows = 0};
  ASSERT_ASSIGN(CommandRecorder recorder, CommandRecorder::begin(device()));
  const Status status =
      record_gather_rows(recorder, pipelines(), choose_gather_rows(device().caps(), shape),
                         {.x = any.all(), .indices = any.all(), .y = any.all(), .shape = shape});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, ErrorKind::kInvalid);
}

}  // namespace
}  // namespace hearth::testing
