// A tokenizer's vocabulary as grammars need it. Pure.
#pragma once

#include <memory>

#include "engine/grammar/token_trie.h"
#include "engine/text/tokenizer.h"

namespace hearth {

// Control tokens are left out, except for those that end generation. Takes about 0.2 s for 128k
// tokens, so callers keep it.
std::shared_ptr<const grammar::TokenTrie> make_token_trie(const Tokenizer& tokenizer);

}  // namespace hearth
