// Opens the model that -m names, for every command.
#pragma once

#include <memory>
#include <string>

#include "engine/weights/model_file.h"
#include "runtime/result.h"

namespace hearth {

// `path` is a .gguf file or a Hugging Face folder; empty means the embedded default model.
Result<std::unique_ptr<ModelFile>> open_model_file(const std::string& path);

}  // namespace hearth
