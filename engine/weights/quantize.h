// Quantizes floats to any format, in file layout.
#pragma once

#include <cstddef>
#include <span>

#include "engine/weights/formats.h"
#include "runtime/result.h"

namespace hearth {

// Quantizes one or more consecutive rows. F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1 and MXFP4 give
// the same bytes as llama.cpp; the other formats use a search of their own for scales, as accurate
// as llama.cpp's. Pure; several threads may quantize different rows. Fails if a weight is not
// finite and the format cannot store it. REQUIRES: `row` is a whole number of blocks, and `out` has
// their size.
Status quantize_row(WeightFormat format, std::span<const float> row, std::span<std::byte> out);

}  // namespace hearth
