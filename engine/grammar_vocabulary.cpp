#include "engine/grammar_vocabulary.h"

namespace hearth {

std::shared_ptr<const grammar::TokenTrie> make_token_trie(const Tokenizer& tokenizer) {
  std::vector<std::string> bytes(tokenizer.size());
  std::vector<grammar::TokenId> end_tokens;
  for (std::uint32_t id = 0; id < tokenizer.size(); ++id) {
    const bool ends = tokenizer.ends_generation(id);
    if (ends) end_tokens.push_back(id);
    const TokenKind kind = tokenizer.vocabulary().tokens[id].kind;
    if (kind == TokenKind::kUnknown || kind == TokenKind::kUnused) continue;
    bytes[id] = tokenizer.is_control(id) && !ends ? grammar::token_reference(id) : tokenizer.piece(id);
  }
  return grammar::TokenTrie::create(std::move(bytes), std::move(end_tokens));
}

}  // namespace hearth
