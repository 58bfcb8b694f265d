// Reads the keys of an architecture from a file's metadata: "<architecture>.block_count" and so on,
// in GGUF's vocabulary (engine/weights/hugging_face/README.md). Collects the first error, so that a list of keys
// reads as a list.
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

  // `key` is without the architecture. A missing one is an error unless there is a default.
  uint32_t count(std::string_view key);
  uint32_t count(std::string_view key, uint32_t otherwise);
  double number(std::string_view key);
  double number(std::string_view key, double otherwise);
  std::string text(std::string_view key, std::string_view otherwise);
  std::vector<float> numbers(std::string_view key);  // empty where it is missing
  // Which layers have a window: a list of truth values, or the period N of those that have none.
  // Empty where the file does not say.
  std::vector<bool> window_pattern(uint32_t layers);
  // The values of an F32 tensor; empty where it is missing.
  std::vector<float> tensor(std::string_view name);

  // What every architecture has: sizes, heads, context, norm epsilon, rope.
  ModelConfig common();

  // Says that something is wrong, unless something was before.
  void fail(std::string what);
  // `config` if all went well and its numbers make sense together.
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
