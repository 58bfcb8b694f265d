// Reads rows of a tensor in file layout, wherever they are in the file (TensorStrides).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/weights/model_file.h"

namespace hearth {

// REQUIRES: first + count <= tensor.rows; `out` has the bytes of that many rows. The tensor's
// strides, if any, stay within its bytes.
void read_tensor_rows(const ModelTensor& tensor, std::uint64_t first, std::uint64_t count,
                      std::span<std::byte> out);

}  // namespace hearth
