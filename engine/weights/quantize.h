// Floats to weights of any format, in file layout.
#pragma once

#include <cstddef>
#include <span>

#include "engine/weights/formats.h"
#include "runtime/result.h"

namespace hearth {

// Quantizes a row, or several one after the other. F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1 and
// MXFP4 give the bytes llama.cpp gives; the other formats search for scales of their own, as close
// to the weights as llama.cpp's. Pure; rows may be quantized by several threads. Fails where a
// weight is no finite number and the format cannot hold it. REQUIRES: row is a whole number of
// blocks, out the bytes of as many.
Status quantize_row(WeightFormat format, std::span<const float> row, std::span<std::byte> out);

}  // namespace hearth
