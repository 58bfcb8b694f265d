// Finds models by name: what -m takes, and what `hearth list` shows. Reads folders, never the
// models themselves. Any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/result.h"

namespace hearth {

struct LibraryModel {
  std::string name;            // model_name(), as people read it
  std::filesystem::path path;  // for ModelFile::open(); empty: the model in the program itself
  std::string format;          // "GGUF", "safetensors" or "built in"
  uint64_t bytes = 0;          // of its weights on disk
};

// Where models are looked for by name: $HEARTH_MODELS, otherwise $XDG_DATA_HOME/hearth/models,
// otherwise ~/.local/share/hearth/models. Empty if not even $HOME is set.
std::filesystem::path models_folder();

// The .gguf files and Hugging Face folders in a folder and two levels below it, by name. A split
// set is one model. Empty for a folder that does not exist.
std::vector<LibraryModel> list_models(const std::filesystem::path& folder);

// The model that `wanted` means. In this order: "" is the built-in model; a path that exists; such
// a path in `folder`, with or without ".gguf"; a name in `folder`, in any case, whole or as much of
// it as only one model begins with; the same for the built-in model. An error lists the models that
// `wanted` may have meant.
Result<LibraryModel> find_model(const std::string& wanted, const std::filesystem::path& folder);
Result<LibraryModel> find_model(const std::string& wanted);  // in models_folder()

}  // namespace hearth
