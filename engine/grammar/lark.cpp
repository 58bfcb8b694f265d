// Lark's EBNF, as far as it describes a language: rules, terminals, %ignore, %import common.X, and
// llguidance's %json { schema }. What only shapes the tree (aliases, ?rule, priorities) has no
// effect.
#include <algorithm>

#include "engine/grammar/code_points.h"
#include "engine/grammar/grammar_reader.h"
#include "engine/grammar/written_grammar.h"

namespace hearth::grammar {
namespace {

using TermKind = GrammarTerm::Kind;

// Lark's library `common`.
struct CommonTerminal {
  std::string_view name;
  const char* pattern;
};
constexpr CommonTerminal kCommon[] = {
    {"DIGIT", "[0-9]"},
    {"HEXDIGIT", "[0-9a-fA-F]"},
    {"INT", "[0-9]+"},
    {"SIGNED_INT", "[+-]?[0-9]+"},
    {"DECIMAL", "[0-9]+\\.[0-9]*|\\.[0-9]+"},
    {"FLOAT", "[0-9]+([eE][+-]?[0-9]+)|([0-9]+\\.[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?"},
    {"NUMBER", "[0-9]+(\\.[0-9]*)?([eE][+-]?[0-9]+)?|\\.[0-9]+([eE][+-]?[0-9]+)?"},
    {"SIGNED_NUMBER", "[+-]?([0-9]+(\\.[0-9]*)?([eE][+-]?[0-9]+)?|\\.[0-9]+([eE][+-]?[0-9]+)?)"},
    {"ESCAPED_STRING", "\"([^\"\\\\\\n]|\\\\.)*\""},
    {"LCASE_LETTER", "[a-z]"},
    {"UCASE_LETTER", "[A-Z]"},
    {"LETTER", "[a-zA-Z]"},
    {"WORD", "[a-zA-Z]+"},
    {"CNAME", "[a-zA-Z_][a-zA-Z0-9_]*"},
    {"WS_INLINE", "[ \\t]+"},
    {"WS", "[ \\t\\f\\r\\n]+"},
    {"CR", "\\r"},
    {"LF", "\\n"},
    {"NEWLINE", "(\\r?\\n)+"},
};

class LarkParser {
 public:
  explicit LarkParser(std::string_view text) : in_(text) {}

  WrittenGrammar parse() {
    grammar_.root = "start";
    for (space(true); !in_.done(); space(true)) statement();
    if (grammar_.rules.empty()) in_.fail("no rules");
    if (!ignored_.parts.empty()) {
      grammar_.ignored = "_IGNORED";
      grammar_.rules[grammar_.ignored] = std::move(ignored_);
    }
    return std::move(grammar_);
  }

 private:
  static bool is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  }

  void space(bool newlines) {
    while (!in_.done()) {
      const char c = in_.peek();
      if (in_.take("//") || c == '#') {
        while (!in_.done() && in_.peek() != '\n') in_.next();
      } else if (c == ' ' || c == '\t' || c == '\r' || (newlines && c == '\n')) {
        in_.next();
      } else if (c == '\n') {
        // A line that begins with | continues with the rule.
        const std::size_t before = in_.at();
        space(true);
        if (in_.peek() == '|') return;
        in_.move_to(before);
        return;
      } else {
        return;
      }
    }
  }

  std::string read_name() {
    std::string name;
    while (is_name(in_.peek())) name += in_.next();
    if (name.empty()) in_.fail("expected a name");
    return name;
  }

  void statement() {
    if (in_.take("%ignore")) {
      space(false);
      ignored_.kind = TermKind::kEither;
      ignored_.parts.push_back(alternatives(0));
      return;
    }
    if (in_.take("%import")) {
      import();
      return;
    }
    if (in_.peek() == '%')
      in_.fail("only %ignore, %import and %json are supported", ErrorKind::kUnsupported);
    while (in_.peek() == '?' || in_.peek() == '!') in_.next();
    const std::string name = read_name();
    if (in_.take(".")) read_name();  // a priority
    if (in_.peek() == '{') in_.fail("templates are not supported", ErrorKind::kUnsupported);
    space(false);
    if (!in_.take(":")) in_.fail(fmt::format("expected : after \"{}\"", name));
    GrammarTerm term = alternatives(0);
    if (!in_.done() && in_.peek() != '\n') in_.fail("expected the end of the rule");
    if (!grammar_.rules.emplace(name, std::move(term)).second)
      in_.fail(fmt::format("a second rule \"{}\"", name));
  }

  void import() {
    space(false);
    if (!in_.take("common.")) in_.fail("only common can be imported", ErrorKind::kUnsupported);
    std::vector<std::string> names;
    if (in_.take("(")) {
      do {
        space(true);
        names.push_back(read_name());
        space(true);
      } while (in_.take(","));
      if (!in_.take(")")) in_.fail("expected )");
    } else {
      names.push_back(read_name());
    }
    space(false);
    std::string alias = names[0];
    if (names.size() == 1 && in_.take("->")) {
      space(false);
      alias = read_name();
    }
    for (const std::string& name : names) {
      const auto* const found = std::find_if(std::begin(kCommon), std::end(kCommon),
                                             [&](const auto& one) { return one.name == name; });
      if (found == std::end(kCommon))
        in_.fail(fmt::format("common has no {}", name), ErrorKind::kUnsupported);
      GrammarTerm term{.kind = TermKind::kRegex};
      term.text = found->pattern;
      grammar_.rules[names.size() == 1 ? alias : name] = std::move(term);
    }
  }

  GrammarTerm alternatives(int depth) {
    if (depth > kDeepestTerm) in_.fail("parentheses nested too deeply", ErrorKind::kUnsupported);
    GrammarTerm result{.kind = TermKind::kEither};
    do {
      result.parts.push_back(sequence(depth));
      space(depth > 0);
    } while (in_.take("|"));
    if (result.parts.size() > 1) return result;
    GrammarTerm only = std::move(result.parts[0]);
    return only;
  }

  GrammarTerm sequence(int depth) {
    GrammarTerm result{.kind = TermKind::kSequence};
    for (space(depth > 0); !in_.done(); space(depth > 0)) {
      if (in_.take("->")) {
        space(false);
        read_name();
        continue;
      }
      const char c = in_.peek();
      GrammarTerm term;
      if (c == '"') {
        term = text();
        if (in_.take("..")) {
          const GrammarTerm last = text();
          const std::u32string low = to_code_points(term.text), high = to_code_points(last.text);
          if (low.size() != 1 || high.size() != 1 || low > high)
            in_.fail("not a range of characters");
          term = GrammarTerm{.kind = TermKind::kClass};
          term.set = CharSet({{low[0], high[0]}});
        }
      } else if (c == '/') {
        term = regex();
      } else if (c == '(') {
        in_.next();
        term = alternatives(depth + 1);
        if (!in_.take(")")) in_.fail("expected )");
      } else if (c == '[') {
        in_.next();
        GrammarTerm inner = alternatives(depth + 1);
        if (!in_.take("]")) in_.fail("expected ]");
        term = GrammarTerm{.kind = TermKind::kRepeat, .min = 0, .max = 1};
        term.parts.push_back(std::move(inner));
      } else if (in_.take("%json")) {
        term = json_schema();
      } else if (is_name(c)) {
        term.kind = TermKind::kName;
        term.text = read_name();
        if (in_.peek() == '{') in_.fail("templates are not supported", ErrorKind::kUnsupported);
      } else if (c == '<') {
        term.kind = TermKind::kToken;
        term.text = in_.token_id();
      } else {
        break;
      }
      result.parts.push_back(repeated(std::move(term)));
    }
    return result;
  }

  GrammarTerm text() {
    GrammarTerm term{.kind = TermKind::kText};
    if (!in_.take("\"")) in_.fail("expected a text");
    while (in_.peek() != '"' || in_.done()) {
      if (in_.done() || in_.peek() == '\n') in_.fail("a text without its closing quote");
      append_utf8(in_.take("\\") ? in_.escaped() : in_.character(), term.text);
    }
    in_.next();
    if (in_.peek() == 'i' && !is_name(in_.peek(1))) {
      in_.next();
      term.ignores_case = true;
    }
    return term;
  }

  GrammarTerm regex() {
    in_.next();
    GrammarTerm term{.kind = TermKind::kRegex};
    bool in_class = false;
    while (in_.peek() != '/' || in_class || in_.done()) {
      if (in_.done() || in_.peek() == '\n') in_.fail("a regular expression without its closing /");
      const char c = in_.next();
      if (c == '[') in_class = true;
      if (c == ']') in_class = false;
      if (c == '\\') {
        const char escaped = in_.next();
        if (escaped != '/') term.text += c;
        term.text += escaped;
      } else {
        term.text += c;
      }
    }
    in_.next();
    while (in_.peek() >= 'a' && in_.peek() <= 'z') {
      const char flag = in_.next();
      if (flag == 'i')
        term.ignores_case = true;
      else if (flag != 'u')
        in_.fail("only the flag i is supported", ErrorKind::kUnsupported);
    }
    return term;
  }

  GrammarTerm json_schema() {
    space(true);
    if (in_.peek() != '{') in_.fail("expected a schema after %json");
    GrammarTerm term{.kind = TermKind::kJsonSchema};
    int depth = 0;
    bool quoted = false;
    do {
      const char c = in_.next();
      term.text += c;
      if (quoted && c == '\\') {
        term.text += in_.next();
      } else if (c == '"') {
        quoted = !quoted;
      } else if (!quoted) {
        depth += c == '{' ? 1 : c == '}' ? -1 : 0;
      }
    } while (depth > 0);
    return term;
  }

  std::uint32_t number() {
    space(false);
    if (in_.peek() < '0' || in_.peek() > '9') in_.fail("expected a number");
    std::uint64_t value = 0;
    while (in_.peek() >= '0' && in_.peek() <= '9')
      value = std::min<std::uint64_t>(value * 10 + static_cast<std::uint64_t>(in_.next() - '0'),
                                      1'000'000'000);
    return static_cast<std::uint32_t>(value);
  }

  GrammarTerm repeated(GrammarTerm term) {
    while (true) {
      std::uint32_t min = 0, max = kUnbounded;
      if (in_.take("*")) {
      } else if (in_.take("+")) {
        min = 1;
      } else if (in_.take("?")) {
        max = 1;
      } else if (in_.take("~")) {
        min = max = number();
        space(false);
        if (in_.take("..")) max = number();
        if (min > max) in_.fail("~n..m where n is more than m");
      } else {
        const std::size_t before = in_.at();
        while (in_.peek() == ' ') in_.next();
        if (in_.peek() != '~') {
          in_.move_to(before);
          return term;
        }
        continue;
      }
      GrammarTerm outer{.kind = TermKind::kRepeat, .min = min, .max = max};
      outer.parts.push_back(std::move(term));
      term = std::move(outer);
    }
  }

  GrammarReader in_;
  WrittenGrammar grammar_;
  GrammarTerm ignored_;
};

}  // namespace

Result<WrittenGrammar> parse_lark(std::string_view text) {
  try {
    return LarkParser(text).parse();
  } catch (ReadFailure& failure) {
    return std::move(failure.error);
  }
}

}  // namespace hearth::grammar
