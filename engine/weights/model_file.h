// A model file on disk or embedded in the program, checked but not loaded: its metadata, and where
// its tensors are. Names are GGUF's for all kinds of files: a Hugging Face folder is translated
// while it is opened (metadata keys and tensor names), so that architectures need to know only one
// set of names.
//
// Opening reads only headers; tensors stay in the mapped file until their bytes are read. Immutable
// after opening; any thread may use it. Another program may make a file shorter at any time: see
// check_files().
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
#include "engine/weights/mapped_file.h"
#include "engine/weights/metadata.h"
#include "runtime/result.h"

namespace hearth {

enum class FileKind {
  kGguf,
  // Lacks two changes that GGUF converters make: q and k heads of llama models are not permuted
  // (rope pairs halves instead of neighbours), and 1 is not added to gemma's norm weights.
  kHuggingFace,
};

// Where a tensor's rows are in the file if they do not follow each other: experts whose matrices
// are transposed, or in which gates and ups take turns. Element (r, c) of matrix m is element first
// + m * matrix + r * row + c * col of `bytes`.
struct TensorStrides {
  std::uint64_t first = 0, matrix = 0, row = 0, col = 1;
  // MXFP4 in two tensors: `bytes` has the nibbles of all blocks, with neighbours in one byte, and
  // this the exponents. Strides then count rows instead of elements, and blocks are consecutive.
  std::span<const std::byte> exponents = {};
};

struct ModelTensor {
  std::string name;            // GGUF's: "blk.0.attn_q.weight"
  WeightFormat format;         // norms and biases are F32, or F16 or BF16 in Hugging Face folders
  std::uint32_t matrices = 1;  // stored one after the other; `rows` counts the rows of all
  std::uint64_t rows = 1, cols = 0;  // a vector has one row; cols are consecutive in memory
  std::span<const std::byte> bytes;  // file layout, in the mapping
  // If set, stored_tensor.h reads the tensor. A pointer, because files may have many tensors and
  // few of them such strides.
  const TensorStrides* strides = nullptr;

  // In file layout, with rows one after the other.
  std::uint64_t plain_bytes() const {
    const FormatInfo& info = format_info(format);
    return rows * (cols / info.block_weights) * info.block_bytes;
  }
};

class ModelFile {
 public:
  // A .gguf file (the first or any of a split set) or a Hugging Face folder. Errors say what is
  // wrong and where.
  static Result<std::unique_ptr<ModelFile>> open(const std::filesystem::path& path);
  // Opens a GGUF file in memory, which must outlive the object, such as the embedded default model.
  static Result<std::unique_ptr<ModelFile>> from_memory(std::span<const std::byte> gguf,
                                                        std::string name);
  virtual ~ModelFile() = default;
  ModelFile(const ModelFile&) = delete;
  ModelFile& operator=(const ModelFile&) = delete;

  FileKind kind() const { return kind_; }
  const std::string& name() const { return name_; }  // model_name(): what people call it
  const Metadata& metadata() const { return metadata_; }
  std::span<const ModelTensor> tensors() const { return tensors_; }
  // Null if there is no such tensor.
  const ModelTensor* find(std::string_view tensor) const;
  // Fails, naming the file, if one has become shorter since it was opened or could not be read. Its
  // bytes are then zeros, so call this after reading metadata or tensors, before relying on them.
  Status check_files() const;

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
  std::vector<MappedFile> mappings_;
};

}  // namespace hearth
