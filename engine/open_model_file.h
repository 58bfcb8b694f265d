// What -m takes, for every command.
#pragma once

#include <memory>
#include <string>

#include "engine/weights/model_file.h"
#include "runtime/result.h"

namespace hearth {

// A .gguf file or a Hugging Face folder; an empty path is the model that is embedded in the
// program.
Result<std::unique_ptr<ModelFile>> open_model_file(const std::string& path);

}  // namespace hearth
