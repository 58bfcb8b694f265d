// Products of many rows, in tiles: what other ops use of them.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/ops/matmul/family.h"

namespace hearth {

// One kernel for tiles of some number of rows, none of them split, for products whose rows come in
// tiles of their own (experts/experts_tiles.cpp).
struct RowTile {
  uint32_t rows = 0;
  KernelPlan kernel;       // groups.x is up to the caller
  uint64_t cost = 0;       // time up to a factor, to compare tiles of the same rows
  uint32_t percent = 100;  // time per result, to compare tiles of many rows
};

// All that can compute the product, with any number of rows, and combine gates and ups. Of these
// kernels, matmul_direct does not need whole steps along k. Never empty without matrix units.
std::vector<RowTile> row_tiles(const DeviceCaps& caps, const MatmulShape& shape, bool coopmat);

}  // namespace hearth
