// Watches a text for the string that a grammar begins after, such as the mark of a tool call, or
// that a text of the grammar begins with. Until then any token may come, except for tokens that
// continue after the string with text that the grammar refuses. Copies are cheap. Used by one
// thread at a time.
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
  struct Options {
    std::string text;
    // The string counts only where the text begins, after white space and the tag, if there is one,
    // and belongs to what the grammar describes.
    bool opens_text = false;
    std::string tag = {};
    // The text may begin with reasoning, in which the string does not count. Empty: it does not.
    std::string reasoning_open = {}, reasoning_close = {};
    bool in_reasoning = false;  // it begins inside of it
  };
  // `tokenizer` outlives this. REQUIRES: `options.text` is not empty.
  GrammarTrigger(const Options& options, const grammar::TokenTrie& trie,
                 const Tokenizer& tokenizer);

  // Adds a token. Once the string is complete, returns what of the text the grammar has to accept:
  // what the token has after the string, or the string and that.
  std::optional<std::string> push(TokenId token);
  // Clears the bits of the tokens that would complete the string and continue with what `grammar`,
  // at its beginning, refuses.
  void mask(const grammar::Matcher& grammar, grammar::MaskSpan bits) const;

 private:
  enum class Place {
    kStart,  // reasoning may begin
    kReasoning,
    kText,
    kOver,  // the string cannot come any more
  };
  // A token that begins with the last `matched` bytes of the string, or has all of it, and
  // continues.
  struct Crossing {
    TokenId token = 0;
    size_t matched = 0;
  };
  void leave_reasoning();
  std::optional<std::string> find_opening();

  const Tokenizer* tokenizer_;
  std::shared_ptr<const Options> options_;
  std::shared_ptr<const std::vector<Crossing>> crossings_;
  Place place_ = Place::kText;
  // At the start everything; later the last bytes, fewer than what is being looked for has.
  std::string seen_;
};

}  // namespace hearth
