#include "engine/weights/quantize.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "engine/weights/half.h"
#include "engine/weights/repack.h"
#include "tests/engine/weights/golden.h"

namespace hearth {
namespace {

using test::golden_blocks;
using test::golden_rows;

std::vector<std::byte> quantized(WeightFormat format, std::span<const float> row) {
  const FormatInfo& info = format_info(format);
  std::vector<std::byte> out(row.size() / info.block_weights * info.block_bytes);
  const Status status = quantize_row(format, row, out);
  EXPECT_TRUE(status.ok());
  return out;
}

std::vector<float> dequantized(WeightFormat format, std::span<const std::byte> file) {
  const FormatInfo& info = format_info(format);
  const std::uint64_t blocks = file.size() / info.block_bytes;
  std::vector<std::byte> device(device_layout(format, blocks).total_bytes);
  repack_matrix(format, file, device);
  std::vector<float> values(blocks * info.block_weights);
  dequantize_row(format, device.data(), {.rows = 1, .cols = values.size()}, 0, values.data());
  return values;
}

double rms_error(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
  return std::sqrt(sum / static_cast<double>(a.size()));
}

class ByteEqual : public testing::TestWithParam<WeightFormat> {};
INSTANTIATE_TEST_SUITE_P(Quantize, ByteEqual,
                         testing::Values(WeightFormat::kF32, WeightFormat::kF16,
                                         WeightFormat::kBf16, WeightFormat::kQ8_0,
                                         WeightFormat::kQ4_0, WeightFormat::kQ4_1,
                                         WeightFormat::kQ5_0, WeightFormat::kQ5_1,
                                         WeightFormat::kMxfp4),
                         test::FormatName());

TEST_P(ByteEqual, ToLlamaCpp) {
  const auto golden = golden_blocks(GetParam());
  const auto bytes = quantized(GetParam(), golden_rows().values);
  ASSERT_EQ(bytes.size(), std::size_t{golden.quantized_blocks} * golden.block_bytes);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    ASSERT_EQ(bytes[i], golden.bytes[i])
        << "block " << i / golden.block_bytes << " byte " << i % golden.block_bytes;
}

class AsClose : public testing::TestWithParam<WeightFormat> {};
INSTANTIATE_TEST_SUITE_P(Quantize, AsClose,
                         testing::Values(WeightFormat::kQ2K, WeightFormat::kQ3K, WeightFormat::kQ4K,
                                         WeightFormat::kQ5K, WeightFormat::kQ6K,
                                         WeightFormat::kIq4Nl, WeightFormat::kIq4Xs),
                         test::FormatName());

TEST_P(AsClose, AsLlamaCpp) {
  const auto rows = golden_rows();
  const auto golden = golden_blocks(GetParam());
  // Formats with a minimum have their own search, which is better.
  const bool affine = GetParam() == WeightFormat::kQ2K || GetParam() == WeightFormat::kQ4K ||
                      GetParam() == WeightFormat::kQ5K;
  const double most = affine ? 1.0 : 1.02;
  for (std::size_t r = 0; r < rows.rows; ++r) {
    const auto theirs = std::span(golden.values).subspan(r * rows.cols, rows.cols);
    const auto ours = dequantized(GetParam(), quantized(GetParam(), rows.row(r)));
    const double their_error = rms_error(theirs, rows.row(r));
    const double our_error = rms_error(ours, rows.row(r));
    EXPECT_LE(our_error, most * their_error) << "row " << r;
    RecordProperty("row_" + std::to_string(r), std::to_string(our_error / their_error));
  }
}

class EveryFormat : public testing::TestWithParam<WeightFormat> {};
INSTANTIATE_TEST_SUITE_P(Quantize, EveryFormat, testing::ValuesIn(test::every_format()),
                         test::FormatName());

TEST_P(EveryFormat, KeepsZerosAndSurvivesExtremes) {
  std::vector<float> row(512, 0.0f);
  for (const float value : dequantized(GetParam(), quantized(GetParam(), row)))
    ASSERT_EQ(value, 0.0f);
  for (const float extreme : {1e-45f, 1e-38f, 1e-30f, -1e-9f, 6e4f}) {
    for (std::size_t i = 0; i < row.size(); ++i) row[i] = i % 3 == 0 ? extreme : -0.3f * extreme;
    for (const float value : dequantized(GetParam(), quantized(GetParam(), row)))
      ASSERT_LE(std::fabs(value), 2 * std::fabs(extreme) + 1e-7f) << "weights of " << extreme;
  }
}

// Here the sums of the search for a minimum cancel almost completely.
TEST_P(EveryFormat, KeepsWeightsThatAreNearlyEqual) {
  std::vector<float> row(512);
  for (const float value : {-1.0f, 1.0f}) {
    for (std::size_t i = 0; i < row.size(); ++i)
      row[i] = value * (1 + 1e-6f * static_cast<float>(i % 5));
    for (const float back : dequantized(GetParam(), quantized(GetParam(), row)))
      ASSERT_NEAR(back, value, 0.02f);
  }
}

TEST(Quantize, NamesTheWeightThatIsNotFinite) {
  std::vector<float> row(256, 1.0f);
  row[77] = std::numeric_limits<float>::infinity();
  std::vector<std::byte> out(format_info(WeightFormat::kQ4K).block_bytes);
  const Status status = quantize_row(WeightFormat::kQ4K, row, out);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("77"), std::string::npos) << status.error().message;
  EXPECT_NE(status.error().message.find("Q4_K"), std::string::npos) << status.error().message;
}

TEST(Half, EveryHalfRoundTrips) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = half_to_float(half);
    if (std::isnan(value)) continue;
    ASSERT_EQ(float_to_half(value), half);
  }
}

TEST(Half, RoundsToNearestTiesToEven) {
  EXPECT_EQ(half_to_float(float_to_half(1.0f + 0x1p-11f)), 1.0f);
  EXPECT_EQ(half_to_float(float_to_half(1.0f + 0x3p-11f)), 1.0f + 0x1p-9f);
  EXPECT_EQ(half_to_float(float_to_half(1.0f + 0x1.01p-11f)), 1.0f + 0x1p-10f);
  EXPECT_EQ(half_to_float(float_to_half(0x1p-25f)), 0.0f);
  EXPECT_EQ(half_to_float(float_to_half(0x1.8p-25f)), 0x1p-24f);
  EXPECT_EQ(half_to_float(float_to_half(65519.0f)), 65504.0f);
  EXPECT_TRUE(std::isinf(half_to_float(float_to_half(65520.0f))));
  EXPECT_TRUE(std::isnan(half_to_float(float_to_half(NAN))));
  EXPECT_EQ(bfloat16_to_float(float_to_bfloat16(1.0f + 0x1p-8f)), 1.0f);
  EXPECT_EQ(bfloat16_to_float(float_to_bfloat16(1.0f + 0x3p-8f)), 1.0f + 0x1p-6f);
  EXPECT_TRUE(std::isnan(bfloat16_to_float(float_to_bfloat16(NAN))));
}

}  // namespace
}  // namespace hearth
