#include "engine/open_model_file.h"

#include "engine/model_library.h"
#include "models/default_model.h"

namespace hearth {

Result<std::unique_ptr<ModelFile>> open_model_file(const std::string& model) {
  HEARTH_ASSIGN(const LibraryModel found, find_model(model));
  if (found.path.empty()) return ModelFile::from_memory(default_model(), found.name);
  return ModelFile::open(found.path);
}

}  // namespace hearth
