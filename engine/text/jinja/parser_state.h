// What the parts of the parser share. Private to them.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/jinja/lexer.h"
#include "engine/text/jinja/syntax.h"

namespace hearth::jinja {

class TokenStream {
 public:
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& now() const { return tokens_[at_]; }
  const Token& next() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  // Returns the current token and moves to the next.
  const Token& take() {
    const Token& token = tokens_[at_];
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }
  bool take_if(std::string_view name_or_operator) {
    if (!now().is(name_or_operator)) return false;
    take();
    return true;
  }
  const Token& expect(Token::Kind kind, std::string_view described);
  void expect(std::string_view name_or_operator);
  // Fails with what stands there instead.
  [[noreturn]] void unexpected(std::string_view wanted) const;

 private:
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
};

// Which of the special names the macros around the current token use.
struct MacroUse {
  bool varargs = false, kwargs = false, caller = false;
};

struct ParserState {
  Syntax& syntax;
  TokenStream tokens;
  std::vector<MacroUse> macros;
  int conditions = 0;  // ifs around the current token: there, unknown filters wait for their turn
  int depth = 0;       // of the parser's own recursion

  Name name(std::string_view text);
  Expression& expression(Expression::Form form, std::uint32_t line);
  // Done with its items: checks how deep it got.
  const Expression* finished(Expression& made);
};

// One level of the parser's recursion.
class ParserNesting {
 public:
  explicit ParserNesting(ParserState& state);
  ~ParserNesting() { --state_.depth; }
  ParserNesting(const ParserNesting&) = delete;
  ParserNesting& operator=(const ParserNesting&) = delete;

 private:
  ParserState& state_;
};

class ExpressionParser {
  using Form = Expression::Form;

 public:
  explicit ExpressionParser(ParserState& state) : state_(state), tokens_(state.tokens) {}

  const Expression* expression();
  // Several, with commas between them, are a tuple. `end` is a name that ends it.
  const Expression* tuple(bool with_if = true, std::string_view end = {});
  // What can stand left of '=' or after `for`.
  const Expression* target(bool with_namespace, std::string_view end = {});
  // Filters after an expression, or without one (null) in a block.
  const Expression* filters(const Expression* input, bool first_without_bar = false);
  const Expression* name_target();

 private:
  const Expression* condition();
  const Expression* either();
  const Expression* both();
  const Expression* negation();
  const Expression* comparison();
  const Expression* sum();
  const Expression* concatenation();
  const Expression* product();
  const Expression* power();
  const Expression* unary(bool with_filters);
  const Expression* primary(bool with_namespace = false);
  const Expression* literal(Value value, std::uint32_t line);
  const Expression* number();
  const Expression* list();
  const Expression* dict();
  const Expression* parentheses();
  const Expression* postfix(const Expression* value);
  const Expression* filters_and_tests(const Expression* value);
  const Expression* subscript(const Expression* value);
  const Expression* call(const Expression* value);
  const Expression* test(const Expression* value);
  std::unique_ptr<CallArguments> arguments();
  const Expression* binary(Operator op, const Expression* left, const Expression* right,
                           std::uint32_t line);
  const Expression* simple(Form form, std::uint32_t line,
                           std::initializer_list<const Expression*> items);
  void check_target(const Expression& target) const;

  ParserState& state_;
  TokenStream& tokens_;
};

}  // namespace hearth::jinja
