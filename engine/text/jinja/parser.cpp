// Statements. Expressions are in parser_expressions.cpp and parser_operands.cpp.
#include "engine/text/jinja/parser.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "engine/text/jinja/budget.h"
#include "engine/text/jinja/parser_state.h"

namespace hearth::jinja {
namespace {

using Body = std::vector<const Statement*>;

// Published templates have up to 30 KB.
constexpr std::size_t kMaxTemplateBytes = 512 * 1024;

class Parser {
  using Form = Statement::Form;

 public:
  explicit Parser(ParserState& state) : state_(state), tokens_(state.tokens), expressions_(state) {}

  Body body(std::initializer_list<std::string_view> ends) {
    Body result;
    while (true) {
      const Token& token = tokens_.now();
      switch (token.kind) {
        case Token::Kind::kEnd:
          if (ends.size() == 0) return result;
          fail(fmt::format("the template ends where '{}' is missing", *(ends.end() - 1)),
               token.line);
        case Token::Kind::kText: {
          Statement& text = statement(Form::kText, token.line);
          text.text = token.text;
          tokens_.take();
          result.push_back(&text);
          break;
        }
        case Token::Kind::kOpenOutput: {
          tokens_.take();
          Statement& output = statement(Form::kOutput, token.line);
          output.value = expressions_.tuple();
          tokens_.expect(Token::Kind::kCloseOutput, "'}}'");
          result.push_back(&output);
          break;
        }
        default:  // only tags can begin here
          tokens_.take();
          for (const std::string_view end : ends)
            if (tokens_.now().is(end)) return result;
          block(result);
          tokens_.expect(Token::Kind::kCloseBlock, "'%}'");
      }
    }
  }

 private:
  Statement& statement(Form form, std::uint32_t line) {
    Statement& made = state_.syntax.statements.emplace_back();
    made.form = form;
    made.line = line;
    return made;
  }

  // The rest of an opening tag, then statements up to one of `ends`, which is taken and returned.
  std::string_view inside(Body& result, std::initializer_list<std::string_view> ends) {
    tokens_.take_if(":");
    tokens_.expect(Token::Kind::kCloseBlock, "'%}'");
    result = body(ends);
    return tokens_.take().text;
  }

  void block(Body& result) {
    const ParserNesting nesting(state_);
    const Token token = tokens_.now();
    if (token.kind != Token::Kind::kName) tokens_.unexpected("the name of a tag");
    tokens_.take();
    if (token.text == "if") {
      result.push_back(if_block(token.line));
    } else if (token.text == "for") {
      result.push_back(for_block(token.line));
    } else if (token.text == "set") {
      result.push_back(set(token.line));
    } else if (token.text == "macro") {
      result.push_back(macro(token.line));
    } else if (token.text == "call") {
      result.push_back(call(token.line));
    } else if (token.text == "filter") {
      Statement& made = statement(Form::kFilter, token.line);
      made.value = expressions_.filters(nullptr, true);
      inside(made.body, {"endfilter"});
      result.push_back(&made);
    } else if (token.text == "with") {
      result.push_back(with(token.line));
    } else if (token.text == "generation") {
      Statement& made = statement(Form::kGroup, token.line);
      inside(made.body, {"endgeneration"});
      result.push_back(&made);
    } else if (token.text == "break" || token.text == "continue") {
      if (loops_ == 0) fail(fmt::format("'{}' outside a loop", token.text), token.line);
      result.push_back(
          &statement(token.text == "break" ? Form::kBreak : Form::kContinue, token.line));
    } else if (token.text == "print") {
      print(result, token.line);
    } else {
      unknown(token);
    }
  }

  [[noreturn]] static void unknown(const Token& token) {
    constexpr std::array<std::string_view, 6> kRefused = {"include", "import", "from",
                                                          "extends", "block",  "autoescape"};
    if (std::ranges::find(kRefused, token.text) != kRefused.end())
      fail(fmt::format("'{}' is not supported in chat templates", token.text), token.line);
    if (token.text.starts_with("end") || token.text == "else" || token.text == "elif")
      fail(fmt::format("'{}' ends nothing that is open here", token.text), token.line);
    fail(fmt::format("unknown tag '{}'", token.text), token.line);
  }

  const Statement* if_block(std::uint32_t line) {
    Statement& made = statement(Form::kIf, line);
    ++state_.conditions;
    // A chain of elifs is a chain of ifs in one another's else, built without recursion.
    Statement* last = &made;
    last->value = expressions_.tuple(false);
    std::string_view end = inside(last->body, {"elif", "else", "endif"});
    while (end == "elif") {
      Statement& next = statement(Form::kIf, tokens_.now().line);
      next.value = expressions_.tuple(false);
      end = inside(next.body, {"elif", "else", "endif"});
      last->otherwise = {&next};
      last = &next;
    }
    if (end == "else") inside(last->otherwise, {"endif"});
    --state_.conditions;
    return &made;
  }

  const Statement* for_block(std::uint32_t line) {
    Statement& made = statement(Form::kFor, line);
    made.target = expressions_.target(false, "in");
    check_loop_target(*made.target);
    tokens_.expect("in");
    made.value = expressions_.tuple(false, "recursive");
    if (tokens_.take_if("if")) made.condition = expressions_.expression();
    made.is_recursive = tokens_.take_if("recursive");
    ++loops_;
    const std::string_view end = inside(made.body, {"else", "endfor"});
    --loops_;
    if (end == "else") inside(made.otherwise, {"endfor"});
    return &made;
  }

  static void check_loop_target(const Expression& target) {
    if (target.form == Expression::Form::kName && target.name == kLoopName)
      fail("a loop cannot assign to 'loop'", target.line);
    for (const Expression* const item : target.items) check_loop_target(*item);
  }

  const Statement* set(std::uint32_t line) {
    Statement& made = statement(Form::kSet, line);
    made.target = expressions_.target(true);
    if (tokens_.take_if("=")) {
      made.value = expressions_.tuple();
      return &made;
    }
    made.form = Form::kSetBlock;
    made.value = expressions_.filters(nullptr);
    inside(made.body, {"endset"});
    return &made;
  }

  const Statement* with(std::uint32_t line) {
    Statement& made = statement(Form::kWith, line);
    while (tokens_.now().kind != Token::Kind::kCloseBlock) {
      if (!made.targets.empty()) tokens_.expect(",");
      made.targets.push_back(expressions_.target(false));
      tokens_.expect("=");
      made.values.push_back(expressions_.expression());
    }
    inside(made.body, {"endwith"});
    return &made;
  }

  void signature(MacroSyntax& macro) {
    tokens_.expect("(");
    bool optional = false;
    while (!tokens_.now().is(")")) {
      if (!macro.parameters.empty()) tokens_.expect(",");
      const Token name = tokens_.expect(Token::Kind::kName, "the name of a parameter");
      MacroSyntax::Parameter parameter{name.text, state_.name(name.text)};
      if (tokens_.take_if("=")) {
        parameter.standard = expressions_.expression();
        optional = true;
      } else if (optional) {
        fail(fmt::format("parameter '{}' needs a default, as one before it has one", name.text),
             name.line);
      }
      macro.parameters.push_back(parameter);
    }
    tokens_.expect(")");
  }

  // A macro's own body: loops around it are not its loops, and its names are looked at.
  void macro_body(MacroSyntax& macro, std::string_view end) {
    const int loops = std::exchange(loops_, 0);
    state_.macros.emplace_back();
    inside(macro.body, {end});
    const MacroUse use = state_.macros.back();
    state_.macros.pop_back();
    loops_ = loops;
    macro.takes_varargs = use.varargs;
    macro.takes_kwargs = use.kwargs;
    macro.takes_caller = use.caller;
  }

  const Statement* macro(std::uint32_t line) {
    Statement& made = statement(Form::kMacro, line);
    made.macro = std::make_unique<MacroSyntax>();
    made.target = expressions_.name_target();
    made.macro->name = made.target->text;
    signature(*made.macro);
    macro_body(*made.macro, "endmacro");
    return &made;
  }

  const Statement* call(std::uint32_t line) {
    Statement& made = statement(Form::kCall, line);
    made.macro = std::make_unique<MacroSyntax>();
    if (tokens_.now().is("(")) signature(*made.macro);
    made.value = expressions_.expression();
    if (made.value->form != Expression::Form::kCall) fail("'call' needs a call", line);
    macro_body(*made.macro, "endcall");
    return &made;
  }

  void print(Body& result, std::uint32_t line) {
    for (bool first = true; tokens_.now().kind != Token::Kind::kCloseBlock; first = false) {
      if (!first) tokens_.expect(",");
      Statement& output = statement(Form::kOutput, line);
      output.value = expressions_.expression();
      result.push_back(&output);
    }
  }

  ParserState& state_;
  TokenStream& tokens_;
  ExpressionParser expressions_;
  int loops_ = 0;  // around the current token, in the same macro
};

}  // namespace

std::unique_ptr<const Syntax> parse_template(std::string_view source) {
  if (source.size() > kMaxTemplateBytes)
    fail(fmt::format("it has {} bytes, more than {}", source.size(), kMaxTemplateBytes), 1);
  auto syntax = std::make_unique<Syntax>();
  syntax->source = normal_source(source);
  ParserState state{*syntax, TokenStream(lex(syntax->source, syntax->strings)), {}};
  for (const std::string_view name : {"loop", "caller", "varargs", "kwargs"}) state.name(name);
  syntax->body = Parser(state).body({});
  return syntax;
}

}  // namespace hearth::jinja
