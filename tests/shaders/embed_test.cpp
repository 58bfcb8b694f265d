#include "engine/ops/embed.h"

#include "params/embed.h"
#include "tests/engine/weights/golden.h"
#include "tests/support/compare.h"
#include "tests/support/gpu.h"
#include "tests/support/reference_embed.h"

namespace hearth::testing {
namespace {

class EmbedTest : public GpuTest, public ::testing::WithParamInterface<WeightFormat> {
 protected:
  // The table has the rows of the ids from `first` on.
  void check(const DeviceCaps& caps, uint32_t vocabulary, uint32_t width, float scale,
             uint32_t first = 0) {
    const WeightMatrix matrix = random_matrix(GetParam(), vocabulary, width, width);
    // Two ids are past the end, and 0 may be before the beginning; the last two refer to sampled
    // tokens.
    const std::vector<uint32_t> sampled = {0, first + vocabulary - 1, first + 1 % vocabulary};
    const std::vector<uint32_t> ids = {
        first + vocabulary - 1, first,       first + vocabulary / 2, 0,
        first + vocabulary,     0x7fffffffu, params::kSampledId | 2, params::kSampledId | 1};
    const EmbedShape shape{.format = GetParam(),
                           .rows = static_cast<uint32_t>(ids.size()),
                           .width = width,
                           .vocabulary = vocabulary};
    const Buffer id_buffer = filled(ids), sampled_buffer = filled(sampled);
    const Buffer weight = filled(matrix.device);
    const size_t count = ids.size() * width;
    const Buffer y_buffer = poisoned((count + width) * 4);
    run([&](CommandRecorder& recorder) {
      return record_embed(recorder, pipelines(), choose_embed(caps, shape),
                          {.ids = id_buffer.all(),
                           .sampled = sampled_buffer.all(),
                           .weight = weight.all(),
                           .y = y_buffer.slice(0, count * 4),
                           .shape = shape,
                           .scale = scale,
                           .first = first});
    });
    const std::vector<float> y = read<float>(y_buffer);
    for (size_t r = 0; r < ids.size(); ++r) {
      const bool is_sampled = (ids[r] & params::kSampledId) != 0;
      const uint32_t given = is_sampled ? sampled[ids[r] & ~params::kSampledId] : ids[r];
      const bool in_table = given >= first && given - first < vocabulary;
      for (size_t i = 0; i < width; ++i)
        ASSERT_FLOAT_EQ(y[r * width + i],
                        in_table ? matrix.values[(given - first) * width + i] * scale : 0)
            << "row " << r << ", " << i << " of " << width;
    }
    for (size_t i = count; i < y.size(); ++i)
      ASSERT_TRUE(std::isnan(y[i])) << "written past the end";
  }
};

TEST_P(EmbedTest, RowsOfAnyWidth) {
  DeviceCaps gpu = device().caps();
  gpu.type = DeviceType::kDiscrete;
  const uint32_t block = format_info(GetParam()).block_weights;
  for (const DeviceCaps& caps : {device().caps(), gpu}) {
    check(caps, 7, block, 1.0f);
    check(caps, 5, 3 * block, 33.94f);
    check(caps, 3, 2048 + 256, 0.5f);
    check(caps, 7, block, 1.0f, 11);
    if (block == 1) check(caps, 4, 2087, 2.0f);
  }
}

TEST_P(EmbedTest, UnsupportedTablesAreRefused) {
  const Buffer any = poisoned(64);
  const auto refused = [&](uint32_t vocabulary, uint32_t width) {
    const EmbedShape shape{
        .format = GetParam(), .rows = 1, .width = width, .vocabulary = vocabulary};
    auto recorder = CommandRecorder::begin(device());
    const Status status = record_embed(*recorder, pipelines(), choose_embed(device().caps(), shape),
                                       {.ids = any.all(),
                                        .sampled = any.all(),
                                        .weight = any.all(),
                                        .y = any.all(),
                                        .shape = shape});
    return !status.ok() && status.error().kind == ErrorKind::kInvalid;
  };
  EXPECT_TRUE(refused(0, 256));
  EXPECT_TRUE(refused(1u << 24, 256));
  if (format_info(GetParam()).block_weights > 1) {
    EXPECT_TRUE(refused(4, 257));
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, EmbedTest, ::testing::ValuesIn(test::every_format()),
                         test::FormatName());

}  // namespace
}  // namespace hearth::testing
