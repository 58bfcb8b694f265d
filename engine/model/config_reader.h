// Reads the keys of an architecture from a file's metadata: "<architecture>.block_count" and so on,
// with GGUF's names (engine/weights/hugging_face/README.md). Keeps the first error until finish(),
// so that reading many keys needs no error handling in between.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/model/model_config.h"
#include "engine/weights/model_file.h"
#include "runtime/result.h"

namespace hearth {

class ConfigReader {
 public:
  ConfigReader(const ModelFile& file, std::string_view architecture)
      : file_(file), architecture_(architecture) {}

  // `key` does not include the architecture. A missing key is an error unless there is a default.
  uint32_t count(std::string_view key);
  uint32_t count(std::string_view key, uint32_t otherwise);
  double number(std::string_view key);
  double number(std::string_view key, double otherwise);
  bool flag(std::string_view key, bool otherwise);
  std::string text(std::string_view key, std::string_view otherwise);
  std::vector<float> numbers(std::string_view key);  // empty if missing
  // Which layers have a window: the file has a list of booleans, or the period N of the layers
  // without one. Empty if the file does not say.
  std::vector<bool> window_pattern(uint32_t layers);
  // The values of an F32 tensor; empty if it is missing.
  std::vector<float> tensor(std::string_view name);

  // The keys that all architectures share: sizes, heads, context, norm epsilon, rope.
  ModelConfig common();

  // The keys of a mixture of experts, if the file has one. REQUIRES: `config` is from common().
  void experts(ModelConfig& config);
  // The same for an architecture that always has one.
  void need_experts(ModelConfig& config);

  // Records an error, unless there is one already.
  void fail(std::string what);
  // Returns `config` if there was no error and its numbers are consistent.
  Result<ModelConfig> finish(ModelConfig config) const;

 private:
  std::string full(std::string_view key) const;
  template <class T>
  std::optional<T> take(Result<std::optional<T>> result);
  RopeConfig rope();

  const ModelFile& file_;
  std::string_view architecture_;
  std::optional<Error> error_;
};

}  // namespace hearth
