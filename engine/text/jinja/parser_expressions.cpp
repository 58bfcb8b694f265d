// Operators, from the loosest to the tightest. What they apply to is in parser_operands.cpp.
#include "engine/text/jinja/parser_state.h"

namespace hearth::jinja {

const Expression* ExpressionParser::simple(Form form, std::uint32_t line,
                                           std::initializer_list<const Expression*> items) {
  Expression& made = state_.expression(form, line);
  made.items = items;
  return state_.finished(made);
}

const Expression* ExpressionParser::binary(Operator op, const Expression* left,
                                           const Expression* right, std::uint32_t line) {
  Expression& made = state_.expression(Form::kBinary, line);
  made.operators = {op};
  made.items = {left, right};
  return state_.finished(made);
}

const Expression* ExpressionParser::expression() { return condition(); }

const Expression* ExpressionParser::tuple(bool with_if, std::string_view end) {
  const std::uint32_t line = tokens_.now().line;
  std::vector<const Expression*> items;
  bool is_tuple = false;
  while (true) {
    const Token& token = tokens_.now();
    if (token.kind == Token::Kind::kCloseOutput || token.kind == Token::Kind::kCloseBlock ||
        token.is(")") || (!end.empty() && token.is(end)))
      break;
    items.push_back(with_if ? condition() : either());
    if (!tokens_.take_if(",")) break;
    is_tuple = true;
  }
  if (!is_tuple) {
    if (items.empty()) tokens_.unexpected("an expression");
    return items[0];
  }
  Expression& made = state_.expression(Form::kTuple, line);
  made.items = std::move(items);
  return state_.finished(made);
}

const Expression* ExpressionParser::condition() {
  const ParserNesting nesting(state_);
  const Expression* value = either();
  while (tokens_.now().is("if")) {
    const std::uint32_t line = tokens_.take().line;
    ++state_.conditions;
    const Expression* const test = either();
    const Expression* const otherwise = tokens_.take_if("else") ? condition() : nullptr;
    --state_.conditions;
    value = simple(Form::kIf, line, {value, test, otherwise});
  }
  return value;
}

const Expression* ExpressionParser::either() {
  const ParserNesting nesting(state_);
  const Expression* left = both();
  while (tokens_.now().is("or")) {
    const std::uint32_t line = tokens_.take().line;
    left = simple(Form::kOr, line, {left, both()});
  }
  return left;
}

const Expression* ExpressionParser::both() {
  const Expression* left = negation();
  while (tokens_.now().is("and")) {
    const std::uint32_t line = tokens_.take().line;
    left = simple(Form::kAnd, line, {left, negation()});
  }
  return left;
}

const Expression* ExpressionParser::negation() {
  if (!tokens_.now().is("not")) return comparison();
  const ParserNesting nesting(state_);
  const std::uint32_t line = tokens_.take().line;
  return simple(Form::kNot, line, {negation()});
}

const Expression* ExpressionParser::comparison() {
  struct Spelling {
    std::string_view text;
    Operator op;
  };
  constexpr Spelling kSpellings[] = {{"==", Operator::kEqual},  {"!=", Operator::kNotEqual},
                                     {"<", Operator::kLess},    {"<=", Operator::kLessEqual},
                                     {">", Operator::kGreater}, {">=", Operator::kGreaterEqual},
                                     {"in", Operator::kIn}};
  const std::uint32_t line = tokens_.now().line;
  const Expression* const first = sum();
  Expression* made = nullptr;
  while (true) {
    const Spelling* found = nullptr;
    for (const Spelling& spelling : kSpellings)
      if (tokens_.now().is(spelling.text)) found = &spelling;
    const bool is_not_in = tokens_.now().is("not") && tokens_.next().is("in");
    if (found == nullptr && !is_not_in) break;
    tokens_.take();
    if (is_not_in) tokens_.take();
    if (made == nullptr) {
      made = &state_.expression(Form::kCompare, line);
      made->items.push_back(first);
    }
    made->operators.push_back(is_not_in ? Operator::kNotIn : found->op);
    made->items.push_back(sum());
  }
  return made == nullptr ? first : state_.finished(*made);
}

const Expression* ExpressionParser::sum() {
  const Expression* left = concatenation();
  while (tokens_.now().is("+") || tokens_.now().is("-")) {
    const Token op = tokens_.take();
    left = binary(op.text == "+" ? Operator::kAdd : Operator::kSubtract, left, concatenation(),
                  op.line);
  }
  return left;
}

const Expression* ExpressionParser::concatenation() {
  const std::uint32_t line = tokens_.now().line;
  const Expression* const first = product();
  if (!tokens_.now().is("~")) return first;
  Expression& made = state_.expression(Form::kConcat, line);
  made.items.push_back(first);
  while (tokens_.take_if("~")) made.items.push_back(product());
  return state_.finished(made);
}

const Expression* ExpressionParser::product() {
  const Expression* left = power();
  while (true) {
    const Token op = tokens_.now();
    const bool known = op.is("*") || op.is("/") || op.is("//") || op.is("%");
    if (!known) return left;
    tokens_.take();
    left = binary(op.text == "*"    ? Operator::kMultiply
                  : op.text == "/"  ? Operator::kDivide
                  : op.text == "//" ? Operator::kFloorDivide
                                    : Operator::kModulo,
                  left, power(), op.line);
  }
}

const Expression* ExpressionParser::power() {
  const Expression* left = unary(true);
  while (tokens_.now().is("**")) {
    const std::uint32_t line = tokens_.take().line;
    left = binary(Operator::kPower, left, unary(true), line);
  }
  return left;
}

const Expression* ExpressionParser::unary(bool with_filters) {
  const Token token = tokens_.now();
  const Expression* value = nullptr;
  if (token.is("-") || token.is("+")) {
    const ParserNesting nesting(state_);
    tokens_.take();
    value =
        simple(token.text == "-" ? Form::kNegative : Form::kPositive, token.line, {unary(false)});
  } else {
    value = primary();
  }
  value = postfix(value);
  return with_filters ? filters_and_tests(value) : value;
}

}  // namespace hearth::jinja
