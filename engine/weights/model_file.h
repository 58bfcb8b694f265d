// A model as it lies on disk or in the program itself, checked but not loaded: what it says about
// itself, and where its tensors are. One vocabulary for all kinds of files, which is GGUF's: a
// Hugging Face folder is translated while it is opened (metadata keys and tensor names), so that
// architectures know one set of names.
//
// Opening reads headers only; tensors stay in the mapped file until somebody reads their bytes.
// Immutable after opening: any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/weights/formats.h"
#include "engine/weights/metadata.h"
#include "runtime/result.h"

namespace hearth {

enum class FileKind {
  kGguf,
  // Differs from GGUF in what converters change: the heads of q and k of llama models are not
  // permuted (rope turns halves instead of neighbours), and gemma's norm weights lack their 1.
  kHuggingFace,
};

struct ModelTensor {
  std::string name;            // GGUF's: "blk.0.attn_q.weight"
  WeightFormat format;         // norms and biases are F32, or F16 or BF16 in Hugging Face folders
  std::uint32_t matrices = 1;  // more than one lie one after the other, and rows counts all theirs
  std::uint64_t rows = 1, cols = 0;  // a vector has one row; cols are consecutive in memory
  std::span<const std::byte> bytes;  // file layout, in the mapping
};

class ModelFile {
 public:
  // A .gguf file (the first or any of a split set) or a Hugging Face folder. Errors say what is
  // wrong and where.
  static Result<std::unique_ptr<ModelFile>> open(const std::filesystem::path& path);
  // A GGUF file that lies in memory, which must outlive it: the embedded default model.
  static Result<std::unique_ptr<ModelFile>> from_memory(std::span<const std::byte> gguf,
                                                        std::string name);
  virtual ~ModelFile() = default;
  ModelFile(const ModelFile&) = delete;
  ModelFile& operator=(const ModelFile&) = delete;

  FileKind kind() const { return kind_; }
  const std::string& name() const { return name_; }  // for messages: the path as it was given
  const Metadata& metadata() const { return metadata_; }
  std::span<const ModelTensor> tensors() const { return tensors_; }
  // Null where there is no such tensor.
  const ModelTensor* find(std::string_view tensor) const;

  // Only in Hugging Face folders: the files that hold the vocabulary and the chat template.
  const std::optional<std::string_view>& tokenizer_json() const { return tokenizer_json_; }
  const std::optional<std::string_view>& tokenizer_config_json() const {
    return tokenizer_config_json_;
  }

 protected:
  ModelFile(FileKind kind, std::string name) : kind_(kind), name_(std::move(name)) {}

  FileKind kind_;
  std::string name_;
  Metadata metadata_;
  std::vector<ModelTensor> tensors_;  // in order of name
  std::optional<std::string_view> tokenizer_json_, tokenizer_config_json_;
};

}  // namespace hearth
