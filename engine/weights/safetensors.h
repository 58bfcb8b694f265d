// A safetensors file in memory: eight bytes of length, a JSON header, the tensors' bytes.
//
// The header is read as a stream and never held as a tree; reading takes less than twice the file.
// Pure: any thread.
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

// What a tensor is to be called; nothing for one to be left out.
using TensorNaming = std::function<std::optional<std::string>(std::string_view name)>;

// F32, F16 and BF16 tensors; any other type is refused, except in tensors that are left out. Errors
// say at which byte or tensor; the caller knows the file's name. `bytes` must outlive the tensors,
// which are in the file's order.
Result<std::vector<ModelTensor>> read_safetensors(std::span<const std::byte> bytes,
                                                  const TensorNaming& naming);

// The header's JSON, checked for length.
Result<std::string_view> safetensors_header(std::span<const std::byte> bytes);

}  // namespace hearth
