// What the parts of the parser share.
#include "engine/text/jinja/parser_state.h"

#include <fmt/format.h>

#include "engine/text/jinja/budget.h"

namespace hearth::jinja {
namespace {

// Of the parser's recursion, and of what it makes: the interpreter recurses over that again.
constexpr int kMaxParserDepth = 200;
constexpr std::uint32_t kMaxTreeDepth = 400;

std::string described(const Token& token) {
  switch (token.kind) {
    case Token::Kind::kEnd:
      return "the end of the template";
    case Token::Kind::kText:
      return "text";
    case Token::Kind::kString:
      return "a string";
    default:
      return fmt::format("'{}'", token.text);
  }
}

}  // namespace

void TokenStream::unexpected(std::string_view wanted) const {
  fail(fmt::format("expected {}, found {}", wanted, described(now())), now().line);
}

const Token& TokenStream::expect(Token::Kind kind, std::string_view described) {
  if (now().kind != kind) unexpected(described);
  return take();
}

void TokenStream::expect(std::string_view name_or_operator) {
  if (!take_if(name_or_operator)) unexpected(fmt::format("'{}'", name_or_operator));
}

Name ParserState::name(std::string_view text) {
  const auto [entry, is_new] =
      syntax.name_ids.try_emplace(text, static_cast<Name>(syntax.names.size()));
  if (is_new) syntax.names.push_back(text);
  for (MacroUse& use : macros) {
    use.varargs |= entry->second == kVarargsName;
    use.kwargs |= entry->second == kKwargsName;
    use.caller |= entry->second == kCallerName;
  }
  return entry->second;
}

Expression& ParserState::expression(Expression::Form form, std::uint32_t line) {
  Expression& made = syntax.expressions.emplace_back();
  made.form = form;
  made.line = line;
  return made;
}

const Expression* ParserState::finished(Expression& made) {
  const auto look = [&](const Expression* item) {
    if (item != nullptr && item->depth >= made.depth) made.depth = item->depth + 1;
  };
  for (const Expression* const item : made.items) look(item);
  if (made.arguments) {
    for (const Expression* const item : made.arguments->positional) look(item);
    for (const NamedExpression& item : made.arguments->named) look(item.value);
    look(made.arguments->star);
    look(made.arguments->star_star);
  }
  if (made.depth > kMaxTreeDepth) fail("an expression nests too deeply", made.line);
  return &made;
}

ParserNesting::ParserNesting(ParserState& state) : state_(state) {
  if (state_.depth >= kMaxParserDepth)
    fail("the template nests too deeply", state_.tokens.now().line);
  ++state_.depth;
}

}  // namespace hearth::jinja
