// Which device gets which numbers, and that those of the H200 choose what was measured there.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include <gtest/gtest.h>

#include "engine/ops/tuning/profile.h"
#include "tests/support/choice_dump.h"
#include "tests/support/fake_devices.h"

namespace hearth {
namespace {

using testing::as_h200;
using testing::DumpedMatrix;

struct ProfileCase {
  const char* device;
  uint32_t vendor_id, device_id;
  DriverId driver;
  std::string_view profile;
};

TEST(TuningProfile, OnlyMeasuredFamiliesHaveTheirOwn) {
  constexpr ProfileCase kCases[] = {
      {"H200", 0x10de, 0x2335, DriverId::kNvidia, "hopper"},
      {"H100 PCIe", 0x10de, 0x2331, DriverId::kNvidia, "hopper"},
      {"GH200", 0x10de, 0x2342, DriverId::kNvidia, "hopper"},
      {"H200 with NVK", 0x10de, 0x2335, DriverId::kNvk, "general"},
      {"A100", 0x10de, 0x20b2, DriverId::kNvidia, "general"},
      {"RTX 3090", 0x10de, 0x2204, DriverId::kNvidia, "general"},
      {"RTX 4090", 0x10de, 0x2684, DriverId::kNvidia, "general"},
      {"B200", 0x10de, 0x2901, DriverId::kNvidia, "general"},
      {"RX 7900 XTX", 0x1002, 0x744c, DriverId::kRadv, "general"},
      {"an AMD device with an NVIDIA id", 0x1002, 0x2335, DriverId::kRadv, "general"},
      {"Arc A770", 0x8086, 0x56a0, DriverId::kIntelMesa, "general"},
      {"M2", 0x106b, 0xe0203ef, DriverId::kMoltenVk, "general"},
      {"lavapipe", 0x10005, 0, DriverId::kLavapipe, "general"},
  };
  for (const ProfileCase& wanted : kCases) {
    DeviceCaps caps = testing::fake_device("", DeviceType::kDiscrete, 32, 1024, 49152).caps;
    caps.vendor_id = wanted.vendor_id;
    caps.device_id = wanted.device_id;
    caps.driver_id = wanted.driver;
    EXPECT_EQ(tuning_profile(caps).name, wanted.profile) << wanted.device;
  }
}

// Every tile on matrix units that products, those of experts included, may use.
std::vector<Tile> matrix_tiles(const TuningProfile& profile) {
  std::vector<Tile> tiles(profile.tiles.floats.begin(), profile.tiles.floats.end());
  tiles.insert(tiles.end(), profile.tiles.quantized.begin(), profile.tiles.quantized.end());
  if (profile.experts.fewest_rows) tiles.push_back(*profile.experts.fewest_rows);
  return tiles;
}

TEST(TuningProfile, UnmeasuredDevicesNeverGetTheTilesOfHopper) {
  const std::vector<Tile> measured = matrix_tiles(hopper_profile());
  for (const testing::FakeDevice& device : testing::fake_devices())
    for (const Tile& tile : matrix_tiles(general_profile(device.caps)))
      EXPECT_EQ(std::ranges::count(measured, tile), 0)
          << device.name << ": a tile of " << tile.rows << " x " << tile.outputs;
  // A device that differs from an H200 in nothing but its id chooses differently.
  DeviceCaps h200 = testing::with_matrices(testing::fake_devices().front().caps);
  DeviceCaps other = h200;
  other.device_id = 0x2684;
  const MatmulShape shape{
      .format = WeightFormat::kF16, .rows = 2048, .inputs = 4096, .outputs = 28672};
  EXPECT_NE(choose_matmul(other, shape).multiply.pipeline,
            choose_matmul(h200, shape).multiply.pipeline);
}

// General tiles have no kernels that only make sense where they were measured.
TEST(TuningProfile, GeneralTilesWorkWithAnyMatrixUnits) {
  for (const testing::FakeDevice& device : testing::fake_devices()) {
    const TuningProfile profile = general_profile(device.caps);
    for (const auto& list : {profile.tiles.floats, profile.tiles.quantized})
      EXPECT_TRUE(std::ranges::is_sorted(list, {}, &Tile::rows));
    for (const Tile& tile : matrix_tiles(profile)) EXPECT_EQ(tile.kernel, TileKernel::kCoopmat);
  }
}

// Everything an H200 chooses for llama-8b and a few other shapes, as it was when its speed was
// measured. If a change is meant to change choices: HEARTH_WRITE_GOLDEN=1, then review the diff.
TEST(TuningProfile, ChoicesOnAnH200AreThoseThatWereMeasured) {
  DeviceCaps caps = testing::with_matrices(testing::fake_devices().front().caps,
                                           {testing::half_fragments(), testing::half_fragments(8)});
  caps.limits.multiprocessors = 132;
  caps.features.integer_dot = caps.features.lane_fragments = caps.features.ordered_groups = true;
  constexpr WeightFormat kFormats[] = {WeightFormat::kF16, WeightFormat::kQ8_0, WeightFormat::kQ4K};
  constexpr uint32_t kRows[] = {1, 2, 8, 16, 32, 64, 96, 128, 256, 512, 2048};
  constexpr DumpedMatrix kMatrices[] = {{6144, 4096},      {4096, 4096},   {28672, 4096},
                                        {4096, 14336},     {128256, 4096}, {2048, 2048},
                                        {1024, 4096, 5120}};
  std::string text = testing::dump_matmuls(caps, kFormats, kRows, kMatrices);
  for (const KvFormat kv : {KvFormat::kF16, KvFormat::kQ8_0})
    for (const uint32_t head_size : {64u, 128u})
      for (const uint32_t sequences : {1u, 8u, 64u, 256u})
        for (const uint32_t tokens : {511u, 16384u})
          for (const uint32_t rows : {1u, 2048u})
            text += testing::dump_attention(caps, {.kv = kv,
                                                   .heads = 32,
                                                   .kv_heads = 8,
                                                   .head_size = head_size,
                                                   .bucket = {.rows = std::max(sequences, rows),
                                                              .sequences = sequences,
                                                              .sequence_rows = rows,
                                                              .sequence_tokens = tokens}});
  const auto file =
      std::filesystem::path(HEARTH_SOURCE_DIR) / "tests" / "engine" / "ops" / "h200_choices.txt";
  if (std::getenv("HEARTH_WRITE_GOLDEN") != nullptr) std::ofstream(file) << text;
  std::ifstream golden(file);
  std::istringstream chosen(text);
  std::string wanted, line;
  size_t different = 0, lines = 0;
  while (std::getline(golden, wanted) && std::getline(chosen, line)) {
    ++lines;
    if (line != wanted && ++different <= 5)
      ADD_FAILURE() << "chosen:   " << line << "\nmeasured: " << wanted;
  }
  EXPECT_EQ(different, 0u);
  EXPECT_EQ(lines, static_cast<size_t>(std::ranges::count(text, '\n')));
}

}  // namespace
}  // namespace hearth
