// Products of many rows, part of choose_matmul().
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/ops/kernel_choice.h"

namespace hearth {

std::string variant(std::string_view kernel, WeightFormat format);  // "matmul_tile.f32"

// Whether matrix units can be used for weights of this format.
bool matrix_units(const DeviceCaps& caps, WeightFormat format);

// Plans x as f16, converted by a kernel of its own unless an earlier one writes it.
void take_halves(const DeviceCaps& caps, const MatmulShape& shape, MatmulPlan& plan);

// Plans k in `splits` splits, whose partial sums, with rows in multiples of `tile_rows`, are added
// up at the end.
void leave_parts(const DeviceCaps& caps, const MatmulShape& shape, uint32_t splits,
                 uint32_t tile_rows, MatmulPlan& plan);

// One kernel for tiles of some number of rows, none of them split, for products whose rows come in
// tiles of their own (choose_experts.cpp).
struct RowTile {
  uint32_t rows = 0;
  KernelPlan kernel;       // groups.x is up to the caller
  uint64_t cost = 0;       // time up to a factor, to compare tiles of the same rows
  uint32_t percent = 100;  // time per result, to compare tiles of many rows
};

// All that can compute the product, with any number of rows, and combine gates and ups. Of these
// kernels, matmul_direct does not need whole steps along k. Never empty without matrix units.
std::vector<RowTile> row_tiles(const DeviceCaps& caps, const MatmulShape& shape, bool coopmat);

// A plan in which each workgroup computes a tile of the result.
MatmulPlan choose_tile(const DeviceCaps& caps, const MatmulShape& shape);

}  // namespace hearth
