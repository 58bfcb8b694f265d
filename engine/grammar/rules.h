// A compiled grammar as plain data: lexemes, and rules that say in which order they may come. Rules
// are of two kinds. JSON rules describe values, objects and arrays, with counters where a schema
// has limits; sequence rules are the productions of a written grammar. Both become states and edges
// on demand (RuleStates), so a limit of a million items costs nothing until they are there.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/grammar/expression.h"
#include "engine/grammar/grammar.h"
#include "engine/grammar/lexer.h"

namespace hearth::grammar {

using RuleId = std::uint32_t;
inline constexpr RuleId kNoRule = 0xFFFFFFFF;

// A value: any of these.
struct ValueRule {
  std::vector<LexemeId> scalars;
  std::vector<std::uint32_t> objects, arrays;  // into GrammarData
};

struct ObjectRule {
  struct Property {
    LexemeId key = 0;
    RuleId value = kNoRule;
    bool required = false;
  };
  std::vector<Property> properties;  // in the order in which they come
  std::vector<Property> others;      // further keys by class; any number of each, after the others
  std::vector<Property> demanded;  // keys among the others, each of which has to come once at least
  std::uint32_t min = 0, max = kUnbounded;
  // By position in `properties` and then in `demanded`, computed by finish(): the next required one
  // at or after it, and how many are required from there on.
  std::vector<std::uint32_t> next_required, required_left;
  void finish();
};

struct ArrayRule {
  std::vector<RuleId> first;  // the items that have a schema of their own
  RuleId rest = kNoRule;      // kNoRule: there can be no others
  std::uint32_t min = 0, max = kUnbounded;
  // Items that count towards `contains`. If there is a maximum, others must not match.
  std::uint32_t min_contains = 0, max_contains = kUnbounded;
  bool has_contains = false;
  std::vector<RuleId> first_matching;  // as `first`, but also matching `contains`
  RuleId rest_matching = kNoRule;
  // Several `contains`: by the set of those that an item matches, each of which has to be matched
  // once.
  struct Matching {
    std::uint32_t set = 0;
    std::vector<RuleId> first;
    RuleId rest = kNoRule;
  };
  std::vector<Matching> sets;
  std::uint32_t all_sets = 0;  // all of them together
  // uniqueItems over few possible values: one rule per value, at most 64; each comes at most once.
  std::vector<RuleId> unique_values;
};

struct SequenceRule {
  struct Symbol {
    bool is_rule = false;
    std::uint32_t id = 0;  // RuleId or LexemeId
  };
  std::vector<std::vector<Symbol>> alternatives;
};

struct GrammarData {
  ExpressionPool pool;
  std::vector<Lexeme> lexemes;
  // Rules: values first, then sequences.
  std::vector<ValueRule> values;
  std::vector<SequenceRule> sequences;
  std::vector<ObjectRule> objects;
  std::vector<ArrayRule> arrays;
  RuleId root = 0;
  // See SchemaOptions.
  std::uint32_t max_whitespace = 0;
  bool single_blanks = false, any_order = false, generates = false;
  // JSON's punctuation.
  LexemeId open_object = 0, close_object = 0, open_array = 0, close_array = 0, comma = 0, colon = 0;

  void set_options(const SchemaOptions& options) {
    max_whitespace = options.single_blanks ? 0 : options.max_whitespace;
    single_blanks = options.single_blanks;
    any_order = options.any_order;
    generates = options.generates;
  }
  RuleId sequence_rule(std::size_t index) const { return static_cast<RuleId>(0x80000000u | index); }
};

using RuleState = std::uint32_t;

struct RuleEdge {
  bool is_rule = false;
  std::uint32_t symbol = 0;  // RuleId or LexemeId
  RuleState next = 0;
};

struct RuleExpansion {
  RuleId rule = 0;       // which rule the state belongs to
  bool accepts = false;  // the rule may end here
  std::vector<RuleEdge> edges;
};

// The states of a grammar's rules, made as they are reached. Belongs to one thread at a time.
class RuleStates {
 public:
  explicit RuleStates(const GrammarData& grammar) : grammar_(grammar) {}
  RuleState start(RuleId rule);
  const RuleExpansion& expansion(RuleState state);
  std::size_t size() const { return keys_.size(); }

 private:
  enum class Kind : std::uint32_t {
    kValue,        // before a value
    kEnd,          // after it
    kObjectOpen,   // after {
    kObjectKey,    // after a comma
    kObjectColon,  // after a key; more: the rule of its value
    kObjectValue,  // after a colon; likewise
    kObjectNext,   // after a value
    kArrayOpen,    // after [
    kArrayItem,    // after a comma
    kArrayNext,    // after an item
    kSequence,     // in an alternative; at: how many symbols have been read
  };
  struct Key {
    Kind kind = Kind::kValue;
    RuleId rule = 0;
    std::uint32_t part = 0;   // object, array or alternative
    std::uint32_t at = 0;     // position among the properties, or number of items
    std::uint32_t count = 0;  // of properties, or of items that count for contains
    std::uint32_t more = 0;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };

  RuleState id(const Key& key);
  RuleExpansion expand(const Key& key);
  void expand_value(const Key& key, RuleExpansion& out);
  void expand_object(const Key& key, RuleExpansion& out);
  void add_keys(const Key& key, RuleExpansion& out);
  void add_keys_in_any_order(const Key& key, RuleExpansion& out);
  void add_key(const Key& key, const ObjectRule::Property& property, std::uint32_t at,
               std::uint32_t required, std::uint32_t optional, RuleExpansion& out);
  // Sets of properties that an object has had, for any order; 0 is the empty set.
  using Seen = std::vector<bool>;
  std::uint32_t seen_id(Seen seen);
  bool may_close(const Key& key) const;
  void expand_array(const Key& key, RuleExpansion& out);
  void add_items(const Key& key, RuleExpansion& out);
  void add_item(const Key& key, RuleId value, std::uint32_t contains, RuleExpansion& out);
  bool may_close_array(const Key& key) const;
  RuleState next_item(const Key& key, std::uint32_t contains);

  const GrammarData& grammar_;
  std::vector<Key> keys_;
  std::vector<Seen> seen_ = {{}};
  std::map<Seen, std::uint32_t> seen_ids_ = {{{}, 0}};
  std::unordered_map<Key, RuleState, Hash> ids_;
  std::deque<RuleExpansion> expansions_;  // references stay good
  std::vector<bool> expanded_;
};

}  // namespace hearth::grammar
