// A tokenizer's vocabulary as grammars need it.
#pragma once

#include <memory>
#include <mutex>

#include "engine/grammar/token_trie.h"
#include "engine/text/tokenizer.h"

namespace hearth {

// Control tokens are references, which only a grammar that names them allows. Takes about 0.2 s for
// 128k tokens, so callers keep it. Pure.
std::shared_ptr<const grammar::TokenTrie> make_token_trie(const Tokenizer& tokenizer);

// The same, made when it is first asked for. Any thread may use it.
class GrammarVocabulary {
 public:
  // `tokenizer` outlives this.
  explicit GrammarVocabulary(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  std::shared_ptr<const grammar::TokenTrie> trie() {
    std::call_once(made_, [this] { trie_ = make_token_trie(tokenizer_); });
    return trie_;
  }

 private:
  const Tokenizer& tokenizer_;
  std::once_flag made_;
  std::shared_ptr<const grammar::TokenTrie> trie_;
};

}  // namespace hearth
