// Reads model.safetensors.index.json, which says which file of a folder holds which tensor.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/result.h"

namespace hearth::hugging_face {

// The files it names, each once, sorted. A name that leads out of the folder is an error.
Result<std::vector<std::string>> read_weight_index(std::string_view json);

}  // namespace hearth::hugging_face
