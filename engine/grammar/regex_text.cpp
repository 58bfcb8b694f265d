#include "engine/grammar/regex_text.h"

#include <fmt/format.h>

#include "engine/grammar/code_points.h"

namespace hearth::grammar {
namespace {

const CharSet& digit_set() {
  static const CharSet set({{U'0', U'9'}});
  return set;
}
const CharSet& word_set() {
  static const CharSet set({{U'a', U'z'}, {U'A', U'Z'}, {U'0', U'9'}, {U'_', U'_'}});
  return set;
}
const CharSet& space_set() {
  static const CharSet set({{9, 13},
                            {32, 32},
                            {0xA0, 0xA0},
                            {0x1680, 0x1680},
                            {0x2000, 0x200A},
                            {0x2028, 0x2029},
                            {0x202F, 0x202F},
                            {0x205F, 0x205F},
                            {0x3000, 0x3000},
                            {0xFEFF, 0xFEFF}});
  return set;
}

bool is_one(const CharSet& set) {
  return set.ranges().size() == 1 && set.ranges()[0].low == set.ranges()[0].high;
}

}  // namespace

RegexText::RegexText(std::string_view pattern) : pattern_(to_code_points(pattern)) {}

bool RegexText::take(char32_t c) {
  if (done() || pattern_[at_] != c) return false;
  ++at_;
  return true;
}

bool RegexText::take(std::u32string_view text) {
  if (pattern_.compare(at_, text.size(), text) != 0) return false;
  at_ += text.size();
  return true;
}

std::nullopt_t RegexText::fail(Error error) {
  if (!error_) error_ = std::move(error);
  return std::nullopt;
}

std::optional<std::uint32_t> RegexText::hex(int count) {
  std::uint32_t value = 0;
  for (int i = 0; i < count; ++i) {
    const char32_t c = peek();
    const int digit = c >= U'0' && c <= U'9'   ? static_cast<int>(c - U'0')
                      : c >= U'a' && c <= U'f' ? static_cast<int>(c - U'a') + 10
                      : c >= U'A' && c <= U'F' ? static_cast<int>(c - U'A') + 10
                                               : -1;
    if (digit < 0) return fail(invalid("a regular expression with a bad hexadecimal escape"));
    value = value * 16 + static_cast<std::uint32_t>(digit);
    ++at_;
  }
  return value;
}

std::optional<CharSet> RegexText::parse_escape() {
  if (done()) return fail(invalid("a regular expression that ends with a backslash"));
  const char32_t c = pattern_[at_++];
  switch (c) {
    case U'd':
      return digit_set();
    case U'D':
      return digit_set().inverted();
    case U'w':
      return word_set();
    case U'W':
      return word_set().inverted();
    case U's':
      return space_set();
    case U'S':
      return space_set().inverted();
    case U'n':
      return CharSet::one(U'\n');
    case U'r':
      return CharSet::one(U'\r');
    case U't':
      return CharSet::one(U'\t');
    case U'v':
      return CharSet::one(U'\v');
    case U'f':
      return CharSet::one(U'\f');
    case U'0':
      return CharSet::one(U'\0');
    case U'a':
      return CharSet::one(7);
    case U'e':
      return CharSet::one(27);
    case U'c': {
      const char32_t letter = peek();
      if (!((letter >= U'a' && letter <= U'z') || (letter >= U'A' && letter <= U'Z')))
        return fail(invalid("a regular expression with \\c and no letter"));
      ++at_;
      return CharSet::one(letter % 32);
    }
    case U'x': {
      const auto value = hex(2);
      if (!value) return std::nullopt;
      return CharSet::one(*value);
    }
    case U'u':
      return parse_unicode();
    case U'p':
    case U'P':
      return fail(unsupported("a regular expression with \\p"));
    default:
      if ((c >= U'a' && c <= U'z') || (c >= U'A' && c <= U'Z') || (c >= U'1' && c <= U'9'))
        return fail(unsupported(
            fmt::format("a regular expression with \\{}", to_utf8(std::u32string(1, c)))));
      return CharSet::one(c);
  }
}

std::optional<CharSet> RegexText::parse_unicode() {
  if (take(U'{')) {
    std::uint32_t value = 0;
    while (!done() && peek() != U'}') {
      const auto digit = hex(1);
      if (!digit) return std::nullopt;
      value = value * 16 + *digit;
      if (value > kLastCodePoint)
        return fail(invalid("a regular expression with a character past U+10FFFF"));
    }
    if (!take(U'}')) return fail(invalid("a regular expression with an unclosed \\u{"));
    return CharSet::one(value);
  }
  auto value = hex(4);
  if (!value) return std::nullopt;
  if (*value >= 0xD800 && *value <= 0xDBFF && take(U"\\u")) {
    const auto low = hex(4);
    if (!low) return std::nullopt;
    if (*low < 0xDC00 || *low > 0xDFFF)
      return fail(unsupported("a regular expression with half of a surrogate pair"));
    return CharSet::one(0x10000 + ((*value - 0xD800) << 10) + (*low - 0xDC00));
  }
  return CharSet::one(*value);
}

std::optional<CharSet> RegexText::parse_class() {
  const bool inverted = take(U'^');
  std::vector<CharRange> ranges;
  while (true) {
    if (done()) return fail(invalid("a regular expression with an unclosed ["));
    if (take(U']')) break;
    const std::optional<CharSet> low = parse_class_atom();
    if (!low) return std::nullopt;
    const bool single = is_one(*low);
    if (peek() == U'-' && at_ + 1 < pattern_.size() && pattern_[at_ + 1] != U']') {
      const std::size_t dash = at_++;
      const std::optional<CharSet> high = parse_class_atom();
      if (!high) return std::nullopt;
      if (single && is_one(*high)) {
        const char32_t first = low->ranges()[0].low, last = high->ranges()[0].low;
        if (first > last) return fail(invalid("a regular expression with a range out of order"));
        ranges.push_back({first, last});
        continue;
      }
      at_ = dash;  // [\w-.]: the dash is a character
    }
    ranges.insert(ranges.end(), low->ranges().begin(), low->ranges().end());
    if (at_ < pattern_.size() && !single && peek() == U'-') ranges.push_back({U'-', U'-'}), ++at_;
  }
  const CharSet set(std::move(ranges));
  return inverted ? set.inverted() : set;
}

std::optional<CharSet> RegexText::parse_class_atom() {
  if (done()) return fail(invalid("a regular expression with an unclosed ["));
  const char32_t c = pattern_[at_++];
  if (c != U'\\') return CharSet::one(c);
  if (take(U'b')) return CharSet::one(8);
  if (take(U'-')) return CharSet::one(U'-');
  return parse_escape();
}

}  // namespace hearth::grammar
