// Cuts a text into the words that byte-pair merges stay within. Which cuts a model was trained with
// is a name in its file; the table of names and patterns is in pretokenize.cpp, one line each.
// Immutable after creation: any thread.
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
  // By GGUF's name of it. The error lists the names there are.
  static Result<std::unique_ptr<Pretokenizer>> create(std::string_view name);
  ~Pretokenizer();
  Pretokenizer(const Pretokenizer&) = delete;
  Pretokenizer& operator=(const Pretokenizer&) = delete;

  // Every byte of `text` is in exactly one word, in order. Bytes that are not UTF-8 are words of
  // their own.
  void split(std::string_view text, const std::function<void(std::string_view)>& word) const;

 private:
  class Stage;
  Pretokenizer();

  std::vector<std::unique_ptr<Stage>> stages_;
};

// The name of a list of patterns as Hugging Face's tokenizer.json spells them; empty if unknown.
std::string_view pretokenizer_name(std::span<const std::string> patterns);
// The pattern that stands for "ByteLevel with use_regex" there.
std::string_view gpt2_pattern();
// Every name, separated by commas.
std::string pretokenizer_names();

}  // namespace hearth
