// Template source to tokens, with white space handled as transformers has it: a block tag takes the
// line break after it and the indentation in front of it (trim_blocks, lstrip_blocks), '-' takes
// all white space on its side, '+' keeps it. Linear in the source.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::jinja {

struct Token {
  enum class Kind : std::uint8_t {
    kText,         // between tags
    kOpenOutput,   // {{
    kCloseOutput,  // }}
    kOpenBlock,    // {%
    kCloseBlock,   // %}
    kName,
    kString,  // `text` is its value
    kInteger,
    kFloat,
    kOperator,
    kEnd,
  };
  Kind kind = Kind::kEnd;
  std::uint32_t line = 1;
  std::string_view text;

  bool is(std::string_view name_or_operator) const {
    return (kind == Kind::kName || kind == Kind::kOperator) && text == name_or_operator;
  }
};

// Line breaks as "\n" and without the last one, which is how Jinja reads a file.
std::string normal_source(std::string_view source);

// The last token is kEnd. Views are of `source`, which normal_source() made, and of `strings`,
// where literals with escapes go. Throws Failure with a line.
std::vector<Token> lex(std::string_view source, std::deque<std::string>& strings);

}  // namespace hearth::jinja
