// Decodes golden blocks through repack and the shared headers, which are the code that kernels
// compile. Bytes come from llama.cpp and from a random generator, values from python3-gguf.
#include "engine/weights/formats.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <gtest/gtest.h>

#include "engine/weights/repack.h"
#include "tests/engine/weights/golden.h"

namespace hearth {
namespace {

using test::golden_blocks;
using test::GoldenBlocks;

class Format : public testing::TestWithParam<WeightFormat> {};
INSTANTIATE_TEST_SUITE_P(Weights, Format, testing::ValuesIn(test::every_format()),
                         test::FormatName());

class QuantizedFormat : public testing::TestWithParam<WeightFormat> {};
INSTANTIATE_TEST_SUITE_P(Weights, QuantizedFormat, testing::ValuesIn(test::quantized_formats()),
                         test::FormatName());

std::vector<std::byte> on_device(WeightFormat format, const GoldenBlocks& golden) {
  std::vector<std::byte> device(device_layout(format, golden.blocks()).total_bytes);
  repack_matrix(format, golden.bytes, device);
  return device;
}

// The golden blocks as three rows, so that rows after the first are tested, too.
MatrixShape three_rows(const GoldenBlocks& golden) {
  EXPECT_EQ(golden.blocks() % 3, 0u);
  return {.rows = 3, .cols = golden.values.size() / 3};
}

TEST_P(Format, TableAgreesWithGguf) {
  const FormatInfo& info = format_info(GetParam());
  const GoldenBlocks golden = golden_blocks(GetParam());
  EXPECT_EQ(info.format, GetParam());
  EXPECT_EQ(info.ggml_type, golden.ggml_type);
  EXPECT_EQ(info.block_weights, golden.block_weights);
  EXPECT_EQ(info.block_bytes, golden.block_bytes);
  EXPECT_EQ(format_from_ggml_type(golden.ggml_type), GetParam());
  EXPECT_EQ(parse_format(info.name), GetParam());
  EXPECT_EQ(parse_format(info.header), GetParam());
}

// Equal, not close: in every format scale times integer is exact in a float, and at most one
// addition rounds, once and the same way with or without fused multiply-add.
TEST_P(Format, GoldenBlocksDecodeExactly) {
  const GoldenBlocks golden = golden_blocks(GetParam());
  const auto device = on_device(GetParam(), golden);
  const MatrixShape shape = three_rows(golden);
  std::vector<float> row(shape.cols);
  for (std::uint64_t r = 0; r < shape.rows; ++r) {
    std::fill(row.begin(), row.end(), std::nanf(""));
    dequantize_row(GetParam(), device.data(), shape, r, row.data());
    for (std::uint64_t c = 0; c < shape.cols; ++c)
      ASSERT_EQ(row[c], golden.values[r * shape.cols + c]) << "row " << r << " column " << c;
  }
}

// What integer kernels use: the same weights, with scales as the table promises.
TEST_P(QuantizedFormat, PiecesHoldTheWeights) {
  const FormatInfo& info = format_info(GetParam());
  const GoldenBlocks golden = golden_blocks(GetParam());
  const auto device = on_device(GetParam(), golden);
  const MatrixShape shape = three_rows(golden);
  bool offsets = false;
  bool halves_differ = false;
  for (std::uint64_t p = 0; p < golden.values.size() / kPieceWeights; ++p) {
    const WeightPiece piece = unpack_piece(GetParam(), device.data(), shape, p);
    for (std::uint32_t i = 0; i < kPieceWeights; ++i) {
      const float weight = piece.scale[i / 16] * piece.q[i] + piece.offset[i / 16];
      ASSERT_EQ(weight, golden.values[p * kPieceWeights + i]) << "piece " << p << " weight " << i;
    }
    offsets |= piece.offset[0] != 0 || piece.offset[1] != 0;
    halves_differ |= piece.scale[0] != piece.scale[1] || piece.offset[0] != piece.offset[1];
  }
  EXPECT_EQ(offsets, info.has_offset);
  EXPECT_EQ(halves_differ, info.piece_scales == 2);
}

// The golden blocks are useful only if they contain every integer of a format.
TEST(Formats, GoldenBlocksHoldEveryNibbleOfTheTables) {
  for (const WeightFormat format :
       {WeightFormat::kIq4Nl, WeightFormat::kIq4Xs, WeightFormat::kMxfp4}) {
    const GoldenBlocks golden = golden_blocks(format);
    const auto device = on_device(format, golden);
    bool seen[256] = {};
    for (std::uint64_t p = 0; p < golden.values.size() / kPieceWeights; ++p)
      for (const std::int8_t q : unpack_piece(format, device.data(), three_rows(golden), p).q)
        seen[q + 128] = true;
    const auto count = std::count(std::begin(seen), std::end(seen), true);
    EXPECT_EQ(count, format == WeightFormat::kMxfp4 ? 15 : 16);  // plus and minus zero are the same
  }
}

TEST(Formats, FloatRowsNeedNotBeWholePieces) {
  for (const WeightFormat format : {WeightFormat::kF32, WeightFormat::kF16, WeightFormat::kBf16}) {
    const GoldenBlocks golden = golden_blocks(format);
    const auto device = on_device(format, golden);
    const MatrixShape shape{.rows = golden.values.size() / 12, .cols = 12};
    float row[12];
    for (std::uint64_t r = 0; r < shape.rows; ++r) {
      dequantize_row(format, device.data(), shape, r, row);
      for (std::uint64_t c = 0; c < shape.cols; ++c)
        ASSERT_EQ(row[c], golden.values[r * shape.cols + c]);
    }
  }
}

TEST(Formats, UnknownOnesAreNotFound) {
  EXPECT_EQ(format_from_ggml_type(4), std::nullopt);  // a type that ggml removed
  EXPECT_EQ(format_from_ggml_type(0xffffffffu), std::nullopt);
  EXPECT_EQ(parse_format("Q4"), std::nullopt);
  EXPECT_EQ(parse_format(""), std::nullopt);
  EXPECT_EQ(parse_format("q4_k"), WeightFormat::kQ4K);
}

TEST(Formats, PlanesBeginAtMultiplesOfSixteen) {
  const DeviceLayout layout = device_layout(WeightFormat::kQ3K, 3);  // 64, 32, 8, 4 and 2 bytes
  EXPECT_EQ(layout.offset[0], 0u);
  EXPECT_EQ(layout.offset[1], 192u);
  EXPECT_EQ(layout.offset[2], 288u);
  EXPECT_EQ(layout.offset[3], 320u);
  EXPECT_EQ(layout.offset[4], 336u);
  EXPECT_EQ(layout.total_bytes, 352u);
}

}  // namespace
}  // namespace hearth
