#include "engine/grammar/regex.h"

#include <array>
#include <optional>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "engine/grammar/code_points.h"

namespace hearth::grammar {
namespace {

constexpr std::size_t kLongestPattern = 10'000;
constexpr int kDeepestGroup = 100;
constexpr std::uint32_t kLargestRepeat = 100'000;

// What a piece of the pattern matches, apart by whether it has to begin where the text begins (^)
// and to end where the text ends ($): index 2 * begins + ends.
struct Pieces {
  std::array<ExprId, 4> part = {kNothing, kNothing, kNothing, kNothing};
  bool anchored() const {
    return part[1] != kNothing || part[2] != kNothing || part[3] != kNothing;
  }
};

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
const CharSet& dot_set() {
  static const CharSet set = CharSet({{U'\n', U'\n'}, {U'\r', U'\r'}, {0x2028, 0x2029}}).inverted();
  return set;
}

class RegexParser {
 public:
  RegexParser(ExpressionPool& pool, std::string_view pattern)
      : pool_(pool), pattern_(to_code_points(pattern)) {}

  Result<ExprId> parse(RegexMatch match) {
    if (pattern_.size() > kLongestPattern)
      return unsupported(
          fmt::format("a regular expression of more than {} characters", kLongestPattern));
    const ExprId open = match == RegexMatch::kSearch ? kAnyText : kEpsilon;
    std::vector<ExprId> alternatives;
    do {
      const std::optional<ExprId> one = parse_whole_alternative(open);
      if (!one) return *std::move(error_);
      alternatives.push_back(*one);
    } while (take(U'|'));
    if (at_ != pattern_.size()) return invalid("a regular expression with an unmatched )");
    return pool_.either(std::move(alternatives));
  }

 private:
  struct Lookahead {
    bool negative = false;
    ExprId rest = kNothing;  // what the text from here on matches
  };

  bool done() const { return at_ == pattern_.size(); }
  char32_t peek() const { return done() ? U'\0' : pattern_[at_]; }
  bool take(char32_t c) {
    if (done() || pattern_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool take(std::u32string_view text) {
    if (pattern_.compare(at_, text.size(), text) != 0) return false;
    at_ += text.size();
    return true;
  }
  std::nullopt_t fail(Error error) {
    if (!error_) error_ = std::move(error);
    return std::nullopt;
  }

  // An alternative that is in no group. Lookaheads are possible here, because what follows them is
  // known to the end of the text: it is built from the right.
  std::optional<ExprId> parse_whole_alternative(ExprId open) {
    std::vector<std::variant<Pieces, Lookahead>> items;
    while (!done() && peek() != U'|' && peek() != U')') {
      const bool positive = take(U"(?=");
      if (positive || take(U"(?!")) {
        std::vector<ExprId> alternatives;
        do {
          const std::optional<ExprId> one = parse_whole_alternative_from_here();
          if (!one) return std::nullopt;
          alternatives.push_back(*one);
        } while (take(U'|'));
        if (!take(U')')) return fail(invalid("a regular expression with an unclosed group"));
        items.push_back(Lookahead{!positive, pool_.either(std::move(alternatives))});
        continue;
      }
      std::optional<Pieces> item = parse_quantified();
      if (!item) return std::nullopt;
      items.push_back(*item);
    }
    // The pieces before a lookahead and those after it, from right to left.
    Pieces tail;
    tail.part[0] = kEpsilon;
    ExprId rest = kNothing;
    bool has_rest = false;
    for (auto it = items.rbegin(); it != items.rend(); ++it) {
      if (const auto* pieces = std::get_if<Pieces>(&*it)) {
        tail = joined(*pieces, tail);
        continue;
      }
      const auto& look = std::get<Lookahead>(*it);
      std::optional<ExprId> after = close_tail(tail, has_rest ? rest : open, has_rest);
      if (!after) return std::nullopt;
      rest = pool_.both(*after, look.negative ? pool_.complement(look.rest) : look.rest);
      has_rest = true;
      tail = {};
      tail.part[0] = kEpsilon;
    }
    const ExprId end = has_rest ? rest : open;
    std::vector<ExprId> parts;
    for (std::size_t i = 0; i < 4; ++i) {
      if (tail.part[i] == kNothing) continue;
      const bool begins = (i & 2) != 0, ends = (i & 1) != 0;
      if (ends && has_rest)
        return fail(unsupported("a regular expression with $ before a lookahead"));
      const ExprId body = pool_.concat(tail.part[i], ends ? kEpsilon : end);
      parts.push_back(begins ? body : pool_.concat(open, body));
    }
    return pool_.either(std::move(parts));
  }

  // What a text from a lookahead on matches, given the pieces up to the next lookahead or the end.
  std::optional<ExprId> close_tail(const Pieces& tail, ExprId end, bool has_rest) {
    if (tail.part[2] != kNothing || tail.part[3] != kNothing)
      return fail(unsupported("a regular expression with ^ after a lookahead"));
    if (has_rest && tail.part[1] != kNothing)
      return fail(unsupported("a regular expression with $ before a lookahead"));
    return pool_.either(pool_.concat(tail.part[0], end), tail.part[1]);
  }

  std::optional<ExprId> parse_whole_alternative_from_here() {
    const std::optional<Pieces> all = parse_sequence();
    if (!all) return std::nullopt;
    return close_tail(*all, kAnyText, false);
  }

  // Pieces one after the other, up to | or ). They are joined from the right, because that is how
  // the pool keeps them.
  std::optional<Pieces> parse_sequence() {
    std::vector<Pieces> items;
    while (!done() && peek() != U'|' && peek() != U')') {
      const std::optional<Pieces> item = parse_quantified();
      if (!item) return std::nullopt;
      items.push_back(*item);
    }
    Pieces all;
    all.part[0] = kEpsilon;
    for (auto it = items.rbegin(); it != items.rend(); ++it) all = joined(*it, all);
    return all;
  }

  Pieces joined(const Pieces& a, const Pieces& b) {
    Pieces result;
    for (std::size_t i = 0; i < 4; ++i) {
      for (std::size_t k = 0; k < 4; ++k) {
        ExprId left = a.part[i], right = b.part[k];
        if (left == kNothing || right == kNothing) continue;
        // Nothing can be before ^ or behind $.
        if ((k & 2) != 0) {
          if (!pool_.nullable(left)) continue;
          left = kEpsilon;
        }
        if ((i & 1) != 0) {
          if (!pool_.nullable(right)) continue;
          right = kEpsilon;
        }
        ExprId& into = result.part[i | k];
        into = pool_.either(into, pool_.concat(left, right));
      }
    }
    return result;
  }

  std::optional<Pieces> parse_alternatives() {
    if (++depth_ > kDeepestGroup)
      return fail(unsupported("a regular expression with groups this deeply nested"));
    Pieces result;
    do {
      const std::optional<Pieces> one = parse_sequence();
      if (!one) return std::nullopt;
      for (std::size_t i = 0; i < 4; ++i)
        result.part[i] = pool_.either(result.part[i], one->part[i]);
    } while (take(U'|'));
    --depth_;
    return result;
  }

  std::optional<Pieces> parse_quantified() {
    std::optional<Pieces> atom = parse_atom();
    if (!atom) return std::nullopt;
    std::uint32_t min = 1, max = 1;
    if (take(U'*')) {
      min = 0, max = kUnbounded;
    } else if (take(U'+')) {
      max = kUnbounded;
    } else if (take(U'?')) {
      min = 0;
    } else if (peek() == U'{') {
      if (!parse_bounds(min, max)) return error_ ? std::optional<Pieces>() : atom;
    } else {
      return atom;
    }
    take(U'?');  // lazy: the same texts
    if (peek() == U'*' || peek() == U'+' || (peek() == U'?' && !done()))
      return fail(invalid("a regular expression with two quantifiers in a row"));
    if (pool_.exhausted()) return fail(unsupported("a regular expression this large"));
    if (atom->anchored()) {
      if (min == 0 && max == 1) {
        atom->part[0] = pool_.either(atom->part[0], kEpsilon);
        return atom;
      }
      return fail(unsupported("a regular expression that repeats ^ or $"));
    }
    atom->part[0] = pool_.repeat(atom->part[0], min, max);
    return atom;
  }

  // {n}, {n,} or {n,m}. Anything else is text, as in ECMA-262's Annex B.
  bool parse_bounds(std::uint32_t& min, std::uint32_t& max) {
    const std::size_t start = at_;
    ++at_;
    const auto number = [&](std::uint32_t& value) {
      const std::size_t begin = at_;
      std::uint64_t read = 0;
      while (!done() && peek() >= U'0' && peek() <= U'9') {
        if (read <= kLargestRepeat) read = read * 10 + (peek() - U'0');
        ++at_;
      }
      value = static_cast<std::uint32_t>(read);
      return at_ != begin;
    };
    bool good = number(min);
    max = min;
    if (good && take(U',')) {
      if (!number(max)) max = kUnbounded;
    }
    good = good && take(U'}');
    if (!good) {
      at_ = start;
      return false;
    }
    if (min > kLargestRepeat || (max != kUnbounded && max > kLargestRepeat)) {
      fail(unsupported(
          fmt::format("a regular expression that repeats more than {} times", kLargestRepeat)));
      return false;
    }
    if (min > max) {
      fail(invalid("a regular expression with {n,m} where n is more than m"));
      return false;
    }
    return true;
  }

  std::optional<Pieces> parse_atom() {
    Pieces result;
    const char32_t c = peek();
    ++at_;
    switch (c) {
      case U'^':
        result.part[2] = kEpsilon;
        return result;
      case U'$':
        result.part[1] = kEpsilon;
        return result;
      case U'(': {
        if (take(U"?:")) {
        } else if (take(U"?=") || take(U"?!")) {
          return fail(unsupported("a regular expression with a lookahead inside a group"));
        } else if (take(U"?<=") || take(U"?<!")) {
          return fail(unsupported("a regular expression with a lookbehind"));
        } else if (take(U"?<") || take(U"?P<")) {
          while (!done() && peek() != U'>') ++at_;
          if (!take(U'>')) return fail(invalid("a regular expression with an unclosed name"));
        } else if (peek() == U'?') {
          return fail(unsupported("a regular expression with (? and options"));
        }
        std::optional<Pieces> inner = parse_alternatives();
        if (!inner) return std::nullopt;
        if (!take(U')')) return fail(invalid("a regular expression with an unclosed group"));
        return inner;
      }
      case U'[': {
        const std::optional<CharSet> set = parse_class();
        if (!set) return std::nullopt;
        result.part[0] = pool_.char_set(*set);
        return result;
      }
      case U'.':
        result.part[0] = pool_.char_set(dot_set());
        return result;
      case U'*':
      case U'+':
      case U'?':
        return fail(invalid("a regular expression with a quantifier after nothing"));
      case U'\\': {
        if (peek() == U'b' || peek() == U'B')
          return fail(unsupported("a regular expression with a word boundary"));
        if ((peek() >= U'1' && peek() <= U'9') || peek() == U'k')
          return fail(unsupported("a regular expression with a back reference"));
        if (take(U'A')) {
          result.part[2] = kEpsilon;
          return result;
        }
        if (take(U'Z') || take(U'z')) {
          result.part[1] = kEpsilon;
          return result;
        }
        const std::optional<CharSet> set = parse_escape();
        if (!set) return std::nullopt;
        result.part[0] = pool_.char_set(*set);
        return result;
      }
      default:
        result.part[0] = pool_.char_set(CharSet::one(c));
        return result;
    }
  }

  std::optional<std::uint32_t> hex(int count) {
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

  // Behind the backslash.
  std::optional<CharSet> parse_escape() {
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

  std::optional<CharSet> parse_unicode() {
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

  // Behind the bracket.
  std::optional<CharSet> parse_class() {
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

  static bool is_one(const CharSet& set) {
    return set.ranges().size() == 1 && set.ranges()[0].low == set.ranges()[0].high;
  }

  std::optional<CharSet> parse_class_atom() {
    if (done()) return fail(invalid("a regular expression with an unclosed ["));
    const char32_t c = pattern_[at_++];
    if (c != U'\\') return CharSet::one(c);
    if (take(U'b')) return CharSet::one(8);
    if (take(U'-')) return CharSet::one(U'-');
    return parse_escape();
  }

  ExpressionPool& pool_;
  std::u32string pattern_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::optional<Error> error_;
};

}  // namespace

Result<ExprId> parse_regex(ExpressionPool& pool, std::string_view pattern, RegexMatch match) {
  RegexParser parser(pool, pattern);
  HEARTH_ASSIGN(const ExprId result, parser.parse(match));
  if (pool.exhausted()) return unsupported("a regular expression this large");
  return result;
}

}  // namespace hearth::grammar
