#include "engine/open_model_file.h"

#include "models/default_model.h"

namespace hearth {

Result<std::unique_ptr<ModelFile>> open_model_file(const std::string& path) {
  if (path.empty()) return ModelFile::from_memory(default_model(), "the default model");
  return ModelFile::open(path);
}

}  // namespace hearth
