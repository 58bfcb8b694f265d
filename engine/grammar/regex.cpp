#include "engine/grammar/regex.h"

#include <array>
#include <optional>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "engine/grammar/regex_text.h"

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

const CharSet& dot_set() {
  static const CharSet set = CharSet({{U'\n', U'\n'}, {U'\r', U'\r'}, {0x2028, 0x2029}}).inverted();
  return set;
}

class RegexParser : private RegexText {
 public:
  RegexParser(ExpressionPool& pool, std::string_view pattern) : RegexText(pattern), pool_(pool) {}

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
        // Nothing can be before ^ or after $.
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

  ExpressionPool& pool_;
  int depth_ = 0;
};

}  // namespace

Result<ExprId> parse_regex(ExpressionPool& pool, std::string_view pattern, RegexMatch match) {
  RegexParser parser(pool, pattern);
  HEARTH_ASSIGN(const ExprId result, parser.parse(match));
  if (pool.exhausted()) return unsupported("a regular expression this large");
  return result;
}

}  // namespace hearth::grammar
