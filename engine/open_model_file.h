// Opens what -m takes, for every command and for the dashboard.
#pragma once

#include <memory>
#include <string>

#include "engine/weights/model_file.h"
#include "runtime/result.h"

namespace hearth {

// A path or a name as find_model() takes it (engine/model_library.h); "" is the built-in model.
Result<std::unique_ptr<ModelFile>> open_model_file(const std::string& model);

}  // namespace hearth
