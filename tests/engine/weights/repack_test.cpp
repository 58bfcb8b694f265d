// Repacking loses nothing and writes where it should. formats_test checks, with golden blocks, that
// the bits are in the order that the shared headers read.
#include "engine/weights/repack.h"

#include <array>
#include <random>

#include <gtest/gtest.h>

#include "tests/engine/weights/golden.h"

namespace hearth {
namespace {

class Repack : public testing::TestWithParam<WeightFormat> {};
INSTANTIATE_TEST_SUITE_P(Weights, Repack, testing::ValuesIn(test::every_format()),
                         test::FormatName());

constexpr std::byte kPoison{0xa5};
constexpr std::size_t kBlocks = 1237;  // more than a batch of any format, and not a multiple of one

std::vector<std::byte> random_file(const FormatInfo& info, std::size_t blocks) {
  std::mt19937 random(7);
  std::vector<std::byte> file(blocks * info.block_bytes);
  for (std::byte& byte : file) byte = static_cast<std::byte>(random());
  return file;
}

TEST_P(Repack, RoundTripsEveryByte) {
  const FormatInfo& info = format_info(GetParam());
  const auto file = random_file(info, kBlocks);
  std::vector<std::byte> device(device_layout(GetParam(), kBlocks).total_bytes, kPoison);
  repack_matrix(GetParam(), file, device);
  std::vector<std::byte> back(file.size(), kPoison);
  unrepack_matrix(GetParam(), device, back);
  EXPECT_EQ(back, file);
}

TEST_P(Repack, FillsTheLayoutAndNothingElse) {
  const FormatInfo& info = format_info(GetParam());
  const DeviceLayout layout = device_layout(GetParam(), 5);
  std::vector<std::byte> device(layout.total_bytes + 32, kPoison);
  const std::vector<std::byte> ones(5 * info.block_bytes, std::byte{0xff});
  repack_matrix(GetParam(), ones, std::span(device).first(layout.total_bytes));
  for (std::size_t plane = 0; plane < info.plane_bytes.size(); ++plane) {
    const std::uint64_t used = layout.offset[plane] + 5 * info.plane_bytes[plane];
    const std::uint64_t end =
        plane + 1 < info.plane_bytes.size() ? layout.offset[plane + 1] : layout.total_bytes;
    EXPECT_EQ(layout.offset[plane] % kPlaneAlignment, 0u);
    for (std::uint64_t i = layout.offset[plane]; i < end; ++i)
      ASSERT_EQ(device[i], i < used ? std::byte{0xff} : std::byte{0}) << "byte " << i;
  }
  for (std::size_t i = layout.total_bytes; i < device.size(); ++i) ASSERT_EQ(device[i], kPoison);
}

// As a loader does it: ranges of blocks, each into its place in every plane.
TEST_P(Repack, RangesOfBlocksGiveTheWhole) {
  const FormatInfo& info = format_info(GetParam());
  const auto file = random_file(info, kBlocks);
  const DeviceLayout layout = device_layout(GetParam(), kBlocks);
  std::vector<std::byte> whole(layout.total_bytes);
  repack_matrix(GetParam(), file, whole);

  std::vector<std::byte> device(layout.total_bytes);
  const std::size_t range = 101;
  for (std::size_t first = 0; first < kBlocks; first += range) {
    const std::size_t count = std::min(range, kBlocks - first);
    std::array<std::byte*, kMaxPlanes> planes{};
    for (std::size_t plane = 0; plane < info.plane_bytes.size(); ++plane)
      planes[plane] = device.data() + layout.offset[plane] + first * info.plane_bytes[plane];
    repack_blocks(GetParam(),
                  std::span(file).subspan(first * info.block_bytes, count * info.block_bytes),
                  std::span(planes).first(info.plane_bytes.size()));
  }
  EXPECT_EQ(device, whole);
}

TEST(Repack, SortsFieldsIntoPlanes) {
  // Three Q8_0 blocks: half d, 32 bytes of q. The device has all q, then all d.
  std::vector<std::byte> file(3 * 34);
  for (std::size_t i = 0; i < file.size(); ++i) file[i] = static_cast<std::byte>(i);
  std::vector<std::byte> device(device_layout(WeightFormat::kQ8_0, 3).total_bytes);
  ASSERT_EQ(device.size(), 112u);
  repack_matrix(WeightFormat::kQ8_0, file, device);
  EXPECT_EQ(device[0], std::byte{2});
  EXPECT_EQ(device[31], std::byte{33});
  EXPECT_EQ(device[32], std::byte{36});
  EXPECT_EQ(device[96], std::byte{0});
  EXPECT_EQ(device[98], std::byte{34});
  EXPECT_EQ(device[101], std::byte{69});
}

TEST(Repack, FloatFormatsAreUnchanged) {
  for (const WeightFormat format : {WeightFormat::kF32, WeightFormat::kF16, WeightFormat::kBf16}) {
    const auto file = random_file(format_info(format), 64);
    std::vector<std::byte> device(device_layout(format, 64).total_bytes);
    repack_matrix(format, file, device);
    EXPECT_EQ(device, file);
  }
}

TEST(Repack, ZeroBlocksAreFine) {
  repack_matrix(WeightFormat::kQ4K, {}, {});
  EXPECT_EQ(device_layout(WeightFormat::kQ4K, 0).total_bytes, 0u);
}

}  // namespace
}  // namespace hearth
