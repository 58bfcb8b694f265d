// Names, literals, calls, filters and tests: what operators apply to; and targets of assignments.
#include <charconv>
#include <limits>

#include <fmt/format.h>

#include "engine/text/jinja/budget.h"
#include "engine/text/jinja/builtins.h"
#include "engine/text/jinja/parser_state.h"

namespace hearth::jinja {

const Expression* ExpressionParser::literal(Value value, std::uint32_t line) {
  Expression& made = state_.expression(Form::kLiteral, line);
  made.literal = value;
  return &made;
}

const Expression* ExpressionParser::primary(bool with_namespace) {
  const Token token = tokens_.now();
  switch (token.kind) {
    case Token::Kind::kName: {
      tokens_.take();
      if (token.text == "true" || token.text == "True") return literal(Value::of(true), token.line);
      if (token.text == "false" || token.text == "False")
        return literal(Value::of(false), token.line);
      if (token.text == "none" || token.text == "None") return literal(Value::none(), token.line);
      Expression& name = state_.expression(Form::kName, token.line);
      name.name = state_.name(token.text);
      name.text = token.text;
      if (!with_namespace || !tokens_.take_if(".")) return &name;
      Expression& made = state_.expression(Form::kAttribute, token.line);
      made.text = tokens_.expect(Token::Kind::kName, "a name").text;
      made.items = {&name};
      return state_.finished(made);
    }
    case Token::Kind::kString: {
      tokens_.take();
      if (tokens_.now().kind != Token::Kind::kString)
        return literal(Value::borrowed(token.text), token.line);
      std::string& joined = state_.syntax.strings.emplace_back(token.text);
      while (tokens_.now().kind == Token::Kind::kString) joined += tokens_.take().text;
      return literal(Value::borrowed(joined), token.line);
    }
    case Token::Kind::kInteger:
    case Token::Kind::kFloat:
      return number();
    default:
      if (token.is("(")) return parentheses();
      if (token.is("[")) return list();
      if (token.is("{")) return dict();
      tokens_.unexpected("an expression");
  }
}

const Expression* ExpressionParser::number() {
  const Token token = tokens_.take();
  std::string digits;
  for (const char c : token.text)
    if (c != '_') digits += c;
  const char* begin = digits.data();
  const char* const end = begin + digits.size();
  if (token.kind == Token::Kind::kFloat) {
    double number = 0;
    const auto read = std::from_chars(begin, end, number);
    if (read.ec == std::errc::result_out_of_range && digits.find("e-") == digits.npos)
      number = std::numeric_limits<double>::infinity();
    return literal(Value::of(number), token.line);
  }
  int base = 10;
  if (digits.size() > 1 && digits[0] == '0') {
    const char prefix = static_cast<char>(digits[1] | 0x20);
    base = prefix == 'x' ? 16 : prefix == 'o' ? 8 : prefix == 'b' ? 2 : 10;
    if (base != 10) begin += 2;
    if (base == 10 && digits.find_first_not_of('0') != digits.npos)
      fail(fmt::format("{} is not a number", token.text), token.line);
  }
  std::int64_t number = 0;
  const auto read = std::from_chars(begin, end, number, base);
  if (read.ec == std::errc::result_out_of_range)
    fail(fmt::format("the number {} is too large", token.text.substr(0, 40)), token.line);
  if (read.ec != std::errc() || read.ptr != end)
    fail(fmt::format("{} is not a number", token.text), token.line);
  return literal(Value::of(number), token.line);
}

const Expression* ExpressionParser::parentheses() {
  const std::uint32_t line = tokens_.take().line;
  const Expression* inside = nullptr;
  if (tokens_.now().is(")")) {
    inside = simple(Form::kTuple, line, {});
  } else {
    inside = tuple();
  }
  tokens_.expect(")");
  return inside;
}

const Expression* ExpressionParser::list() {
  Expression& made = state_.expression(Form::kList, tokens_.take().line);
  while (!tokens_.now().is("]")) {
    if (!made.items.empty()) tokens_.expect(",");
    if (tokens_.now().is("]")) break;
    made.items.push_back(expression());
  }
  tokens_.expect("]");
  return state_.finished(made);
}

const Expression* ExpressionParser::dict() {
  Expression& made = state_.expression(Form::kDict, tokens_.take().line);
  while (!tokens_.now().is("}")) {
    if (!made.items.empty()) tokens_.expect(",");
    if (tokens_.now().is("}")) break;
    made.items.push_back(expression());
    tokens_.expect(":");
    made.items.push_back(expression());
  }
  tokens_.expect("}");
  return state_.finished(made);
}

const Expression* ExpressionParser::postfix(const Expression* value) {
  while (true) {
    if (tokens_.now().is(".") || tokens_.now().is("[")) {
      value = subscript(value);
    } else if (tokens_.now().is("(")) {
      value = call(value);
    } else {
      return value;
    }
  }
}

const Expression* ExpressionParser::filters_and_tests(const Expression* value) {
  while (true) {
    if (tokens_.now().is("|")) {
      value = filters(value);
    } else if (tokens_.now().is("is")) {
      value = test(value);
    } else if (tokens_.now().is("(")) {
      value = call(value);
    } else {
      return value;
    }
  }
}

const Expression* ExpressionParser::subscript(const Expression* value) {
  const Token open = tokens_.take();
  if (open.text == ".") {
    if (tokens_.now().kind == Token::Kind::kInteger) {
      const std::uint32_t line = tokens_.now().line;
      return simple(Form::kItem, line, {value, number()});
    }
    Expression& made = state_.expression(Form::kAttribute, open.line);
    made.text = tokens_.expect(Token::Kind::kName, "a name or a number").text;
    made.items = {value};
    return state_.finished(made);
  }
  const auto ends = [&] { return tokens_.now().is("]") || tokens_.now().is(","); };
  const Expression* begin = tokens_.now().is(":") ? nullptr : expression();
  if (tokens_.take_if(":")) {
    const Expression* const end = ends() || tokens_.now().is(":") ? nullptr : expression();
    const Expression* step = nullptr;
    if (tokens_.take_if(":") && !ends()) step = expression();
    tokens_.expect("]");
    return simple(Form::kSlice, open.line, {value, begin, end, step});
  }
  if (tokens_.now().is(",")) {
    Expression& made = state_.expression(Form::kTuple, open.line);
    made.items.push_back(begin);
    while (tokens_.take_if(",")) made.items.push_back(expression());
    begin = state_.finished(made);
  }
  tokens_.expect("]");
  return simple(Form::kItem, open.line, {value, begin});
}

std::unique_ptr<CallArguments> ExpressionParser::arguments() {
  auto made = std::make_unique<CallArguments>();
  tokens_.expect("(");
  for (bool first = true; !tokens_.now().is(")"); first = false) {
    if (!first) tokens_.expect(",");
    if (tokens_.now().is(")")) break;
    const Token token = tokens_.now();
    const auto ensure = [&](bool is_right) {
      if (!is_right) fail("arguments of a call are in the wrong order", token.line);
    };
    if (tokens_.take_if("*")) {
      ensure(made->star == nullptr && made->star_star == nullptr);
      made->star = expression();
    } else if (tokens_.take_if("**")) {
      ensure(made->star_star == nullptr);
      made->star_star = expression();
    } else if (token.kind == Token::Kind::kName && tokens_.next().is("=")) {
      ensure(made->star_star == nullptr);
      tokens_.take();
      tokens_.take();
      made->named.push_back({token.text, expression()});
    } else {
      ensure(made->star == nullptr && made->star_star == nullptr && made->named.empty());
      made->positional.push_back(expression());
    }
  }
  tokens_.expect(")");
  return made;
}

const Expression* ExpressionParser::call(const Expression* value) {
  Expression& made = state_.expression(Form::kCall, tokens_.now().line);
  made.items = {value};
  made.arguments = arguments();
  return state_.finished(made);
}

const Expression* ExpressionParser::filters(const Expression* input, bool first_without_bar) {
  while (first_without_bar || tokens_.take_if("|")) {
    first_without_bar = false;
    const Token name = tokens_.expect(Token::Kind::kName, "the name of a filter");
    Expression& made = state_.expression(Form::kFilter, name.line);
    made.text = name.text;
    made.builtin = find_filter(name.text);
    if (made.builtin == nullptr && state_.conditions == 0)
      fail(fmt::format("there is no filter '{}'", name.text), name.line);
    made.items = {input};
    made.arguments = tokens_.now().is("(") ? arguments() : std::make_unique<CallArguments>();
    input = state_.finished(made);
  }
  return input;
}

const Expression* ExpressionParser::test(const Expression* value) {
  const std::uint32_t line = tokens_.take().line;
  const bool is_not = tokens_.take_if("not");
  const Token name = tokens_.expect(Token::Kind::kName, "the name of a test");
  Expression& made = state_.expression(Form::kTest, line);
  made.text = name.text;
  made.builtin = find_test(name.text);
  if (made.builtin == nullptr && state_.conditions == 0)
    fail(fmt::format("there is no test '{}'", name.text), name.line);
  made.items = {value};
  made.arguments = std::make_unique<CallArguments>();
  const Token& next = tokens_.now();
  const bool is_argument =
      (next.kind == Token::Kind::kName && !next.is("else") && !next.is("or") && !next.is("and") &&
       !next.is("if") && !next.is("in") && !next.is("not")) ||
      next.kind == Token::Kind::kString || next.kind == Token::Kind::kInteger ||
      next.kind == Token::Kind::kFloat || next.is("[") || next.is("{");
  if (next.is("(")) {
    made.arguments = arguments();
  } else if (is_argument) {
    if (next.is("is")) fail("tests cannot be chained with 'is'", next.line);
    const ParserNesting nesting(state_);
    made.arguments->positional.push_back(postfix(primary()));
  }
  const Expression* const finished = state_.finished(made);
  return is_not ? simple(Form::kNot, line, {finished}) : finished;
}

const Expression* ExpressionParser::name_target() {
  const Token token = tokens_.expect(Token::Kind::kName, "a name");
  Expression& made = state_.expression(Form::kName, token.line);
  made.name = state_.name(token.text);
  made.text = token.text;
  check_target(made);
  return &made;
}

void ExpressionParser::check_target(const Expression& target) const {
  switch (target.form) {
    case Form::kName:
    case Form::kAttribute:
      return;
    case Form::kTuple:
      for (const Expression* const item : target.items) check_target(*item);
      return;
    default:
      fail("only names can be assigned to", target.line);
  }
}

const Expression* ExpressionParser::target(bool with_namespace, std::string_view end) {
  const std::uint32_t line = tokens_.now().line;
  std::vector<const Expression*> items;
  bool is_tuple = false;
  while (true) {
    const Token& token = tokens_.now();
    if (token.kind == Token::Kind::kCloseBlock || token.is("=") || (!end.empty() && token.is(end)))
      break;
    items.push_back(primary(with_namespace));
    if (!tokens_.take_if(",")) break;
    is_tuple = true;
  }
  if (items.empty()) tokens_.unexpected("a name");
  const Expression* made = items[0];
  if (is_tuple) {
    Expression& several = state_.expression(Form::kTuple, line);
    several.items = std::move(items);
    made = state_.finished(several);
  }
  check_target(*made);
  return made;
}

}  // namespace hearth::jinja
