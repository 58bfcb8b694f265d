// Regular expressions in ECMA-262's syntax, as JSON Schema's `pattern` has them: alternatives,
// groups, classes, (lazy) quantifiers, ^ and $, and lookaheads outside of groups. Back references,
// lookbehinds, word boundaries inside and other parts that are not supported are refused by name.
#pragma once

#include <string_view>

#include "engine/grammar/expression.h"
#include "runtime/result.h"

namespace hearth::grammar {

enum class RegexMatch {
  kSearch,  // some part of the text matches, as for `pattern`
  kFull,    // the whole text matches
};

Result<ExprId> parse_regex(ExpressionPool& pool, std::string_view pattern, RegexMatch match);

}  // namespace hearth::grammar
