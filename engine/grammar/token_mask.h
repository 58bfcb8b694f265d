// Token masks: which tokens may follow a parse state. Walks the trie with the lexer alone as far as
// possible and keeps the result per lexer state; only what follows the end of a lexeme needs the
// rows.
//
// Belongs to one thread at a time, together with its automaton.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "engine/grammar/automaton.h"
#include "engine/grammar/token_trie.h"

namespace hearth::grammar {

class TokenMasks {
 public:
  TokenMasks(std::shared_ptr<const TokenTrie> trie, Automaton& automaton);

  // Sets the bits of the tokens that may follow, and of the end tokens if the text may end; clears
  // all others. REQUIRES: mask.size() == trie->mask_words().
  void compute(const ParseState& state, MaskSpan mask);

 private:
  // The places where tokens go past the end of a lexeme.
  struct Exit {
    LexemeId lexeme = 0;
    std::uint32_t characters = 0;      // of a counted string, when it ends
    std::vector<std::uint32_t> nodes;  // of the trie: everything below each may follow the lexeme
    FlatTrie merged;                   // the same as one trie, if there are many nodes
  };
  // What a lexer state allows, as far as the lexer alone can tell.
  struct LexTokens {
    bool open = false;  // inside a string: the string tables, but for `exceptions`
    LexemeId open_lexeme = 0;
    struct Exception {
      std::uint32_t node = 0;  // a quote after an excluded text
      std::vector<LexemeId> lexemes;
    };
    std::vector<Exception> exceptions;
    std::vector<TokenId> few;         // tokens that stay inside the lexeme, if they are few
    std::vector<std::uint32_t> many;  // a mask, otherwise
    std::vector<Exit> exits;
    std::size_t bytes() const;
  };

  const LexTokens& lex_tokens(LexState state);
  LexTokens make_lex_tokens(LexState state);
  void add_reading(const Reading& reading, MaskSpan mask);
  void add_open_string(const Reading& reading, const LexTokens& tokens, MaskSpan mask);
  // Walks below `node`; sets the tokens of `node` itself, too, since `state` is alive there.
  void walk(const FlatTrie& trie, std::uint32_t node, const ParseState& state, MaskSpan mask);

  std::shared_ptr<const TokenTrie> trie_;
  Automaton& automaton_;
  Lexer& lexer_;
  std::unordered_map<LexState, std::unique_ptr<LexTokens>> lex_tokens_;
  std::size_t lex_bytes_ = 0;
  struct Known {
    ParseState state;
    std::vector<std::uint32_t> mask;
  };
  std::unordered_map<std::uint64_t, Known> masks_;
  std::vector<ParseState> stack_;    // of walk(), by depth
  std::vector<LexState> lex_stack_;  // of make_lex_tokens(), by depth
  // While walking the closing tokens of a counted string: how many characters it may have.
  std::uint32_t min_label_ = 0, max_label_ = kUnbounded;
};

}  // namespace hearth::grammar
