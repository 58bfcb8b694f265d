// UTF-8 to code points and back. Pure functions.
#pragma once

#include <string>
#include <string_view>

namespace hearth::grammar {

// Invalid bytes become U+FFFD.
std::u32string to_code_points(std::string_view utf8);
void append_utf8(char32_t c, std::string& out);
std::string to_utf8(std::u32string_view text);

}  // namespace hearth::grammar
