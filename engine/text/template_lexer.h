// The inside of one Jinja tag as tokens. Private to template_guard.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/result.h"

namespace hearth {

struct TemplateToken {
  enum class Kind { kWord, kNumber, kString, kSymbol };
  Kind kind = Kind::kSymbol;
  std::string_view text;  // a view of the template; strings with their quotes
  int depth = 0;          // brackets around it; a bracket has the depth outside of it

  bool is(std::string_view symbol_or_word) const {
    return kind != Kind::kString && text == symbol_or_word;
  }
};

struct TemplateTag {
  std::vector<TemplateToken> tokens;
  std::size_t end = 0;  // behind the tag's closing mark
};

// `at` is behind the opening mark; `close` is "}}" or "%}". Brackets match, words and numbers are
// short, and there are not too many tokens; otherwise the error says so, without a line.
Result<TemplateTag> lex_template_tag(std::string_view source, std::size_t at,
                                     std::string_view close);

}  // namespace hearth
