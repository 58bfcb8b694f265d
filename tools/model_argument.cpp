#include "tools/model_argument.h"

namespace hearth {

Result<std::unique_ptr<ModelFile>> open_model(const std::string& path) {
  if (!path.empty()) return ModelFile::open(path);
  return Error{ErrorKind::kNotFound, "there is no embedded model in this build; name one with -m"};
}

}  // namespace hearth
