// The lexer: which lexemes the bytes read so far may be the beginning of. A state is a set of
// (lexeme, position in its bytes, expression for the rest); states and their transitions are made
// as they are reached. JSON strings are decoded on the way: expressions see characters, not
// escapes.
//
// Belongs to one thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/grammar/expression.h"

namespace hearth::grammar {

using LexemeId = std::uint32_t;
using LexState = std::uint32_t;
inline constexpr LexState kDeadLexState = 0;

struct Lexeme {
  enum class Kind : std::uint8_t {
    kPlain,       // the expression's UTF-8
    kJson,        // the same, after optional white space
    kJsonString,  // optional white space, and a JSON string whose value matches the expression
    kToken,       // kTokenMark and the expression, see token_trie.h
  };
  Kind kind = Kind::kPlain;
  ExprId expression = kNothing;
};

class Lexer {
 public:
  Lexer(ExpressionPool pool, std::vector<Lexeme> lexemes, std::uint32_t max_whitespace);

  // The state before the first byte of any of `lexemes`, which are sorted.
  LexState start(std::span<const LexemeId> lexemes);
  // The state after one more byte, or kDeadLexState. Every other state can still become a lexeme.
  LexState next(LexState state, std::uint8_t byte) {
    const std::int32_t known = next_[state * 256 + byte];
    return known >= 0 ? static_cast<LexState>(known) : make_next(state, byte);
  }
  // The lexemes that may end here.
  std::span<const LexemeId> accepted(LexState state) const { return states_[state].accepted; }
  bool accepts(LexState state) const { return (flags_[state] & kAccepts) != 0; }
  // Whether nothing can follow: the lexeme has ended.
  bool ended(LexState state) const { return (flags_[state] & kEnded) != 0; }

  // A string lexeme that only limits the number of characters is not unrolled into a state per
  // length. Its states are `counted`: a caller that steps through them counts characters, see
  // count().
  bool counted(LexState state) const { return (flags_[state] & kCounted) != 0; }
  // For a step from one counted state to another: the new number of characters, or -1 if the step
  // is not possible with this many.
  std::int64_t count(LexState from, LexState to, std::uint32_t characters) const;
  // Inside a JSON string, between two characters.
  bool between_characters(LexState state) const { return (flags_[state] & kBetween) != 0; }

  // States in a string of which (almost) any continuation is possible. `lexeme` may end everywhere
  // except after the texts in `excluded`, where other lexemes may.
  struct OpenString {
    LexemeId lexeme = 0;
    std::vector<std::u32string> excluded;
  };
  bool open_string(LexState state, OpenString* open) const;

  // The only byte that can follow, or -1 if there are none or several.
  int only_byte(LexState state);

  const Lexeme& lexeme(LexemeId id) const { return lexemes_[id]; }
  bool can_be_empty(LexemeId id) const {
    return lexemes_[id].kind == Lexeme::Kind::kPlain && pool_.nullable(lexemes_[id].expression);
  }
  // Length limits of a counted state.
  std::uint32_t min_count(LexState state) const { return states_[state].min; }
  std::uint32_t max_count(LexState state) const { return states_[state].max; }
  std::size_t size() const { return states_.size(); }
  // True once a limit is reached; all new states are dead then.
  bool exhausted() const { return exhausted_ || pool_.exhausted(); }

 private:
  struct Pair {
    LexemeId lexeme = 0;
    std::uint32_t position = 0;  // see position.h
    ExprId rest = kNothing;
    auto operator<=>(const Pair&) const = default;
  };
  struct State {
    std::vector<Pair> pairs;
    std::vector<LexemeId> accepted;
    std::uint32_t min = 0, max = kUnbounded;
    std::int32_t only_byte = -2;  // not known yet
  };
  enum Flag : std::uint8_t { kAccepts = 1, kEnded = 2, kCounted = 4, kBetween = 8, kInString = 16 };

  LexState make_next(LexState state, std::uint8_t byte);
  LexState intern(std::vector<Pair> pairs);
  bool step(Pair& pair, std::uint8_t byte);
  bool step_raw(Pair& pair, std::uint8_t byte, bool in_string);
  bool step_escape(Pair& pair, std::uint8_t byte);
  bool step_hex(Pair& pair, std::uint8_t byte);
  bool take_character(Pair& pair, char32_t c, bool in_string);
  bool begin_tail(Pair& pair, char32_t low, char32_t high, std::uint32_t missing, bool in_string);
  bool any_live(ExprId rest, char32_t low, char32_t high);
  bool is_open(ExprId rest) const;

  ExpressionPool pool_;
  std::vector<Lexeme> lexemes_;
  std::uint32_t max_whitespace_ = 0;
  std::vector<State> states_;
  std::vector<std::uint8_t> flags_;
  std::vector<std::int32_t> next_;
  std::unordered_multimap<std::uint64_t, LexState> ids_;
  bool exhausted_ = false;
};

}  // namespace hearth::grammar
