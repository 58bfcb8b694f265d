// The tiles that products of many rows are made of.
#pragma once

#include <cstdint>
#include <span>

#include "engine/weights/formats.h"
#include "runtime/device_caps.h"

namespace hearth {

// The kernel that makes it. Direct and wide ones need to know how lanes hold fragments.
enum class TileKernel : uint8_t {
  kScalar,   // matmul_tile
  kCoopmat,  // matmul_coopmat
  kDirect,   // matmul_direct: few rows, weights past shared memory
  kWide,     // matmul_wide: many rows, large tiles
};

// A tile of sums that a group computes, and how its subgroups or lanes share it.
struct Tile {
  uint32_t rows, outputs, inputs;
  uint32_t part_rows, part_outputs;  // of a subgroup, or of a lane (scalar)
  uint32_t resident = 1;             // groups that a multiprocessor runs at once
  uint32_t ahead = 1;                // coopmat: steps whose weights are on their way
  uint32_t round = 0;                // coopmat: steps written out one after the other
  uint32_t percent = 100;  // time of a sum while that many groups run, of what the best coopmat
                           // tile of many rows takes
  TileKernel kernel = TileKernel::kCoopmat;
  uint32_t buffers = 1;  // direct: blocks of x in shared memory
  uint32_t again_percent = 3;  // more, where several tiles of rows read the same weights
};

// Products of more rows take any of the tiles from this one on.
inline constexpr uint32_t kManyRows = 112;

// By rows. Fewer rows than kManyRows fit in one tile, so that the weights are read once; of several
// tiles for the same rows the outputs decide.
std::span<const Tile> tiles_for(const DeviceCaps& caps, WeightFormat format, bool coopmat);

}  // namespace hearth
