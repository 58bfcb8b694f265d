// Splits a text into words; byte-pair merges do not cross them. A model file names the
// pre-tokenizer it was trained with; pretokenize.cpp has the table of names and patterns, one line
// each. Immutable after creation; any thread may use it.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/result.h"

namespace hearth {

class Pretokenizer {
 public:
  // `name` is the name used in GGUF files. The error lists the known names.
  static Result<std::unique_ptr<Pretokenizer>> create(std::string_view name);
  ~Pretokenizer();
  Pretokenizer(const Pretokenizer&) = delete;
  Pretokenizer& operator=(const Pretokenizer&) = delete;

  // Calls `word` for each word in order. Every byte of `text` is in exactly one word; invalid UTF-8
  // bytes are words of their own.
  void split(std::string_view text, const std::function<void(std::string_view)>& word) const;

 private:
  class Stage;
  Pretokenizer();

  std::vector<std::unique_ptr<Stage>> stages_;
};

// The name for a list of patterns, spelt as in Hugging Face's tokenizer.json; empty if unknown.
std::string_view pretokenizer_name(std::span<const std::string> patterns);
// The pattern that "ByteLevel with use_regex" means there.
std::string_view gpt2_pattern();
// All names, separated by commas.
std::string pretokenizer_names();

}  // namespace hearth
