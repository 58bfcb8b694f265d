// The model a command was asked for by -m.
#pragma once

#include <memory>
#include <string>

#include "engine/weights/model_file.h"
#include "runtime/result.h"

namespace hearth {

// A .gguf file or a Hugging Face folder; an empty path is the embedded default model.
Result<std::unique_ptr<ModelFile>> open_model(const std::string& path);

}  // namespace hearth
