#include "ui/data/model_label.h"

#include <filesystem>

namespace hearth {

std::string model_label(std::string_view model) {
  if (model.empty()) return "the built-in model";
  std::filesystem::path path(model);
  if (!path.has_filename()) path = path.parent_path();  // "folder/"
  return (path.extension() == ".gguf" ? path.stem() : path.filename()).string();
}

}  // namespace hearth
