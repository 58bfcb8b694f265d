// The text of a regular expression, and the parts of it that are sets of characters: escapes and
// classes. Only the first error is kept.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/grammar/char_set.h"
#include "runtime/result.h"

namespace hearth::grammar {

class RegexText {
 protected:
  explicit RegexText(std::string_view pattern);

  bool done() const { return at_ == pattern_.size(); }
  char32_t peek() const { return done() ? U'\0' : pattern_[at_]; }
  bool take(char32_t c);
  bool take(std::u32string_view text);
  std::nullopt_t fail(Error error);

  // Parses what follows a backslash.
  std::optional<CharSet> parse_escape();
  // Parses what follows an opening bracket.
  std::optional<CharSet> parse_class();

  std::u32string pattern_;
  std::size_t at_ = 0;
  std::optional<Error> error_;

 private:
  std::optional<CharSet> parse_class_atom();
  std::optional<CharSet> parse_unicode();
  std::optional<std::uint32_t> hex(int count);
};

}  // namespace hearth::grammar
