// llama.cpp's GBNF.
#include <algorithm>

#include "engine/grammar/code_points.h"
#include "engine/grammar/grammar_reader.h"
#include "engine/grammar/written_grammar.h"

namespace hearth::grammar {
namespace {

using TermKind = GrammarTerm::Kind;

class GbnfParser {
 public:
  explicit GbnfParser(std::string_view text) : in_(text) {}

  WrittenGrammar parse() {
    WrittenGrammar grammar;
    grammar.root = "root";
    for (space(true); !in_.done(); space(true)) {
      const std::string name = read_name();
      space(false);
      if (!in_.take("::=")) in_.fail(fmt::format("expected ::= after \"{}\"", name));
      space(true);
      GrammarTerm term = alternatives(0);
      if (!in_.done() && in_.peek() != '\n') in_.fail("expected the end of the rule");
      if (!grammar.rules.emplace(name, std::move(term)).second)
        in_.fail(fmt::format("a second rule \"{}\"", name));
    }
    if (grammar.rules.empty()) in_.fail("no rules");
    return grammar;
  }

 private:
  static bool is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  }

  void space(bool newlines) {
    while (!in_.done()) {
      const char c = in_.peek();
      if (c == '#') {
        while (!in_.done() && in_.peek() != '\n') in_.next();
      } else if (c == ' ' || c == '\t' || c == '\r' || (newlines && c == '\n')) {
        in_.next();
      } else {
        break;
      }
    }
  }

  std::string read_name() {
    std::string name;
    while (is_name(in_.peek())) name += in_.next();
    if (name.empty()) in_.fail("expected the name of a rule");
    return name;
  }

  GrammarTerm alternatives(int depth) {
    if (depth > kDeepestTerm) in_.fail("parentheses nested too deeply", ErrorKind::kUnsupported);
    GrammarTerm result{.kind = TermKind::kEither};
    while (true) {
      result.parts.push_back(sequence(depth));
      // A line that begins with | continues with the rule.
      const std::size_t before = in_.at();
      space(true);
      if (!in_.take("|")) {
        if (depth == 0) in_.move_to(before);
        break;
      }
      space(true);
    }
    if (result.parts.size() > 1) return result;
    GrammarTerm only = std::move(result.parts[0]);
    return only;
  }

  GrammarTerm sequence(int depth) {
    GrammarTerm result{.kind = TermKind::kSequence};
    for (space(depth > 0); !in_.done(); space(depth > 0)) {
      const char c = in_.peek();
      GrammarTerm term;
      if (c == '"') {
        in_.next();
        term.kind = TermKind::kText;
        while (in_.peek() != '"' || in_.done()) {
          if (in_.done() || in_.peek() == '\n') in_.fail("a text without its closing quote");
          append_utf8(in_.take("\\") ? in_.escaped() : in_.character(), term.text);
        }
        in_.next();
      } else if (c == '[') {
        in_.next();
        term.kind = TermKind::kClass;
        term.set = char_class();
      } else if (c == '.') {
        in_.next();
        term.kind = TermKind::kClass;
        term.set = CharSet::all();
      } else if (c == '(') {
        in_.next();
        term = alternatives(depth + 1);
        if (!in_.take(")")) in_.fail("expected )");
      } else if (is_name(c)) {
        term.kind = TermKind::kName;
        term.text = read_name();
      } else if (c == '<') {
        term.kind = TermKind::kToken;
        term.text = in_.token_id();
      } else if (c == '!') {
        in_.fail("! before a token is not supported", ErrorKind::kUnsupported);
      } else {
        break;
      }
      result.parts.push_back(repeated(std::move(term)));
    }
    return result;
  }

  GrammarTerm repeated(GrammarTerm term) {
    while (true) {
      std::uint32_t min = 0, max = kUnbounded;
      if (in_.take("*")) {
      } else if (in_.take("+")) {
        min = 1;
      } else if (in_.take("?")) {
        max = 1;
      } else if (in_.take("{")) {
        bounds(min, max);
      } else {
        return term;
      }
      GrammarTerm outer{.kind = TermKind::kRepeat, .min = min, .max = max};
      outer.parts.push_back(std::move(term));
      term = std::move(outer);
    }
  }

  void bounds(std::uint32_t& min, std::uint32_t& max) {
    const auto number = [&](std::uint32_t& value) {
      space(false);
      std::uint64_t read = 0;
      bool any = false;
      while (in_.peek() >= '0' && in_.peek() <= '9') {
        read = std::min<std::uint64_t>(read * 10 + static_cast<std::uint64_t>(in_.next() - '0'),
                                       1'000'000'000);
        any = true;
      }
      if (any) value = static_cast<std::uint32_t>(read);
      space(false);
      return any;
    };
    const bool has_min = number(min);
    if (in_.take(",")) {
      number(max);
    } else {
      if (!has_min) in_.fail("expected a number in {}");
      max = min;
    }
    if (!in_.take("}")) in_.fail("expected }");
    if (min > max) in_.fail("{n,m} where n is more than m");
  }

  CharSet char_class() {
    const bool inverted = in_.take("^");
    std::vector<CharRange> ranges;
    while (!in_.take("]")) {
      if (in_.done() || in_.peek() == '\n') in_.fail("[ without ]");
      const char32_t low = in_.take("\\") ? in_.escaped() : in_.character();
      char32_t high = low;
      if (in_.peek() == '-' && in_.peek(1) != ']') {
        in_.next();
        high = in_.take("\\") ? in_.escaped() : in_.character();
      }
      if (low > high) in_.fail("a range out of order");
      ranges.push_back({low, high});
    }
    const CharSet set(std::move(ranges));
    return inverted ? set.inverted() : set;
  }

  GrammarReader in_;
};

}  // namespace

Result<WrittenGrammar> parse_gbnf(std::string_view text) {
  try {
    return GbnfParser(text).parse();
  } catch (ReadFailure& failure) {
    return std::move(failure.error);
  }
}

}  // namespace hearth::grammar
