// Watches a text for the string that a grammar begins after, such as the mark of a tool call. Until
// then any token may come, except for those that go on after the string with what the grammar
// refuses. Copies are cheap. Used by one thread at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/grammar/matcher.h"
#include "engine/ids.h"

namespace hearth {

class Tokenizer;

class GrammarTrigger {
 public:
  // `tokenizer` outlives this. REQUIRES: `text` is not empty.
  GrammarTrigger(std::string text, const grammar::TokenTrie& trie, const Tokenizer& tokenizer);

  // Adds a token. Once the string is complete, returns what the token has after it.
  std::optional<std::string> push(TokenId token);
  // Clears the bits of the tokens that would complete the string and go on with what `grammar`, at
  // its beginning, refuses.
  void mask(const grammar::Matcher& grammar, grammar::MaskSpan bits) const;

 private:
  // A token that begins with the last `matched` bytes of the string, or has all of it, and goes on.
  struct Crossing {
    TokenId token = 0;
    size_t matched = 0;
  };

  const Tokenizer* tokenizer_;
  std::shared_ptr<const std::string> text_;
  std::shared_ptr<const std::vector<Crossing>> crossings_;
  std::string seen_;  // the last bytes, fewer than the string has
};

}  // namespace hearth
