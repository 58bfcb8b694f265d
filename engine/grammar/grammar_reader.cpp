#include "engine/grammar/grammar_reader.h"

#include <algorithm>

#include "engine/grammar/char_set.h"
#include "engine/grammar/code_points.h"

namespace hearth::grammar {

char32_t GrammarReader::hex(int digits) {
  char32_t value = 0;
  for (int i = 0; i < digits; ++i) {
    const char c = next();
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) fail("expected a hexadecimal digit");
    value = value * 16 + static_cast<char32_t>(digit);
    if (value > kLastCodePoint) fail("a character past U+10FFFF");
  }
  return value;
}

char32_t GrammarReader::escaped() {
  const char c = next();
  switch (c) {
    case 'n':
      return U'\n';
    case 'r':
      return U'\r';
    case 't':
      return U'\t';
    case 'f':
      return U'\f';
    case 'b':
      return U'\b';
    case '0':
      return U'\0';
    case 'x':
      return hex(2);
    case 'u':
      return hex(4);
    case 'U':
      return hex(8);
    default:
      if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '1' && c <= '9'))
        fail(fmt::format("unknown escape \\{}", c));
      return static_cast<unsigned char>(c);
  }
}

char32_t GrammarReader::character() {
  const auto first = static_cast<unsigned char>(next());
  if (first < 0x80) return first;
  const std::size_t more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;
  std::string bytes(1, static_cast<char>(first));
  for (std::size_t i = 0; i < more; ++i) bytes += next();
  return to_code_points(bytes)[0];
}

std::string GrammarReader::token_id() {
  if (!take("<["))
    fail("control tokens are named by their ids, as in <[17]>", ErrorKind::kUnsupported);
  std::string digits;
  while (peek() >= '0' && peek() <= '9') digits += next();
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size() - 1));
  constexpr std::size_t kMostDigits = 10;
  if (digits.empty() || digits.size() > kMostDigits || !take("]>")) fail("expected a token's id");
  return digits;
}

}  // namespace hearth::grammar
