// Products of a few rows, part of choose_matmul().
#pragma once

#include <optional>

#include "engine/ops/kernel_choice.h"

namespace hearth {

// A group holds x in registers while weights go by. Null where there are too many rows for that, or
// inputs not in whole blocks, where weights are F32, or where the device has no fragments that
// lanes can make or no room for such groups. REQUIRES: two rows or more.
std::optional<MatmulPlan> choose_few_rows(const DeviceCaps& caps, const MatmulShape& shape);

}  // namespace hearth
