// Characters of UTF-8 text, as Python's str sees them. A byte that is no valid UTF-8 counts as one
// character without a code point and is passed through unchanged. Functions that walk over a text
// charge the walk to a budget.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/text/jinja/budget.h"

namespace hearth::jinja {

struct Character {
  char32_t code = 0;      // kNoCode: a broken byte
  std::size_t bytes = 1;  // of its UTF-8 form
};
inline constexpr char32_t kNoCode = 0xFFFFFFFF;

// REQUIRES: at < text.size()
Character character_at(std::string_view text, std::size_t at);
// The character that ends at `end`. REQUIRES: 0 < end <= text.size()
Character character_before(std::string_view text, std::size_t end);
std::size_t count_characters(Budget& budget, std::string_view text);
// The byte where the character with this index starts; text.size() past the last one.
std::size_t byte_of_character(Budget& budget, std::string_view text, std::size_t index);
void append_character(std::string& text, char32_t code);

// str.isspace() and so on, for one character.
bool is_space(char32_t code);
bool is_line_break(char32_t code);  // for str.splitlines()
bool is_alpha(char32_t code);
bool is_decimal(char32_t code);
bool is_numeric(char32_t code);
bool is_upper(char32_t code);
bool is_lower(char32_t code);
bool is_printable(char32_t code);
inline bool is_word(char32_t code) { return code == U'_' || is_alpha(code) || is_numeric(code); }
std::string to_upper(char32_t code);
std::string to_lower(char32_t code);
std::string to_title(char32_t code);

// Without white space at its end. For the lexer: it charges nothing.
std::string_view strip_right(std::string_view text);

}  // namespace hearth::jinja
