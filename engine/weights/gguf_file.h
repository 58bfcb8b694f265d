// A model in one GGUF file or in a split set of them, "NAME-00001-of-00003.gguf": the first has the
// keys, each has some of the tensors.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/weights/gguf.h"
#include "engine/weights/mapped_file.h"
#include "engine/weights/model_file.h"

namespace hearth {

class GgufFile : public ModelFile {
 public:
  // Any file of a split set opens all of it.
  static Result<std::unique_ptr<GgufFile>> open(const std::filesystem::path& path);
  // What lies in memory must outlive the object, and be whole: no part of a split set.
  static Result<std::unique_ptr<GgufFile>> from_memory(std::span<const std::byte> gguf,
                                                       std::string name);

  // The keys as they lie in the (first) file.
  std::span<const GgufKey> keys() const { return keys_; }
  // Whether the file of this path is (one of) the file's own, under whatever name.
  bool consists_of(const std::filesystem::path& path) const;

 private:
  explicit GgufFile(std::string name) : ModelFile(FileKind::kGguf, std::move(name)) {}

  // Maps a file of a split set and takes its tensors; the first one's keys too.
  Status add_part(const std::filesystem::path& path, std::uint64_t index, std::uint64_t count);
  void take_keys(GgufImage& image);

  std::vector<std::filesystem::path> paths_;
  std::vector<MappedFile> mappings_;
  std::vector<GgufKey> keys_;
};

}  // namespace hearth
