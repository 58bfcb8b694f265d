// Every format decodes to the same bits on the device as on the host.
#include "params/dequantize.h"

#include <bit>
#include <string>

#include "engine/ops/kernel_plan.h"
#include "tests/engine/weights/golden.h"
#include "tests/support/gpu.h"
#include "tests/support/reference_embed.h"

namespace hearth::testing {
namespace {

class DequantizeTest : public GpuTest, public ::testing::WithParamInterface<WeightFormat> {
 protected:
  void check(const std::vector<std::byte>& device_bytes, const std::vector<float>& expected,
             uint32_t rows, uint32_t cols, uint32_t lanes, uint32_t groups) {
    const Buffer weight = filled(device_bytes);
    const size_t count = size_t{rows} * cols;
    const Buffer y = poisoned((count + 32) * 4);
    run([&](CommandRecorder& recorder) -> Status {
      HEARTH_ASSIGN(
          const Pipeline* pipeline,
          pipelines().get({.kernel = "dequantize." + std::string(format_info(GetParam()).header),
                           .constants = params::DequantizeConstants{.kWorkgroupSize = lanes}}));
      recorder.dispatch(
          {.pipeline = *pipeline,
           .arguments =
               params::Dequantize{.weight = weight.all(), .y = y.all(), .rows = rows, .cols = cols},
           .groups = {.x = groups}});
      return {};
    });
    const std::vector<float> result = read<float>(y);
    for (size_t i = 0; i < count; ++i) {
      // A device without subnormal floats reads the smallest MXFP4 scales as 0.
      const bool flushed =
          GetParam() == WeightFormat::kMxfp4 && std::abs(result[i] - expected[i]) < 1e-37f;
      const bool same = std::bit_cast<uint32_t>(result[i]) == std::bit_cast<uint32_t>(expected[i]);
      // 0 * -5 is -0, but 0 if it is fused with an offset of 0.
      const bool zero = result[i] == 0.0f && expected[i] == 0.0f;
      const bool nan = std::isnan(result[i]) && std::isnan(expected[i]);
      ASSERT_TRUE(same || zero || flushed || nan)
          << "weight " << i << ": " << result[i] << " for " << expected[i];
    }
    for (size_t i = count; i < result.size(); ++i)
      ASSERT_TRUE(std::isnan(result[i])) << "written past the end";
  }
};

// Blocks that use every bit.
TEST_P(DequantizeTest, GoldenBlocksMatchTheHost) {
  const test::GoldenBlocks golden = test::golden_blocks(GetParam());
  std::vector<std::byte> bytes(device_layout(GetParam(), golden.blocks()).total_bytes);
  repack_matrix(GetParam(), golden.bytes, bytes);
  std::vector<float> expected(size_t{golden.blocks()} * golden.block_weights);
  for (uint32_t r = 0; r < golden.blocks(); ++r)
    dequantize_row(GetParam(), bytes.data(), {golden.blocks(), golden.block_weights}, r,
                   expected.data() + size_t{r} * golden.block_weights);
  check(bytes, expected, golden.blocks(), golden.block_weights, 32, 3);
  check(bytes, expected, 1, golden.blocks() * golden.block_weights, 64, 1);
}

TEST_P(DequantizeTest, RowsOfAnyWidthMatchTheHost) {
  const uint32_t block = format_info(GetParam()).block_weights;
  for (const auto& [rows, cols] :
       {std::pair{1u, block}, {3u, 3 * block}, {37u, block == 1 ? 259u : 2 * block}, {5u, 512u}}) {
    const WeightMatrix matrix = random_matrix(GetParam(), rows, cols, rows + cols);
    check(matrix.device, matrix.values, rows, cols, 32, 2);
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, DequantizeTest, ::testing::ValuesIn(test::every_format()),
                         test::FormatName());

}  // namespace
}  // namespace hearth::testing
