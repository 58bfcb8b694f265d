// The automaton of a grammar: an Earley recogniser over lexemes whose sets ("rows") are shared and
// never change. A row is a set of (rule state, row where the rule began); equal rows have equal
// ids, so a parse state is a few integers, going back means keeping old ones, and whatever was
// computed for a row holds wherever the grammar gets there again.
//
// Belongs to one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/grammar/lexer.h"
#include "engine/grammar/rules.h"

namespace hearth::grammar {

using RowId = std::uint32_t;
inline constexpr RowId kNoRow = 0xFFFFFFFF;

// One way to read the text so far: a lexeme that began at `row` and is in state `lex`.
struct Reading {
  LexState lex = kDeadLexState;
  RowId row = 0;
  std::uint32_t characters = 0;  // read of a counted string
  auto operator<=>(const Reading&) const = default;
};

// All ways to read it. Usually there is one, or two after a number.
struct ParseState {
  std::vector<Reading> readings;
  bool may_end = false;  // the text is complete
  bool dead() const { return readings.empty() && !may_end; }
  bool operator==(const ParseState&) const = default;
};

class Automaton {
 public:
  explicit Automaton(std::shared_ptr<const GrammarData> grammar);

  const ParseState& start() const { return start_; }
  // `to` must not be `from`.
  void step(const ParseState& from, std::uint8_t byte, ParseState& to);
  // The row after a lexeme that began at `row`, or kNoRow.
  RowId after(RowId row, LexemeId lexeme);
  // Adds what can be read from a row on.
  void enter(RowId row, ParseState& state) const;
  // The only byte that can follow, or -1 if there are none or several, or the text may end.
  int only_byte(const ParseState& state);

  Lexer& lexer() { return lexer_; }
  // True once a limit is reached; texts beyond it are refused.
  bool exhausted() const { return exhausted_ || lexer_.exhausted(); }
  // Whether it holds so much that a new one should be begun.
  bool full() const { return lexer_.size() > 30'000 || rows_.size() > 100'000; }

 private:
  static constexpr RowId kThisRow = 0xFFFFFFFE;
  struct Item {
    RuleState state = 0;
    RowId origin = 0;
    auto operator<=>(const Item&) const = default;
  };
  struct Move {
    std::uint32_t symbol = 0;
    Item to;
  };
  struct Row {
    std::vector<Item> key;
    std::vector<Move> scans, calls;  // sorted by symbol
    bool accepts = false;
    LexState lex = kDeadLexState;
  };

  RowId make_row(std::vector<Item> kernel);

  std::shared_ptr<const GrammarData> grammar_;
  RuleStates states_;
  Lexer lexer_;
  std::vector<Row> rows_;
  std::unordered_multimap<std::uint64_t, RowId> ids_;
  std::unordered_map<std::uint64_t, RowId> after_;
  ParseState start_;
  bool exhausted_ = false;
};

}  // namespace hearth::grammar
