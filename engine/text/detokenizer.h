// Ids to text, one at a time, in whole characters. For one stream and one thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "engine/text/tokenizer.h"

namespace hearth {

class Detokenizer {
 public:
  // `after_text`: the stream continues a prompt, so a leading space belongs to the text. `shown`
  // are control tokens whose text counts even so; sorted, and must outlive the stream.
  explicit Detokenizer(const Tokenizer& tokenizer, bool after_text = true, bool special = false,
                       std::span<const std::uint32_t> shown = {})
      : tokenizer_(tokenizer), shown_(shown), after_text_(after_text), special_(special) {}

  // Returns the characters that are complete now. Bytes that can no longer become a character are
  // replaced by U+FFFD.
  std::string push(std::uint32_t id);
  // Returns the rest; an incomplete character is replaced by U+FFFD.
  std::string finish();

 private:
  const Tokenizer& tokenizer_;
  std::span<const std::uint32_t> shown_;
  bool after_text_, special_;
  std::string pending_;  // the first bytes of a character
};

}  // namespace hearth
