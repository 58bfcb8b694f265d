#include "engine/ops/tile_table.h"

namespace hearth {
namespace {

constexpr Tile direct(uint32_t rows, uint32_t outputs, uint32_t part_outputs, uint32_t resident,
                      uint32_t percent, uint32_t buffers) {
  return {.rows = rows,
          .outputs = outputs,
          .inputs = 128,
          .part_rows = rows,
          .part_outputs = part_outputs,
          .resident = resident,
          .percent = percent,
          .kernel = TileKernel::kDirect,
          .buffers = buffers};
}

constexpr Tile wide(uint32_t rows, uint32_t outputs, uint32_t part_rows, uint32_t part_outputs,
                    uint32_t percent, uint32_t again_percent = 3) {
  return {.rows = rows,
          .outputs = outputs,
          .inputs = 64,
          .part_rows = part_rows,
          .part_outputs = part_outputs,
          .percent = percent,
          .kernel = TileKernel::kWide,
          .again_percent = again_percent};
}

constexpr Tile scalar(uint32_t rows, uint32_t outputs, uint32_t resident) {
  return {.rows = rows,
          .outputs = outputs,
          .inputs = 32,
          .part_rows = 4,
          .part_outputs = 4,
          .resident = resident,
          .kernel = TileKernel::kScalar};
}

// Found by timing some 5,000 tiles on an H200: docs/lab/kernels_h200.md.
constexpr Tile kFloatTiles[] = {
    {16, 64, 64, 16, 16, 4, 1, 2},
    {32, 128, 64, 32, 32, 2, 1, 2},
    {32, 64, 64, 32, 16, 3, 1, 2, 138},
    {48, 96, 64, 48, 32, 2, 1, 2, 191},
    {48, 96, 64, 48, 32, 2, 1, 0, 206},
    direct(48, 128, 32, 2, 183, 1),
    {48, 224, 64, 48, 32, 1, 1, 2},
    {48, 256, 64, 48, 32, 1, 1, 2},
    {64, 96, 64, 32, 32, 2, 1, 2, 186},
    {64, 96, 64, 32, 32, 2, 1, 0, 206},
    direct(64, 128, 32, 2, 183, 1),
    {64, 224, 64, 32, 56, 1, 1, 2},
    {64, 256, 64, 32, 64, 1, 1, 2},
    {80, 192, 64, 80, 32, 1, 1, 0, 104},
    {80, 224, 64, 80, 32, 1, 1, 2},
    {80, 256, 64, 80, 32, 1, 1, 2},
    {96, 128, 64, 48, 32, 1, 1, 2},
    {96, 192, 64, 96, 32, 1, 1, 0},
    {96, 224, 64, 48, 56, 1, 2, 2},
    {112, 224, 64, 112, 32, 1, 1, 8, 118},
    {112, 192, 64, 112, 32, 1, 1, 0, 118},
    {128, 128, 64, 32, 64, 1, 1, 8, 113},
    {128, 160, 64, 32, 80, 1, 1, 2, 114},
    {128, 192, 64, 64, 48, 1, 2, 2, 101},
    wide(128, 192, 64, 48, 89, 12),
    wide(128, 256, 64, 64, 90),
    {144, 128, 64, 48, 32, 1, 1, 8, 125},
    {160, 128, 64, 80, 32, 1, 1, 8, 113},
    wide(160, 128, 32, 64, 100, 12),
    wide(160, 192, 80, 48, 90, 12),
    {192, 128, 64, 48, 64, 1, 2, 2},
    wide(192, 128, 48, 64, 98, 12),
    wide(192, 192, 48, 96, 88, 12),
    wide(256, 112, 32, 112, 107),
    wide(256, 128, 64, 64, 94),
};
// Decoding takes registers, and there are fewer bytes to wait for. Up to 96 rows are mostly ahead
// where weights go straight into fragments.
constexpr Tile kQuantizedTiles[] = {
    {16, 64, 64, 16, 16, 4, 1, 2},
    {32, 128, 64, 32, 32, 2, 2, 0},
    {32, 64, 64, 32, 16, 3, 1, 2, 138},
    direct(32, 128, 32, 2, 70, 1),
    {48, 224, 64, 48, 32, 1, 2, 2},
    {48, 256, 64, 48, 32, 1, 2, 2},
    direct(48, 128, 32, 2, 130, 1),
    {64, 96, 64, 32, 32, 2, 1, 2, 182},
    {64, 96, 64, 32, 32, 2, 1, 0, 204},
    {64, 128, 64, 32, 32, 1, 1, 2, 122},
    {64, 224, 64, 32, 56, 1, 1, 2},
    {64, 256, 64, 32, 32, 1, 1, 2},
    direct(64, 128, 32, 2, 155, 1),
    direct(64, 224, 32, 1, 87, 2),
    direct(96, 256, 32, 1, 80, 1),
    {96, 224, 64, 48, 56, 1, 1, 2},
    {96, 192, 64, 48, 32, 1, 1, 2},
    {96, 128, 64, 48, 32, 1, 1, 2},
    {112, 224, 64, 112, 32, 1, 1, 2, 138},
    {112, 192, 64, 112, 16, 1, 1, 2, 143},
    {112, 128, 64, 112, 16, 1, 1, 2, 158},
    {128, 128, 64, 64, 32, 1, 2, 2, 126},
    {128, 160, 64, 32, 80, 1, 1, 2, 133},
    {128, 192, 64, 64, 32, 1, 1, 2, 112},
    wide(128, 192, 32, 96, 109, 12),
    wide(128, 224, 32, 112, 126, 12),
    {144, 128, 64, 48, 32, 1, 1, 2, 131},
    {160, 128, 64, 80, 32, 1, 1, 2, 111},
    {192, 128, 64, 48, 64, 1, 2, 2},
    wide(256, 128, 64, 64, 98),
};
// For devices with less shared memory than the largest of those take. Not measured.
constexpr uint32_t kMuchShared = 48 * 1024;
constexpr Tile kSmallTiles[] = {
    {16, 64, 64, 16, 16, 4, 2}, {32, 128, 64, 32, 16, 2, 1}, {48, 64, 64, 48, 16, 2, 2},
    {64, 64, 64, 64, 16, 2, 2}, {96, 64, 64, 48, 32, 2, 1},  {128, 128, 32, 64, 64, 2, 1},
};
constexpr Tile kScalarTiles[] = {
    scalar(16, 64, 4),
    scalar(32, 64, 4),
    scalar(64, 64, 2),
};

}  // namespace

std::span<const Tile> tiles_for(const DeviceCaps& caps, WeightFormat format, bool coopmat) {
  if (!coopmat) return kScalarTiles;
  if (caps.limits.max_shared_bytes < kMuchShared) return kSmallTiles;
  return format_info(format).is_float() ? std::span<const Tile>(kFloatTiles)
                                        : std::span<const Tile>(kQuantizedTiles);
}

}  // namespace hearth
