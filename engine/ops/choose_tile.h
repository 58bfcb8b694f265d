// Products of many rows, part of choose_matmul().
#pragma once

#include <optional>

#include "engine/ops/kernel_choice.h"

namespace hearth {

// The cooperative matrix for weights of this format, where there is one.
std::optional<CoopmatShape> matrix_units(const DeviceCaps& caps, WeightFormat format);

// A group computes a tile of the result.
MatmulPlan choose_tile(const DeviceCaps& caps, const MatmulShape& shape);

}  // namespace hearth
