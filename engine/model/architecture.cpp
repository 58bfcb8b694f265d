#include "engine/model/architecture.h"

#include <array>

#include <fmt/format.h>

namespace hearth {

#define HEARTH_MODEL(name) const Architecture& name##_architecture();
#include "models.inc"  // written by the build from the files of engine/models/
#undef HEARTH_MODEL

std::span<const Architecture* const> all_architectures() {
  static const std::array all = {
#define HEARTH_MODEL(name) &name##_architecture(),
#include "models.inc"
#undef HEARTH_MODEL
  };
  return all;
}

Result<const Architecture*> find_architecture(const ModelFile& file) {
  HEARTH_ASSIGN(const auto name, file.metadata().text("general.architecture"));
  if (!name)
    return Error{ErrorKind::kInvalid,
                 fmt::format("{}: the file does not name its architecture", file.name())};
  std::string supported;
  for (const Architecture* architecture : all_architectures()) {
    if (architecture->name() == *name) return architecture;
    supported += fmt::format("{}{}", supported.empty() ? "" : ", ", architecture->name());
  }
  return Error{ErrorKind::kUnsupported,
               fmt::format("{}: architecture {} is not supported; the supported ones are {}",
                           file.name(), *name, supported)};
}

}  // namespace hearth
