// Products of a few rows, part of choose_matmul().
#pragma once

#include <optional>

#include "engine/ops/kernel_choice.h"

namespace hearth {

// A plan in which workgroups keep x in registers while they read the weights. Empty if there are
// too many rows, if inputs are not whole blocks, if weights are F32, or if the device's fragment
// layout is not known or its workgroups are too small. REQUIRES: two rows or more.
std::optional<MatmulPlan> choose_few_rows(const DeviceCaps& caps, const MatmulShape& shape);

}  // namespace hearth
