// Ids to text as they come, never half a character. One stream, one thread.
#pragma once

#include <cstdint>
#include <string>

#include "engine/text/tokenizer.h"

namespace hearth {

class Detokenizer {
 public:
  // `after_text`: the stream goes on a prompt, so that a leading space belongs to the text.
  explicit Detokenizer(const Tokenizer& tokenizer, bool after_text = true, bool special = false)
      : tokenizer_(tokenizer), after_text_(after_text), special_(special) {}

  // The characters that are complete now. Bytes that can no longer become one are U+FFFD.
  std::string push(std::uint32_t id);
  // What is left at the end, incomplete characters as U+FFFD.
  std::string finish();

 private:
  const Tokenizer& tokenizer_;
  bool after_text_, special_;
  std::string pending_;  // the beginning of a character
};

}  // namespace hearth
