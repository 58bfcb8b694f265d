// Products of many rows, part of choose_matmul().
#pragma once

#include <string>
#include <string_view>

#include "engine/ops/kernel_choice.h"

namespace hearth {

// record_matmul puts in what the product really ends with.
inline constexpr uint32_t kNoEpilogue = 0;

std::string variant(std::string_view kernel, WeightFormat format);  // "matmul_tile.f32"

// Whether matrix units take weights of this format.
bool matrix_units(const DeviceCaps& caps, WeightFormat format);

// x as f16, made so by a kernel of its own where the one before does not write it.
void take_halves(const DeviceCaps& caps, const MatmulShape& shape, MatmulPlan& plan);

// k in `splits` shares, whose sums are left in parts, with rows in multiples of `tile_rows`, and
// added up in the end.
void leave_parts(const DeviceCaps& caps, const MatmulShape& shape, uint32_t splits,
                 uint32_t tile_rows, MatmulPlan& plan);

// A group computes a tile of the result.
MatmulPlan choose_tile(const DeviceCaps& caps, const MatmulShape& shape);

}  // namespace hearth
