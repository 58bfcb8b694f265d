// A Hugging Face folder: config.json, *.safetensors with or without an index, tokenizer.json,
// tokenizer_config.json, generation_config.json, chat_template.jinja.
#pragma once

#include <deque>
#include <filesystem>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "engine/weights/hugging_face/config.h"
#include "engine/weights/model_file.h"
#include "engine/weights/model_name.h"

namespace hearth {

class HuggingFaceFolder : public ModelFile {
 public:
  // A folder with tokenizer.json and without config.json has no metadata and no tensors: it is good
  // for text alone. One without *.safetensors has no tensors.
  static Result<std::unique_ptr<HuggingFaceFolder>> open(const std::filesystem::path& path);

 private:
  explicit HuggingFaceFolder(std::filesystem::path path)
      : ModelFile(FileKind::kHuggingFace, model_name(path)), path_(std::move(path)) {}

  Status read();
  Result<std::vector<std::string>> weight_files() const;
  Status read_weights(const hugging_face::Config& config);
  Status read_texts();
  // Reads a text for the lifetime of this object; empty if there is none.
  Result<std::optional<std::string_view>> keep(const std::string& file);

  std::filesystem::path path_;
  std::list<std::string> texts_;  // what keep() has read
  std::deque<TensorStrides> strides_;
};

}  // namespace hearth
