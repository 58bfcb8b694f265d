// A tile that products of many rows use. Profiles have lists of them.
#pragma once

#include <cstdint>

namespace hearth {

// The kernel of a tile. kDirect and kWide need a known fragment layout.
enum class TileKernel : uint8_t {
  kScalar,   // matmul_tile
  kCoopmat,  // matmul_coopmat
  kDirect,   // matmul_direct: few rows; weights bypass shared memory
  kWide,     // matmul_wide: many rows, large tiles
};

// The tile of results that a workgroup computes, and how its subgroups or lanes divide it.
struct Tile {
  uint32_t rows, outputs, inputs;
  uint32_t part_rows, part_outputs;  // per subgroup, or per lane (scalar)
  uint32_t resident = 1;             // workgroups per multiprocessor
  uint32_t ahead = 1;                // coopmat: steps whose weights are in flight
  uint32_t round = 0;                // coopmat: unrolled steps
  // Time per result with `resident` workgroups, relative to the best coopmat tile of many rows.
  uint32_t percent = 100;
  TileKernel kernel = TileKernel::kCoopmat;
  uint32_t buffers = 1;         // direct: blocks of x in shared memory
  uint32_t reread_percent = 3;  // added if several tiles of rows read the same weights

  bool operator==(const Tile&) const = default;
};

// Without matrix units: four by four results per lane.
constexpr Tile scalar_tile(uint32_t rows, uint32_t outputs, uint32_t resident) {
  return {.rows = rows,
          .outputs = outputs,
          .inputs = 32,
          .part_rows = 4,
          .part_outputs = 4,
          .resident = resident,
          .kernel = TileKernel::kScalar};
}

// TilesTuning::scalars of every profile; others were not measured.
inline constexpr Tile kScalarTiles[] = {scalar_tile(16, 64, 4), scalar_tile(32, 64, 4),
                                        scalar_tile(64, 64, 2)};

}  // namespace hearth
