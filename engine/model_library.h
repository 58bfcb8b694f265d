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

// Finds the model that `wanted` stands for, in this order: the built-in model if it is empty; an
// existing path; such a path in `folder`, with or without ".gguf"; a model of that name in
// `folder`; the built-in model by its name. Names match in any case, and a unique prefix is enough.
// An error lists the models that may have been meant.
Result<LibraryModel> find_model(const std::string& wanted, const std::filesystem::path& folder);
Result<LibraryModel> find_model(const std::string& wanted);  // in models_folder()

}  // namespace hearth
