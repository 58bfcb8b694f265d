#include "engine/weights/model_file.h"

#include <algorithm>
#include <system_error>

#include <fmt/format.h>

#include "engine/weights/gguf_file.h"
#include "engine/weights/hugging_face/folder.h"

namespace hearth {
namespace {

template <class File>
Result<std::unique_ptr<ModelFile>> as_model_file(Result<std::unique_ptr<File>> file) {
  if (!file.ok()) return std::move(file).error();
  return std::unique_ptr<ModelFile>(std::move(file).value());
}

}  // namespace

Result<std::unique_ptr<ModelFile>> ModelFile::open(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    return as_model_file(HuggingFaceFolder::open(path));
  return as_model_file(GgufFile::open(path));
}

Result<std::unique_ptr<ModelFile>> ModelFile::from_memory(std::span<const std::byte> gguf,
                                                          std::string name) {
  return as_model_file(GgufFile::from_memory(gguf, std::move(name)));
}

const ModelTensor* ModelFile::find(std::string_view tensor) const {
  const auto found =
      std::lower_bound(tensors_.begin(), tensors_.end(), tensor,
                       [](const ModelTensor& a, std::string_view name) { return a.name < name; });
  return found != tensors_.end() && found->name == tensor ? &*found : nullptr;
}

Status ModelFile::check_files() const {
  for (const MappedFile& mapping : mappings_) HEARTH_TRY(mapping.check());
  return {};
}

}  // namespace hearth
