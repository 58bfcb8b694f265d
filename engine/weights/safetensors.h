// Reads a safetensors file in memory: eight bytes of length, a JSON header, the tensors' bytes.
//
// The header is parsed as a stream and never kept as a tree; reading takes less than twice the
// file's size. Pure.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/weights/model_file.h"
#include "runtime/result.h"

namespace hearth {

// Tensors of bytes are read only if their names, as `naming` returns them, end like this. They have
// one row of bytes per row of blocks, and MXFP4 as their format.
inline constexpr std::string_view kMxfp4Blocks = ".mxfp4_blocks";
inline constexpr std::string_view kMxfp4Exponents = ".mxfp4_exponents";

// Maps a tensor's name to the one to use; empty to leave the tensor out.
using TensorNaming = std::function<std::optional<std::string>(std::string_view name)>;

// Reads F32, F16 and BF16 tensors, in the file's order. Any other type is refused, except in
// tensors that are left out. Errors name the byte or tensor; the caller adds the file name. `bytes`
// must outlive the tensors.
Result<std::vector<ModelTensor>> read_safetensors(std::span<const std::byte> bytes,
                                                  const TensorNaming& naming);

// The header's JSON, after checking its length.
Result<std::string_view> safetensors_header(std::span<const std::byte> bytes);

}  // namespace hearth
