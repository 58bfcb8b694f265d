// The tiles that products of many rows are made of.
#pragma once

#include <cstdint>
#include <span>

#include "engine/weights/formats.h"
#include "runtime/device_caps.h"

namespace hearth {

// A tile of sums that a group computes, and how its subgroups or lanes share it.
struct Tile {
  uint32_t rows, outputs, inputs;
  uint32_t part_rows, part_outputs;  // of a subgroup (coopmat) or of a lane (scalar)
  uint32_t resident = 1;             // groups that a multiprocessor runs at once
  uint32_t ahead = 1;                // coopmat: steps whose weights are on their way
  uint32_t round = 0;                // coopmat: steps written out one after the other
  uint32_t percent = 100;  // time of a sum while that many groups run, of what the best of many
                           // rows takes
  uint32_t direct = 0;     // blocks of x in shared memory, where it is one of matmul_direct
};

// Products of more rows than the largest tile take the tiles from this one on.
inline constexpr uint32_t kManyRows = 112;

// By rows. Up to the largest tile a product's rows fit in one, so that the weights are read once.
// Of several tiles for the same rows the outputs decide.
std::span<const Tile> tiles_for(const DeviceCaps& caps, WeightFormat format, bool coopmat);

}  // namespace hearth
