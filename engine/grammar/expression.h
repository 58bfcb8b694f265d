// Regular expressions over code points, with intersection and complement, kept as a pool of shared
// nodes: equal expressions have equal ids, so an id can serve as the state of an automaton. The
// state after reading a character is the expression's derivative (Brzozowski), computed on demand
// by arcs().
//
// A pool belongs to one thread at a time. It never shrinks; it stops at a limit, see exhausted().
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/grammar/char_set.h"

namespace hearth::grammar {

using ExprId = std::uint32_t;
inline constexpr ExprId kNothing = 0;  // matches no text
inline constexpr ExprId kEpsilon = 1;  // matches only the empty text
inline constexpr ExprId kAnyText = 2;  // matches every text
inline constexpr std::uint32_t kUnbounded = 0xFFFFFFFF;

// A deterministic automaton over "0123456789-.", for conditions on a number's value.
struct DigitAutomaton {
  static constexpr int kSymbols = 12;  // '0'..'9', '-', '.'
  static constexpr std::int32_t kDead = -1;
  struct State {
    std::int32_t next[kSymbols];
    bool accepts = false;
  };
  std::vector<State> states;  // the first is the start
};

// Characters [low, high] lead to `target`.
struct Arc {
  char32_t low = 0, high = 0;
  ExprId target = kNothing;
};

class ExpressionPool {
 public:
  ExpressionPool();

  ExprId any_char() const { return any_char_; }
  ExprId char_set(const CharSet& set);
  ExprId literal(std::u32string_view text);
  ExprId literal(std::string_view utf8);
  // One of the texts. Duplicates are fine.
  ExprId one_of(std::vector<std::u32string> texts);
  ExprId concat(ExprId first, ExprId second);
  ExprId either(std::vector<ExprId> parts);
  ExprId either(ExprId a, ExprId b) { return either(std::vector<ExprId>{a, b}); }
  ExprId both(std::vector<ExprId> parts);
  ExprId both(ExprId a, ExprId b) { return both(std::vector<ExprId>{a, b}); }
  ExprId complement(ExprId part);
  // max may be kUnbounded.
  ExprId repeat(ExprId part, std::uint32_t min, std::uint32_t max);
  ExprId digits(DigitAutomaton automaton);

  bool nullable(ExprId id) const { return nodes_[id].nullable; }
  // The derivatives, sorted by character; a character outside of all arcs leads to kNothing.
  // Targets may match nothing if they contain intersections or complements: see is_live(). The
  // reference is good until the next call of a function that is not const.
  const std::vector<Arc>& arcs(ExprId id);
  ExprId derivative(ExprId id, char32_t c);
  bool matches(ExprId id, std::u32string_view text);
  // Whether any text matches. Searches at most `budget` states, and makes at
  // most a few times as many expressions; if that does not settle it, true.
  bool is_live(ExprId id, std::size_t budget = 20'000);
  // Whether is_live() has ever given up.
  bool gave_up() const { return gave_up_; }
  // True once the pool has reached its limit. Expressions made since then are meaningless, so
  // callers must stop using the pool.
  bool exhausted() const { return exhausted_; }
  void set_limit(std::size_t nodes) { limit_ = nodes; }
  std::size_t size() const { return nodes_.size(); }

  // For code that treats texts of bounded length apart: whether the expression is "any character,
  // min to max times".
  bool is_any_of_length(ExprId id, std::uint32_t* min, std::uint32_t* max) const;
  // Whether the expression is the complement of a finite list of texts; if so, `rest` gets what is
  // left of each, empty if the expression is kAnyText.
  bool excludes_few(ExprId id, std::vector<std::u32string>* rest) const;
  bool excludes_few(ExprId id) const;
  // Whether at most `most` texts match; if so, all of them.
  bool few_texts(ExprId id, std::size_t most, std::vector<std::u32string>* texts);
  // Whether the expression is one fixed text.
  bool only_text(ExprId id, std::u32string* text) const;

 private:
  enum class Kind : std::uint8_t {
    kNone,
    kEmpty,
    kClass,    // a: index into sets_
    kLiteral,  // a: index into texts_, b: offset
    kOneOf,    // a: index into lists_, [b, c): entries, d: offset
    kConcat,   // a, b
    kEither,   // [a, a + b) of children_
    kBoth,     // [a, a + b) of children_
    kNot,      // a
    kRepeat,   // a, b: min, c: max
    kDigits,   // a: index into automata_, b: state
  };
  struct Node {
    Kind kind = Kind::kNone;
    bool nullable = false;
    bool exact = true;  // no intersection or complement inside: matches something unless kNothing
    std::uint32_t a = 0, b = 0, c = 0, d = 0;
  };
  enum class Life : std::uint8_t { kUnknown, kLive, kDead };

  ExprId intern(Node node, const std::vector<ExprId>* children = nullptr);
  ExprId text_from(std::uint32_t text, std::uint32_t offset);
  ExprId list_from(std::uint32_t list, std::uint32_t begin, std::uint32_t end,
                   std::uint32_t offset);
  ExprId digits_from(std::uint32_t automaton, std::uint32_t state);
  std::vector<Arc> make_arcs(ExprId id);
  std::vector<Arc> mapped(std::vector<Arc> arcs, ExprId tail);
  template <class Combine>
  static std::vector<Arc> merged(const std::vector<Arc>& a, const std::vector<Arc>& b,
                                 Combine combine);

  std::vector<Node> nodes_;
  std::vector<ExprId> children_;
  std::vector<CharSet> sets_;
  std::vector<std::u32string> texts_;
  std::vector<std::vector<std::u32string>> lists_;  // sorted
  std::vector<DigitAutomaton> automata_;
  std::unordered_map<std::u32string, std::uint32_t> text_ids_;
  std::map<std::vector<std::u32string>, std::uint32_t> list_ids_;
  std::unordered_multimap<std::uint64_t, ExprId> ids_;
  std::vector<std::vector<Arc>> arcs_;
  std::vector<bool> has_arcs_;
  std::vector<Life> life_;
  ExprId any_char_ = kNothing;
  std::size_t limit_ = 1'000'000;
  std::size_t arc_count_ = 0;
  bool exhausted_ = false, gave_up_ = false;
};

}  // namespace hearth::grammar
