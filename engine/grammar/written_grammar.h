// A grammar that someone wrote, in whichever format, as a tree; and its compiler. What is regular
// becomes lexemes, as large as possible, because lexemes are fast; what is recursive becomes rules.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/grammar/char_set.h"
#include "engine/grammar/grammar.h"
#include "engine/grammar/rules.h"

namespace hearth::grammar {

struct GrammarTerm {
  enum class Kind { kText, kClass, kRegex, kName, kSequence, kEither, kRepeat, kJsonSchema, kToken };
  Kind kind = Kind::kSequence;
  std::string text;           // of a text, a regex or a JSON schema; a rule's name; a token's id
  bool ignores_case = false;  // of a text or regex
  CharSet set;
  std::vector<GrammarTerm> parts;  // of a sequence, the alternatives, what is repeated
  std::uint32_t min = 0, max = 0;
};

struct WrittenGrammar {
  std::map<std::string, GrammarTerm> rules;
  std::string root;
  std::string ignored;  // a rule that may come any number of times before each terminal; or empty
  SchemaOptions schemas = {};  // of JSON schemas in it
};

inline constexpr int kDeepestTerm = 100;  // of parentheses

Result<WrittenGrammar> parse_gbnf(std::string_view text);
Result<WrittenGrammar> parse_lark(std::string_view text);

Result<std::shared_ptr<const Grammar>> compile_written_grammar(const WrittenGrammar& grammar);

}  // namespace hearth::grammar
