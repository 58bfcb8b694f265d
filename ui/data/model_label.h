// What the dashboard calls a model, wherever it shows one. The same name as the server's model id.
#pragma once

#include <string>
#include <string_view>

namespace hearth {

// The readable name of what -m takes or of ModelFile::name(): never a path, and without ".gguf".
// Empty is the built-in model.
std::string model_label(std::string_view model);

}  // namespace hearth
