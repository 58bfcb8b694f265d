// A model in one GGUF file, or in several ("NAME-00001-of-00003.gguf"), of which the first has the
// keys and each has some of the tensors.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/weights/gguf.h"
#include "engine/weights/model_file.h"

namespace hearth {

class GgufFile : public ModelFile {
 public:
  // `path` may be any file of a split set; all of it is opened.
  static Result<std::unique_ptr<GgufFile>> open(const std::filesystem::path& path);
  // `gguf` must outlive the object, and must not be part of a split set.
  static Result<std::unique_ptr<GgufFile>> from_memory(std::span<const std::byte> gguf,
                                                       std::string name);

  // The keys of the (first) file, in file layout.
  std::span<const GgufKey> keys() const { return keys_; }
  // Whether `path` is one of this model's files, possibly under another name.
  bool consists_of(const std::filesystem::path& path) const;

 private:
  explicit GgufFile(std::string name) : ModelFile(FileKind::kGguf, std::move(name)) {}

  // Maps one file of a split set and adds its tensors and, for the first file, its keys.
  Status add_part(const std::filesystem::path& path, std::uint64_t index, std::uint64_t count);
  void take_keys(GgufImage& image);

  std::vector<std::filesystem::path> paths_;
  std::vector<GgufKey> keys_;
};

}  // namespace hearth
